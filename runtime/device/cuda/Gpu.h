// A GPU of this process: its primary context, and the kernels that were loaded into it.
#pragma once

#include "runtime/device/cuda/Tables.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace msc::device::cuda {

/// Shared by the ranks that use this GPU; all functions may be called by several threads at once.
class Gpu {
public:
  /// Retains the primary context of a device, which is of sm_80 or later.
  static Result<std::shared_ptr<Gpu>> open(const Tables &tables, int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Makes the GPU that of the calling thread; every thread has to, before it uses it.
  Status makeCurrent() const;
  /// A kernel of a PTX text. The driver compiles each distinct text once.
  Result<CUfunction> function(const std::string &ptx, const std::string &entry);

  const Tables tables;
  const int ordinal;
  const std::string name; ///< "NVIDIA H100"
  const uint32_t sharedBytesOfBlock; ///< of shared memory, that a block may have

private:
  Gpu(const Tables &tables, int ordinal, std::string name, uint32_t sharedBytes, CUdevice device, CUcontext context)
      : tables(tables), ordinal(ordinal), name(std::move(name)), sharedBytesOfBlock(sharedBytes), device(device),
        context(context) {}
  Result<CUmodule> load(const std::string &ptx);

  CUdevice device;
  CUcontext context;
  std::mutex mutex;
  std::map<std::string, CUmodule> modules; ///< by text
};

} // namespace msc::device::cuda
