#include "passes/sharding/search/Blocks.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace msc::search {

void Block::hold(std::vector<double> numbers) {
  own = std::move(numbers);
  values = own;
}

void Block::borrow(std::shared_ptr<const Costs> table) {
  borrowed = std::move(table);
  values = borrowed->values;
}

double *Block::change() {
  if (values.data() != own.data())
    hold({values.begin(), values.end()});
  return own.data();
}

void setStrides(Block &block, const std::vector<Axis> &axes) {
  block.strides.assign(axes.size(), 0);
  size_t stride = 1;
  for (size_t i = block.axes.size(); i-- > 0;) {
    block.strides[block.axes[i]] = stride;
    stride *= axes[block.axes[i]].part->classes();
  }
}

/// values[sum of one step of each list], for all combinations, the last list innermost.
static std::vector<double> gathered(const std::vector<double> &values, const std::vector<std::vector<size_t>> &steps) {
  const std::vector<size_t> &inner = steps.back();
  bool isRow = true; // they lie one behind the other
  for (size_t j = 0; j < inner.size(); ++j)
    isRow = isRow && inner[j] == j;
  size_t size = 1;
  for (const std::vector<size_t> &list : steps)
    size *= list.size();
  std::vector<double> made;
  made.reserve(size);
  std::vector<double> picked(isRow ? 0 : inner.size());
  std::vector<size_t> at(steps.size());
  while (true) {
    size_t offset = 0;
    for (size_t i = 0; i + 1 < at.size(); ++i)
      offset += steps[i][at[i]];
    const double *row = values.data() + offset;
    if (!isRow) {
      for (size_t j = 0; j < inner.size(); ++j)
        picked[j] = row[inner[j]];
      row = picked.data();
    }
    made.insert(made.end(), row, row + inner.size());
    size_t i = at.size() - 1;
    while (i-- > 0 && ++at[i] == steps[i].size())
      at[i] = 0;
    if (i == size_t(-1))
      return made;
  }
}

Block expanded(const Factor &factor, const std::vector<Axis> &axes) {
  Block block;
  std::vector<size_t> order; // axes of the factor, as the block has them
  for (size_t position = 0; position < axes.size(); ++position)
    if (size_t a = factor.axisOf(axes[position].variable); a < factor.scope.size()) {
      block.axes.push_back(position);
      order.push_back(a);
    }
  setStrides(block, axes);

  // Shared costs come in this order; of a table, it is gathered, and so is what the axes look at more finely than the factor does.
  std::vector<double> ofShared;
  std::vector<size_t> held = order;
  if (factor.shared)
    ofShared = tabulated(*factor.shared, order);
  else
    std::ranges::sort(held);
  const std::vector<double> &values = factor.shared ? ofShared : factor.costs->values;
  std::vector<size_t> strides(order.size());
  size_t stride = 1;
  for (size_t a : std::views::reverse(held)) {
    strides[a] = stride;
    stride *= factor.parts[a]->classes();
  }
  std::vector<std::vector<size_t>> steps; // of each axis of the block, of each class: offset in the values
  bool isSame = held == order;
  for (size_t i = 0; i < order.size(); ++i) {
    const Partition &part = *factor.parts[order[i]];
    steps.emplace_back();
    for (int32_t option : axes[block.axes[i]].part->first) {
      isSame = isSame && part.classOf[option] == static_cast<int32_t>(steps[i].size());
      steps[i].push_back(strides[order[i]] * part.classOf[option]);
    }
    isSame = isSame && part.classes() == static_cast<int32_t>(steps[i].size());
  }
  if (!isSame)
    block.hold(gathered(values, steps));
  else if (factor.shared)
    block.hold(std::move(ofShared));
  else
    block.borrow(factor.costs);
  return block;
}

/// big += small, whose axes are among those of `big`.
static void addInto(Block &big, const Block &small, const std::vector<Axis> &axes) {
  const size_t last = big.axes.back(), width = axes[last].part->classes(), step = small.strides[last];
  std::vector<size_t> at(big.axes.size());
  double *values = big.change();
  size_t offset = 0;
  for (size_t row = 0; row < big.values.size(); row += width) {
    for (size_t j = 0; j < width; ++j)
      values[row + j] += small.values[offset + j * step];
    for (size_t i = big.axes.size() - 1; i-- > 0;) {
      const size_t axis = big.axes[i], size = axes[axis].part->classes();
      offset += small.strides[axis];
      if (++at[i] < size)
        break;
      offset -= small.strides[axis] * size;
      at[i] = 0;
    }
  }
}

std::vector<Block> merged(std::vector<Block> blocks, const std::vector<Axis> &axes) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(blocks[b].axes.size(), a) < std::pair(blocks[a].axes.size(), b); // most axes first
  });
  std::vector<Block> kept;
  for (size_t number : order) {
    Block &block = blocks[number];
    auto host = std::find_if(kept.begin(), kept.end(), [&](const Block &big) {
      return std::includes(big.axes.begin(), big.axes.end(), block.axes.begin(), block.axes.end());
    });
    if (host == kept.end())
      kept.push_back(std::move(block));
    else
      addInto(*host, block, axes);
  }
  return kept;
}

std::vector<double> unaryOfClasses(const FactorRefs &factors, const Partition &part) {
  std::vector<double> ofOptions(part.classOf.size()), ofClasses(part.first.size(), infinity);
  Choice none(1);
  for (const Factor *factor : factors)
    if (factor->scope.size() == 1)
      for (size_t option = 0; option < ofOptions.size(); ++option)
        ofOptions[option] += factor->costs->values[factor->parts[0]->classOf[option]];
  for (size_t option = 0; option < ofOptions.size(); ++option)
    ofClasses[part.classOf[option]] = std::min(ofClasses[part.classOf[option]], ofOptions[option]);
  return ofClasses;
}

Factor factorOver(Workspace &workspace, const std::vector<Axis> &context, std::vector<double> values) {
  Factor factor;
  for (const Axis &axis : context) {
    factor.scope.push_back(axis.variable);
    factor.parts.push_back(axis.part);
  }
  factor.costs = workspace.costs(std::move(values));
  return factor;
}

} // namespace msc::search
