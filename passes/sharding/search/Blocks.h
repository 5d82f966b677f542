// Factors laid out for loops over the classes of several variables.
#pragma once

#include "passes/sharding/search/Reduction.h"

#include <span>

namespace msc::search {

/// Numbers over some of a list of axes, row-major in the order of the list.
struct Block {
  Block() = default;
  Block(Block &&) = default;
  Block &operator=(Block &&) = default;

  void hold(std::vector<double> numbers);
  /// Those of a table: not copied before they are changed.
  void borrow(std::shared_ptr<const Costs> table);
  double *change();

  std::vector<size_t> axes;    ///< positions in the list, ascending
  std::vector<size_t> strides; ///< of every axis of the list; 0 where it does not depend on it
  std::span<const double> values;

private:
  std::vector<double> own;
  std::shared_ptr<const Costs> borrowed;
};

/// Counts through the classes of axes and keeps the offsets of blocks.
class Odometer {
public:
  Odometer(const std::vector<Axis> &axes, size_t count) : at(count), sizes(count) {
    for (size_t a = 0; a < count; ++a)
      sizes[a] = axes[a].part->classes();
  }
  /// False after the last one.
  bool next(std::vector<size_t> &offsets, const std::vector<const Block *> &blocks) {
    for (size_t a = at.size(); a-- > 0;) {
      ++at[a];
      changed = a;
      if (at[a] < sizes[a]) {
        for (size_t b = 0; b < blocks.size(); ++b)
          offsets[b] += blocks[b]->strides[a];
        return true;
      }
      for (size_t b = 0; b < blocks.size(); ++b)
        offsets[b] -= blocks[b]->strides[a] * (sizes[a] - 1);
      at[a] = 0;
    }
    return false;
  }
  std::vector<int32_t> at;
  size_t changed = 0; ///< the first axis that the last step changed

private:
  std::vector<int32_t> sizes;
};

/// Sets the strides from the axes.
void setStrides(Block &block, const std::vector<Axis> &axes);

/// A factor as a block over the classes of `axes`.
Block expanded(const Factor &factor, const std::vector<Axis> &axes);

/// Adds blocks whose axes are all in another block to that one.
std::vector<Block> merged(std::vector<Block> blocks, const std::vector<Axis> &axes);

/// Of each class of a variable: the least sum of the unary factors over its options.
std::vector<double> unaryOfClasses(const FactorRefs &factors, const Partition &part);

Factor factorOver(Workspace &workspace, const std::vector<Axis> &context, std::vector<double> values);

} // namespace msc::search
