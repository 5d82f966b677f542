// Matrix products on the CPU, by oneDNN: of f32, and of bf16 that add in f32. Other types run as generated kernels.
#pragma once

#include "runtime/device/cpu/ScratchOperation.h"

#include <memory>

namespace msc::device {

/// The rows of one batch entry that one task computes.
struct RowBlock {
  size_t batch = 0;
  int64_t begin = 0, end = 0;
};

/// The blocks of each task: whole batch entries if there are at least as many as tasks, else row blocks of each entry.
/// A function of the plan and the local sizes only, so that the number of threads changes no bit.
std::vector<std::vector<RowBlock>> splitRows(size_t batches, int64_t rows, int64_t tasks);

/// Creates the primitives for `spec`, whose result is not empty.
Result<std::unique_ptr<ScratchOperation>> prepareMatMul(const MatMulSpec &spec, WorkerPool &pool);

} // namespace msc::device
