#include "dialects/dist/reshard/LowerBounds.h"

#include "dialects/dist/reshard/Matrices.h"
#include "runtime/plan/Refinement.h"

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

double LowerBounds::us(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare) {
  int32_t matrix = common(shardings[from].matrix, shardings[to].matrix);
  if (from == to || matrix == none || shapes[shape].shape->size() > mostDims)
    return 0;
  Frame &over = frame(matrix, shape);
  const State start = stateOf(from, matrix, over);
  over.setGoal(stateOf(to, matrix, over));
  bound.ask(pricesFor(startShare), over, elementBytes);
  return bound.of(over, start, over.listsOf(start));
}

} // namespace msc::dist
