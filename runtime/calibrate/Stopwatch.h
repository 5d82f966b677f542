// Times work that all ranks do at the same time.
#pragma once

#include "runtime/comm/Communicator.h"

#include <functional>
#include <vector>

namespace msc {

/// Microseconds since some moment.
using Clock = std::function<double()>;
double steadyMicroseconds();

/// All ranks use theirs in the same way; every decision is made from times that all ranks know, so they stay in step.
class Stopwatch {
public:
  Stopwatch(comm::Group &everybody, double seconds, Clock clock = steadyMicroseconds)
      : everybody(everybody), leftUs(seconds * 1e6), clock(std::move(clock)) {}

  /// Time of one run in microseconds, of the slowest rank: the median of as many repetitions as fit into `shareUs`, at
  /// least `fewestRuns` in all.
  Result<double> median(const std::function<Status()> &run, double shareUs);

  /// Of each median so far, how far the middle half of its repetitions lies apart, as a part of the median; the same on all ranks.
  const std::vector<double> &spreads() const { return spreadList; }

  /// Microseconds of the time given that are left; the same on all ranks.
  double left() const { return leftUs; }

  static constexpr int fewestRuns = 7;

private:
  /// Mean time of `times` runs in a row, of the slowest rank.
  Result<double> batch(const std::function<Status()> &run, int64_t times);

  comm::Group &everybody;
  double leftUs;
  std::vector<double> spreadList;
  Clock clock;
  comm::OperationLabel label{"calibration", ""};
};

} // namespace msc
