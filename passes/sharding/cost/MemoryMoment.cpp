#include "passes/sharding/cost/MemoryMoment.h"

#include "passes/sharding/Storage.h"
#include "passes/sharding/cost/StepUnits.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

namespace msc::passes {

static double sizeOf(const StepValue &value, const Sharding &sharding, bool isWide = false) {
  const size_t bytes = isWide && value.elementBytes == narrowBytes ? wideBytes : sharding.isPartial() ? value.partialBytes : value.elementBytes;
  return static_cast<double>(elementCount(sharding.capacity(value.shape))) * static_cast<double>(bytes);
}

const OperatorStep &MemoryMoments::stepOf(Member of, int32_t option) const {
  const Rounds rounds = of.isFirst ? Rounds::First : Rounds::All;
  return model.step(of.op, model.options(of.op, rounds).pieces[option], rounds);
}

const TracedStep &MemoryMoments::traceOf(Member of, int32_t option) {
  auto [found, isNew] = traces.try_emplace({of, option});
  if (isNew) {
    const Pieces &pieces = model.options(of.op).pieces[option];
    found->second = traceStep(stepOf(of, option), pieces, outOf(problem.operators[of.op], pieces, problem.devices), problem.devices);
  }
  return found->second;
}

/// What the operator runs under its first option where it runs the same under all others, but for shardings; else none.
const TracedStep *MemoryMoments::alwaysTraced(Member of) {
  auto [found, isNew] = areAlike.try_emplace(of, true);
  const TracedStep &first = traceOf(of, 0);
  auto isSame = [](const TracedOperator &a, const TracedOperator &b) {
    return a.kind == b.kind && a.isBackward == b.isBackward && a.isThere == b.isThere && std::ranges::equal(a.reads, b.reads, {}, &TracedOperator::Use::value, &TracedOperator::Use::value) &&
           std::ranges::equal(a.writes, b.writes, {}, &TracedOperator::Use::value, &TracedOperator::Use::value);
  };
  for (int32_t option = 1; isNew && found->second && option < model.network().options[of.op]; ++option)
    found->second = std::ranges::equal(traceOf(of, option).operators, first.operators, isSame);
  return found->second ? &first : nullptr;
}

const OrderedOperator &MemoryMoments::orderedOperator(Member of) {
  auto [found, isNew] = ordered.try_emplace(of);
  if (!isNew)
    return found->second;
  std::vector<OrderedOperator::Strategy> strategies;
  for (int32_t option = 0; option < model.network().options[of.op]; ++option)
    strategies.push_back({&stepOf(of, option), &traceOf(of, option)});
  return found->second = orderedUnderAll(strategies);
}

/// If all else is as it was simulated.
double MemoryMoments::bytesOf(const Use &use, int32_t option, double simulated) {
  const TracedStep &trace = traceOf(use.of, option);
  if (use.traced >= static_cast<int32_t>(trace.operators.size()))
    return simulated; // the operator is another one under this strategy
  const TracedOperator &traced = trace.operators[use.traced];
  if (!traced.isThere)
    return 0;
  const std::vector<TracedOperator::Use> &list = use.isWrite ? traced.writes : traced.reads;
  if (use.use >= static_cast<int32_t>(list.size()))
    return simulated;
  return sizeOf(stepOf(use.of, option).values[list[use.use].value], list[use.use].sharding, use.isWide);
}

/// Of a value, whoever has it in whatever sharding.
double MemoryMoments::leastBytesOf(const Use &use) {
  const TracedOperator &traced = traceOf(use.of, 0).operators[use.traced];
  const StepValue &value = stepOf(use.of, 0).values[(use.isWrite ? traced.writes : traced.reads)[use.use].value];
  return static_cast<double>(elementCount(value.shape)) / static_cast<double>(problem.devices) *
         static_cast<double>(std::min(value.elementBytes, value.partialBytes));
}

/// Of what the backward pass reads in the sharding in which the forward pass of the same operator read or made it: that is kept. It may
/// be there in any other one.
double MemoryMoments::keptBytesOf(const Use &use, int32_t option) {
  const TracedStep &trace = traceOf(use.of, option);
  const TracedOperator::Use &wanted = trace.operators[use.traced].reads[use.use];
  const StepValue &value = stepOf(use.of, option).values[wanted.value];
  auto isKept = [&](const TracedOperator &other) {
    const std::vector<TracedOperator::Use> &list = value.kind == StepValue::Kind::Inner ? other.writes : other.reads;
    return !other.isBackward && other.isThere && std::ranges::any_of(list, [&](const TracedOperator::Use &of) {
      return of.value == wanted.value && of.sharding == wanted.sharding;
    });
  };
  return std::ranges::any_of(trace.operators, isKept) ? sizeOf(value, wanted.sharding) : leastBytesOf(use);
}

/// Of what is there just as the operator reads or writes it.
double MemoryMoments::exactBytesOf(const Use &use, int32_t option) {
  const TracedOperator &traced = traceOf(use.of, option).operators[use.traced];
  const TracedOperator::Use &exact = (use.isWrite ? traced.writes : traced.reads)[use.use];
  return sizeOf(stepOf(use.of, option).values[exact.value], exact.sharding, traced.computesWide());
}

/// How often a step has it.
int64_t MemoryMoments::instancesOf(Member of) const {
  const int64_t rounds = problem.operators[of.op].rounds;
  return of.isFirst ? 1 : model.hasOwnFirstRound(of.op) ? rounds - 1 : rounds;
}

/// What has memory at a moment of a step, whatever strategies there are. Operators and updates come in one order
/// always, sums of few gradients are taken to; sums of many run as early as their terms allow, moves come and go; kernels may become one with others that ran before, or wait
/// for what others read (CertainOrder).
/// Of what is made before the moment and read by something that certainly runs after it, some shard is there; where kernels between both
/// may run before the moment, one of what the first of them reads and what they make. What runs then has what it reads and makes.
class MemoryMoments::Lasting {
public:
  /// `event`: of the moment; behind all of them, their number.
  Lasting(MemoryMoments &moments, const StepEvents &step, size_t event) : moments(moments), step(step), behind(event) {
    findMakers();
    if (isAnyLeft([](const StepEvent &left) { return left.op >= 0; })) {
      if (isStep(event))
        running = event;
      else
        ++behind;
      findOrder();
    } else {
      behind = std::ranges::find_if(step.events, &StepEvent::isUpdate) - step.events.begin();
      findGradients();
    }
    of.resize(makers.size());
    findReaders();
    findThroughKernels();
    if (running)
      findMadeByRunning();
    for (const Value &value : of)
      if (value.use.of.op >= 0)
        found.push_back(value);
  }

  struct Value {
    Use use;             ///< of whom it is certain
    bool isKept = false; ///< the backward pass of an operator reads it that has already run forward
    int64_t round = 0;    ///< of the operator
    std::optional<Use> running; ///< of the event of the moment, where it is a step of its own: so it is there
    int64_t runningRound = 0;
    int32_t parameter = -1;     ///< of which it is the gradient that an update reads: as it was made, or as the parameter is stored
  };
  const std::vector<Value> &values() const { return found; }
  /// Those of parameters, as updates want them, by the variable that decides how they are stored; they are not among the values.
  const std::set<int32_t> &gradients() const { return complete; }

private:
  MemoryMoments &moments;
  const StepEvents &step;
  size_t behind;                                             ///< the first event behind the moment
  std::optional<CertainOrder> order;                         ///< then; none: that of the events
  std::vector<int32_t> numbers;                              ///< of events: in that order
  bool isCertain = true;
  std::optional<size_t> running;                             ///< the event of the moment, where it is a step of its own
  std::vector<int32_t> shown;                                ///< of each value: the one whose elements it has in another shape, or itself
  std::vector<int32_t> makers;                               ///< of each value: event; -1: none, it is there when the step begins
  std::vector<char> isStored;                                ///< of each value: it may be there as a parameter
  std::map<std::pair<int32_t, int64_t>, size_t> lastForward; ///< event, of operators and rounds
  std::vector<char> isAfter;                                 ///< of each event: it certainly runs then or later
  std::vector<Value> of;                                     ///< each value; of no operator: nothing is certain
  std::vector<Value> found;
  std::set<int32_t> complete;

  static Member memberOf(const StepEvent &event) { return {event.op, event.rounds == Rounds::First}; }
  bool isAlways(const StepEvent &event) const { return event.op < 0 || moments.alwaysTraced(memberOf(event)); }
  /// Of an operator that runs the same under all strategies.
  bool isBackward(const StepEvent &event) const { return event.isBackward && isAlways(event); }
  bool isMove(size_t index) const {
    const StepEvent &event = step.events[index];
    return event.op < 0 && !event.isUpdate && makers[valueOf(event.writes.front())] != static_cast<int32_t>(index);
  }
  template <typename Is> bool isAnyLeft(Is is) const { return std::any_of(step.events.begin() + behind, step.events.end(), is); }
  int32_t keeperOf(const StepEvent &update) const {
    return moments.model.keeperOf(step.buffers[update.writes.front()].parameter);
  }

  /// It, or what it shows, is computed again: not what the forward pass read.
  bool isCopied(int32_t buffer) const {
    for (; buffer >= 0; buffer = step.buffers[buffer].viewOf)
      if (step.buffers[buffer].isCopy)
        return true;
    return false;
  }

  /// What is in the buffer, in whatever shape; -1: no value.
  int32_t valueOf(int32_t buffer) const {
    const int32_t value = step.buffers[buffer].value;
    return value < 0 ? -1 : shown[value];
  }

  void findMakers() {
    for (const StepBuffer &buffer : step.buffers)
      while (buffer.value >= static_cast<int32_t>(shown.size()))
        shown.push_back(static_cast<int32_t>(shown.size()));
    for (const StepBuffer &buffer : step.buffers) // what is shown stands before what shows it
      if (buffer.viewOf >= 0 && buffer.value >= 0 && valueOf(buffer.viewOf) >= 0)
        shown[buffer.value] = valueOf(buffer.viewOf);
    makers.assign(shown.size(), -1);
    isStored.assign(shown.size(), 0);
    std::vector<char> isThere(shown.size());
    for (size_t i = 0; i < step.buffers.size(); ++i)
      if (const int32_t value = valueOf(static_cast<int32_t>(i)); value >= 0) {
        isStored[value] |= step.buffers[i].forRun;
        isThere[value] |= step.buffers[i].forRun || step.buffers[i].isInput;
      }
    for (size_t i = 0; i < step.events.size(); ++i) {
      const StepEvent &event = step.events[i];
      for (int32_t buffer : event.writes)
        if (int32_t value = valueOf(buffer); value >= 0 && makers[value] < 0 && !isThere[value])
          makers[value] = static_cast<int32_t>(i);
      if (event.op >= 0 && !event.isCopy && !isBackward(event))
        lastForward[{event.op, event.round}] = i;
    }
  }

  /// It runs on its own under all strategies.
  bool isStep(size_t event) const {
    const StepEvent &of = step.events[event];
    return of.kind != StepKind::Kernel && of.op >= 0 && isAlways(of);
  }

  /// At the first step behind the moment; without one nothing is certain.
  void findOrder() {
    size_t at = behind;
    while (at < step.events.size() && !isStep(at))
      ++at;
    isCertain = at < step.events.size();
    if (!isCertain || step.events.size() > mostEventsOrdered)
      return;
    EventList list = orderedEvents();
    isCertain = list.isKnown;
    if (!isCertain)
      return;
    if (!moments.joinable || moments.joinable->events() != list.events)
      moments.joinable.emplace(std::move(list.events), list.values);
    numbers = std::move(list.numbers);
    order.emplace(*moments.joinable, numbers[at]);
  }

  /// The events of the steps of all strategies.
  struct EventList {
    std::vector<OrderedEvent> events;
    size_t values = 0;
    std::vector<int32_t> numbers; ///< of events of this step: which of them; -1: of a move, or of something that is another event elsewhere
    bool isKnown = true;          ///< else operators expand to something else under other strategies
  };
  EventList orderedEvents() const;

  /// In front of the updates each gradient is as its update wants it, but for sums of several, which come with their updates.
  void findGradients() {
    auto isOfOne = [&](const StepEvent &update) {
      const int32_t value = valueOf(update.reads.front());
      return value >= 0 && !isStored[value] && makers[value] >= 0 && step.events[makers[value]].op >= 0;
    };
    for (const StepEvent &event : step.events)
      if (event.isUpdate)
        complete.insert(keeperOf(event));
    for (const StepEvent &event : step.events)
      if (event.isUpdate && !event.isFollowUp && !isOfOne(event))
        complete.erase(keeperOf(event));
  }

  bool isMadeBefore(int32_t value) const {
    const int32_t maker = makers[value];
    return isCertain && maker < static_cast<int32_t>(behind) && (maker < 0 || isDone(maker));
  }
  /// Of events in front of the moment.
  bool isDone(size_t event) const { return isCertain && (!order || (numbers[event] >= 0 && order->isDone(numbers[event]))); }
  /// Of others.
  bool isLeft(size_t event) const {
    if (!order)
      return isCertain && (step.events[event].kind != StepKind::Kernel || step.events[event].isUpdate);
    return numbers[event] >= 0 && order->isLeft(numbers[event]);
  }
  bool isLeftOut(const StepEvent &event) const { return event.isUpdate && complete.contains(keeperOf(event)); }

  void findReaders() {
    isAfter.resize(step.events.size());
    auto isMadeAfter = [&](int32_t buffer) {
      const int32_t value = valueOf(buffer);
      return value >= 0 && !isMadeBefore(value) && isAfter[makers[value]];
    };
    for (size_t i = behind; i < step.events.size(); ++i) {
      const StepEvent &event = step.events[i];
      isAfter[i] = !isMove(i) && isAlways(event) && isCertain && (isLeft(i) || std::ranges::any_of(event.reads, isMadeAfter));
      if (!isAfter[i] || isLeftOut(event))
        continue;
      for (size_t r = 0; r < event.reads.size(); ++r)
        if (int32_t value = valueOf(event.reads[r]); value >= 0 && !isStored[value] && isMadeBefore(value)) {
          take(of[value], value, event, r);
          if (running == i && of[value].use.of.op >= 0 && !of[value].running) {
            of[value].running = readOf(event, r);
            of[value].runningRound = event.round;
          }
        }
    }
  }

  /// One of several tensors: that which has least under all strategies.
  struct Passed {
    std::optional<Use> use;
    double bytes = 0;
    int64_t round = 0;
  };

  /// Through kernels that may run before the moment: each hands one of what it makes, wanted later, on to one of what it reads. A sum that
  /// may make its terms itself leaves neither.
  void findThroughKernels() {
    std::vector<char> isWanted(makers.size());
    for (size_t i = behind; i < step.events.size(); ++i)
      if (isAfter[i] && !isLeftOut(step.events[i]))
        for (int32_t buffer : step.events[i].reads)
          if (int32_t value = valueOf(buffer); value >= 0)
            isWanted[value] = 1;
    std::vector<Passed> passed(makers.size());
    auto withUse = [&](const Passed &than, const Use &use, int64_t round) {
      const double bytes = moments.leastBytesOf(use);
      return than.use && than.bytes <= bytes ? than : Passed{use, bytes, round};
    };
    for (size_t i = step.events.size(); i-- > behind;) {
      const StepEvent &kernel = step.events[i];
      if (isAfter[i] || kernel.op < 0 || kernel.kind != StepKind::Kernel || !isAlways(kernel) || (kernel.isBackward && kernel.reads.size() == 1 && step.reduces(kernel)))
        continue;
      Passed most;
      for (int32_t buffer : kernel.writes)
        if (int32_t value = valueOf(buffer); value >= 0 && makers[value] == static_cast<int32_t>(i) && (isWanted[value] || passed[value].use))
          if (Passed made = withUse(isWanted[value] ? Passed{} : passed[value], writeOf(kernel, value), kernel.round); made.bytes > most.bytes)
            most = made;
      for (size_t r = 0; r < kernel.reads.size() && most.use; ++r) {
        const int32_t value = valueOf(kernel.reads[r]);
        if (value < 0 || isStored[value] || of[value].use.of.op >= 0 || passed[value].use || isWanted[value])
          continue;
        const Passed least = withUse(most, readOf(kernel, r), kernel.round);
        most = {};
        if (isMadeBefore(value))
          of[value] = {*least.use, false, least.round, {}, 0, -1};
        else
          passed[value] = least;
      }
    }
  }

  Use readOf(const StepEvent &reader, size_t read) const { return {memberOf(reader), reader.traced, reader.readUses[read].number, false}; }

  /// What the event makes of the value.
  Use writeOf(const StepEvent &made, int32_t number) const {
    const auto at = std::ranges::find(made.writes, number, [&](int32_t buffer) { return valueOf(buffer); });
    return {memberOf(made), made.traced, made.writeUses[at - made.writes.begin()].number, true};
  }

  void findMadeByRunning();
  bool isReadBehind(size_t maker, int32_t number) const;
  void take(Value &value, int32_t number, const StepEvent &reader, size_t read) const {
    const StepEvent *made = makers[number] < 0 ? nullptr : &step.events[makers[number]];
    if (value.isKept || (made && !isAlways(*made)))
      return;
    const auto forward = lastForward.find({reader.op, reader.round});
    const bool isKept = reader.op >= 0 && isBackward(reader) && !reader.isCopy && !isCopied(reader.reads[read]) && forward != lastForward.end() &&
                        forward->second < behind && isDone(forward->second);
    if (reader.op >= 0 && (isKept || value.use.of.op < 0))
      value = {readOf(reader, read), isKept, reader.round, value.running, value.runningRound, -1};
    else if (value.use.of.op < 0 && made && made->op >= 0)
      value = {writeOf(*made, number), false, made->round, value.running, value.runningRound,
               reader.isUpdate ? step.buffers[reader.writes.front()].parameter : -1};
  }
};

MemoryMoments::Lasting::EventList MemoryMoments::Lasting::orderedEvents() const {
  constexpr int32_t none = -1;
  EventList list;
  list.numbers.assign(step.events.size(), none);
  // Values of this step by numbers that do not depend on it, as far as its operators read and write them.
  using Instance = std::pair<int32_t, bool>; // and whether it is computed again
  struct Known {
    /// Of the forward pass, and of the backward pass where it is another one, computed again: of each value of the operator's step; below
    /// none: of the list, it is not in this step.
    std::array<std::vector<int32_t>, 2> values;
    std::array<int32_t, 2> first = {-1, -1}; ///< event of the list, of either pass
  };
  std::map<Instance, Known> instances;
  std::vector<int32_t> dense(shown.size(), none);
  auto numberOf = [&](int32_t value) {
    if (dense[value] == none)
      dense[value] = static_cast<int32_t>(list.values++);
    return dense[value];
  };
  auto instanceOf = [](const StepEvent &event) { return Instance{event.instance, event.isCopy}; };
  auto note = [&](const OrderedOperator &all, std::vector<int32_t> &values, const std::vector<int32_t> &buffers,
                  const std::vector<StepEvent::Use> &uses) {
    values.resize(all.shown.size(), none);
    for (size_t i = 0; i < buffers.size(); ++i)
      if (const int32_t value = valueOf(buffers[i]); value >= 0)
        values[all.shown[uses[i].value]] = value;
  };
  for (const StepEvent &event : step.events)
    if (event.op >= 0) {
      const OrderedOperator &all = moments.orderedOperator(memberOf(event));
      list.isKnown &= all.isKnown;
      if (!list.isKnown)
        return list;
      std::vector<int32_t> &values = instances[instanceOf(event)].values[event.isBackward];
      note(all, values, event.reads, event.readUses);
      note(all, values, event.writes, event.writeUses);
    }
  for (size_t i = 0; i < step.events.size(); ++i) {
    const StepEvent &event = step.events[i];
    const auto next = static_cast<int32_t>(list.events.size());
    if (isMove(i))
      continue;
    if (event.op < 0) {
      list.numbers[i] = next;
      OrderedEvent made{.kind = event.isUpdate ? OrderedEvent::Kind::Step : OrderedEvent::Kind::Kernel, .reads = {}, .writes = {}};
      for (int32_t buffer : event.reads)
        if (const int32_t value = valueOf(buffer); value >= 0)
          made.reads.push_back({numberOf(value), next});
      for (int32_t buffer : event.writes)
        if (const int32_t value = valueOf(buffer); value >= 0 && !isStored[value])
          made.writes.push_back(numberOf(value));
      list.events.push_back(std::move(made));
      continue;
    }
    const OrderedOperator &all = moments.orderedOperator(memberOf(event));
    Known &known = instances[instanceOf(event)];
    int32_t &first = known.first[event.isBackward];
    if (first == none) {
      first = next;
      auto valueIn = [&](int32_t value) {
        if (const int32_t here = known.values[event.isBackward][value]; here >= 0)
          return numberOf(here);
        known.values[false].resize(all.shown.size(), none);
        int32_t &of = known.values[false][value];
        if (of == none)
          of = -2 - static_cast<int32_t>(list.values++);
        return of >= 0 ? numberOf(of) : -2 - of;
      };
      for (const OrderedOperator::Event &of : all.events[event.isBackward]) {
        const auto number = static_cast<int32_t>(list.events.size());
        OrderedEvent made{of.kind, of.isEpilogue, event.isCopy ? 1 : 0, {}, {}, of.isCheap, of.addsOnly};
        for (const OrderedOperator::Read &read : of.reads) {
          const bool isOther = event.isBackward && !read.since.isBackward && known.values[true][read.value] >= 0 &&
                               known.values[true][read.value] != known.values[false][read.value]; // computed again: another value
          const int32_t group = read.since.event < 0 || isOther ? none : known.first[read.since.isBackward];
          made.reads.push_back({valueIn(read.value), group == none || event.isCopy ? number : group + read.since.event});
        }
        for (int32_t value : of.writes)
          made.writes.push_back(valueIn(value));
        list.events.push_back(std::move(made));
      }
    }
    if (isAlways(event) && all.ofTraced[event.traced] >= 0)
      list.numbers[i] = first + all.ofTraced[event.traced];
  }
  std::vector<size_t> lastMaker(list.values);
  for (size_t i = 0; i < list.events.size(); ++i)
    for (int32_t value : list.events[i].writes)
      lastMaker[value] = i;
  for (size_t i = 0; i < list.events.size(); ++i)
    list.isKnown &= std::ranges::none_of(list.events[i].reads, [&](const OrderedEvent::Read &read) { return lastMaker[read.value] > i; });
  return list;
}

/// What the event of the moment writes, and gradients that its operator made before: they are handed on once all of them are there.
void MemoryMoments::Lasting::findMadeByRunning() {
  const StepEvent &event = step.events[*running];
  const std::vector<TracedOperator> &operators = moments.alwaysTraced(memberOf(event))->operators;
  auto isOfGradient = [&](const StepEvent &made) {
    return made.op == event.op && made.round == event.round && !made.isCopy && isBackward(made) && isBackward(event);
  };
  auto isAddedEarly = [&](int32_t number) { // maybe before the operator is done
    return std::ranges::any_of(step.events, [&](const StepEvent &sum) {
      return sum.sum >= 0 && std::ranges::find(sum.reads, number, [&](int32_t buffer) { return valueOf(buffer); }) != sum.reads.end();
    });
  };
  for (size_t i = 0; i <= *running; ++i) {
    const StepEvent &made = step.events[i];
    if (i != *running && !isOfGradient(made))
      continue;
    for (int32_t buffer : made.writes) {
      const int32_t number = valueOf(buffer);
      if (number < 0 || isStored[number] || makers[number] != static_cast<int32_t>(i) || of[number].running || !isReadBehind(i, number))
        continue;
      if (i != *running && (isAddedEarly(number) || !isDone(i)))
        continue;
      const Use written = writeOf(made, number);
      const int32_t inStep = operators[written.traced].writes[written.use].value;
      auto reads = [&](const TracedOperator &op) { return op.isThere && std::ranges::find(op.reads, inStep, &TracedOperator::Use::value) != op.reads.end(); };
      if (i != *running && std::ranges::any_of(operators, reads))
        continue;
      if (of[number].use.of.op < 0)
        of[number] = {written, false, made.round, {}, 0, -1};
      of[number].running = written;
      of[number].runningRound = event.round;
    }
  }
}

/// Others than a kernel that becomes one with what makes it.
bool MemoryMoments::Lasting::isReadBehind(size_t maker, int32_t number) const {
  int readers = 0;
  for (size_t i = maker + 1; i < step.events.size(); ++i) {
    const StepEvent &event = step.events[i];
    const bool isBehind = !running || (i >= *running && isLeft(i));
    if (isMove(i) || !isAlways(event) || !isBehind || std::ranges::find(event.reads, number, [&](int32_t buffer) { return valueOf(buffer); }) == event.reads.end())
      continue;
    ++readers;
    if (readers > 1 || !event.isEpilogue)
      return step.events[maker].kind != StepKind::Kernel;
  }
  return false;
}

/// Of a parameter that one operator alone reads: its gradient as the update wants it.
double MemoryMoments::storedBytesOf(int32_t parameter, int32_t op, int32_t option) const {
  const ProblemTensor &tensor = problem.tensors[parameter];
  const CutOperator cut{op, &model.options(op).pieces[option]};
  const Sharding stored = storageOf(problem, parameter, {&cut, 1});
  return static_cast<double>(elementCount(stored.capacity(tensor.shape))) * static_cast<double>(tensor.elementBytes);
}

MemoryMoment MemoryMoments::most(const StepEvents &step, const StepLives &lives) {
  MemoryMoment moment;
  moment.about.resize(model.network().options.size());
  moment.least.resize(moment.about.size());
  moment.leastOfAll.resize(moment.about.size());
  for (size_t variable = 0; variable < moment.about.size(); ++variable)
    moment.about[variable] = moment.least[variable] = moment.leastOfAll[variable] = model.parameterBytes()[variable].forRun;
  addUnread(moment);
  addAbout(step, lives, moment);
  addLeast(step, lives, moment);
  return moment;
}

/// What is there whatever is chosen: counted with the first variable.
void MemoryMoments::addUnread(MemoryMoment &moment) const {
  const std::vector<int64_t> unread = unreadParameters(problem, [&](size_t op) { return model.runs(op); });
  const auto bytes = static_cast<double>(std::accumulate(unread.begin(), unread.end(), int64_t(0)));
  if (bytes == 0 || moment.about.empty())
    return;
  for (auto *amounts : {&moment.about, &moment.least, &moment.leastOfAll}) {
    std::vector<double> &first = amounts->front();
    first.resize(static_cast<size_t>(model.network().options.front()));
    for (double &amount : first)
      amount += bytes;
  }
}

/// The tensor of an operator that is in a buffer: as the operator reads it, also through a cast of its own, or as it made it.
std::optional<MemoryMoments::Use> MemoryMoments::useOf(const StepEvents &step, const StepLives::Live &live) {
  const bool isWide = step.buffers[live.buffer].isWide;
  auto memberOf = [](const StepEvent &event) { return Member{event.op, event.rounds == Rounds::First}; };
  auto isOwnCast = [](const StepEvent &event) { return event.isCast && event.op < 0; };
  auto ofOperator = [](const StepEvent &event) { return event.op >= 0; };
  auto read = live.read < 0 ? step.events.end() : step.events.begin() + live.read;
  int32_t buffer = live.buffer;
  if (read != step.events.end() && isOwnCast(*read)) {
    buffer = read->writes.front();
    read = std::find_if(read, step.events.end(), ofOperator);
  }
  if (read != step.events.end() && read->op >= 0)
    if (const auto at = std::ranges::find(read->reads, buffer); at != read->reads.end())
      return Use{memberOf(*read), read->traced, read->readUses[buffer == live.buffer ? live.readAs : at - read->reads.begin()].number, false, isWide};
  if (live.made < 0)
    return std::nullopt;
  auto made = step.events.begin() + live.made;
  buffer = live.buffer;
  if (isOwnCast(*made)) {
    buffer = made->reads.front();
    while (made != step.events.begin() && !ofOperator(*made))
      --made;
  }
  if (const auto at = std::ranges::find(made->writes, buffer); made->op >= 0 && at != made->writes.end())
    return Use{memberOf(*made), made->traced, made->writeUses[at - made->writes.begin()].number, true, isWide};
  return std::nullopt;
}

/// What is live in that step.
void MemoryMoments::addAbout(const StepEvents &step, const StepLives &lives, MemoryMoment &moment) {
  std::map<Use, Count> uses;
  std::map<int32_t, double> gradients; // of parameters, by the variable that decides how they are stored
  for (const StepLives::Live &live : lives.mostLive()) {
    const auto bytes = static_cast<double>(step.buffers[live.buffer].bytes);
    if (live.read >= 0 && step.events[live.read].isUpdate) {
      gradients[model.keeperOf(step.buffers[step.events[live.read].writes.front()].parameter)] += bytes;
    } else if (const std::optional<Use> use = useOf(step, live)) {
      Count &count = uses[*use];
      ++count.buffers;
      count.bytes = bytes;
    }
  }
  addGradients(step, gradients, moment);
  for (const auto &[use, count] : uses) {
    std::vector<double> &about = moment.about[use.of.op];
    about.resize(model.network().options[use.of.op]);
    for (int32_t option = 0; option < static_cast<int32_t>(about.size()); ++option)
      about[option] += static_cast<double>(count.buffers) * bytesOf(use, option, count.bytes);
  }
}

/// Such a share of the gradients as is live.
void MemoryMoments::addGradients(const StepEvents &step, const std::map<int32_t, double> &live, MemoryMoment &moment) const {
  std::map<int32_t, double> all;
  for (const StepEvent &event : step.events)
    if (event.isUpdate && !event.isFollowUp)
      all[model.keeperOf(step.buffers[event.writes.front()].parameter)] += static_cast<double>(step.buffers[event.reads.front()].bytes);
  for (auto [variable, bytes] : live) {
    const std::vector<double> &gradients = model.parameterBytes()[variable].gradients;
    for (size_t option = 0; option < gradients.size(); ++option)
      moment.about[variable][option] += bytes / all[variable] * gradients[option];
  }
}

/// What is there whatever strategies there are.
void MemoryMoments::addLeast(const StepEvents &step, const StepLives &lives, MemoryMoment &moment) {
  const Lasting lasting(*this, step, lives.busiestStep());
  auto add = [&](int32_t op, auto bytesUnder) {
    std::vector<double> &least = moment.least[op];
    least.resize(model.network().options[op]);
    for (int32_t option = 0; option < static_cast<int32_t>(least.size()); ++option)
      least[option] += bytesUnder(option);
  };
  std::map<Use, int64_t> kept;
  for (const Lasting::Value &value : lasting.values())
    if (value.isKept)
      ++kept[value.use];
    else
      add(value.use.of.op, [&](int32_t) { return leastBytesOf(value.use); });
  for (const auto &[use, count] : kept) {
    const bool isOfAll = !roundsDiffer || count == instancesOf(use.of); // else a round of its own may have another option
    add(use.of.op, [&](int32_t option) {
      return static_cast<double>(count) * (isOfAll ? keptBytesOf(use, option) : leastBytesOf(use));
    });
  }
  for (int32_t variable : lasting.gradients())
    for (size_t option = 0; option < moment.least[variable].size(); ++option) {
      moment.least[variable][option] += model.parameterBytes()[variable].gradients[option];
      moment.leastOfAll[variable][option] += model.parameterBytes()[variable].gradients[option];
    }
  addLeastOfRounds(lasting, moment);
}

/// Where each round is a variable of its own, what is kept in some rounds alone, and what one round has while it runs, is known by option.
void MemoryMoments::addLeastOfRounds(const Lasting &lasting, MemoryMoment &moment) {
  std::map<std::pair<int32_t, int64_t>, std::vector<double>> found;
  for (const Lasting::Value &value : lasting.values()) {
    const Use &use = value.running.value_or(value.use);
    std::vector<double> &bytes = found[{use.of.op, value.running ? value.runningRound : value.round}];
    bytes.resize(model.network().options[use.of.op]);
    for (int32_t option = 0; option < static_cast<int32_t>(bytes.size()); ++option)
      if (value.running)
        bytes[option] += exactBytesOf(use, option);
      else if (value.parameter >= 0 && model.keeperOf(value.parameter) == use.of.op)
        bytes[option] += std::min(exactBytesOf(use, option), storedBytesOf(value.parameter, use.of.op, option));
      else
        bytes[option] += value.isKept ? keptBytesOf(use, option) : leastBytesOf(use);
  }
  for (auto &[of, bytes] : found)
    moment.leastOfRounds.push_back({of.first, of.second, std::move(bytes)});
}

} // namespace msc::passes
