#include "runtime/executor/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace msc {
namespace {

/// Rises linearly over `warmup` steps, then falls along half a cosine to 0 at `total`.
double cosine(double base, double warmup, double total, double step) {
  if (step < warmup)
    return base * (step + 1) / warmup;
  double progress = total > warmup ? std::min(1.0, (step - warmup) / (total - warmup)) : 1.0;
  return base * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

} // namespace

double scheduleValue(const plan::Schedule &schedule, uint64_t step) {
  const std::string &kind = schedule.kind();
  auto t = static_cast<double>(step);
  auto value = [&](int i) { return schedule.values(i); };
  if (kind == "step")
    return t + 1;
  if (kind == "power")
    return std::pow(value(0), t + 1);
  if (kind == "exponential")
    return value(0) * std::pow(value(1), std::floor(t / std::max(1.0, value(2))));
  if (kind == "cosine")
    return cosine(value(0), value(1), value(2), t);
  double result = value(0); // constant, and the first piece of piecewise
  for (int i = 1; i + 1 < schedule.values_size() && t >= value(i); i += 2)
    result = value(i + 1);
  return result;
}

} // namespace msc
