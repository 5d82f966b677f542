// What all operations have that cuDNN computes.
#pragma once

#include "runtime/device/cuda/Operations.h"

#include <fmt/format.h>

namespace msc::device::cuda {

class CudnnOperation : public TunableOperation {
public:
  explicit CudnnOperation(Shared &shared) : TunableOperation(shared.streams[0]), shared(shared) {}

  std::string problem() const override { return fmt::format("{}: {}", shared.convolutions->name(), text); }
  size_t ways() const override { return known->plans.size(); }
  void use(size_t way) override { known->chosen = way; }

protected:
  /// False if cuDNN has nothing for the problem.
  bool choose(const cudnn::Problem &problem) {
    known = shared.convolutions->waysOf(problem, shared.choices ? mostWays : 1);
    if (known)
      text = cudnn::textOf(problem);
    return known != nullptr;
  }
  /// Prepared: it gets memory to work in, and may be tuned.
  void announce() {
    shared.needed.raise(scratch());
    if (ways() > 1)
      shared.tunables.push_back(this);
  }
  uint64_t workspaceBytes() const { return known->workspaceBytes(); }
  Status execute(const std::array<void *, 3> &tensors, CUdeviceptr workspace, const Stream &stream) {
    return shared.convolutions->execute(known->plan(), tensors, reinterpret_cast<void *>(workspace), stream.handle);
  }

  Shared &shared;

private:
  cudnn::Ways *known = nullptr;
  std::string text; ///< of the problem
};

} // namespace msc::device::cuda
