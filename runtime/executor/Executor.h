// Runs a program on one rank. Everything that depends on the rank is decided once, at load: which variant, which sizes,
// which addresses, which elements travel. A step is then a list of calls without arguments, no allocation, no lookup.
#pragma once

#include "runtime/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Transfers.h"
#include "runtime/plan/PlanIndex.h"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace msc {

/// The clock of traces.
int64_t steadyNanoseconds();

class Executor {
public:
  /// Binds the variant of `program` that this rank runs. The plan has passed checkPlan. All ranks call it together: it
  /// forms the groups of the collectives. `index`, `world` and `device` must outlive the executor.
  static Result<std::unique_ptr<Executor>> create(const PlanIndex &index, const plan::Program &program,
                                                  comm::World &world, device::Device &device, std::byte *arena);

  /// Fills the constants; once, before the first step.
  Status runConstants();
  /// All steps once. An error names rank, step, operator and place.
  Status runStep();
  /// The same, and when each step of the plan began and ended on this rank, in nanoseconds of `steadyNanoseconds`: begin and end
  /// of step i of the variant are written to times[2 i] and times[2 i + 1]. Steps run one after the other, each to its end, also
  /// where the device would run some beside others. A collective is complete when its start returns, so that has all of its time
  /// and its wait none; steps that do nothing here and constants have none, either.
  Status runStep(std::span<int64_t> times);
  /// "rank 1 of 8: ..." for an error of no step in particular.
  Error ofRank(const Error &error) const;
  /// Number of steps that do something on this rank.
  size_t activeSteps() const { return steps.active; }

private:
  /// A tensor of the arena and its place in `mirror`.
  struct StagedTensor {
    std::byte *data = nullptr, *mirror = nullptr;
    size_t bytes = 0;
  };
  /// A collective with final addresses.
  struct BoundCollective {
    plan::Collective::Kind kind = plan::Collective::EXCHANGE;
    comm::Group *group = nullptr;
    std::byte *source = nullptr, *target = nullptr;
    comm::ElementType type = comm::ElementType::F32;
    ReduceKind reduction = ReduceKind::Sum;
    std::vector<comm::ReducePart> reduces;          ///< ALL_REDUCE
    std::vector<std::vector<comm::Region>> pieces;  ///< REDUCE_SCATTER, of every tensor
    std::vector<comm::ScatterPart> scatters;        ///< REDUCE_SCATTER; they show `pieces`
    comm::ExchangePlan exchange;                    ///< the others, all tensors in one
    std::vector<device::Operation *> fills;         ///< of targets, before the exchange
    std::vector<StagedTensor> sources, targets;     ///< where the host cannot reach the arena; else none
    comm::OperationLabel label;
  };
  /// One step: a device operation, a collective of the host, or neither: a wait, or nothing to do on this rank.
  struct BoundStep {
    device::Operation *operation = nullptr;
    BoundCollective *collective = nullptr;
    const plan::Step *step = nullptr;
    uint32_t number = 0; ///< of the step in the plan
    bool isActive() const { return operation || collective; }
  };
  /// What runs up to the next collective that is no part of a sequence, and that collective.
  struct Part {
    std::unique_ptr<device::Sequence> sequence; ///< null: nothing
    std::vector<const plan::Step *> steps;      ///< of its entries
    BoundStep collective;                       ///< inactive: behind the last one
  };
  struct PartList {
    std::vector<Part> parts;
    size_t active = 0;
  };

  Executor(const PlanIndex &index, comm::World &world, device::Device &device, std::byte *arena)
      : index(index), world(world), device(device), arena(arena), rank(world.rank()) {}

  Status bind(const plan::Program &program, const plan::Variant &variant);
  /// The groups of all collectives of a program, where devices communicate.
  Status openGroups(const plan::Program &program);
  comm::Partition partitionOf(const plan::Group &group) const;
  Status bindStep(const plan::Variant &variant, uint32_t number, std::vector<BoundStep> &list);
  /// Sequences of what stands between collectives.
  PartList partsOf(const std::vector<BoundStep> &list);
  /// Adds what one more tensor moves.
  void bindTensor(BoundCollective &bound, const MovedTensor &tensor, const std::vector<int64_t> &members);
  /// Fills the targets, each once.
  Status bindFills(BoundCollective &bound, const plan::Collective &collective);
  /// One operation per source and region, and what fills the rest.
  Status bindCopy(const plan::Step &step, std::vector<BoundStep> &list);
  Status bindCollective(const plan::Variant &variant, const plan::Step &step, std::vector<BoundStep> &list);
  Result<std::unique_ptr<device::Operation>> prepare(const plan::Step &step);
  Result<std::unique_ptr<device::Operation>> prepareLaunch(const plan::Launch &launch);
  Result<std::unique_ptr<device::Operation>> prepareMatMul(const plan::MatMul &matmul);
  Result<std::unique_ptr<device::Operation>> prepareCall(const plan::Call &call);
  Result<std::unique_ptr<device::Operation>> prepareCopy(uint32_t source, uint32_t target, RegionPair pair);
  Result<std::unique_ptr<device::Operation>> prepareFill(uint32_t target, double value);
  /// Keeps an operation, or names the step in the error.
  Status keep(const plan::Step &step, Result<std::unique_ptr<device::Operation>> operation);
  std::byte *address(uint32_t buffer) const { return arena + index.buffer(buffer).offset(); }
  /// What of these buffers is on this rank.
  std::vector<device::MemoryRange> rangesOf(const google::protobuf::RepeatedField<uint32_t> &buffers) const;
  bool isOfHost() const { return device.collectiveForm() == device::CollectiveForm::OfHost; }
  /// Where collectives find a buffer: in the arena, or in `mirror`.
  std::byte *hostAddress(uint32_t buffer);
  StagedTensor staged(uint32_t buffer);
  void bindStaging(BoundCollective &bound, const plan::Collective &collective);
  /// As operations of the device.
  Status bindOnDevice(BoundCollective &bound, const plan::Step &step, std::vector<BoundStep> &list);
  int64_t localSize(const plan::SizeOf &size) const { return index.localShape(size.buffer(), rank)[size.dim()]; }

  /// A step on its own.
  Status run(const BoundStep &step) { return step.operation ? step.operation->run() : runCollective(*step.collective); }
  Status runCollective(BoundCollective &collective);
  static Status communicate(BoundCollective &collective);
  Status run(PartList &list);
  Error failed(const plan::Step &step, const Error &error) const;

  const PlanIndex &index;
  comm::World &world;
  device::Device &device;
  std::byte *arena;
  int64_t rank;
  const plan::Variant *variant = nullptr;
  std::vector<std::unique_ptr<device::Operation>> operations;
  std::vector<std::unique_ptr<BoundCollective>> collectives;
  std::map<uint32_t, comm::Partition> partitions; ///< of the variant's groups, where devices communicate
  std::unique_ptr<std::byte[]> mirror; ///< as large as the arena, where that is out of the host's reach and ranks communicate
  PartList constants, steps;
  std::vector<BoundStep> single; ///< the active ones of `steps`, in the order of the plan
};

} // namespace msc
