#include "runtime/device/cuda/Inlet.h"

namespace msc::device::cuda {

CudaInlet::~CudaInlet() {
  if (!shared.gpu->makeCurrent())
    return;
  if (isSent)
    driver.cuEventSynchronize(sent); // the memory goes
  for (CUevent event : {sent, placed})
    if (event)
      driver.cuEventDestroy(event);
  if (memory)
    driver.cuMemFreeHost(memory);
}

Status CudaInlet::allocate() {
  MSC_CUDA(cuMemHostAlloc, &memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
  MSC_CUDA(cuEventCreate, &sent, CU_EVENT_DISABLE_TIMING);
  MSC_CUDA(cuEventCreate, &placed, CU_EVENT_DISABLE_TIMING);
  return {};
}

Result<std::byte *> CudaInlet::host() {
  if (isSent)
    MSC_CUDA(cuEventSynchronize, sent);
  return static_cast<std::byte *>(memory);
}

Status CudaInlet::send() {
  if (isPlaced)
    MSC_CUDA(cuStreamWaitEvent, copies, placed, 0);
  MSC_CUDA(cuMemcpyHtoDAsync, near, memory, bytes, copies);
  MSC_CUDA(cuEventRecord, sent, copies);
  isSent = true;
  return {};
}

Status CudaInlet::place(std::byte *target) {
  CUstream first = shared.streams.at(0).handle;
  MSC_CUDA(cuStreamWaitEvent, first, sent, 0);
  MSC_CUDA(cuMemcpyDtoDAsync, addressOf(target), near, bytes, first);
  MSC_CUDA(cuEventRecord, placed, first);
  isPlaced = true;
  return {};
}

} // namespace msc::device::cuda
