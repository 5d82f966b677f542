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

std::vector<int64_t> unreadParameters(const Problem &problem, const std::function<bool(size_t)> &runs,
                                      const std::function<const Pieces &(int32_t)> &piecesOf) {
  std::vector<char> isRead(problem.tensors.size());
  std::vector<std::vector<int32_t>> idle(problem.tensors.size()); // operators that would read it
  for (size_t i = 0; i < problem.operators.size(); ++i)
    for (int32_t operand : problem.operators[i].operands)
      if (runs(i))
        isRead[operand] = 1;
      else
        idle[operand].push_back(static_cast<int32_t>(i));
  for (const ProblemHandover &handover : problem.handovers)
    isRead[handover.from] = 1;
  std::vector<int64_t> bytes;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const ProblemTensor &tensor = problem.tensors[t];
    if (!tensor.isParameter || isRead[t] || (!idle[t].empty() && !piecesOf))
      continue;
    std::vector<CutOperator> users;
    for (int32_t op : idle[t])
      users.push_back({op, &piecesOf(op)});
    const int64_t held =
        users.empty() ? elementCount(tensor.shape) : elementCount(storageOf(problem, static_cast<int32_t>(t), users).capacity(tensor.shape));
    bytes.insert(bytes.end(), static_cast<size_t>(tensor.rounds), held * static_cast<int64_t>(tensor.elementBytes));
  }
  return bytes;
}

} // namespace msc::passes
