#include "runtime/device/cuda/Tables.h"

#include <dlfcn.h>

namespace msc::device::cuda {
namespace {

template <typename Function> Status find(void *library, const char *file, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function)
    return {};
  return Error{ExitCode::NoResource, fmt::format("{} has no function '{}': it is too old", file, name),
               "install a newer driver and newer libraries of CUDA, or run on CPUs with --device cpu"};
}

Result<void *> open(const std::string &file, const std::string &repair) {
  if (void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
    return library;
  return Error{ExitCode::NoResource, fmt::format("a library of CUDA is missing: {}", dlerror()), repair};
}

#define MSC_TEXT(name) #name
#define MSC_FIND(name)                                                                                                         \
  if (Status status = find(*library, file.c_str(), MSC_TEXT(name), table.name); !status)                                       \
    return status;

Status fill(DriverTable &table) {
  std::string file = "libcuda.so.1";
  Result<void *> library = open(file, "install NVIDIA's driver, or run on CPUs with --device cpu");
  if (!library)
    return library.error();
  MSC_CUDA_DRIVER(MSC_FIND)
  return {};
}

Status fill(BlasTable &table) {
  std::string file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  Result<void *> library =
      open(file, fmt::format("install cuBLAS {}, or put its folder into LD_LIBRARY_PATH, or run on CPUs with --device cpu",
                             CUBLAS_VER_MAJOR));
  if (!library)
    return library.error();
  MSC_CUBLAS_LT(MSC_FIND)
  return {};
}

} // namespace

Result<Tables> loadTables() {
  Tables tables;
  if (Status status = fill(tables.driver); !status)
    return status.error();
  if (Status status = fill(tables.blas); !status)
    return status.error();
  tables.cudnn = loadCudnn();
  return tables;
}

cudnn::Table loadCudnn(const std::string &file) {
  cudnn::Table table, none;
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    none.problem = dlerror();
    return none;
  }
  auto fillIn = [&]() -> Status {
#define MSC_FIND_WITH_PARAMETERS(name, parameters)                                                                             \
  if (Status status = find(library, file.c_str(), MSC_TEXT(name), table.name); !status)                                        \
    return status;
    MSC_CUDNN_FUNCTIONS(MSC_FIND_WITH_PARAMETERS)
    MSC_FIND_WITH_PARAMETERS(cudnnGetVersion, ())
    MSC_FIND_WITH_PARAMETERS(cudnnGetErrorString, ())
    return {};
  };
  if (Status status = fillIn(); !status) {
    none.problem = status.error().message;
    return none;
  }
  return table;
}

Error failed(const DriverTable &driver, const char *function, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  std::string code = name ? name : std::to_string(static_cast<int>(result));
  switch (result) { // a kernel did what it must not do: nothing is missing
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_ASSERT:
    return {ExitCode::Internal, fmt::format("{} returned {} ({})", function, code, text ? text : "unknown"), ""};
  default: break;
  }
  return {ExitCode::NoResource, fmt::format("{} returned {} ({})", function, code, text ? text : "unknown"), ""};
}

Error failed(const BlasTable &blas, const char *function, cublasStatus_t result) {
  return {ExitCode::NoResource,
          fmt::format("{} returned {} ({})", function, static_cast<int>(result), blas.cublasLtGetStatusString(result)), ""};
}

} // namespace msc::device::cuda
