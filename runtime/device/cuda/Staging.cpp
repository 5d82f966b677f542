#include "runtime/device/cuda/Staging.h"

#include <algorithm>
#include <cstring>

namespace msc::device::cuda {

constexpr size_t halfBytes = 8 << 20, alignment = 64;

Staging::~Staging() {
  for (Half &half : halves)
    if (half.copied)
      driver.cuEventDestroy(half.copied);
  if (memory)
    driver.cuMemFreeHost(memory);
}

Status Staging::allocate() {
  void *data = nullptr;
  MSC_CUDA(cuMemHostAlloc, &data, 2 * halfBytes, CU_MEMHOSTALLOC_PORTABLE);
  memory = static_cast<std::byte *>(data);
  for (size_t i = 0; i < halves.size(); ++i) {
    halves[i].data = memory + i * halfBytes;
    MSC_CUDA(cuEventCreate, &halves[i].copied, CU_EVENT_DISABLE_TIMING);
  }
  return {};
}

Result<std::byte *> Staging::take(size_t wanted, size_t &bytes, CUstream stream) {
  if (used + std::min(wanted, halfBytes) > halfBytes) {
    MSC_CUDA(cuEventRecord, halves[current].copied, stream);
    halves[current].busy = true;
    current = 1 - current;
    used = 0;
    if (halves[current].busy)
      MSC_CUDA(cuEventSynchronize, halves[current].copied);
    halves[current].busy = false;
  }
  bytes = std::min(wanted, halfBytes - used);
  std::byte *data = halves[current].data + used;
  used = std::min(halfBytes, (used + bytes + alignment - 1) / alignment * alignment);
  return data;
}

Status Staging::upload(CUdeviceptr target, const void *source, size_t bytes, CUstream stream) {
  for (size_t done = 0, part = 0; done < bytes; done += part) {
    Result<std::byte *> data = take(bytes - done, part, stream);
    if (!data)
      return data.error();
    std::memcpy(*data, static_cast<const std::byte *>(source) + done, part);
    MSC_CUDA(cuMemcpyHtoDAsync, target + done, *data, part, stream);
  }
  return {};
}

Status Staging::download(void *target, CUdeviceptr source, size_t bytes, CUstream stream) {
  for (size_t done = 0, part = 0; done < bytes; done += part) {
    Result<std::byte *> data = take(bytes - done, part, stream);
    if (!data)
      return data.error();
    MSC_CUDA(cuMemcpyDtoHAsync, *data, source + done, part, stream);
    if (Status status = wait(stream); !status)
      return status;
    std::memcpy(static_cast<std::byte *>(target) + done, *data, part);
    allDone();
  }
  return {};
}

Status Staging::downloadLater(void *target, CUdeviceptr source, size_t bytes, CUstream stream) {
  if (used + bytes > halfBytes) // what was asked for before lies in this half
    return download(target, source, bytes, stream);
  size_t part = 0;
  Result<std::byte *> data = take(bytes, part, stream);
  if (!data)
    return data.error();
  MSC_CUDA(cuMemcpyDtoHAsync, *data, source, bytes, stream);
  laters.push_back({target, *data, bytes});
  return {};
}

void Staging::allDone() {
  for (const Later &later : laters)
    std::memcpy(later.target, later.data, later.bytes);
  laters.clear();
  for (Half &half : halves)
    half.busy = false;
  used = 0;
}

} // namespace msc::device::cuda
