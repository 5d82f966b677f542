// What the executor asks of a compute device. Everything is prepared at load with final addresses, so that a step is a
// call without arguments. Backends: cpu here, cuda as a plugin.
#pragma once

#include "runtime/Status.h"
#include "runtime/comm/StreamCommunicator.h"
#include "runtime/plan/calls/Call.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace msc::device {

/// One piece of work with bound addresses. run() may be called any number of times and does not allocate.
class Operation {
public:
  virtual ~Operation() = default;
  virtual Status run() = 0;
};

/// A call of a generated kernel: symbol(arguments..., begin, end) for each task.
struct LaunchSpec {
  std::string symbol;
  std::vector<std::byte *> arguments;
  int64_t end = 1;    ///< of the range that starts at 0
  int64_t tasks = 1;  ///< pieces of the range, fixed in the plan
  int64_t unit = 1;   ///< piece boundaries are multiples of this
  /// Not 0: on a CPU the one unit is computed by symbol(arguments..., scratch, begin, end): pieces 0 to pieces - 1 in any order, then
  /// piece number `pieces`. The scratch, of any content, has so many bytes.
  int64_t pieces = 0;
  uint64_t pieceScratch = 0;
  /// On a GPU: entry(arguments..., end) in `blocks` blocks of `block` threads. Empty: the plan holds no GPU code.
  std::string entry;
  uint32_t block = 0;
  int64_t blocks = 0;
  /// On a GPU: bytes of memory of its own, zeros at first, that stand between the arguments and the end; 0: none.
  uint64_t scratch = 0;
};

/// result = epilogue(op(left) op(right)) for one batch entry per element of `batches`, all dense row-major. Sums and epilogue are in
/// f32; operands and result may be bf16 or f16, rounded once, where the device has such products.
struct MatMulSpec {
  /// Element offsets of one batch entry in each operand; operands that are broadcast repeat theirs.
  struct Batch {
    int64_t left = 0, right = 0, result = 0;
  };
  int64_t rows = 0, columns = 0, depth = 0;
  plan::DataType operands = plan::F32, type = plan::F32; ///< of left and right; of the result and the bias
  bool transposeLeft = false, transposeRight = false;
  std::byte *left = nullptr, *right = nullptr, *result = nullptr;
  std::byte *bias = nullptr; ///< `columns` elements, or null
  bool relu = false;         ///< behind the bias; NaN stays NaN
  std::vector<Batch> batches;
  int64_t tasks = 1; ///< blocks of rows, batches first, or of columns where there are few rows
};

/// Elements from one region to another of equal sizes.
struct CopySpec {
  std::byte *source = nullptr, *target = nullptr;
  comm::Region from, to;
  size_t elementBytes = 0;
};

struct FillSpec {
  std::byte *target = nullptr;
  int64_t count = 0;
  plan::DataType type = plan::F32;
  double value = 0;
};

/// What some ranks do together, with addresses on their devices.
struct CollectiveSpec {
  enum class Kind { AllReduce, ReduceScatter, Exchange };
  Kind kind = Kind::Exchange;
  const comm::Partition *partition = nullptr; ///< into groups, one of which was opened for this rank
  comm::Group *hosts = nullptr;               ///< the same ranks: for what they agree on at load
  comm::ElementType type = comm::ElementType::F32;
  ReduceKind reduction = ReduceKind::Sum;
  std::vector<comm::ReducePart> reduces;       ///< AllReduce
  std::span<const comm::ScatterPart> scatters; ///< ReduceScatter
  std::byte *source = nullptr, *target = nullptr;
  const comm::ExchangePlan *exchange = nullptr; ///< Exchange: its regions count from `source` and `target`
  comm::OperationLabel label;
};

/// How a device takes part in collectives.
enum class CollectiveForm {
  OfHost,     ///< not at all: the host fetches what travels
  Separate,   ///< by operations that run on their own, between sequences
  InSequence, ///< by operations like all others
};

/// Memory that an operation uses.
struct MemoryRange {
  const std::byte *begin = nullptr, *end = nullptr;
};

/// What an operation may use of the arena beside its buffers while it runs, on a device that runs one after the other, in the order of the plan.
using FreeRanges = std::function<std::vector<std::span<std::byte>>(const Operation &)>;

/// An operation in a sequence. Those of one stream run one after the other, or as if they did.
struct SequenceEntry {
  Operation *operation = nullptr;
  uint32_t stream = 0;         ///< of the plan
  std::vector<uint32_t> after; ///< earlier entries of other streams that must have finished before this one starts
  std::vector<MemoryRange> reads, writes; ///< of the arena; nothing else that it uses is changed by operations of other streams
  bool isCollective = false;   ///< starts after all entries before it that are not on other streams of the plan
};

/// Operations that run together, again and again.
class Sequence {
public:
  virtual ~Sequence() = default;
  /// Starts all of them once, in an order that the streams and `after` allow. On failure `failed` is the entry that failed, or
  /// the number of entries where the device cannot tell.
  virtual Status run(size_t &failed) = 0;
};

/// One operation after the other, in the calling thread.
std::unique_ptr<Sequence> runInOrder(std::vector<SequenceEntry> entries);

/// The way of one input into the arena, again and again: the host writes it, it is sent while the device does other work, and put in place
/// between operations.
class Inlet {
public:
  virtual ~Inlet() = default;
  /// Where the host writes what is sent next; nothing reads it any more when this returns.
  virtual Result<std::byte *> host() = 0;
  /// Brings what the host wrote near to the arena, beside operations.
  virtual Status send() = 0;
  /// Puts what was sent last into the arena, in the order of operations. May be called again for the same.
  virtual Status place(std::byte *target) = 0;
};

/// A device of one rank. Used by that rank's thread only.
class Device {
public:
  virtual ~Device() = default;
  /// "cpu", "cuda": the word of the first line on stderr.
  virtual const char *name() const = 0;
  /// Zeroed memory for all buffers, at least 64-byte aligned; lives as long as the device. Called once.
  virtual Result<std::byte *> allocateArena(uint64_t bytes) = 0;

  virtual Result<std::unique_ptr<Operation>> prepareLaunch(const LaunchSpec &spec) = 0;
  virtual Result<std::unique_ptr<Operation>> prepareMatMul(const MatMulSpec &spec) = 0;
  /// A kernel of the runtime by name. Fails if `checkCall` refuses the call or the device lacks the kernel.
  virtual Result<std::unique_ptr<Operation>> prepareCall(const CallSpec &spec) = 0;
  virtual Result<std::unique_ptr<Operation>> prepareCopy(const CopySpec &spec) = 0;
  virtual Result<std::unique_ptr<Operation>> prepareFill(const FillSpec &spec) = 0;

  virtual CollectiveForm collectiveForm() const { return CollectiveForm::OfHost; }
  /// Makes the groups of collectives. All ranks of the run call it once with the same partitions, before any collective is
  /// prepared.
  virtual Status openGroups(const std::vector<comm::Partition> &partitions) { return {}; }
  /// Unless collectives are of the host. All members prepare the same ones in the same order.
  virtual Result<std::unique_ptr<Operation>> prepareCollective(const CollectiveSpec &spec) {
    return Error{ExitCode::Internal, "the device has no collectives", ""};
  }
  /// Ends the communication of devices in agreement with all ranks. Sequences are gone.
  virtual Status closeGroups() { return {}; }
  /// Gives up what is in flight; the other ranks know that this one has failed.
  virtual void abandonGroups() {}

  /// Called once after everything is prepared: gives operations memory to work in, out of the arena where that is free, and allocates what
  /// they share. `freeWhile` is asked at most once for each operation, in the order in which they were prepared; null: nothing is free.
  virtual Status finishPreparation(const FreeRanges &freeWhile) = 0;
  Status finishPreparation() { return finishPreparation(nullptr); }

  /// Binds operations that this device has prepared, after finishPreparation.
  virtual std::unique_ptr<Sequence> makeSequence(std::vector<SequenceEntry> entries) { return runInOrder(std::move(entries)); }
  /// The processor may read and write the arena itself, in its own memory.
  virtual bool sharesHostMemory() const { return true; }

  /// Host to device and back, in the order of the operations. `source` may change when upload returns; what download was asked
  /// for is there when it returns.
  virtual Status upload(std::byte *target, const void *source, size_t bytes) = 0;
  virtual Status download(void *target, const std::byte *source, size_t bytes) = 0;
  /// As download, but what was asked for may be there only behind the next synchronize(). Up to 8 bytes.
  virtual Status fetch(void *target, const std::byte *source, size_t bytes) { return download(target, source, bytes); }
  virtual Result<std::unique_ptr<Inlet>> openInlet(size_t bytes);
  /// All operations so far are complete.
  virtual Status synchronize() = 0;
  /// Arena and workspaces.
  virtual uint64_t allocatedBytes() const = 0;
  /// What users should know about how it computes what was prepared; empty: nothing.
  virtual std::string note() const { return ""; }
};

/// Which rank asks for a device. All ranks of a world ask together, and their devices communicate if the backend can do that.
struct DeviceRequest {
  int64_t rank = 0, localRank = 0, localSize = 1;
  comm::World *world = nullptr; ///< null: a device for itself
};

/// The ranks of a run as one host sees them.
struct RankCount {
  int64_t all = 1, local = 1;
  bool oneProcess = true;
};

/// Devices of one kind, for the ranks of this process.
class Backend {
public:
  virtual ~Backend() = default;
  /// "cuda": the word of the first line on stderr.
  virtual const char *name() const = 0;
  /// A device for the calling thread. May be called by several threads at once.
  virtual Result<std::unique_ptr<Device>> create(const DeviceRequest &request) = 0;
  /// What users should know about ranks of this host; empty: nothing.
  virtual std::string note(const RankCount &ranks) const = 0;
};

} // namespace msc::device
