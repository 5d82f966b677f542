// Inputs on their way to a GPU.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// One input: the host writes pinned memory, a stream of copies brings that to memory of the GPU beside the arena, and from there it
/// goes into the arena by a copy on the first stream of the device.
class CudaInlet final : public Inlet {
public:
  /// `near` is memory of the GPU for `bytes`; the device owns it, and the stream.
  CudaInlet(Shared &shared, CUstream copies, CUdeviceptr near, size_t bytes)
      : shared(shared), driver(shared.driver), copies(copies), near(near), bytes(bytes) {}
  ~CudaInlet() override;
  Status allocate();
  Result<std::byte *> host() override;
  Status send() override;
  Status place(std::byte *target) override;

private:
  Shared &shared;
  const DriverTable &driver;
  CUstream copies;
  CUdeviceptr near;
  size_t bytes;
  void *memory = nullptr; ///< pinned
  CUevent sent = nullptr, placed = nullptr;
  bool isSent = false, isPlaced = false; ///< their events have been recorded
};

} // namespace msc::device::cuda
