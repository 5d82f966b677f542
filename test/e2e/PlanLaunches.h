// What the launches of a plan read and write, for the recording driver; as a file, for one that has no plan.
#pragma once

#include "test/runtime/device/cuda/RecordingDriver.h"

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace msc {
class PlanIndex;
}

namespace msc::e2e {

/// A launch is known by its kernel and where its arguments lie in the arena.
struct PlanLaunches {
  struct Kernel {
    size_t arguments = 0; ///< with the count, which is the last
    bool hasScratch = false; ///< the last but one
  };
  using Launch = std::pair<std::string, std::vector<uint64_t>>;

  std::string ptx;
  std::map<std::string, Kernel> kernels;
  std::map<Launch, std::vector<test::Access>> launches; ///< offsets in the arena

  std::vector<test::Access> accesses(const test::KernelCall &call, uint64_t arena) const;
  void write(std::ostream &stream) const;
  static PlanLaunches read(std::istream &stream);
};

PlanLaunches launchesOf(const PlanIndex &index);

} // namespace msc::e2e
