// Order of steps and memory: a proof by vector clocks over streams.
//
// A step *happens before* another if a chain of these leads there: earlier on the same stream, named in `after`, or the
// start that a wait awaits. An asynchronous collective uses its buffers from its start until its wait; everything else
// only during its step. Steps are listed in an order that respects all chains, so one pass in that order suffices.
#include "runtime/plan/PlanChecks.h"

#include <algorithm>
#include <map>

namespace msc::check {
namespace {

constexpr uint32_t none = UINT32_MAX;

/// Positions (from 1) on each stream.
using Clock = std::vector<uint32_t>;

/// How the memory of one buffer has been used so far.
struct Life {
  bool born = false;             ///< holds a value
  uint32_t takenBy = none;       ///< the buffer that has overwritten it
  uint32_t lastWrite = none;     ///< step, none for values born before the first step
  std::vector<uint32_t> readers; ///< steps that read the present value
};

class OrderChecker {
public:
  OrderChecker(const PlanIndex &index, const plan::Program &program, const plan::Variant &variant)
      : index(index), program(program), variant(variant), lives(index.bufferCount()) {}

  Status run() {
    if (Status status = findConstants(); !status)
      return status;
    if (Status status = pairWaits(); !status)
      return status;
    findClocks();
    if (Status status = giveBirth(); !status)
      return status;
    for (uint32_t step = 0; step < count(); ++step)
      if (Status status = visit(step); !status)
        return status;
    return checkOutputs();
  }

private:
  uint32_t count() const { return static_cast<uint32_t>(variant.steps_size()); }
  const plan::Step &stepAt(uint32_t step) const { return variant.steps(static_cast<int>(step)); }
  std::string title(uint32_t step) const { return index.title(stepAt(step)); }

  bool happensBefore(uint32_t earlier, uint32_t later) const {
    return clocks[later][stepAt(earlier).stream()] >= position[earlier];
  }

  /// Constant steps run once at load, alone and in order: they only touch constants.
  Status findConstants() {
    isConstant.assign(count(), false);
    for (uint32_t step : variant.constants()) {
      isConstant[step] = true;
      if (stepAt(step).has_collective() || stepAt(step).has_wait())
        return bad("{} runs at load, where ranks do not communicate", title(step));
    }
    for (uint32_t step = 0; step < count(); ++step) {
      for (uint32_t buffer : stepAt(step).writes())
        if ((index.buffer(index.root(buffer)).kind() == plan::Buffer::CONSTANT) != isConstant[step])
          return bad("{} writes {}, {}", title(step), index.bufferTitle(buffer),
                     isConstant[step] ? "which is no constant, at load" : "which is a constant");
      for (uint32_t buffer : stepAt(step).reads())
        if (isConstant[step] && index.buffer(index.root(buffer)).kind() != plan::Buffer::CONSTANT)
          return bad("{} runs at load, but reads {}", title(step), index.bufferTitle(buffer));
    }
    return {};
  }

  Status pairWaits() {
    awaitedBy.assign(count(), none);
    for (uint32_t step = 0; step < count(); ++step) {
      if (!stepAt(step).has_wait())
        continue;
      uint32_t start = stepAt(step).wait().step();
      if (start >= step)
        return bad("{} waits for step {}, which does not start before it", title(step), start);
      if (!stepAt(start).has_collective() || !stepAt(start).collective().asynchronous())
        return bad("{} waits for {}, which is no asynchronous collective", title(step), title(start));
      if (awaitedBy[start] != none)
        return bad("{} is awaited twice, by {} and by {}", title(start), title(awaitedBy[start]), title(step));
      awaitedBy[start] = step;
    }
    for (uint32_t step = 0; step < count(); ++step)
      if (stepAt(step).has_collective() && stepAt(step).collective().asynchronous() && awaitedBy[step] == none)
        return bad("{} is started, but never awaited", title(step));
    return {};
  }

  void findClocks() {
    uint32_t streams = 1;
    for (const plan::Step &step : variant.steps())
      streams = std::max(streams, step.stream() + 1);
    clocks.assign(count(), Clock(streams, 0));
    position.assign(count(), 0);
    std::vector<uint32_t> lastOnStream(streams, none), length(streams, 0);
    for (uint32_t step = 0; step < count(); ++step) {
      uint32_t stream = stepAt(step).stream();
      auto follow = [&](uint32_t earlier) {
        for (uint32_t i = 0; i < streams; ++i)
          clocks[step][i] = std::max(clocks[step][i], clocks[earlier][i]);
        uint32_t &seen = clocks[step][stepAt(earlier).stream()];
        seen = std::max(seen, position[earlier]);
      };
      if (lastOnStream[stream] != none)
        follow(lastOnStream[stream]);
      for (uint32_t earlier : stepAt(step).after())
        follow(earlier);
      if (stepAt(step).has_wait())
        follow(stepAt(step).wait().step());
      lastOnStream[stream] = step;
      position[step] = ++length[stream];
    }
  }

  /// Values that exist before the first step: parameters, scalars, constants that load writes, inputs.
  Status giveBirth() {
    std::vector<bool> filled(index.bufferCount(), false);
    for (uint32_t step : variant.constants())
      for (uint32_t buffer : stepAt(step).writes())
        filled[index.root(buffer)] = true;
    for (const plan::Parameter &parameter : index.plan().parameters())
      filled[parameter.buffer()] = true;
    for (const plan::Schedule &schedule : index.plan().schedules())
      filled[schedule.buffer()] = true;
    for (const plan::Input &input : program.inputs())
      filled[input.buffer()] = true;
    for (uint32_t buffer = 0; buffer < index.bufferCount(); ++buffer) {
      if (!filled[buffer])
        continue;
      if (Status status = take(buffer, none); !status)
        return status;
      lives[buffer].born = true;
    }
    return {};
  }

  /// The step after which `step` no longer touches its buffers.
  uint32_t endOf(uint32_t step) const { return awaitedBy[step] == none ? step : awaitedBy[step]; }

  /// All uses of the present value of `owner` must be over before step `next`.
  Status finished(uint32_t owner, uint32_t next, uint32_t buffer) {
    Life &life = lives[owner];
    std::vector<uint32_t> users = life.readers;
    if (life.lastWrite != none)
      users.push_back(life.lastWrite);
    for (uint32_t user : users) {
      if (user == next && owner == index.root(buffer))
        continue;
      if (next != none && happensBefore(endOf(user), next))
        continue;
      if (awaitedBy[user] != none)
        return bad("{} writes {} while {} is in flight and uses its memory", title(next), index.bufferTitle(buffer),
                   title(user));
      return bad("{} writes {}, but nothing makes it wait for {}, which uses the same memory ('{}')", title(next),
                 index.bufferTitle(buffer), title(user), index.buffer(owner).name());
    }
    return {};
  }

  /// `buffer` becomes the owner of its memory at step `step` (none: before the first).
  Status take(uint32_t buffer, uint32_t step) {
    const plan::Buffer &record = index.buffer(buffer);
    uint64_t begin = record.offset(), end = begin + record.bytes();
    auto it = owners.upper_bound(begin);
    if (it != owners.begin())
      --it;
    while (it != owners.end() && it->first < end) {
      auto [from, owned] = *it;
      if (owned.end <= begin) {
        ++it;
        continue;
      }
      if (step == none)
        return bad("buffers '{}' and '{}' share memory, and both hold values before the first step",
                   index.buffer(owned.buffer).name(), record.name());
      if (Status status = finished(owned.buffer, step, buffer); !status)
        return status;
      lives[owned.buffer].takenBy = buffer;
      it = owners.erase(it);
      // What is left of the old owner's memory stays its own, for those that take it later.
      if (from < begin)
        owners[from] = {begin, owned.buffer};
      if (owned.end > end)
        owners[end] = {owned.end, owned.buffer};
    }
    owners[begin] = {end, buffer};
    return {};
  }

  Status read(uint32_t buffer, uint32_t step) {
    Life &life = lives[index.root(buffer)];
    if (!life.born)
      return bad("{} reads {} before it is written", title(step), index.bufferTitle(buffer));
    if (life.takenBy != none)
      return bad("{} reads {}, but its memory was overwritten by {}", title(step), index.bufferTitle(buffer),
                 index.bufferTitle(life.takenBy));
    if (life.lastWrite != none && !happensBefore(endOf(life.lastWrite), step))
      return bad("{} reads {}, but nothing makes it wait for {}, which writes it", title(step),
                 index.bufferTitle(buffer), title(endOf(life.lastWrite)));
    life.readers.push_back(step);
    return {};
  }

  Status write(uint32_t buffer, uint32_t step) {
    uint32_t root = index.root(buffer);
    Life &life = lives[root];
    if (life.born && life.takenBy == none) {
      if (Status status = finished(root, step, buffer); !status)
        return status;
    } else {
      if (Status status = take(root, step); !status)
        return status;
      life.takenBy = none;
    }
    life.born = true;
    life.lastWrite = step;
    life.readers.clear();
    return {};
  }

  Status visit(uint32_t step) {
    if (isConstant[step])
      return visitConstant(step);
    for (uint32_t buffer : stepAt(step).reads())
      if (Status status = read(buffer, step); !status)
        return status;
    for (uint32_t buffer : stepAt(step).writes())
      if (Status status = write(buffer, step); !status)
        return status;
    return {};
  }

  /// At load, constants are written in the order of the list before anything reads them.
  Status visitConstant(uint32_t step) {
    for (uint32_t buffer : stepAt(step).reads())
      if (!written.count(index.root(buffer)))
        return bad("{} reads the constant {} before it is written", title(step), index.bufferTitle(buffer));
    for (uint32_t buffer : stepAt(step).writes())
      written[index.root(buffer)] = true;
    return {};
  }

  Status checkOutputs() {
    for (const plan::Output &output : program.outputs()) {
      const Life &life = lives[index.root(output.buffer())];
      if (!life.born)
        return bad("output '{}' is never written", output.name());
      if (life.takenBy != none)
        return bad("output '{}' is overwritten by {} before the end", output.name(), index.bufferTitle(life.takenBy));
    }
    return {};
  }

  struct Owned {
    uint64_t end = 0;
    uint32_t buffer = 0;
  };

  const PlanIndex &index;
  const plan::Program &program;
  const plan::Variant &variant;
  std::vector<Life> lives;          ///< by buffer; used for roots
  std::map<uint64_t, Owned> owners; ///< memory by first byte: who holds a value there now
  std::map<uint32_t, bool> written; ///< constants that load has written so far
  std::vector<bool> isConstant;
  std::vector<uint32_t> awaitedBy;
  std::vector<Clock> clocks;
  std::vector<uint32_t> position;
};

} // namespace

Status checkOrder(const PlanIndex &index, const plan::Program &program, const plan::Variant &variant) {
  return OrderChecker(index, program, variant).run();
}

} // namespace msc::check
