// What a step of a plan becomes on a GPU: calls that put work on a stream.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudnnPlan.h"
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/Tuning.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace msc::device::cuda {

/// A stream, and the memory that libraries may use there while they compute.
struct Stream {
  CUstream handle = nullptr;
  CUdeviceptr workspace = 0;
  CUdeviceptr scratch = 0; ///< for one operation at a time
  uint64_t scratchBytes = 0;
};
/// Of Stream::scratch, while an operation runs.
struct Scratch {
  uint64_t needed = 0, wished = 0; ///< bytes; without the latter it works, too

  void raise(const Scratch &other) { needed = std::max(needed, other.needed), wished = std::max(wished, other.wished); }
};
constexpr size_t workspaceBytes = 32 << 20; // what cuBLAS recommends for Hopper

/// Puts work on a stream. Every address is final, so that a CUDA graph can hold it.
class StreamOperation : public Operation {
public:
  explicit StreamOperation(Stream &first) : first(first) {}
  virtual Status enqueue(const Stream &stream) = 0;
  virtual Scratch scratch() const { return {}; }
  /// On the first stream of the device; does not wait.
  Status run() final { return enqueue(first); }

private:
  Stream &first;
};

constexpr size_t mostWays = 8; ///< that --tune measures

/// One that a library can compute in several ways. Operations of equal problems share the way.
class TunableOperation : public StreamOperation {
public:
  using StreamOperation::StreamOperation;
  virtual std::string problem() const = 0;
  virtual size_t ways() const = 0;
  virtual void use(size_t way) = 0;
};

/// Indices that a kernel looks up, for the message about one that numbers nothing.
struct IndexCheck {
  std::string kernel;
  CUdeviceptr indices = 0;
  bool wide = false; ///< i64, else i32
  int64_t size = 0;  ///< they number [from, size)
  int64_t from = 0;
};

/// What the operations of one rank share.
class Shared {
public:
  Shared(std::shared_ptr<Gpu> gpu, const CudaOptions &options)
      : gpu(std::move(gpu)), driver(this->gpu->tables.driver), blas(this->gpu->tables.blas), ptx(options.ptx),
        tensorFloat(options.tensorFloat), packFrom(options.packFrom), turnFrom(options.turnFrom),
        convolutions(std::make_unique<cudnn::Library>(this->gpu->tables.cudnn)) {}

  std::shared_ptr<Gpu> gpu;
  const DriverTable &driver;
  const BlasTable &blas;
  const std::string ptx; ///< of the plan
  const bool tensorFloat;
  const int64_t packFrom, turnFrom; ///< as in CudaOptions
  cublasLtHandle_t handle = nullptr;
  std::unique_ptr<cudnn::Library> convolutions;
  int64_t byLibrary = 0, byKernels = 0; ///< convolutions that were prepared
  Scratch needed;                       ///< the most that an operation which was prepared asks for
  std::map<uint32_t, Stream> streams; ///< by number in the plan; 0 always exists
  /// Device memory with these bytes, for the whole run; equal bytes share it.
  std::function<Result<CUdeviceptr>(const void *data, size_t bytes)> constant;
  /// Device memory for the collective that is prepared, whenever it runs; others use the same. Where devices communicate, memory that peers reach best.
  std::function<Result<CUdeviceptr>(size_t bytes)> scratch;
  /// Device memory of zeros, for the whole run.
  std::function<Result<CUdeviceptr>(size_t bytes)> zeros;
  /// Waits for a stream. A failure of the communication or of another rank ends the wait and is what comes back.
  std::function<Status(CUstream stream)> wait;
  /// A number of 64 bits in device memory, into which a kernel brings the smallest place of a wrong index.
  std::function<Result<CUdeviceptr>(IndexCheck check)> checkSlot;
  std::shared_ptr<Choices> choices;          ///< of ways; null: the first one is taken
  bool runsGraphs = false; ///< one was launched: what goes wrong on a stream may be of any step in it
  std::vector<TunableOperation *> tunables; ///< that have been prepared, with more than one way; until finishPreparation
};

using Prepared = Result<std::unique_ptr<Operation>>;

/// How many blocks of one of our own kernels start, unless that are too many: then threads, or blocks, walk on.
enum class Blocks { Fill, OnePerItem };
/// One of our own kernels, and what its blocks take.
struct OwnKernel {
  const char *ptx = nullptr;
  std::string entry;
  uint32_t block = 0;       ///< threads
  uint32_t sharedBytes = 0; ///< memory beyond what the kernel itself declares
  uint64_t workBytes = 0;   ///< of Stream::scratch, which becomes the argument `workArgument`
  size_t workArgument = 0;
};
/// A kernel over `count` elements or items, which is its last argument.
Prepared launchOwn(Shared &shared, const OwnKernel &kernel, std::vector<uint64_t> arguments, int64_t count, Blocks blocks);
/// One of Kernels.cu.
Prepared launchOwn(Shared &shared, const std::string &entry, std::vector<uint64_t> arguments, int64_t count,
                   Blocks blocks = Blocks::Fill);

/// One operation after the other on the same stream.
class Several final : public StreamOperation {
public:
  Several(Shared &shared, std::vector<std::unique_ptr<Operation>> parts)
      : StreamOperation(shared.streams[0]), parts(std::move(parts)) {}
  Status enqueue(const Stream &stream) override {
    for (const std::unique_ptr<Operation> &part : parts)
      if (Status status = static_cast<StreamOperation &>(*part).enqueue(stream); !status)
        return status;
    return {};
  }
  Scratch scratch() const override {
    Scratch most;
    for (const std::unique_ptr<Operation> &part : parts)
      most.raise(static_cast<StreamOperation &>(*part).scratch());
    return most;
  }

private:
  std::vector<std::unique_ptr<Operation>> parts;
};

/// The parts one after the other as one operation, or what went wrong with the first that could not be prepared.
Prepared inTurn(Shared &shared, std::vector<Prepared> parts);

Prepared prepareLaunch(Shared &shared, const LaunchSpec &spec);
Prepared prepareMatMul(Shared &shared, const MatMulSpec &spec);
Prepared prepareFill(Shared &shared, const FillSpec &spec);
/// `descriptor` is device memory with the regions, null where both are contiguous.
Prepared prepareCopy(Shared &shared, const CopySpec &spec, CUdeviceptr descriptor);

/// The largest power of two up to `most`, which is one, that divides an address.
inline uint32_t alignmentOf(const void *data, uint32_t most) {
  uint64_t address = reinterpret_cast<uint64_t>(data) | most;
  return static_cast<uint32_t>(address & -address);
}

inline CUdeviceptr addressOf(const std::byte *data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

} // namespace msc::device::cuda
