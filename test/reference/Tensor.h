// Dense tensors of f64 and the index arithmetic that the reference needs. Simple and slow on purpose.
#pragma once

#include "runtime/plan/Sharding.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace msc::reference {

/// Row-major; integers and bools are whole numbers.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  Tensor() = default;
  explicit Tensor(std::vector<int64_t> shape, double fill = 0);
  Tensor(std::vector<int64_t> shape, std::vector<double> values);

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  double &at(const std::vector<int64_t> &index);
  double at(const std::vector<int64_t> &index) const;
};

/// Calls `visit` for every index of a shape, in row-major order.
void forEachIndex(const std::vector<int64_t> &shape, const std::function<void(const std::vector<int64_t> &)> &visit);

/// The element that NumPy broadcasting puts at `index` of a larger shape.
double broadcastAt(const Tensor &tensor, const std::vector<int64_t> &index);

/// The elements in a box, and writing them back.
Tensor slice(const Tensor &tensor, const Box &box);
void paste(Tensor &target, const Box &box, const Tensor &part);

} // namespace msc::reference
