// Pinned memory through which everything travels between host and device.
#pragma once

#include "runtime/device/cuda/Tables.h"

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace msc::device::cuda {

/// Two halves that take turns: one is filled while copies out of the other one run. Used by one thread, with one stream.
class Staging {
public:
  /// `wait` waits for a stream.
  Staging(const DriverTable &driver, std::function<Status(CUstream)> wait) : driver(driver), wait(std::move(wait)) {}
  ~Staging();
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  Status allocate();
  /// `source` may change when this returns; the copy to the device may still run.
  Status upload(CUdeviceptr target, const void *source, size_t bytes, CUstream stream);
  /// The data is there when this returns.
  Status download(void *target, CUdeviceptr source, size_t bytes, CUstream stream);
  /// As download, but the data is there behind the next allDone(). Up to `mostLater` bytes.
  Status downloadLater(void *target, CUdeviceptr source, size_t bytes, CUstream stream);
  static constexpr size_t mostLater = 4096;
  /// The stream has been waited for: all of the memory is free.
  void allDone();

private:
  struct Half {
    std::byte *data = nullptr;
    CUevent copied = nullptr; ///< behind the last copy out of it
    bool busy = false;
  };
  /// Memory that no copy uses, of `wanted` bytes or less if that is more than a half has; `bytes` says how much.
  Result<std::byte *> take(size_t wanted, size_t &bytes, CUstream stream);

  const DriverTable &driver;
  std::function<Status(CUstream)> wait;
  std::byte *memory = nullptr;
  std::array<Half, 2> halves;
  size_t current = 0, used = 0;
  struct Later {
    void *target;
    const std::byte *data;
    size_t bytes;
  };
  std::vector<Later> laters;
};

} // namespace msc::device::cuda
