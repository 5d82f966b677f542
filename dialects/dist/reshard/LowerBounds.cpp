#include "dialects/dist/reshard/LowerBounds.h"

#include "dialects/dist/Reshard.h"
#include "dialects/dist/reshard/Matrices.h"
#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::dist {

static constexpr uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

size_t LowerBounds::Hash::operator()(const std::vector<int64_t> &numbers) const {
  uint64_t hash = numbers.size();
  for (int64_t number : numbers)
    hash = mixed(hash, static_cast<uint64_t>(number));
  return hash;
}

size_t LowerBounds::Hash::operator()(const Sharding &sharding) const {
  uint64_t hash = (*this)(sharding.axes);
  for (const std::vector<int32_t> &list : sharding.dims) {
    for (int32_t axis : list)
      hash = mixed(hash, static_cast<uint64_t>(axis));
    hash = mixed(hash, 255);
  }
  for (const PartialAxis &partial : sharding.partial)
    hash = mixed(hash, static_cast<uint64_t>(partial.axis) * 4 + static_cast<uint64_t>(partial.kind));
  return hash;
}

int32_t LowerBounds::numberOf(const Sharding &sharding) {
  auto [at, isNew] = shardingNumbers.try_emplace(sharding, static_cast<int32_t>(shardings.size()));
  if (isNew)
    shardings.push_back({&at->first, numberOfMatrix(sharding.axes), {}});
  return at->second;
}

int32_t LowerBounds::numberOfShape(const std::vector<int64_t> &shape) {
  auto [at, isNew] = shapeNumbers.try_emplace(shape, static_cast<int32_t>(shapes.size()));
  if (isNew)
    shapes.push_back({&at->first, {}});
  return at->second;
}

int32_t LowerBounds::numberOfMatrix(const std::vector<int64_t> &matrix) {
  auto [at, isNew] = matrixNumbers.try_emplace(matrix, static_cast<int32_t>(matrices.size()));
  if (isNew)
    matrices.push_back(&at->first);
  return at->second;
}

/// The matrix in which the planner starts its search.
int32_t LowerBounds::common(int32_t a, int32_t b) {
  const int64_t pair = static_cast<int64_t>(a) << 32 | b;
  if (auto known = commons.find(pair); known != commons.end())
    return known->second;
  int32_t number = none;
  if (auto refined = commonRefinement({matrices[a], matrices[b]}))
    if (Matrix first = searchedMatrices(*refined, machine, true).front(); first.size() <= mostAxes)
      number = numberOfMatrix(first);
  return commons[pair] = number;
}

Frame &LowerBounds::frame(int32_t matrix, int32_t shape) {
  auto &list = shapes[shape].frames;
  if (list.size() <= static_cast<size_t>(matrix))
    list.resize(matrices.size());
  if (!list[matrix])
    list[matrix] = std::make_unique<Frame>(machine, *shapes[shape].shape, *matrices[matrix], 0);
  return *list[matrix];
}

State LowerBounds::stateOf(int32_t sharding, int32_t matrix, const Frame &frame) {
  KnownSharding &known = shardings[sharding];
  for (const auto &[number, state] : known.states)
    if (number == matrix)
      return state;
  return known.states.emplace_back(matrix, *frame.stateOf(*known.sharding)).second;
}

const LeastPrices &LowerBounds::pricesFor(double startShare) {
  for (const auto &[share, known] : prices)
    if (share == startShare)
      return *known;
  return *prices.emplace_back(startShare, std::make_unique<LeastPrices>(machine, startShare)).second;
}

/// An AllReduce and an exchange among all ranks, or a slice: so the planner does without a common matrix. The rank that wants most has of each
/// dimension no more than the largest piece of either.
double LowerBounds::usAmongAll(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, size_t elementBytes,
                               double startShare) const {
  const auto bytes = static_cast<double>(elementBytes);
  auto usOf = [&](MoveKind kind, const GroupShape &group, double elements) {
    return machine.moveUs(kind, group, elements * bytes) - (1 - startShare) * machine.moveUs(kind, group, 0);
  };
  const std::vector<int64_t> before = from.capacity(shape), after = to.capacity(shape);
  int64_t wanted = 1, there = 1;
  bool mayPermute = true;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    wanted *= after[dim];
    there *= std::min(before[dim], after[dim]);
    mayPermute &= before[dim] == after[dim];
  }
  const GroupShape allRanks = groupShape({to.devices()}, {0});
  const auto received = static_cast<double>(wanted - there);
  double us = usOf(MoveKind::Exchange, allRanks, received);
  if (mayPermute)
    us = std::min(us, usOf(MoveKind::CollectivePermute, allRanks, received));
  if (received == 0)
    us = std::min(us, machine.moveUs(MoveKind::Slice, {}, static_cast<double>(wanted) * bytes));
  if (from.isPartial()) {
    if (mayPermute && received == 0)
      us = 0; // once completed it may lie as wanted
    for (const ReshardStep &step : planCompletion(from, shape))
      us += usOf(step.kind, groupShape(step.groupMatrix, step.groupAxes), static_cast<double>(step.receivedElements));
  }
  return us;
}

double LowerBounds::us(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare) {
  if (from == to)
    return 0;
  int32_t matrix = common(shardings[from].matrix, shardings[to].matrix);
  if (matrix == none || shapes[shape].shape->size() > mostDims)
    return usAmongAll(*shardings[from].sharding, *shardings[to].sharding, *shapes[shape].shape, elementBytes, startShare);
  Frame &over = frame(matrix, shape);
  const State start = stateOf(from, matrix, over);
  over.setGoal(stateOf(to, matrix, over));
  bound.ask(pricesFor(startShare), over, elementBytes);
  return bound.of(over, start, over.listsOf(start));
}

} // namespace msc::dist
