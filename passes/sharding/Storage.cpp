#include "passes/sharding/Storage.h"

#include <algorithm>
#include <tuple>

namespace msc::passes {

bool isStoredRather(const Sharding &a, const Sharding &b, const Shape &shape) {
  auto key = [&](const Sharding &sharding) {
    std::vector<int64_t> fewer; // less: more pieces
    for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
      fewer.push_back(-sharding.pieces(dim));
    return std::tuple(elementCount(sharding.capacity(shape)), std::move(fewer), sharding.axes, sharding.dims);
  };
  return key(a) < key(b);
}

const Sharding &storageOf(std::span<const Sharding> wanted, const Shape &shape) {
  return *std::ranges::min_element(wanted, [&](const Sharding &a, const Sharding &b) { return isStoredRather(a, b, shape); });
}

Sharding storageOf(const Problem &problem, int32_t tensor, std::span<const CutOperator> users) {
  std::vector<Sharding> wanted;
  for (auto [number, pieces] : users) {
    const ProblemOperator &op = problem.operators[number];
    const Placement at = placementOf(op.facts, *pieces, problem.devices);
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (op.operands[i] == tensor)
        wanted.push_back(at.operands[i]);
  }
  return storageOf(wanted, problem.tensors[tensor].shape);
}

std::vector<int64_t> unreadParameters(const Problem &problem) {
  std::vector<char> isRead(problem.tensors.size());
  for (const ProblemOperator &op : problem.operators)
    for (int32_t operand : op.operands)
      isRead[operand] = 1;
  for (const ProblemHandover &handover : problem.handovers)
    isRead[handover.from] = 1;
  std::vector<int64_t> bytes;
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (const ProblemTensor &tensor = problem.tensors[t]; tensor.isParameter && !isRead[t])
      bytes.insert(bytes.end(), static_cast<size_t>(tensor.rounds), elementCount(tensor.shape) * static_cast<int64_t>(tensor.elementBytes));
  return bytes;
}

} // namespace msc::passes
