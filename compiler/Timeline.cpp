#include "compiler/Timeline.h"

#include "compiler/Tables.h"
#include "runtime/plan/PlanIndex.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace msc::compiler {

namespace {

using Json = nlohmann::ordered_json;

enum Lane { Compute = 0, Communication = 1 };

/// The events of one program.
class Timeline {
public:
  Timeline(const plan::Plan &plan, const plan::Variant &variant, const std::vector<double> &computeUs, int process, Json &events)
      : plan(plan), variant(variant), computeUs(computeUs), process(process), events(events), done(variant.steps_size(), 0) {}

  void run(const std::string &program) {
    describe("process_name", Compute, program + ", predicted on " + plan.machine());
    describe("thread_name", Compute, "compute");
    describe("thread_name", Communication, "communication");
    for (int i = 0; i < variant.steps_size(); ++i)
      add(i, variant.steps(i));
  }

private:
  const plan::Plan &plan;
  const plan::Variant &variant;
  const std::vector<double> &computeUs;
  int process;
  Json &events;
  std::vector<double> done; ///< of each step
  double clocks[2] = {0, 0};

  void describe(const char *what, Lane lane, const std::string &name) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", lane}, {"args", {{"name", name}}}});
  }

  void add(int index, const plan::Step &step) {
    if (step.has_collective())
      return addCollective(index, step);
    double &now = clocks[Compute], start = now;
    bool isConstant = std::ranges::find(variant.constants(), static_cast<uint32_t>(index)) != variant.constants().end();
    now = step.has_wait() ? std::max(now, done[step.wait().step()]) : now + computeUs[index];
    addEvent(index, step, Compute, start, now, isConstant ? "load" : nullptr);
  }

  void addCollective(int index, const plan::Step &step) {
    const plan::Collective &collective = step.collective();
    double start = std::max(clocks[Compute], clocks[Communication]);
    done[index] = clocks[Communication] = start + collective.predicted_us();
    if (!collective.asynchronous())
      clocks[Compute] = done[index];
    Json &args = addEvent(index, step, Communication, start, done[index], nullptr)["args"];
    args.update({{"bytes", collective.bytes()},
                 {"groups", groupsText(groupsOf(variant.groups(static_cast<int>(collective.group()))))},
                 {"for", collective.for_operator()},
                 {"reason", collective.reason()}});
  }

  Json &addEvent(int index, const plan::Step &step, Lane lane, double start, double end, const char *category) {
    events.push_back({{"name", step.op() + (step.name().empty() ? "" : " ") + step.name()},
                      {"cat", category ? category : phaseName(step.phase())},
                      {"ph", "X"},
                      {"ts", start},
                      {"dur", end - start},
                      {"pid", process},
                      {"tid", lane},
                      {"args", {{"step", index}, {"place", placeOf(plan, step.location())}}}});
    return events.back();
  }
};

} // namespace

std::string timelineJson(const plan::Plan &plan, const Findings &findings) {
  Json events = Json::array();
  for (int i = 0; i < plan.programs_size(); ++i)
    Timeline(plan, plan.programs(i).variants(0), findings.computeUs[i], i, events)
        .run(plan.network() + (plan.programs(i).purpose() == plan::Program::TRAIN ? ", training" : ""));
  Json trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace msc::compiler
