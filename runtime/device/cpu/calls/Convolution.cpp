// Convolutions in plain loops: the definition, in the order channels, rows, columns of the kernel.
#include "runtime/device/cpu/calls/Convolution.h"

#include "runtime/device/cpu/calls/Elements.h"

#include <algorithm>

namespace msc::device::calls {
namespace {

/// Outputs whose position t of the kernel lies over an input.
Range outputsUnder(const Window &window, int64_t t) {
  int64_t shift = window.before - t * window.dilation; // input = output * stride - shift
  auto ceilOf = [&](int64_t a) { return a <= 0 ? -(-a / window.stride) : (a + window.stride - 1) / window.stride; };
  int64_t begin = std::clamp<int64_t>(ceilOf(shift), 0, window.output);
  return {begin, std::clamp<int64_t>(ceilOf(window.input + shift), begin, window.output)};
}

/// Calls f(output, input, count, stride) for every row of outputs and the inputs that lie under position (s, t) of the
/// kernel: elements of one plane of y and of x.
template <typename Function> void forRows(const Convolution &shape, int64_t s, int64_t t, Function f) {
  const auto &[rows, columns] = shape.windows;
  auto element = [](const std::array<PlaneSide, 2> &plane, int64_t row, int64_t column) {
    return (plane[0].first + row) * plane[1].held + plane[1].first + column;
  };
  Range i = outputsUnder(rows, s), j = outputsUnder(columns, t);
  for (int64_t row = i.begin; row < i.end && j.size() > 0; ++row)
    f(element(shape.y, row, j.begin), element(shape.x, rows.under(row, s), columns.under(j.begin, t)), j.size(), columns.stride);
}

/// The plain convolution of one element type. Work is cut into planes of the result, which no two tasks share.
template <typename Element> class Plain {
public:
  using Number = ComputeType<Element>;
  explicit Plain(const ConvolutionCall &call)
      : shape(call.shape), x(reinterpret_cast<Element *>(call.x)), w(reinterpret_cast<Element *>(call.w)),
        y(reinterpret_cast<Element *>(call.y)) {}

  int64_t inputPlane() const { return shape.x[0].held * shape.x[1].held; }
  int64_t outputPlane() const { return shape.y[0].held * shape.y[1].held; }
  int64_t kernelPlane() const { return shape.windows[0].kernel * shape.windows[1].kernel; }
  /// Pieces of work, and elements of the sum that each needs.
  int64_t pieces(ConvolutionResult result) const {
    return result == ConvolutionResult::Output  ? shape.images * shape.outputs
           : result == ConvolutionResult::Input ? shape.images * shape.inputs
                                                : shape.outputs * shape.inputsPerGroup();
  }
  int64_t sums(ConvolutionResult result) const {
    return result == ConvolutionResult::Output ? outputPlane() : result == ConvolutionResult::Input ? inputPlane() : kernelPlane();
  }

  void compute(ConvolutionResult result, int64_t piece, Number *sum) const {
    std::fill_n(sum, sums(result), Number(0));
    Element *target = (result == ConvolutionResult::Output ? y : result == ConvolutionResult::Input ? x : w) + piece * sums(result);
    if (result == ConvolutionResult::Output)
      output(piece / shape.outputs, piece % shape.outputs, sum);
    else if (result == ConvolutionResult::Input)
      input(piece / shape.inputs, piece % shape.inputs, sum);
    else
      filter(piece / shape.inputsPerGroup(), piece % shape.inputsPerGroup(), sum);
    std::transform(sum, sum + sums(result), target, [](Number value) { return static_cast<Element>(value); });
  }

private:
  const Element *xPlane(int64_t image, int64_t channel) const { return x + (image * shape.inputs + channel) * inputPlane(); }
  const Element *yPlane(int64_t image, int64_t channel) const { return y + (image * shape.outputs + channel) * outputPlane(); }
  const Element *kernel(int64_t o, int64_t c) const { return w + (o * shape.inputsPerGroup() + c) * kernelPlane(); }
  template <typename Function> void forKernel(Function f) const {
    for (int64_t s = 0; s < shape.windows[0].kernel; ++s)
      for (int64_t t = 0; t < shape.windows[1].kernel; ++t)
        f(s, t, s * shape.windows[1].kernel + t);
  }

  void output(int64_t image, int64_t o, Number *sum) const {
    int64_t first = o / shape.outputsPerGroup() * shape.inputsPerGroup();
    for (int64_t c = 0; c < shape.inputsPerGroup(); ++c)
      forKernel([&](int64_t s, int64_t t, int64_t position) {
        auto weight = static_cast<Number>(kernel(o, c)[position]);
        const Element *from = xPlane(image, first + c);
        forRows(shape, s, t, [&](int64_t to, int64_t at, int64_t count, int64_t stride) {
          for (int64_t k = 0; k < count; ++k)
            sum[to + k] += weight * static_cast<Number>(from[at + k * stride]);
        });
      });
  }

  void input(int64_t image, int64_t channel, Number *sum) const {
    int64_t c = channel % shape.inputsPerGroup(), first = channel / shape.inputsPerGroup() * shape.outputsPerGroup();
    for (int64_t o = first; o < first + shape.outputsPerGroup(); ++o)
      forKernel([&](int64_t s, int64_t t, int64_t position) {
        auto weight = static_cast<Number>(kernel(o, c)[position]);
        const Element *from = yPlane(image, o);
        forRows(shape, s, t, [&](int64_t at, int64_t to, int64_t count, int64_t stride) {
          for (int64_t k = 0; k < count; ++k)
            sum[to + k * stride] += weight * static_cast<Number>(from[at + k]);
        });
      });
  }

  void filter(int64_t o, int64_t c, Number *sum) const {
    int64_t channel = o / shape.outputsPerGroup() * shape.inputsPerGroup() + c;
    for (int64_t image = 0; image < shape.images; ++image)
      forKernel([&](int64_t s, int64_t t, int64_t position) {
        const Element *slopes = yPlane(image, o), *from = xPlane(image, channel);
        forRows(shape, s, t, [&](int64_t at, int64_t under, int64_t count, int64_t stride) {
          for (int64_t k = 0; k < count; ++k)
            sum[position] += static_cast<Number>(slopes[at + k]) * static_cast<Number>(from[under + k * stride]);
        });
      });
  }

  Convolution shape;
  Element *x, *w, *y;
};

template <typename Element>
std::unique_ptr<ScratchOperation> plainConvolution(const ConvolutionCall &call, WorkerPool &pool) {
  Plain<Element> plain(call);
  ConvolutionResult result = call.result;
  int64_t pieces = plain.pieces(result), tasks = std::min(call.tasks, pieces);
  auto body = [=](int64_t task, std::byte *worker, std::byte *) {
    Range range = pieceOf(pieces, task, tasks);
    for (int64_t piece = range.begin; piece < range.end; ++piece)
      plain.compute(result, piece, reinterpret_cast<typename Plain<Element>::Number *>(worker));
  };
  size_t bytes = static_cast<size_t>(plain.sums(result)) * sizeof(typename Plain<Element>::Number);
  return std::make_unique<TaskOperation>(pool, tasks, body, ScratchSize{.worker = bytes});
}

Result<std::unique_ptr<ScratchOperation>> prepare(const CallSpec &spec, WorkerPool &pool, ConvolutionResult result,
                                                  const CallTensor &x, const CallTensor &w, const CallTensor &y) {
  std::string why;
  ConvolutionCall call{*convolutionOf(spec.attributes, result, x, w, y, why), result, x.data, w.data, y.data, y.type,
                       spec.attributes.flag("holds_bf16"), spec.tasks};
  auto isEmpty = [](const CallTensor &tensor) { return elementCount(tensor.box) == 0; };
  bool meets = true;
  for (const Window &window : call.shape.windows)
    meets = meets && window.input > 0 && window.output > 0;
  if ((call.type == plan::F32 || call.type == plan::BF16) && meets && !isEmpty(x) && !isEmpty(w) && !isEmpty(y))
    return prepareLibraryConvolution(call, pool);
  return withFloat(call.type, [&]<typename Element>(Element) { return plainConvolution<Element>(call, pool); });
}

} // namespace

void addConvolution(Table &table) {
  table["Conv2D"] = [](const CallSpec &spec, WorkerPool &pool) {
    return prepare(spec, pool, ConvolutionResult::Output, spec.operands[0], spec.operands[1], spec.results[0]);
  };
  Prepare toInput = [](const CallSpec &spec, WorkerPool &pool) {
    return prepare(spec, pool, ConvolutionResult::Input, spec.results[0], spec.operands[1], spec.operands[0]);
  };
  table["Conv2DTranspose"] = toInput;
  table["Conv2DBackpropInput"] = toInput;
  table["Conv2DBackpropFilter"] = [](const CallSpec &spec, WorkerPool &pool) {
    return prepare(spec, pool, ConvolutionResult::Filter, spec.operands[1], spec.results[0], spec.operands[0]);
  };
}

} // namespace msc::device::calls
