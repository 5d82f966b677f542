// What a step does to memory, in the order in which it does it: operators forward, backward as `msc-build-gradients` builds it,
// and updates, with the moves between them as `msc-partition` and the passes behind it place them. All rounds of repeats stand
// one after the other. Plain data, no IR.
#pragma once

#include "passes/sharding/cost/KernelLoops.h"
#include "passes/sharding/cost/StepModel.h"

#include <functional>

namespace msc::passes {

/// A tensor of a rank.
struct StepBuffer {
  int64_t bytes = 0;
  int32_t viewOf = -1;    ///< shows the memory of that one; -1: has its own
  bool forRun = false;    ///< parameters and states
  bool isInput = false;   ///< filled before the first event
  bool isFetched = false; ///< after the last one
  bool isCopy = false;    ///< of a value that is computed again
  int32_t value = -1;     ///< shared by the buffers that hold one value in several shardings
  int32_t parameter = -1; ///< tensor of the problem that it holds, or a state of it
  bool isWide = false;    ///< f32 elements of a value that is narrow
};

/// Something that reads and writes buffers.
struct StepEvent {
  StepKind kind = StepKind::Call;
  bool isEpilogue = false;
  bool isUpdate = false, isCopy = false; ///< of the optimizer; of an operator that is computed again
  bool isFollowUp = false;               ///< another kernel of the same update
  bool isBackward = false;               ///< of the gradient of an operator
  bool isNarrow = false;                 ///< its first operand is not f32
  bool isCast = false;                   ///< of elements, to another type; without `op`: for the operator of the next event that has one, or of the last
  bool isCheap = false;                  ///< as net::isCheap
  bool isAllReduce = false;              ///< of each that it reads it makes what it writes
  int32_t loops = -1;                    ///< of a kernel that may join others: which of StepEvents::kernels
  int32_t sum = -1;                      ///< of the sum of many terms to which it adds some: a number
  std::vector<int32_t> reads, writes;
  int32_t op = -1;     ///< of the problem, whose step has it; -1: a move, a sum of gradients or an update
  int32_t traced = -1; ///< which of TracedStep::operators; reads and writes are those of it that have memory
  Rounds rounds = Rounds::All; ///< First: of a step that is another one in the first round
  int64_t round = 0;
  int32_t instance = -1; ///< of the operators of the network as they run, rounds one after the other
  /// Of a read or write: which of those of the traced operator it is, and of which value of its step.
  struct Use {
    int32_t number = 0, value = 0;
  };
  std::vector<Use> readUses, writeUses;
};

struct StepEvents {
  std::vector<StepBuffer> buffers;
  std::vector<StepEvent> events;
  std::vector<KernelLoops> kernels;

  /// A kernel that adds elements up, or takes the largest of them.
  bool reduces(const StepEvent &event) const {
    return event.loops >= 0 && passes::reduces(kernels[event.loops]);
  }

  /// The buffer whose memory another one shows.
  int32_t rootOf(int32_t buffer) const {
    while (buffers[buffer].viewOf >= 0)
      buffer = buffers[buffer].viewOf;
    return buffer;
  }
};

/// The strategy of an operator in a round, from 0, of the innermost repeat around it.
using PiecesInRound = std::function<const Pieces &(size_t op, int64_t round)>;

/// Empty where the problem does not say how often its operators run one after the other: rounds of a dump that were joined.
StepEvents eventsOf(const Problem &problem, const StepModel &model, const PiecesInRound &pieces, dist::ReshardPlanner &planner);

} // namespace msc::passes
