#include "test/reference/Tensor.h"

namespace msc::reference {

static size_t offsetOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &index) {
  size_t offset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    offset = offset * shape[dim] + index[dim];
  return offset;
}

Tensor::Tensor(std::vector<int64_t> dims, double fill) : shape(std::move(dims)), values(elementCount(shape), fill) {}
Tensor::Tensor(std::vector<int64_t> dims, std::vector<double> data) : shape(std::move(dims)), values(std::move(data)) {}

double &Tensor::at(const std::vector<int64_t> &index) {
  return values.at(offsetOf(shape, index));
}
double Tensor::at(const std::vector<int64_t> &index) const {
  return values.at(offsetOf(shape, index));
}

void forEachIndex(const std::vector<int64_t> &shape, const std::function<void(const std::vector<int64_t> &)> &visit) {
  if (elementCount(shape) == 0)
    return;
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    visit(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

double broadcastAt(const Tensor &tensor, const std::vector<int64_t> &index) {
  std::vector<int64_t> own(index.end() - tensor.rank(), index.end());
  for (size_t dim = 0; dim < own.size(); ++dim)
    if (tensor.shape[dim] == 1)
      own[dim] = 0;
  return tensor.at(own);
}

static std::vector<int64_t> shifted(const Box &box, std::vector<int64_t> index) {
  for (size_t dim = 0; dim < index.size(); ++dim)
    index[dim] += box[dim].begin;
  return index;
}

Tensor slice(const Tensor &tensor, const Box &box) {
  Tensor part(sizes(box));
  forEachIndex(part.shape, [&](const auto &index) { part.at(index) = tensor.at(shifted(box, index)); });
  return part;
}

void paste(Tensor &target, const Box &box, const Tensor &part) {
  forEachIndex(part.shape, [&](const auto &index) { target.at(shifted(box, index)) = part.at(index); });
}

} // namespace msc::reference
