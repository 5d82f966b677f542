#include "passes/sharding/cost/MemoryMoment.h"

#include <algorithm>
#include <set>

namespace msc::passes {

static double sizeOf(const StepValue &value, const Sharding &sharding) {
  const size_t bytes = sharding.isPartial() ? value.partialBytes : value.elementBytes;
  return static_cast<double>(elementCount(sharding.capacity(value.shape))) * static_cast<double>(bytes);
}

const OperatorStep &MemoryMoments::stepOf(const Use &use, int32_t option) const {
  const Rounds rounds = use.isFirst ? Rounds::First : Rounds::All;
  return model.step(use.op, model.options(use.op, rounds).pieces[option], rounds);
}

const TracedStep &MemoryMoments::traceOf(const Use &use, int32_t option) {
  auto [found, isNew] = traces.try_emplace({use.op, use.isFirst, option});
  if (isNew)
    found->second = traceStep(stepOf(use, option), model.options(use.op).pieces[option], problem.operators[use.op].out, problem.devices);
  return found->second;
}

/// What an operator reads is there in the sharding that it wants from when it was there for the forward pass; before that, or for the
/// backward pass alone, it may be there in any.
MemoryMoments::Bytes MemoryMoments::bytesOf(const Use &use, int32_t option, double simulated) {
  const TracedStep &trace = traceOf(use, option);
  if (use.traced >= static_cast<int32_t>(trace.operators.size()))
    return {simulated, 0}; // the operator is another one under this strategy
  const TracedOperator &traced = trace.operators[use.traced];
  const std::vector<TracedOperator::Use> &list = use.isWrite ? traced.writes : traced.reads;
  if (use.use >= static_cast<int32_t>(list.size()))
    return {simulated, 0};
  const TracedOperator::Use &of = list[use.use];
  const StepValue &value = stepOf(use, option).values[of.value];
  const double bytes = sizeOf(value, of.sharding);
  if (use.isWrite)
    return {bytes, bytes};
  double least = bytes;
  if (value.kind == StepValue::Kind::Inner) {
    for (const TracedOperator &other : trace.operators)
      for (const TracedOperator::Use &made : other.writes)
        if (made.value == of.value)
          least = std::min(bytes, sizeOf(value, made.sharding));
  } else if (auto reads = [&](const TracedOperator &other) {
               return !other.isBackward && std::ranges::any_of(other.reads, [&](const TracedOperator::Use &read) {
                 return read.value == of.value && read.sharding == of.sharding;
               });
             };
             !traced.isBackward || std::ranges::none_of(trace.operators, reads)) {
    least = std::min(bytes, static_cast<double>(elementCount(value.shape)) / static_cast<double>(problem.devices) *
                                static_cast<double>(std::min(value.elementBytes, value.partialBytes)));
  }
  return {bytes, least};
}

/// How often a step has it.
int64_t MemoryMoments::instancesOf(const Use &use) const {
  const int64_t rounds = problem.operators[use.op].rounds;
  return use.isFirst ? 1 : model.hasOwnFirstRound(use.op) ? rounds - 1 : rounds;
}

MemoryMoment MemoryMoments::most(const StepEvents &step, const StepLives &lives) {
  std::map<Use, Count> uses;
  std::map<int32_t, double> gradients; // of parameters, by the variable that decides how they are stored
  std::set<int32_t> values;
  double attributed = 0;
  for (const StepLives::Live &live : lives.mostLive()) {
    const StepBuffer &buffer = step.buffers[live.buffer];
    const auto bytes = static_cast<double>(buffer.bytes);
    const StepEvent *read = live.read < 0 ? nullptr : &step.events[live.read];
    const StepEvent *made = live.made < 0 ? nullptr : &step.events[live.made];
    if (read && read->isUpdate) {
      gradients[model.keeperOf(step.buffers[read->writes.front()].parameter)] += bytes;
      attributed += bytes;
      continue;
    }
    const bool isRead = read && read->op >= 0;
    const StepEvent *event = isRead ? read : made;
    if (!event || event->op < 0)
      continue;
    size_t written = 0;
    while (!isRead && written < made->writes.size() && made->writes[written] != live.buffer)
      ++written;
    if (!isRead && written == made->writes.size())
      continue;
    const int32_t use = isRead ? read->readUses[live.readAs] : made->writeUses[written];
    Count &count = uses[{event->op, event->traced, use, event->rounds == Rounds::First, !isRead}];
    ++count.all;
    count.values += buffer.value >= 0 && values.insert(buffer.value).second;
    count.bytes = bytes;
    attributed += bytes;
  }
  MemoryMoment moment;
  const std::vector<int32_t> &options = model.network().options;
  moment.about.resize(options.size());
  moment.least.resize(options.size());
  addParameters(step, gradients, moment);
  for (const auto &[use, count] : uses) {
    std::vector<double> &about = moment.about[use.op], &least = moment.least[use.op];
    about.resize(options[use.op]);
    least.resize(options[use.op]);
    const bool isSure = !roundsDiffer || count.values == instancesOf(use);
    for (int32_t option = 0; option < options[use.op]; ++option) {
      const Bytes bytes = bytesOf(use, option, count.bytes);
      about[option] += static_cast<double>(count.all) * bytes.about;
      least[option] += isSure ? static_cast<double>(count.values) * bytes.least : 0;
    }
  }
  const StepMemory memory = lives.memory();
  double forRun = 0;
  for (const StepBuffer &buffer : step.buffers)
    if (buffer.parameter >= 0)
      forRun += static_cast<double>(buffer.bytes);
  moment.rest = static_cast<double>(memory.arena()) - forRun - attributed;
  return moment;
}

/// Parameters, states, and such a share of the gradients as is live.
void MemoryMoments::addParameters(const StepEvents &step, const std::map<int32_t, double> &live, MemoryMoment &moment) const {
  std::map<int32_t, double> all;
  for (const StepEvent &event : step.events)
    if (event.isUpdate)
      all[model.keeperOf(step.buffers[event.writes.front()].parameter)] += static_cast<double>(step.buffers[event.reads.front()].bytes);
  for (size_t variable = 0; variable < moment.about.size(); ++variable)
    if (const auto &[forRun, gradients] = model.parameterBytes()[variable]; !forRun.empty()) {
      std::vector<double> &about = moment.about[variable] = moment.least[variable] = forRun;
      const auto found = live.find(static_cast<int32_t>(variable));
      const double share = found == live.end() ? 0 : found->second / all[found->first];
      for (size_t option = 0; option < about.size(); ++option) {
        about[option] += share * gradients[option];
        moment.least[variable][option] += share < 1 ? 0 : gradients[option];
      }
    }
}

} // namespace msc::passes
