#include "runtime/device/JoinBatches.h"

#include <limits>

namespace msc::device {

MatMulSpec joinBatches(MatMulSpec spec) {
  const auto count = static_cast<int64_t>(spec.batches.size());
  constexpr int64_t most = std::numeric_limits<int32_t>::max(); // rows of a matrix of the libraries
  if (count < 2 || spec.transposeLeft || spec.rows > most / count)
    return spec;
  const MatMulSpec::Batch first = spec.batches.front();
  for (int64_t i = 0; i < count; ++i)
    if (const MatMulSpec::Batch &entry = spec.batches[i]; entry.right != first.right || entry.left != first.left + i * spec.rows * spec.depth ||
                                                          entry.result != first.result + i * spec.rows * spec.columns)
      return spec;
  spec.rows *= count;
  spec.batches = {first};
  return spec;
}

} // namespace msc::device
