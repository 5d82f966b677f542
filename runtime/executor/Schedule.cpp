#include "runtime/executor/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace msc {
namespace {

/// The value at step `t` behind the warm-up. `warmup` steps are done then, which steps of the whole run count, too.
double valueBehindWarmup(const plan::Schedule &schedule, double t, double warmup) {
  const std::string &kind = schedule.kind();
  auto value = [&](int i) { return schedule.values(i); };
  auto left = [&] { // share of the steps that are to come
    double steps = value(2) - warmup;
    return steps > 0 ? 1 - std::min(1.0, t / steps) : 0.0;
  };
  if (kind == "step")
    return t + 1;
  if (kind == "power")
    return std::pow(value(0), t + 1);
  if (kind == "correction")
    return 1 / (1 - std::pow(value(0), t + 1));
  if (kind == "cycle")
    return std::fmod(t, value(0));
  if (kind == "exponential")
    return value(0) * std::pow(value(1), std::floor(t / std::max(1.0, value(2))));
  if (kind == "decay")
    return value(0) * std::pow(value(1), t / std::max(1.0, value(2)));
  if (kind == "cosine")
    return value(1) + (value(0) - value(1)) * 0.5 * (1 + std::cos(std::numbers::pi * (1 - left())));
  if (kind == "polynomial")
    return value(1) + (value(0) - value(1)) * std::pow(left(), value(3));
  double result = value(0); // constant, and the first piece of piecewise
  for (int i = 1; i + 1 < schedule.values_size() && t + warmup >= value(i); i += 2)
    result = value(i + 1);
  return result;
}

} // namespace

double scheduleValue(const plan::Schedule &schedule, uint64_t step) {
  uint64_t done = step / std::max<uint64_t>(1, schedule.every());
  auto warmup = static_cast<double>(schedule.warmup());
  if (done < schedule.warmup())
    return valueBehindWarmup(schedule, 0, warmup) * (static_cast<double>(done) + 1) / warmup;
  return valueBehindWarmup(schedule, static_cast<double>(done - schedule.warmup()), warmup);
}

} // namespace msc
