// Collectives run while the rank computes: each is started right behind the last step that it depends on and awaited in
// front of the first step that depends on it, as far as memory allows. Starts keep their order, on all ranks alike.
//
// Time is counted in slots between steps: slot k lies right before step k, the last slot behind all steps. In a slot,
// waits come before starts. A start early needs its targets early, a wait late needs its sources long: both only where
// the memory that is live stays below a bound, and only if the arena does: what it would be without, or a little more (OverlapOptions).
#include "dialects/net/NetAttributes.h"
#include "passes/plan/LiveRanges.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace msc::plan_ir;

namespace msc::passes {
namespace {

/// A collective that runs from slot `start` to slot `wait`; it is step `step`.
struct Flight {
  CollectiveOp collective;
  int64_t step = 0, start = 0, wait = 0;
};

class Overlap {
public:
  Overlap(ProgramOp program, const OverlapOptions &options) : body(program.getBody().front()), options(options) {
    for (Operation &op : body)
      if (isStep(&op)) {
        steps.push_back(&op);
        Access access = accessOf(&op);
        read.push_back(rootsOf(access.reads));
        written.push_back(rootsOf(access.writes));
      }
    for (size_t step = 0; step < steps.size(); ++step) {
      for (Operation *root : read[step])
        readers[root].push_back(static_cast<int64_t>(step));
      for (Operation *root : written[step])
        writers[root].push_back(static_cast<int64_t>(step));
    }
    initialRanges = ranges = rangesOfSlots();
    live.assign(2 * steps.size() + 3, 0);
    for (const auto &[buffer, block] : ranges)
      if (livesForTheRun(cast<BufferOp>(buffer)))
        lasting.insert(buffer);
      else
        hold(block.first, block.last, sizeOf(block));
    initiallyLive = live;
  }

  void run() {
    const int64_t before = arenaBytes({}), most = mostBytes(before);
    const int64_t peak = *std::max_element(live.begin(), live.end()) + most - before;
    // Packing may need more than what is live: then that much is left free.
    constexpr int attempts = 4;
    for (int64_t attempt = 0, budget = peak; attempt < attempts && budget > 0; ++attempt) {
      std::vector<Flight> flights = chooseFlights(budget);
      int64_t after = arenaBytes(flights);
      if (after <= most)
        return apply(flights);
      budget -= after - most;
    }
  }

  /// Of what is packed; buffers that live for the run lie beside it.
  int64_t mostBytes(int64_t before) const {
    int64_t beside = 0;
    for (auto buffer : body.getOps<BufferOp>())
      if (!buffer.getViewOf() && livesForTheRun(buffer))
        beside += (static_cast<int64_t>(buffer.getBytes()) + 63) / 64 * 64;
    const auto more = static_cast<int64_t>(options.growth * static_cast<double>(before));
    return options.memoryLimit == 0 ? before + more : std::max(before, std::min(before + more, options.memoryLimit - beside));
  }

private:
  // Time and memory --------------------------------------------------------------------------------------------------

  // On the line of time, slots and steps alternate; liveRanges counts from 1.
  static int64_t timeOfSlot(int64_t slot) { return 2 * slot + 1; }
  static int64_t timeOfStep(int64_t step) { return 2 * step + 2; }
  int64_t count() const { return static_cast<int64_t>(steps.size()); }

  LiveRanges rangesOfSlots() {
    SmallVector<SmallVector<Value>> line(1);
    for (Operation *step : steps) {
      line.push_back(memoryOf(step));
      line.emplace_back();
    }
    return liveRanges(body, line);
  }

  static int64_t sizeOf(const MemoryBlock &block) { return (block.bytes + 63) / 64 * 64; }

  void hold(int64_t first, int64_t last, int64_t bytes) {
    for (int64_t time = first; time <= last; ++time)
      live[static_cast<size_t>(time)] += bytes;
  }

  /// Bytes of buffers that are not needed so far, at times ever further from when they are.
  class Reach {
  public:
    /// `isForward`: later and later, else earlier and earlier.
    Reach(const Overlap &overlap, ArrayRef<Operation *> buffers, bool isForward) : isForward(isForward) {
      for (Operation *buffer : buffers)
        if (!overlap.lasting.contains(buffer)) {
          const MemoryBlock &block = overlap.ranges.find(buffer)->second;
          ends.emplace_back(isForward ? block.last : -block.first, sizeOf(block));
        }
      llvm::sort(ends);
    }

    int64_t bytesAt(int64_t time) {
      for (; next < ends.size() && ends[next].first < (isForward ? time : -time); ++next)
        bytes += ends[next].second;
      return bytes;
    }

  private:
    bool isForward;
    std::vector<std::pair<int64_t, int64_t>> ends; ///< the last time at which each is needed, and its bytes
    size_t next = 0;
    int64_t bytes = 0;
  };

  bool fits(Reach &reach, int64_t time, int64_t budget) const {
    return live[static_cast<size_t>(time)] + reach.bytesAt(time) <= budget;
  }

  /// The buffers are needed from one time to the other, too.
  void extend(ArrayRef<Operation *> buffers, int64_t first, int64_t last) {
    for (Operation *buffer : buffers) {
      MemoryBlock &block = ranges.find(buffer)->second;
      if (!lasting.contains(buffer)) {
        hold(first, block.first - 1, sizeOf(block));
        hold(block.last + 1, last, sizeOf(block));
      }
      block.first = std::min(block.first, first);
      block.last = std::max(block.last, last);
    }
  }

  // Choice -----------------------------------------------------------------------------------------------------------

  static SmallVector<Operation *> rootsOf(ValueRange memories) {
    llvm::SetVector<Operation *> roots;
    for (Value memory : memories)
      roots.insert(rootBuffer(memory));
    return roots.takeVector();
  }

  std::vector<Flight> chooseFlights(int64_t budget) {
    ranges = initialRanges;
    live = initiallyLive;
    std::vector<Flight> flights;
    llvm::DenseMap<Operation *, int64_t> writtenIn, touchedIn; // by root: the first slot behind
    int64_t started = 0;                                       // the first slot for the next start
    for (int64_t step = 0; step < count(); ++step) {
      int64_t done = step + 1;
      if (auto collective = dyn_cast<CollectiveOp>(steps[step])) {
        Flight flight{collective, step, started, step + 1};
        for (Operation *root : rootsOf(collective.getSources()))
          flight.start = std::max(flight.start, writtenIn.lookup(root));
        for (Operation *root : rootsOf(collective.getTargets()))
          flight.start = std::max(flight.start, touchedIn.lookup(root));
        bool flies = choose(flight, budget);
        if (flies)
          flights.push_back(flight);
        started = flies ? flight.start : step + 1;
        done = flies ? flight.wait : step + 1;
      }
      for (Operation *root : written[step])
        writtenIn[root] = std::max(writtenIn.lookup(root), done);
      for (Operation *root : llvm::concat<Operation *const>(read[step], written[step]))
        touchedIn[root] = std::max(touchedIn.lookup(root), done);
    }
    return flights;
  }

  /// Start and wait of a flight, `start` the first slot where data and order allow it; false where nothing is computed
  /// between them.
  bool choose(Flight &flight, int64_t budget) {
    SmallVector<Operation *> sources = rootsOf(flight.collective.getSources()),
                             targets = rootsOf(flight.collective.getTargets());
    int64_t first = flight.start, step = flight.step;
    Reach early(*this, targets, /*isForward=*/false), late(*this, sources, /*isForward=*/true);
    if (!fits(early, timeOfSlot(step), budget) || !fits(late, timeOfSlot(step + 1), budget))
      return false;
    flight.start = step;
    while (flight.start > first && fits(early, timeOfStep(flight.start - 1), budget) &&
           fits(early, timeOfSlot(flight.start - 1), budget))
      --flight.start;
    const int64_t needed = firstDependent(step, sources, targets);
    while (flight.wait < needed && fits(late, timeOfStep(flight.wait), budget) && fits(late, timeOfSlot(flight.wait + 1), budget))
      ++flight.wait;
    auto computes = [](Operation *other) { return isa<LaunchOp, MatMulOp, CopyOp>(other); };
    // Slots in which there is nothing to hide behind hold memory for nothing.
    while (flight.start < step && !computes(steps[flight.start]))
      ++flight.start;
    while (flight.wait > step + 1 && !computes(steps[flight.wait - 1]))
      --flight.wait;
    if (flight.start == step && flight.wait == step + 1)
      return false;
    extend(targets, timeOfSlot(flight.start), timeOfStep(step));
    extend(sources, timeOfStep(step), timeOfSlot(flight.wait));
    return true;
  }

  /// The first step behind a collective that needs its targets, or overwrites its sources; their number: none does.
  int64_t firstDependent(int64_t step, ArrayRef<Operation *> sources, ArrayRef<Operation *> targets) const {
    int64_t first = count();
    auto look = [&](const llvm::DenseMap<Operation *, std::vector<int64_t>> &users, Operation *root) {
      if (auto found = users.find(root); found != users.end())
        if (auto at = llvm::upper_bound(found->second, step); at != found->second.end())
          first = std::min(first, *at);
    };
    for (Operation *root : targets) {
      look(readers, root);
      look(writers, root);
    }
    for (Operation *root : sources)
      look(writers, root);
    return first;
  }

  // Result -----------------------------------------------------------------------------------------------------------

  /// Calls `visit(step, isWait)` for all steps and waits in their new order.
  void inOrder(ArrayRef<Flight> flights, llvm::function_ref<void(Operation *, bool)> visit) {
    std::vector<SmallVector<Operation *, 1>> starts(steps.size() + 1), waits(steps.size() + 1);
    llvm::DenseSet<Operation *> flying;
    for (const Flight &flight : flights) {
      starts[static_cast<size_t>(flight.start)].push_back(flight.collective);
      waits[static_cast<size_t>(flight.wait)].push_back(flight.collective);
      flying.insert(flight.collective);
    }
    for (size_t slot = 0; slot <= steps.size(); ++slot) {
      for (Operation *collective : waits[slot])
        visit(collective, true);
      for (Operation *collective : starts[slot])
        visit(collective, false);
      if (slot < steps.size() && !flying.contains(steps[slot]))
        visit(steps[slot], false);
    }
  }

  /// AssignMemory will need no more.
  int64_t arenaBytes(ArrayRef<Flight> flights) {
    SmallVector<SmallVector<Value>> line;
    inOrder(flights, [&](Operation *step, bool) { line.push_back(memoryOf(step)); });
    return packMemory(packedBlocks(liveRanges(body, line))).bytes;
  }

  void apply(ArrayRef<Flight> flights) {
    if (flights.empty())
      return;
    Operation *at = steps.back(); // all buffers that steps use stand before it
    OpBuilder builder(at->getContext());
    inOrder(flights, [&](Operation *step, bool isWait) {
      if (isWait) {
        auto collective = cast<CollectiveOp>(step);
        builder.setInsertionPointAfter(at);
        auto wait =
            builder.create<WaitOp>(step->getLoc(), collective.getTargets().front(), builder.getStringAttr("Wait"));
        net::setInstanceName(wait, net::getInstanceName(step));
        net::setPhase(wait, net::getPhase(step));
        at = wait;
        return;
      }
      if (step != at)
        step->moveAfter(at);
      at = step;
    });
    for (const Flight &flight : flights)
      CollectiveOp(flight.collective).setAsynchronous(true);
  }

  Block &body;
  OverlapOptions options;
  SmallVector<Operation *> steps;
  std::vector<SmallVector<Operation *>> read, written; ///< roots, of each step
  llvm::DenseMap<Operation *, std::vector<int64_t>> readers, writers; ///< steps, of each root, ascending
  llvm::DenseSet<Operation *> lasting;                 ///< buffers that live for the run
  LiveRanges ranges, initialRanges;         ///< on the line of slots and steps
  std::vector<int64_t> live, initiallyLive; ///< bytes by time
};

class OverlapCollectives : public PassWrapper<OverlapCollectives, OperationPass<ProgramOp>> {
public:
  explicit OverlapCollectives(const OverlapOptions &options) : options(options) {}
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OverlapCollectives)
  StringRef getArgument() const override { return "msc-overlap-collectives"; }
  StringRef getDescription() const override {
    return "starts collectives early and awaits them late, in no more memory";
  }
  void runOnOperation() override { Overlap(getOperation(), options).run(); }

private:
  OverlapOptions options;
};

} // namespace

double hiddenUs(ProgramOp program) {
  double computing = 0, communicating = 0, all = 0; // clocks
  llvm::DenseMap<Operation *, double> done;
  for (Operation &op : program.getBody().front()) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      computing = std::max(computing, done.lookup(startOf(wait)));
    } else if (auto collective = dyn_cast<CollectiveOp>(op)) {
      double us = collective.getPredictedUs().convertToDouble();
      all += us;
      communicating = std::max(communicating, computing) + us;
      done[collective] = communicating;
      if (!collective.getAsynchronous())
        computing = communicating;
    } else {
      all += computeUs(&op);
      computing += computeUs(&op);
    }
  }
  return all - computing;
}

std::unique_ptr<Pass> createOverlapCollectivesPass(const OverlapOptions &options) {
  return std::make_unique<OverlapCollectives>(options);
}

} // namespace msc::passes
