#include "compiler/Timeline.h"

#include "compiler/Tables.h"
#include "runtime/plan/TraceEvents.h"

#include <algorithm>

namespace msc::compiler {

namespace {

/// The events of one program.
class Timeline {
public:
  Timeline(const plan::Plan &plan, const plan::Variant &variant, const std::vector<double> &computeUs, bool overlaps, int64_t process,
           const std::string &remark, TraceEvent &events)
      : plan(plan), variant(variant), computeUs(computeUs), overlaps(overlaps), process(process), remark(remark), events(events), done(variant.steps_size(), 0) {}

  void run(const std::string &program) {
    for (TraceEvent &event : describeProcess(process, program + ", predicted on " + plan.machine() + remark, 0, Lane::Communication))
      events.push_back(std::move(event));
    for (int i = 0; i < variant.steps_size(); ++i)
      add(i, variant.steps(i));
  }

private:
  const plan::Plan &plan;
  const plan::Variant &variant;
  const std::vector<double> &computeUs;
  bool overlaps;
  int64_t process;
  const std::string &remark;
  TraceEvent &events;
  std::vector<double> done; ///< of each step
  double computes = 0, communicates = 0; ///< until when

  void add(int index, const plan::Step &step) {
    if (step.has_collective())
      return addCollective(index, step.collective());
    double start = computes;
    computes = step.has_wait() ? std::max(computes, done[step.wait().step()]) : computes + computeUs[index];
    addEvent(index, start, computes);
  }

  void addCollective(int index, const plan::Collective &collective) {
    double start = std::max(computes, communicates);
    done[index] = communicates = start + collective.predicted_us();
    if (!collective.asynchronous() || !overlaps) // else what runs beside it takes as much longer
      computes = communicates;
    addEvent(index, start, communicates);
  }

  void addEvent(int index, double start, double end) {
    TraceEvent event = stepEvent(plan, variant, index);
    event.update({{"pid", process}, {"ts", start}, {"dur", end - start}});
    events.push_back(std::move(event));
  }
};

} // namespace

std::string timelineJson(const plan::Plan &plan, const Findings &findings) {
  TraceEvent events = TraceEvent::array();
  const bool isRefused = findings.memory && !findings.memory->fits;
  const std::string remark = isRefused ? "; it does not fit into " + bytesText(findings.memory->limit) + " per rank" : "";
  for (int i = 0; i < plan.programs_size(); ++i)
    Timeline(plan, plan.programs(i).variants(0), findings.computeUs[i], findings.overlaps, firstPredictedProcess + i, remark, events)
        .run(plan.network() + (plan.programs(i).purpose() == plan::Program::TRAIN ? ", training" : ""));
  TraceEvent trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', false, TraceEvent::error_handler_t::replace) + "\n";
}

} // namespace msc::compiler
