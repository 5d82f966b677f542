#include "passes/sharding/cost/ValueNumbers.h"

#include "passes/partition/Statistics.h"

namespace msc::passes {

int32_t ValueNumbers::add() {
  known.emplace_back();
  return static_cast<int32_t>(known.size() - 1);
}

int32_t ValueNumbers::shardingNumber(const Sharding &sharding) {
  std::vector<int64_t> key = sharding.axes;
  for (const std::vector<int32_t> &dim : sharding.dims) {
    key.push_back(-1);
    key.insert(key.end(), dim.begin(), dim.end());
  }
  for (const PartialAxis &partial : sharding.partial)
    key.insert(key.end(), {-2, partial.axis, static_cast<int64_t>(partial.kind)});
  return numberOfSharding.try_emplace(std::move(key), static_cast<int32_t>(numberOfSharding.size())).first->second;
}

int32_t ValueNumbers::inSharding(int32_t value, const Sharding &sharding, int64_t elements) {
  const int32_t target = shardingNumber(sharding);
  if (known[value].home == target)
    return value;
  auto [at, isNew] = numberOfKey.try_emplace({-1, value, target}, static_cast<int32_t>(known.size()));
  if (isNew)
    known.push_back({target, elements == 1 || known[value].isStatistic});
  return at->second;
}

bool ValueNumbers::run(const TracedOperator &op, const std::vector<StepValue> &values, std::vector<int32_t> &numbers) {
  std::vector<int32_t> key{op.computes};
  std::vector<ComputedFrom> from;
  for (const TracedOperator::Use &use : op.reads) {
    const int64_t elements = elementCount(values[use.value].shape);
    key.push_back(inSharding(numbers[use.value], use.sharding, elements));
    from.push_back({elements, known[key.back()].isStatistic});
  }
  if (op.computes == TracedOperator::brings) {
    numbers[op.writes.front().value] = key.back();
    return false;
  }
  for (const TracedOperator::Use &use : op.writes)
    key.push_back(shardingNumber(use.sharding));
  bool isNew = true;
  auto first = static_cast<int32_t>(known.size());
  if (op.computes >= 0) {
    const auto [at, isFirst] = numberOfKey.try_emplace(std::move(key), first);
    first = at->second;
    isNew = isFirst;
  }
  bool areStatistics = !op.reads.empty();
  for (size_t i = 0; i < op.writes.size(); ++i) {
    const TracedOperator::Use &use = op.writes[i];
    numbers[use.value] = first + static_cast<int32_t>(i);
    areStatistics &= passes::isStatistic(elementCount(values[use.value].shape), from);
    if (isNew)
      known.push_back({shardingNumber(use.sharding), false});
  }
  if (areStatistics)
    for (const TracedOperator::Use &use : op.writes)
      known[numbers[use.value]].isStatistic = true;
  return !isNew && areStatistics;
}

std::vector<int32_t> ValueNumbers::begin(const std::vector<StepValue> &values) {
  std::vector<int32_t> numbers;
  for (const StepValue &value : values) {
    if (value.kind != StepValue::Kind::Constant || value.computes < 0) {
      numbers.push_back(value.kind == StepValue::Kind::Inner ? -1 : add());
      continue;
    }
    auto [at, isNew] = numberOfKey.try_emplace({value.computes}, static_cast<int32_t>(known.size()));
    if (isNew)
      known.emplace_back();
    numbers.push_back(at->second);
  }
  return numbers;
}

} // namespace msc::passes
