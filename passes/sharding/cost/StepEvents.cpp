#include "passes/sharding/cost/StepEvents.h"

#include "passes/plan/EarlySums.h"
#include "passes/sharding/Storage.h"
#include "passes/sharding/cost/StepBuckets.h"
#include "passes/sharding/cost/StepSums.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace msc::passes {
namespace {

class Recorder {
public:
  Recorder(const Problem &problem, const StepModel &model, const PiecesInRound &pieces, dist::ReshardPlanner &planner)
      : problem(problem), model(model), pieces(pieces), planner(planner),
        uses(problem, [&](size_t op) { return model.runs(op); }), order(problem.operators.size()), bound(problem.tensors.size(), none) {
    std::iota(order.begin(), order.end(), size_t(0));
  }

  StepEvents run() {
    if (!isUnrollable())
      return {};
    bindInputs();
    for (int64_t bytes : unreadParameters(problem, [&](size_t op) { return model.runs(op); }, [&](int32_t op) -> const Pieces & { return pieces(op, 0); }))
      addForRun(bytes);
    std::ranges::stable_sort(order, {}, [&](size_t op) { return problem.operators[op].line; });
    runForward(0, order.size(), 0, 0);
    for (int32_t result : problem.results)
      if (bound[result] != none)
        fetch(bound[result]);
    if (problem.loss >= 0)
      runBackward();
    buckets.place(line);
    hoistSums(line, sums);
    sumInPlace(line);
    return std::move(line);
  }

private:
  static constexpr int32_t none = -1;

  /// A tensor in a sharding. Shardings and shapes are those of the problem, of traces, or kept: there are some hundred of them.
  struct Version {
    const Sharding *sharding = nullptr;
    int32_t buffer = none;
  };
  /// A value of the step; versions are added as somebody asks for them.
  struct Value {
    const Shape *shape = nullptr;
    size_t elementBytes = 4, partialBytes = 4;
    std::vector<Version> versions; ///< first as it was left
    const Sharding *own = nullptr; ///< where it is completed, and where its gradient is brought
    int32_t maker = none;          ///< the instance of which it is a result or an inner value
    int32_t parameter = none;      ///< index into `parameters`
    bool isCopy = false;           ///< made by an operator that runs again
    bool isRounded = false;        ///< added in f32, and cast once it is complete
    bool isBackward = false;       ///< made by the backward pass
    int64_t gradients = 0;         ///< contributions to its gradient that will come
    std::vector<int32_t> terms;    ///< those that have come
  };
  struct Less {
    bool operator()(const Sharding &a, const Sharding &b) const {
      auto key = [](const Sharding &sharding) { return std::tie(sharding.axes, sharding.dims); };
      auto isBefore = [](const PartialAxis &a, const PartialAxis &b) { return std::tie(a.axis, a.kind) < std::tie(b.axis, b.kind); };
      if (key(a) != key(b))
        return key(a) < key(b);
      return std::ranges::lexicographical_compare(a.partial, b.partial, isBefore);
    }
  };
  /// An operator in one round.
  struct Instance {
    size_t op = 0;
    const OperatorStep *step = nullptr;
    const TracedStep *trace = nullptr;
    Rounds rounds = Rounds::All;
    int64_t round = 0;
    std::vector<int32_t> operands; ///< values
    std::vector<int32_t> values;   ///< of each value of its step; `none`: not there (any more)
    std::vector<int32_t> again;    ///< the same, computed again; empty: has not been
  };
  struct Parameter {
    int32_t tensor = 0, value = 0;
  };
  struct Updated {
    Parameter parameter;
    int32_t gradient = none;
    std::vector<int32_t> kept; ///< buffers, by the numbers of what kernels of an update keep
  };
  const Problem &problem;
  const StepModel &model;
  const PiecesInRound &pieces;
  dist::ReshardPlanner &planner;
  TensorUses uses;
  StepEvents line;
  std::vector<size_t> order;  ///< of operators
  std::set<Sharding, Less> kept;
  std::vector<int32_t> bound; ///< of each tensor: its value now
  std::vector<Value> values;
  std::vector<Instance> instances;
  std::vector<Parameter> parameters;
  std::map<std::tuple<size_t, const OperatorStep *, Pieces>, TracedStep> traces;
  StepBuckets buckets;
  std::unordered_map<const void *, int32_t> loops; ///< of traced operators: which of the line's kernels
  std::map<Shape, int32_t> castLoops;              ///< the same of casts, by local shapes
  int32_t sums = 0; ///< of many terms
  int64_t roundNow = 0;
  bool isCopying = false; ///< for the backward pass

  bool isUnrollable() const {
    return std::ranges::all_of(problem.operators, [&](const ProblemOperator &op) {
      int64_t rounds = 1;
      for (int32_t repeat : op.repeats)
        rounds *= problem.repeats[repeat].lastRound - problem.repeats[repeat].firstRound + 1;
      return rounds == op.rounds;
    });
  }

  //===-- values ----------------------------------------------------------===//

  const Sharding *keep(const Sharding &sharding) { return &*kept.insert(sharding).first; }

  static int64_t elementsOf(const Shape &shape, const Sharding &sharding) { return elementCount(sharding.capacity(shape)); }

  int32_t addBuffer(const Value &value, const Sharding &sharding, int32_t number, bool isWide = false) {
    const size_t bytes = isWide ? wideBytes : sharding.isPartial() ? value.partialBytes : value.elementBytes;
    line.buffers.push_back({.bytes = elementsOf(*value.shape, sharding) * static_cast<int64_t>(bytes), .isCopy = value.isCopy, .value = number,
                            .isWide = isWide});
    return static_cast<int32_t>(line.buffers.size() - 1);
  }

  /// A kernel of its own, of one buffer of the value to another one.
  void cast(int32_t from, int32_t to, int32_t value, const Sharding &sharding, bool isBackward) {
    StepEvent event{.kind = StepKind::Kernel, .isCopy = isCopying, .isBackward = isBackward, .isCast = true, .isCheap = true, .reads = {from}, .writes = {to}};
    const Shape local = sharding.capacity(*values[value].shape);
    auto [found, isNew] = castLoops.try_emplace(local, static_cast<int32_t>(line.kernels.size()));
    if (isNew)
      line.kernels.push_back(elementwiseLoops(local, 1));
    event.loops = found->second;
    line.events.push_back(std::move(event));
  }

  /// The value in f32.
  int32_t widened(int32_t value, const Sharding &sharding, bool isBackward) {
    const int32_t narrow = versionOf(value, sharding), wide = addBuffer(values[value], sharding, value, /*isWide=*/true);
    cast(narrow, wide, value, sharding, isBackward);
    return wide;
  }

  /// `left` stays where it is.
  int32_t addValue(Value value, const Sharding &left) {
    const auto number = static_cast<int32_t>(values.size());
    value.versions.push_back({&left, addBuffer(value, left, number)});
    values.push_back(std::move(value));
    return number;
  }

  int32_t addTensor(int32_t tensor, const Sharding *sharding) {
    const ProblemTensor &facts = problem.tensors[tensor];
    Value value{.shape = &facts.shape, .elementBytes = facts.elementBytes, .partialBytes = facts.elementBytes, .versions = {},
                .own = sharding, .terms = {}};
    return addValue(std::move(value), *sharding);
  }

  void bindInputs() {
    std::vector<char> isMade(problem.tensors.size());
    for (const ProblemOperator &op : problem.operators)
      for (int32_t result : op.results)
        isMade[result] = 1;
    for (const ProblemHandover &handover : problem.handovers)
      isMade[handover.to] = 1;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const ProblemTensor &tensor = problem.tensors[t];
      if (isMade[t] || tensor.isParameter || !tensor.dataset)
        continue;
      bound[t] = addTensor(static_cast<int32_t>(t), keep(tensor.dataset->canonical()));
      line.buffers[values[bound[t]].versions.front().buffer].isInput = true;
    }
  }

  void fetch(int32_t value) {
    for (const Version &version : values[value].versions)
      if (!version.sharding->isPartial() && !line.buffers[version.buffer].forRun) {
        line.buffers[version.buffer].isFetched = true;
        return;
      }
  }

  /// The value of a parameter in this round.
  int32_t parameterOf(int32_t tensor) {
    if (bound[tensor] != none)
      return bound[tensor];
    std::vector<Pieces> taken;
    std::vector<CutOperator> cut;
    for (int32_t user : uses.readers[tensor]) {
      const int64_t rounds = problem.tensors[tensor].rounds > 1 || problem.operators[user].repeats.empty()
                                 ? 1
                                 : roundsOf(problem.operators[user].repeats.back());
      for (int64_t round = 0; round < rounds; ++round)
        cut.push_back({user, &pieces(user, problem.tensors[tensor].rounds > 1 ? roundNow : round)});
    }
    bound[tensor] = addTensor(tensor, keep(storageOf(problem, tensor, cut).canonical()));
    StepBuffer &buffer = line.buffers[values[bound[tensor]].versions.front().buffer];
    buffer.forRun = true;
    buffer.parameter = tensor;
    values[bound[tensor]].parameter = static_cast<int32_t>(parameters.size());
    parameters.push_back({tensor, bound[tensor]});
    return bound[tensor];
  }

  int64_t roundsOf(int32_t repeat) const { return problem.repeats[repeat].lastRound - problem.repeats[repeat].firstRound + 1; }

  //===-- moves -----------------------------------------------------------===//

  static bool reaches(const Sharding &from, const Sharding &to) { return !to.isPartial() || from.partial == to.partial; }

  const Version *find(int32_t value, const Sharding &sharding) const {
    auto at = std::ranges::find_if(values[value].versions, [&](const Version &version) {
      return version.sharding == &sharding || *version.sharding == sharding;
    });
    return at == values[value].versions.end() ? nullptr : &*at;
  }

  std::pair<size_t, std::vector<dist::ReshardStep>> routeTo(int32_t value, const Sharding &target) {
    const Value &from = values[value];
    const std::vector<Version> &there = from.versions;
    const size_t bytes = there.front().sharding->isPartial() ? from.partialBytes : from.elementBytes;
    size_t source = 0;
    double best = planner.us(*there.front().sharding, target, *from.shape, bytes);
    for (size_t i = 1; i < there.size(); ++i)
      if (reaches(*there[i].sharding, target))
        if (double us = planner.us(*there[i].sharding, target, *from.shape, bytes); us < best) {
          source = i;
          best = us;
        }
    return {source, planner.plan(*there[source].sharding, target, *from.shape, bytes)};
  }

  /// The buffer of a value in a sharding, moved there if it is not.
  int32_t versionOf(int32_t value, const Sharding &target) {
    if (const Version *version = find(value, target))
      return version->buffer;
    auto [source, steps] = routeTo(value, target);
    const Version &from = values[value].versions[source];
    int32_t buffer = from.buffer;
    const bool isRounded = values[value].isRounded && from.sharding->isPartial() && !target.isPartial(); // once it is there
    for (const dist::ReshardStep &step : steps) {
      const int32_t made = addBuffer(values[value], step.after, value, isRounded);
      line.events.push_back({.isAllReduce = step.kind == MoveKind::AllReduce, .reads = {buffer}, .writes = {made}});
      buffer = made;
      if (!isRounded)
        values[value].versions.push_back({keep(step.after), made});
    }
    if (isRounded) {
      const int32_t wide = std::exchange(buffer, addBuffer(values[value], target, value));
      cast(wide, buffer, value, target, values[value].isBackward);
      values[value].versions.push_back({keep(target), buffer});
    }
    return buffer;
  }

  /// A gradient of a parameter on its way to where the update wants it: it may have to wait for others.
  void completeInBucket(int32_t gradient, const Sharding &target) {
    if (problem.gradientsPerStart <= 1 || find(gradient, target))
      return (void)versionOf(gradient, target);
    auto [source, steps] = routeTo(gradient, target);
    if (steps.size() != 1 || !StepBuckets::runsIn(steps.front().kind))
      return (void)versionOf(gradient, target);
    const dist::ReshardStep &step = steps.front();
    const int32_t from = values[gradient].versions[source].buffer, made = addBuffer(values[gradient], step.after, gradient);
    values[gradient].versions.push_back({keep(step.after), made});
    buckets.add(step, values[gradient].partialBytes, from, made, line);
  }

  //===-- operators -------------------------------------------------------===//

  const OperatorStep *stepOf(size_t op) const {
    return &model.step(op, pieces(op, roundNow), roundNow == 0 ? Rounds::First : Rounds::All);
  }

  const TracedStep &traceOf(size_t op) {
    const Pieces &taken = pieces(op, roundNow);
    const OperatorStep *step = stepOf(op);
    auto [found, isNew] = traces.try_emplace({op, step, taken});
    if (isNew)
      found->second = traceStep(*step, taken, outOf(problem.operators[op], taken, problem.devices), problem.devices);
    return found->second;
  }

  /// Operators `order[from, to)`, `depth` repeats around which have been entered.
  void runForward(size_t from, size_t to, size_t depth, int64_t round) {
    for (size_t i = from; i < to;) {
      const ProblemOperator &op = problem.operators[order[i]];
      if (op.repeats.size() <= depth) {
        roundNow = round;
        if (model.runs(order[i]))
          runOperator(order[i]);
        ++i;
        continue;
      }
      size_t end = i;
      auto isInside = [&](const ProblemOperator &other) {
        return other.repeats.size() > depth && other.repeats[depth] == op.repeats[depth];
      };
      while (end < to && isInside(problem.operators[order[end]]))
        ++end;
      runRepeat(op.repeats[depth], i, end, depth);
      i = end;
    }
  }

  void runRepeat(int32_t repeat, size_t from, size_t to, size_t depth) {
    std::vector<const ProblemHandover *> enter, carry, leave;
    std::vector<const ProblemHandover *> crossing;
    for (const ProblemHandover &handover : problem.handovers)
      if (handover.repeat == repeat)
        (handover.crossesBorder ? crossing : carry).push_back(&handover);
    // Of each argument: into the first round, out of the last one.
    for (size_t i = 0; i < crossing.size(); ++i)
      (i % 2 == 0 ? enter : leave).push_back(crossing[i]);
    auto hand = [&](const std::vector<const ProblemHandover *> &list) {
      std::vector<int32_t> taken;
      for (const ProblemHandover *handover : list)
        taken.push_back(problem.tensors[handover->from].isParameter ? parameterOf(handover->from) : bound[handover->from]);
      for (size_t i = 0; i < list.size(); ++i)
        bound[list[i]->to] = taken[i];
    };
    hand(enter);
    for (int64_t round = 0; round < roundsOf(repeat); ++round) {
      for (size_t i = from; i < to; ++i)
        for (int32_t operand : problem.operators[order[i]].operands)
          if (problem.tensors[operand].isParameter && problem.tensors[operand].rounds > 1)
            bound[operand] = none;
      if (round > 0)
        hand(carry);
      runForward(from, to, depth + 1, round);
    }
    hand(leave);
  }

  void runOperator(size_t op) {
    const bool isFirst = roundNow == 0 && model.hasOwnFirstRound(op);
    Instance instance{.op = op, .step = stepOf(op), .trace = &traceOf(op), .rounds = isFirst ? Rounds::First : Rounds::All,
                      .round = roundNow, .operands = {}, .values = {}, .again = {}};
    for (int32_t tensor : problem.operators[op].operands)
      instance.operands.push_back(problem.tensors[tensor].isParameter ? parameterOf(tensor) : bound[tensor]);
    bindOperands(instance, instance.operands, instance.values);
    addConstants(instance, /*isBackward=*/false);
    for (const TracedOperator &traced : instance.trace->operators)
      if (!traced.isBackward && traced.isThere)
        run(instance, traced, instance.values);
    for (size_t r = 0; r < instance.trace->results.size(); ++r) {
      const int32_t value = instance.values[instance.trace->results[r]];
      bound[problem.operators[op].results[r]] = value;
      values[value].own = &instance.trace->placed.results[r].own;
      // What nobody but the network asks for.
      const int32_t tensor = problem.operators[op].results[r];
      if (uses.readers[tensor].empty() && values[value].versions.front().sharding->isPartial() &&
          std::ranges::find(problem.results, tensor) != problem.results.end())
        versionOf(value, *values[value].own);
    }
    for (auto [operand, gradient] : instance.step->gradients)
      if (instance.operands[operand] != none)
        ++values[instance.operands[operand]].gradients;
    instances.push_back(std::move(instance));
  }

  void bindOperands(const Instance &instance, const std::vector<int32_t> &operands, std::vector<int32_t> &to) const {
    const std::vector<StepValue> &facts = instance.step->values;
    to.assign(facts.size(), none);
    for (size_t i = 0; i < facts.size(); ++i)
      if (facts[i].kind == StepValue::Kind::Operand)
        to[i] = operands[facts[i].number];
  }

  /// Where it stands, or will stand, among the instances.
  int32_t numberOf(const Instance &instance) const {
    const bool isThere = !instances.empty() && !std::less<>()(&instance, instances.data()) && std::less<>()(&instance, instances.data() + instances.size());
    return static_cast<int32_t>(isThere ? &instance - instances.data() : std::ssize(instances));
  }

  /// `of`: values of the step.
  void run(const Instance &instance, const TracedOperator &traced, std::vector<int32_t> &of) {
    const std::vector<StepValue> &facts = instance.step->values;
    if (traced.computes == TracedOperator::brings && of[traced.reads.front().value] != none) {
      const TracedOperator::Use &from = traced.reads.front();
      versionOf(of[from.value], from.sharding);
      of[traced.writes.front().value] = of[from.value];
      return;
    }
    StepEvent event{.kind = traced.kind, .isEpilogue = traced.isEpilogue, .isCopy = isCopying, .isBackward = traced.isBackward, .reads = {}, .writes = {},
                    .op = static_cast<int32_t>(instance.op), .traced = static_cast<int32_t>(&traced - instance.trace->operators.data()),
                    .rounds = instance.rounds, .round = instance.round, .instance = numberOf(instance), .readUses = {}, .writeUses = {}};
    event.isCast = traced.op && traced.op->isCast;
    event.isCheap = traced.op && traced.op->isCheap;
    const bool isWide = traced.computesWide() && traced.kind != StepKind::View;
    for (const TracedOperator::Use &use : traced.reads) {
      if (event.reads.empty())
        event.isNarrow = facts[use.value].elementBytes != 4;
      if (of[use.value] == none)
        continue;
      const bool isNarrow = isWide && facts[use.value].elementBytes == narrowBytes;
      const auto same = std::ranges::find_if(event.readUses, [&](const StepEvent::Use &other) {
        return other.value == use.value && traced.reads[other.number].sharding == use.sharding;
      });
      if (isNarrow && same != event.readUses.end()) // cast once
        event.reads.push_back(event.reads[same - event.readUses.begin()]);
      else
        event.reads.push_back(isNarrow ? widened(of[use.value], use.sharding, traced.isBackward) : versionOf(of[use.value], use.sharding));
      event.readUses.push_back({static_cast<int32_t>(&use - traced.reads.data()), use.value});
    }
    event.isEpilogue &= !event.isNarrow || !(isCopying || (!traced.isBackward && instance.step->isRecomputed)); // as passes/plan/Units.cpp
    std::vector<std::pair<int32_t, const TracedOperator::Use *>> rounded; // f32 buffers
    for (const TracedOperator::Use &use : traced.writes) {
      const StepValue &made = facts[use.value];
      if (made.kind == StepValue::Kind::Constant)
        continue;
      Value value{.shape = &made.shape, .elementBytes = made.elementBytes, .partialBytes = made.partialBytes, .versions = {},
                  .own = &instance.trace->own[use.value], .terms = {}};
      value.isCopy = isCopying;
      value.isRounded = (isWide || (traced.op && traced.op->addsWide)) && made.partialBytes > made.elementBytes;
      value.isBackward = traced.isBackward;
      of[use.value] = addValue(std::move(value), use.sharding);
      if (!traced.isBackward)
        values[of[use.value]].maker = isCopying ? none : static_cast<int32_t>(instances.size());
      if (isWide && values[of[use.value]].isRounded && !use.sharding.isPartial()) {
        event.writes.push_back(addBuffer(values[of[use.value]], use.sharding, of[use.value], /*isWide=*/true));
        rounded.emplace_back(event.writes.back(), &use);
      } else {
        event.writes.push_back(values[of[use.value]].versions.front().buffer);
      }
      event.writeUses.push_back({static_cast<int32_t>(&use - traced.writes.data()), use.value});
    }
    if (traced.kind == StepKind::View && !event.reads.empty() && !event.writes.empty()) {
      line.buffers[event.writes.front()].viewOf = event.reads.front();
      return;
    }
    if (event.writes.empty())
      return;
    if (traced.kind == StepKind::Kernel)
      event.loops = keepLoops(&traced, [&] { return loopsOf(traced, facts); });
    line.events.push_back(std::move(event));
    for (auto [wide, use] : rounded)
      cast(wide, values[of[use->value]].versions.front().buffer, of[use->value], use->sharding, traced.isBackward);
  }

  /// `of`: what has them.
  template <typename Make> int32_t keepLoops(const void *of, Make make) {
    auto [found, isNew] = loops.try_emplace(of, static_cast<int32_t>(line.kernels.size()));
    if (isNew)
      line.kernels.push_back(make());
    return found->second;
  }

  //===-- backward --------------------------------------------------------===//

  void runBackward() {
    if (bound[problem.loss] == none)
      return;
    const int32_t loss = bound[problem.loss];
    const int32_t one = addTensor(problem.loss, values[loss].own); // the gradient of the loss with respect to itself
    line.buffers[values[one].versions.front().buffer].forRun = true;
    values[loss].terms.push_back(one);
    for (int64_t scalar = 0; scalar < problem.updateScalars; ++scalar)
      addForRun(4);
    for (size_t i = instances.size(); i-- > 0;)
      differentiate(i);
    std::vector<Updated> updated;
    for (const Parameter &parameter : parameters)
      if (int32_t gradient = total(parameter.value); gradient != none && problem.tensors[parameter.tensor].isTrained)
        updated.push_back({parameter, gradient, {}});
    runUpdates(updated);
  }

  /// Marked operators from which the values come, computed again.
  std::vector<int32_t> computedAgain(const std::vector<int32_t> &operands) {
    std::vector<int32_t> changed = operands;
    for (int32_t &operand : changed)
      if (int32_t maker = operand == none ? none : values[operand].maker; maker != none && isRecomputed(maker)) {
        computeAgain(maker);
        for (size_t v = 0; v < instances[maker].values.size(); ++v)
          if (instances[maker].values[v] == operand && instances[maker].again[v] != none && isInner(maker, v)) {
            operand = instances[maker].again[v];
            break;
          }
      }
    return changed;
  }

  bool isInner(int32_t instance, size_t value) const {
    return instances[instance].step->values[value].kind == StepValue::Kind::Inner;
  }
  bool isRecomputed(int32_t instance) const { return instances[instance].step->isRecomputed; }

  void computeAgain(int32_t index) {
    std::vector<int32_t> stack{index};
    while (!stack.empty()) {
      const int32_t at = stack.back();
      if (!instances[at].again.empty()) {
        stack.pop_back();
        continue;
      }
      const size_t depth = stack.size();
      for (int32_t operand : instances[at].operands)
        if (int32_t maker = operand == none ? none : values[operand].maker;
            maker != none && isRecomputed(maker) && instances[maker].again.empty())
          stack.push_back(maker);
      if (stack.size() > depth)
        continue;
      stack.pop_back();
      std::vector<int32_t> again;
      bindOperands(instances[at], computedAgain(instances[at].operands), again);
      isCopying = true;
      for (size_t v = 0; v < again.size(); ++v)
        if (instances[at].trace->isStatistic[v] != 0)
          again[v] = instances[at].values[v];
      for (const TracedOperator &traced : instances[at].trace->operators)
        if (traced.runsAgain)
          run(instances[at], traced, again);
      isCopying = false;
      instances[at].again = std::move(again);
    }
  }

  void differentiate(size_t index) {
    const OperatorStep &step = *instances[index].step;
    const TracedStep &trace = *instances[index].trace;
    if (step.gradients.empty() ||
        std::ranges::all_of(trace.results, [&](int32_t r) { return values[instances[index].values[r]].terms.empty(); }))
      return;
    addConstants(instances[index], /*isBackward=*/true);
    std::vector<int32_t> of = instances[index].values;
    for (size_t v = 0; v < step.values.size(); ++v)
      if (step.values[v].kind == StepValue::Kind::ResultGradient)
        of[v] = total(instances[index].values[trace.results[step.values[v].number]]);
    std::vector<char> isRead(of.size());
    for (const TracedOperator &traced : trace.operators)
      for (const TracedOperator::Use &use : traced.reads)
        isRead[use.value] |= traced.isBackward && traced.isThere;
    for (size_t v = 0; v < of.size(); ++v) {
      const bool isForward = step.values[v].kind == StepValue::Kind::Operand || step.values[v].kind == StepValue::Kind::Inner;
      const bool isKept = !trace.isStatistic.empty() && trace.isStatistic[v];
      if (isRead[v] && isForward && !isKept && of[v] != none)
        of[v] = computedAgain({of[v]}).front();
    }
    for (const TracedOperator &traced : trace.operators)
      if (traced.isBackward && traced.isThere)
        run(instances[index], traced, of);
    for (auto [operand, gradient] : trace.gradients)
      if (of[gradient] != none && instances[index].operands[operand] != none)
        contribute(of[gradient], instances[index].operands[operand]);
  }

  void addForRun(int64_t bytes) { line.buffers.push_back({.bytes = bytes, .forRun = true}); }

  /// What the operator, or its gradient, brings along is there for the run.
  void addConstants(const Instance &instance, bool isBackward) {
    const std::vector<StepValue> &facts = instance.step->values;
    for (const TracedOperator &traced : instance.trace->operators)
      for (const TracedOperator::Use &use : traced.reads)
        if (traced.isThere && traced.isBackward == isBackward && facts[use.value].kind == StepValue::Kind::Constant)
          addForRun(elementsOf(facts[use.value].shape, use.sharding) * static_cast<int64_t>(facts[use.value].elementBytes));
  }

  void contribute(int32_t gradient, int32_t value) {
    values[value].terms.push_back(gradient);
    if (values[value].gradients == 1 && !find(gradient, *values[value].own))
      complete(gradient, value);
  }

  void complete(int32_t gradient, int32_t value) {
    if (values[value].parameter != none)
      completeInBucket(gradient, *values[value].own);
    else
      versionOf(gradient, *values[value].own);
  }

  /// The sum of what has come; `none` where nothing has.
  int32_t total(int32_t value) {
    std::vector<int32_t> terms = std::exchange(values[value].terms, {});
    if (terms.empty())
      return none;
    const bool isOne = terms.size() == 1;
    const int32_t number = terms.size() > termsAtOnce ? sums++ : none;
    while (terms.size() > 1) {
      const size_t count = std::max<size_t>(2, putAlikeFirst(terms));
      int32_t sum = terms.front();
      for (size_t i = 1; i < count; ++i)
        sum = added(sum, terms[i], value, number);
      terms.erase(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(count));
      terms.insert(terms.begin(), sum);
    }
    if (!isOne)
      complete(terms.front(), value);
    values[value].terms = terms;
    return terms.front();
  }

  /// Of terms that lie alike the most, as passes/partition/AlikeTerms.h does. Returns how many these are.
  size_t putAlikeFirst(std::vector<int32_t> &terms) const {
    struct LessPointed {
      bool operator()(const Sharding *a, const Sharding *b) const { return Less()(*a, *b); }
    };
    auto leftOf = [&](int32_t term) { return values[term].versions.front().sharding; };
    auto isAsLeft = [&](int32_t term) { return values[term].versions.size() == 1; };
    std::map<const Sharding *, size_t, LessPointed> counts;
    for (int32_t term : terms)
      if (isAsLeft(term))
        ++counts[leftOf(term)];
    size_t most = 0;
    const Sharding *kind = nullptr; // the first of them
    for (int32_t term : terms)
      if (const size_t count = isAsLeft(term) ? counts[leftOf(term)] : 0; count > most) {
        most = count;
        kind = leftOf(term);
      }
    if (most > 1)
      std::ranges::stable_partition(terms, [&](int32_t term) { return isAsLeft(term) && *leftOf(term) == *kind; });
    return most;
  }

  int32_t added(int32_t sum, int32_t term, int32_t value, int32_t number) {
    const Sharding *left = values[sum].versions.front().sharding, *own = values[value].own;
    const Sharding &at = *left == *values[term].versions.front().sharding ? *left : *own;
    StepEvent event{.kind = StepKind::Kernel, .isBackward = true, .sum = number, .reads = {}, .writes = {}};
    event.loops = static_cast<int32_t>(line.kernels.size());
    line.kernels.push_back(elementwiseLoops(at.capacity(*values[value].shape), 2));
    const size_t moves = line.events.size();
    const bool isWide = !at.isPartial() && number == none && (values[sum].isRounded || values[term].isRounded);
    for (int32_t read : {sum, term})
      event.reads.push_back(isWide ? widened(read, at, /*isBackward=*/true) : versionOf(read, at));
    for (size_t i = moves; i < line.events.size(); ++i)
      line.events[i].sum = number;
    Value facts{.shape = values[value].shape, .elementBytes = values[value].elementBytes, .partialBytes = values[term].partialBytes,
                .versions = {}, .own = own, .isRounded = values[sum].isRounded || values[term].isRounded, .isBackward = true, .terms = {}};
    const int32_t made = addValue(std::move(facts), at), buffer = values[made].versions.front().buffer;
    event.writes = {isWide ? addBuffer(values[made], at, made, /*isWide=*/true) : buffer};
    line.events.push_back(std::move(event));
    if (isWide)
      cast(line.events.back().writes.front(), buffer, made, at, /*isBackward=*/true);
    return made;
  }

  /// All of them up to where they wait for each other, or for norms of what is cut, which are summed together.
  void runUpdates(std::vector<Updated> &updated) {
    const std::vector<UpdateKernel> one{{.readsGradient = true, .reads = {}, .writes = {}}};
    const std::vector<UpdateKernel> &kernels = problem.updateKernels.empty() ? one : problem.updateKernels;
    const bool sumsTogether = problem.gradientsPerStart > 1 && std::ranges::any_of(updated, [&](const Updated &of) {
      const Value &value = values[of.parameter.value];
      return elementsOf(*value.shape, *value.own) < elementCount(*value.shape);
    });
    for (size_t from = 0, to = 0; from < kernels.size(); from = to) {
      for (++to; to < kernels.size() && !kernels[to].waits && !sumsTogether;)
        ++to;
      for (Updated &of : updated)
        for (size_t kernel = from; kernel < to; ++kernel)
          update(of, kernels[kernel], kernel > 0);
    }
  }

  /// Parameter and states change where they lie.
  void update(Updated &of, const UpdateKernel &kernel, bool isFollowUp) {
    const int32_t parameter = values[of.parameter.value].versions.front().buffer;
    StepBuffer stored = line.buffers[parameter];
    stored.value = -1;
    StepEvent event{.kind = StepKind::Kernel, .isUpdate = true, .isFollowUp = isFollowUp, .reads = {}, .writes = {parameter}};
    if (!isFollowUp || kernel.readsGradient)
      event.reads.push_back(versionOf(of.gradient, *values[of.parameter.value].own));
    for (int32_t kept : kernel.reads)
      event.reads.push_back(of.kept[kept]);
    for (int32_t kept : kernel.writes) {
      of.kept.resize(std::max(of.kept.size(), static_cast<size_t>(kept) + 1));
      event.writes.push_back(of.kept[kept] = static_cast<int32_t>(line.buffers.size()));
      line.buffers.push_back({.bytes = stored.bytes});
    }
    for (int64_t state = 0; state < problem.optimizerStates && !isFollowUp; ++state) {
      line.buffers.push_back(stored);
      event.writes.push_back(static_cast<int32_t>(line.buffers.size() - 1));
    }
    line.events.push_back(std::move(event));
  }
};

} // namespace

StepEvents eventsOf(const Problem &problem, const StepModel &model, const PiecesInRound &pieces, dist::ReshardPlanner &planner) {
  return Recorder(problem, model, pieces, planner).run();
}

} // namespace msc::passes
