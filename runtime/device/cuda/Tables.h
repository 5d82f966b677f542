// What this backend calls of NVIDIA's libraries, as tables of functions that are filled at run time: nothing here links to
// them, and tests put a simulated driver in their place.
#pragma once

#include "runtime/Status.h"
#include "runtime/device/cuda/Cudnn.h"

#include <cublasLt.h>
#include <cuda.h>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace msc::device::cuda {

// Headers give many of these names to a newer version of the function by a macro (cuMemAlloc is cuMemAlloc_v2): members, and
// the symbols that are looked up, follow it.
// clang-format off
#define MSC_CUDA_DRIVER(F) \
  F(cuInit) F(cuDriverGetVersion) F(cuGetErrorName) F(cuGetErrorString) \
  F(cuDeviceGetCount) F(cuDeviceGet) F(cuDeviceGetName) F(cuDeviceGetAttribute) F(cuDeviceGetUuid) \
  F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease) F(cuCtxSetCurrent) \
  F(cuMemGetInfo) F(cuMemAlloc) F(cuMemFree) F(cuMemHostAlloc) F(cuMemFreeHost) \
  F(cuMemGetAddressRange) F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle) F(cuIpcCloseMemHandle) \
  F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync) F(cuMemcpyDtoDAsync) F(cuMemsetD8Async) F(cuMemsetD16Async) F(cuMemsetD32Async) \
  F(cuStreamCreate) F(cuStreamDestroy) F(cuStreamSynchronize) F(cuStreamWaitEvent) \
  F(cuEventCreate) F(cuEventDestroy) F(cuEventRecord) F(cuEventSynchronize) \
  F(cuModuleLoadDataEx) F(cuModuleUnload) F(cuModuleGetFunction) F(cuFuncSetAttribute) F(cuLaunchKernel) \
  F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuGraphInstantiateWithFlags) F(cuGraphDestroy) F(cuGraphLaunch) \
  F(cuGraphExecDestroy)

#define MSC_CUBLAS_LT(F) \
  F(cublasLtCreate) F(cublasLtDestroy) F(cublasLtGetStatusString) F(cublasLtGetVersion) \
  F(cublasLtMatmulDescCreate) F(cublasLtMatmulDescDestroy) F(cublasLtMatmulDescSetAttribute) \
  F(cublasLtMatrixLayoutCreate) F(cublasLtMatrixLayoutDestroy) F(cublasLtMatrixLayoutSetAttribute) \
  F(cublasLtMatmulPreferenceCreate) F(cublasLtMatmulPreferenceDestroy) F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic) F(cublasLtMatmul)
// clang-format on

#define MSC_MEMBER(name) decltype(&::name) name = nullptr;
struct DriverTable {
  MSC_CUDA_DRIVER(MSC_MEMBER)
};
struct BlasTable {
  MSC_CUBLAS_LT(MSC_MEMBER)
};
#undef MSC_MEMBER

struct Tables {
  DriverTable driver;
  BlasTable blas;
  cudnn::Table cudnn; ///< empty where there is none
};

/// Opens libcuda.so.1, libcublasLt and, if it is there, libcudnn.so.9, and fills the tables; the libraries stay loaded. NoResource
/// with the name of the library or function that is missing, and how to repair it.
Result<Tables> loadTables();
/// Opens a cuDNN; empty, with the reason, where there is none that will do.
cudnn::Table loadCudnn(const std::string &file = "libcudnn.so.9");

/// "cuMemAlloc returned CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
Error failed(const DriverTable &driver, const char *function, CUresult result);
Error failed(const BlasTable &blas, const char *function, cublasStatus_t result);

/// A status of one call: `check(driver, "cuMemAlloc", driver.cuMemAlloc(...))`.
inline Status check(const DriverTable &driver, const char *function, CUresult result) {
  return result == CUDA_SUCCESS ? Status() : Status(failed(driver, function, result));
}
inline Status check(const BlasTable &blas, const char *function, cublasStatus_t result) {
  return result == CUBLAS_STATUS_SUCCESS ? Status() : Status(failed(blas, function, result));
}

} // namespace msc::device::cuda

/// Calls a function of the table `driver` that is in scope and leaves with its error.
#define MSC_CUDA(function, ...)                                                                                                \
  do {                                                                                                                         \
    if (Status called = check(driver, #function, driver.function(__VA_ARGS__)); !called)                                       \
      return called.error();                                                                                                   \
  } while (false)
#define MSC_BLAS(function, ...)                                                                                                \
  do {                                                                                                                         \
    if (Status called = check(blas, #function, blas.function(__VA_ARGS__)); !called)                                           \
      return called.error();                                                                                                   \
  } while (false)
