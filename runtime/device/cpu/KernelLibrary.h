// Generated machine code of a plan, loaded into this process once for all its ranks.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <memory>
#include <string>

namespace msc::device {

/// The levels of x86-64 that kernels are built for; below V3 nothing runs.
enum class CpuLevel { TooOld, V3, V4 };

/// The level of the CPU that we run on.
CpuLevel cpuLevel();

/// Kernels by symbol. Immutable after load, so ranks share it.
class KernelLibrary {
public:
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  /// Takes the best object for `level`, refuses what readKernelObject refuses, and maps it from sealed memory: never
  /// writable and executable at once. A plan without kernels needs no object. NoResource: the CPU is too old, or loading
  /// failed; BadFile: the plan has no object for this CPU, or the object is refused.
  static Result<std::shared_ptr<KernelLibrary>> load(const plan::Plan &plan, CpuLevel level = cpuLevel());

  /// Address of a kernel, null if there is none.
  void *find(const std::string &symbol) const;
  /// "x86-64-v4", or "" without kernels.
  const std::string &isa() const { return chosen; }

private:
  KernelLibrary() = default;

  void *handle = nullptr;
  int file = -1; ///< kept open: dlopen takes two libraries of the same /proc/self/fd name for one
  std::string chosen;
};

} // namespace msc::device
