// A CUDA driver, a cuBLASLt and a cuDNN that compute in the host's memory, behind the tables that the CUDA backend calls. It tests how
// we use the interfaces, not NVIDIA's code, and it is no GPU: nothing that it does says anything about one.
//
// Work on streams is put off until somebody waits for it, and only what was waited for runs: what is not ordered by streams and
// events runs in an order of the driver's choice. What one thread has waited for orders only what this thread does next. Every access of memory has to be ordered with all that conflict with it,
// and has to lie in memory that is allocated. What breaks a rule stands in violations().
#pragma once

#include "runtime/device/cuda/Tables.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace msc::test {

/// Bytes that some work reads or writes.
struct Access {
  uint64_t begin = 0, end = 0;
  bool writes = false;
};

/// One launch of a kernel: its arguments have 64 bits each.
struct KernelCall {
  std::string entry;
  unsigned block = 0, grid = 0;
  std::vector<uint64_t> arguments;
};

/// What stands behind a PTX text.
struct RecordedModule {
  std::vector<std::string> entries;
  std::function<size_t(const std::string &entry)> argumentCount;
  std::function<std::vector<Access>(const KernelCall &)> accesses;
  std::function<std::string(const KernelCall &)> run; ///< what went wrong, or nothing
};

class RecordingDriver {
public:
  /// There is one at a time: functions in tables take no further argument.
  RecordingDriver();
  ~RecordingDriver();

  device::cuda::Tables tables() const;

  /// Texts that `recognises` accepts are loaded as `module`; a text that nobody knows is refused like wrong PTX.
  void addModule(std::function<bool(const std::string &ptx)> recognises, RecordedModule module);

  /// The `number`th call (from 1) of a function returns this.
  void failCall(const std::string &function, int number, CUresult result);
  /// The `number`th run (from 1) of a kernel ends as an asynchronous error, after which every call fails.
  void failKernel(const std::string &entry, int number, CUresult result);

  int gpus = 1, computeMajor = 9, driverVersion = CUDA_VERSION;
  int sharedBytesOfBlock = 227 << 10;
  uint64_t memoryBytes = uint64_t{1} << 30;
  bool sharesMemory = false; ///< of devices with other processes, which have a driver each
  bool hasCudnn = false;
  bool cudnnTakesAll = false; ///< also planes that lie apart, and uneven padding
  bool cudnnProposes = true;  ///< some of its engines by heuristics

  /// Where the allocation begins that holds an address; 0: none does.
  uint64_t allocationOf(uint64_t address) const;
  int calls(const std::string &function) const;
  /// Kernels and products that ran.
  int ran() const;
  /// Rules that were broken, in the order in which that was seen.
  const std::vector<std::string> &violations() const;
  /// What was made and not destroyed: "2 streams, 1 event"; empty: nothing.
  std::string leaks() const;

  struct State;
  /// For libraries that put work on this driver's streams.
  State &recorded();

private:
  std::unique_ptr<State> state;
};

} // namespace msc::test
