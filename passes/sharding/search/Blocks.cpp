#include "passes/sharding/search/Blocks.h"

#include <algorithm>
#include <numeric>

namespace msc::search {

void setStrides(Block &block, const std::vector<Axis> &axes) {
  block.strides.assign(axes.size(), 0);
  size_t stride = 1;
  for (size_t i = block.axes.size(); i-- > 0;) {
    block.strides[block.axes[i]] = stride;
    stride *= axes[block.axes[i]].part->classes();
  }
}

Block expanded(Workspace &workspace, const Factor &factor, const std::vector<Axis> &axes) {
  std::shared_ptr<const Costs> costs = factor.shared ? workspace.tabulate(*factor.shared) : factor.costs;
  std::vector<size_t> strides(factor.scope.size(), 1);
  for (size_t a = factor.scope.size() - 1; a-- > 0;)
    strides[a] = strides[a + 1] * factor.parts[a + 1]->classes();

  Block block;
  std::vector<std::vector<size_t>> steps; // of each axis of the block, of each class: offset in the factor
  for (size_t position = 0; position < axes.size(); ++position)
    if (size_t a = factor.axisOf(axes[position].variable); a < factor.scope.size()) {
      block.axes.push_back(position);
      steps.emplace_back();
      for (int32_t option : axes[position].part->first)
        steps.back().push_back(strides[a] * factor.parts[a]->classOf[option]);
    }
  setStrides(block, axes);

  const std::vector<size_t> &inner = steps.back();
  bool isRow = true; // the factor holds them one behind the other
  for (size_t j = 0; j < inner.size(); ++j)
    isRow = isRow && inner[j] == j;
  size_t size = 1;
  for (const std::vector<size_t> &list : steps)
    size *= list.size();
  block.values.reserve(size);
  std::vector<double> gathered(isRow ? 0 : inner.size());
  std::vector<size_t> at(steps.size());
  while (true) {
    size_t offset = 0;
    for (size_t i = 0; i + 1 < at.size(); ++i)
      offset += steps[i][at[i]];
    const double *row = costs->values.data() + offset;
    if (!isRow) {
      for (size_t j = 0; j < inner.size(); ++j)
        gathered[j] = row[inner[j]];
      row = gathered.data();
    }
    block.values.insert(block.values.end(), row, row + inner.size());
    size_t i = at.size() - 1;
    while (i-- > 0 && ++at[i] == steps[i].size())
      at[i] = 0;
    if (i == size_t(-1))
      return block;
  }
}

/// big += small, whose axes are among those of `big`.
static void addInto(Block &big, const Block &small, const std::vector<Axis> &axes) {
  const size_t last = big.axes.back(), width = axes[last].part->classes(), step = small.strides[last];
  std::vector<size_t> at(big.axes.size());
  size_t offset = 0;
  for (size_t row = 0; row < big.values.size(); row += width) {
    for (size_t j = 0; j < width; ++j)
      big.values[row + j] += small.values[offset + j * step];
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
