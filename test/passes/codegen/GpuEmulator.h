// Emulation of GPU kernels, for machines without a GPU: their LLVM IR, as the PTX generator gets it, is compiled for this
// processor and run thread by thread. Threads of a block are fibers that wait at barriers and shuffles, so that a thread
// that misses one is seen; each warp runs as far ahead as it may, so that a missing barrier shows in one order or the other.
// It says nothing about speed, nor about the PTX generator itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace msc::test {

class GpuEmulator {
public:
  explicit GpuEmulator(const std::string &ir);
  ~GpuEmulator();

  enum class Order { Forward, Backward };
  /// Runs `entry(pointers..., end)`. Returns what the kernel did wrong, or nothing.
  std::string launch(const std::string &entry, unsigned block, unsigned grid, const std::vector<void *> &pointers, int64_t end,
                     Order order);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace msc::test
