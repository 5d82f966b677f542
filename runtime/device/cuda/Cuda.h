// The face of this backend: what a run asks of GPUs, and where GPUs come from.
#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <string>

namespace msc::device {

/// How GPUs take part in collectives.
enum class Collectives {
  Auto, ///< Nccl if every rank has a GPU of its own and NCCL is there; Local for threads where there is one GPU; else Host
  Nccl,
  Local, ///< ranks are threads of one process or processes of one host, all on the first GPU that they see
  Host,  ///< what travels goes through the memory of the host
};

struct CudaOptions {
  std::string ptx;          ///< of the plan's kernels; empty: it has none
  bool tensorFloat = false; ///< products and convolutions of f32 may round their operands to TF32
  Collectives collectives = Collectives::Auto;
  std::shared_ptr<comm::StreamTransport> nccl; ///< null: it is not there
  std::string ncclProblem;                     ///< why; empty: nobody has looked
  std::string tuning;       ///< file of the ways in which libraries compute problems; empty: the ones that they think best
  bool deterministic = false; ///< `tuning` is only read: ways that it lacks are chosen by heuristics, the same every time
  int64_t packFrom = 2'000'000'000; ///< operations of a product of f16 or bf16 from which rows that lie unaligned are packed
  int64_t turnFrom = 500'000'000; ///< operations of a convolution of f16 or bf16 from which channels may be brought behind planes for it
  bool graphs = true;       ///< steps run as one CUDA graph from the second on; else every operator is waited for
};

/// The GPUs of this process, by the plugin libmsc_device_cuda.so, which lies beside the program or in MSC_PLUGIN_PATH.
/// NoResource, with what is missing and how to repair it: the plugin, the driver, a GPU, or a library.
Result<std::shared_ptr<Backend>> loadCudaBackend(const CudaOptions &options);

} // namespace msc::device
