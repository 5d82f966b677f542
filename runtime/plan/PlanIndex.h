// A plan with its shardings in plain data, and the questions that the checker, the executor and msrun ask of it.
#pragma once

#include "runtime/plan/CopyRegion.h"
#include "runtime/plan/plan.pb.h"

#include <string>
#include <utility>
#include <vector>

namespace msc {

/// The plan's sharding as plain data, whatever the message holds; Sharding::check says whether it is sound.
Sharding toSharding(const plan::Sharding &message);
/// The message of a sharding.
plan::Sharding fromSharding(const Sharding &sharding);

/// Bytes of one element; 0 for an unknown type.
size_t elementBytes(plan::DataType type);
/// "f32", "bool", ...: as in the language.
const char *dataTypeName(plan::DataType type);
/// "AllReduce", "AlltoAll", ...: the words of dumps and reports.
const char *collectiveName(plan::Collective::Kind kind);

/// "net.mir:14", "net.mir" without a line, "" without a file.
std::string placeOf(const plan::Plan &plan, uint32_t location);
/// "step 'matmul' (net.mir:14)".
std::string titleOf(const plan::Plan &plan, const plan::Step &step);

/// A tensor that a collective or a copy moves.
struct MovedTensor {
  uint32_t source = 0, target = 0;
  const plan::CopyRegions *regions = nullptr; ///< null: source and target are one tensor
};
/// The step's own tensor, then those of `also`.
std::vector<MovedTensor> tensorsOf(const plan::Collective &collective);
std::vector<MovedTensor> tensorsOf(const plan::Copy &copy);

/// The message in plain data, as regions of one operand. Missing numbers are 0, and those of strides 1: what is too much or too
/// little shows in checkRegions.
CopyRegions toRegions(const plan::CopyRegions &message, uint32_t operand = 0);
/// The message of regions, whatever their operands are.
plan::CopyRegions fromRegions(const CopyRegions &regions);

/// Buffers that a step body reads and writes, without what a launch says of itself in Step.reads and Step.writes.
struct BodyAccess {
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
};
BodyAccess accessOf(const plan::Step &step);

/// A view on a plan whose tables have been checked (all indices in range). The plan must outlive it.
class PlanIndex {
public:
  explicit PlanIndex(const plan::Plan &plan);

  const plan::Plan &plan() const { return *source; }
  int64_t devices() const { return source->devices(); }
  const plan::Buffer &buffer(uint32_t index) const { return source->buffers(static_cast<int>(index)); }
  const Sharding &sharding(uint32_t buffer) const { return shardings[this->buffer(buffer).sharding()]; }
  /// The global shape.
  const std::vector<int64_t> &shape(uint32_t buffer) const { return shapes[buffer]; }
  Box localBox(uint32_t buffer, int64_t rank) const { return sharding(buffer).localBox(shape(buffer), rank); }
  std::vector<int64_t> localShape(uint32_t buffer, int64_t rank) const { return sizes(localBox(buffer, rank)); }
  int64_t localCount(uint32_t buffer, int64_t rank) const { return elementCount(localBox(buffer, rank)); }
  /// True if no result of `step` has an element on `rank`: it launches nothing there. Collectives take part all the same.
  bool isIdle(const plan::Step &step, int64_t rank) const;
  /// The buffer that owns the memory which `buffer` shows: itself unless it is a view.
  uint32_t root(uint32_t buffer) const { return roots[buffer]; }
  size_t bufferCount() const { return shapes.size(); }

  std::string place(uint32_t location) const { return placeOf(*source, location); }
  std::string title(const plan::Step &step) const { return titleOf(*source, step); }
  /// "'h' (net.mir:9)".
  std::string bufferTitle(uint32_t buffer) const;

  /// The variant that `rank` runs; null if no range of the program holds the rank.
  static const plan::Variant *variantOf(const plan::Program &program, int64_t rank);
  /// The first program of that purpose, or null.
  const plan::Program *program(plan::Program::Purpose purpose) const;

private:
  const plan::Plan *source;
  std::vector<Sharding> shardings;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<uint32_t> roots;
};

/// The global ranks of `group` that share it with `rank`.
std::vector<int64_t> membersOf(const plan::Group &group, int64_t rank);

/// Whether the user gave the strategy of an operator or a part of it: in the network, in a dump that was edited, or by a sharding.
bool isGiven(const plan::OperatorNote &note);

} // namespace msc
