// Maxima and means over windows of images.
#include "test/reference/Images.h"
#include "test/reference/Interpreter.h"

#include <cmath>

using namespace msc::net;

namespace msc::reference {

using Index = std::vector<int64_t>;

template <typename Pool> static std::array<Slide, 2> slides(Pool op, const std::vector<int64_t> &image) {
  auto one = [&](int direction) {
    return slideOf(direction, image[2 + direction], op.getKernelSize(), op.getStrides(), {1}, op.getPadMode(), op.getPad());
  };
  return {one(0), one(1)};
}

/// Calls visit(element of the image) for all that window (i, j) covers.
template <typename Visit>
static void forCovered(const std::array<Slide, 2> &slides, const Index &window, Visit visit) {
  for (int64_t s = 0; s < slides[0].kernel; ++s)
    for (int64_t t = 0; t < slides[1].kernel; ++t)
      if (slides[0].covers(window[2], s) && slides[1].covers(window[3], t))
        visit(Index{window[0], window[1], slides[0].under(window[2], s), slides[1].under(window[3], t)});
}

/// How many positions of window `i` lie in the image, or in the padded image.
static int64_t counted(const Slide &slide, int64_t i, bool padding) {
  int64_t count = 0;
  for (int64_t t = 0; t < slide.kernel; ++t)
    count += padding ? slide.under(i, t) < slide.size + slide.after : slide.covers(i, t);
  return count;
}

template <typename Pool>
static double divisor(Pool op, const std::array<Slide, 2> &slides, const Index &window) {
  bool padding = op.getCountIncludePad();
  return static_cast<double>(counted(slides[0], window[2], padding) * counted(slides[1], window[3], padding));
}

static Index largest(const Tensor &x, const std::array<Slide, 2> &slides, const Index &window) {
  Index best;
  forCovered(slides, window, [&](const Index &at) {
    if (best.empty() || x.at(at) > x.at(best) || (std::isnan(x.at(at)) && !std::isnan(x.at(best))))
      best = at;
  });
  return best;
}

static std::vector<Tensor> maxPool(MaxPoolOp op, const Tensor &x) {
  auto s = slides(op, x.shape);
  Tensor y({x.shape[0], x.shape[1], s[0].count, s[1].count});
  forEachIndex(y.shape, [&](const Index &at) { y.at(at) = x.at(largest(x, s, at)); });
  return {y};
}

static std::vector<Tensor> maxPoolGrad(MaxPoolGradOp op, const Tensor &x, const Tensor &dy) {
  auto s = slides(op, x.shape);
  Tensor dx(x.shape);
  forEachIndex(dy.shape, [&](const Index &at) { dx.at(largest(x, s, at)) += dy.at(at); });
  return {dx};
}

static std::vector<Tensor> avgPool(AvgPoolOp op, const Tensor &x) {
  auto s = slides(op, x.shape);
  Tensor y({x.shape[0], x.shape[1], s[0].count, s[1].count});
  forEachIndex(y.shape, [&](const Index &at) {
    forCovered(s, at, [&](const Index &from) { y.at(at) += x.at(from) / divisor(op, s, at); });
  });
  return {y};
}

static std::vector<Tensor> avgPoolGrad(AvgPoolGradOp op, const Tensor &dy) {
  Tensor dx({dy.shape[0], dy.shape[1], op.getInputSize()[2], op.getInputSize()[3]});
  auto s = slides(op, dx.shape);
  forEachIndex(dy.shape, [&](const Index &at) {
    forCovered(s, at, [&](const Index &to) { dx.at(to) += dy.at(at) / divisor(op, s, at); });
  });
  return {dx};
}

/// Rows floor(i H / R) to ceil((i + 1) H / R) and columns alike: the box of the image behind one element.
static Box adaptiveBox(const Index &at, const std::vector<int64_t> &small, const std::vector<int64_t> &large) {
  Box box{{at[0], at[0] + 1}, {at[1], at[1] + 1}};
  for (int d : {2, 3})
    box.push_back({at[d] * large[d] / small[d], ((at[d] + 1) * large[d] + small[d] - 1) / small[d]});
  return box;
}

static std::vector<int64_t> with(std::vector<int64_t> shape, size_t dim, int64_t size) {
  shape[dim] = size;
  return shape;
}

/// `x` may be a part of the images in a direction with one window, where the result is its share of the mean, and in one with
/// as many windows as elements.
static std::vector<Tensor> adaptivePool(AdaptiveAvgPool2DOp op, const Tensor &x) {
  llvm::ArrayRef<int64_t> size = op.getOutputSize();
  std::vector<int64_t> image = llvm::cast<mlir::RankedTensorType>(op.getX().getType()).getShape().vec();
  Tensor y({x.shape[0], x.shape[1], size.front(), size.back()});
  for (size_t d : {2, 3})
    if (y.shape[d] == image[d])
      y = Tensor(with(y.shape, d, image[d] = x.shape[d]));
  forEachIndex(y.shape, [&](const Index &at) {
    Box box = adaptiveBox(at, y.shape, image);
    auto count = static_cast<double>(elementCount(box));
    for (size_t d : {2, 3})
      box[d].end = std::min(box[d].end, x.shape[d]);
    Tensor part = slice(x, box);
    for (double value : part.values)
      y.at(at) += value / count;
  });
  return {y};
}

static std::vector<Tensor> adaptivePoolGrad(AdaptiveAvgPool2DGradOp op, const Tensor &dy) {
  llvm::ArrayRef<int64_t> windows = llvm::cast<mlir::RankedTensorType>(op.getDout().getType()).getShape();
  std::vector<int64_t> image{dy.shape[0], dy.shape[1], op.getInputSize()[2], op.getInputSize()[3]};
  for (size_t d : {2, 3})
    if (windows[d] == image[d])
      image[d] = dy.shape[d];
  Tensor dx(image);
  forEachIndex(dy.shape, [&](const Index &at) {
    Box box = adaptiveBox(at, dy.shape, dx.shape);
    Tensor part = slice(dx, box);
    for (double &value : part.values)
      value += dy.at(at) / static_cast<double>(part.values.size());
    paste(dx, box, part);
  });
  return {dx};
}

void addPooling(Table &table) {
  using Operands = const std::vector<Tensor> &;
  table["MaxPool"] = [](mlir::Operation *op, Operands x) { return maxPool(llvm::cast<MaxPoolOp>(op), x[0]); };
  table["MaxPoolGrad"] = [](mlir::Operation *op, Operands x) { return maxPoolGrad(llvm::cast<MaxPoolGradOp>(op), x[0], x[1]); };
  table["AvgPool"] = [](mlir::Operation *op, Operands x) { return avgPool(llvm::cast<AvgPoolOp>(op), x[0]); };
  table["AvgPoolGrad"] = [](mlir::Operation *op, Operands x) { return avgPoolGrad(llvm::cast<AvgPoolGradOp>(op), x[0]); };
  table["AdaptiveAvgPool2D"] = [](mlir::Operation *op, Operands x) { return adaptivePool(llvm::cast<AdaptiveAvgPool2DOp>(op), x[0]); };
  table["AdaptiveAvgPool2DGrad"] = [](mlir::Operation *op, Operands x) {
    return adaptivePoolGrad(llvm::cast<AdaptiveAvgPool2DGradOp>(op), x[0]);
  };
}

} // namespace msc::reference
