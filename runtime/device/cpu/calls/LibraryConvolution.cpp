// Convolutions in f32 and bf16 by oneDNN, every call on one thread. All add in f32; numbers of bf16 are multiplied by tiles where the
// processor has some, else cast to f32 on the way into the order below.
//
// Tensors of a plan are dense (N, C, H, W). oneDNN's kernels for windows want channels in blocks of 16: the images of a
// task are brought into that order, a few at a time so that they stay in the cache, and the result back; weights once per
// run for all tasks. A kernel of 1 x 1 is a matrix product on the dense order and needs none of that.
//
// A task is a run of images. Weight gradients are sums over images: every task sums its own into a block of the shared
// scratch memory, and the blocks are added in the order of the tasks. Where they are large and have few terms a task is some output channels
// of all images instead. All of it follows from the plan and the local sizes, so the number of threads changes no bit.
#include "runtime/device/cpu/calls/Convolution.h"

#include "runtime/device/cpu/Casts.h"
#include "runtime/device/cpu/NarrowProducts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace msc::device::calls {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;
constexpr auto f32 = dnnl::memory::data_type::f32, bf16 = dnnl::memory::data_type::bf16;

/// Where a piece of memory lies: in the tensors, or at an offset of a block of scratch memory.
struct Place {
  enum class Area { Tensor, Worker, Shared } area = Area::Tensor;
  std::byte *address = nullptr;
  size_t offset = 0;
};

/// Consecutive pieces of one block of scratch memory.
class Layout {
public:
  explicit Layout(Place::Area area) : area(area) {}
  Place take(size_t bytes) {
    Place place{area, nullptr, size};
    size += (bytes + 63) / 64 * 64;
    return place;
  }
  size_t bytes() const { return size; }

private:
  Place::Area area;
  size_t size = 0;
};

dnnl::primitive_attr userScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// Is the kernel of 1 x 1, a product of matrices on the dense order?
bool isPointwise(const Convolution &shape) {
  const auto &[rows, columns] = shape.windows;
  return rows.kernel * columns.kernel == 1 && rows.before + rows.after + columns.before + columns.after == 0 && shape.groups == 1;
}

/// oneDNN 2.6.3's convolutions by tiles go wrong where windows are dilated (sums for weights of some numbers of channels), where an element
/// of the kernel meets no input (its weights are left as they were), and where a window meets none (it ends the process).
bool mayUseTiles(const Convolution &shape) {
  return std::ranges::all_of(shape.windows, [](const Window &window) {
    bool meets = window.dilation == 1 && window.before < window.kernel && (window.output - 1) * window.stride - window.before < window.input;
    for (int64_t t = 0; t < window.kernel && meets; ++t) { // the first output under which t lies behind the padding
      const int64_t first = std::max<int64_t>(0, (window.before - t + window.stride - 1) / window.stride);
      meets = first < window.output && first * window.stride - window.before + t < window.input;
    }
    return meets;
  });
}

/// The primitive for one number of images, and the orders that it wants.
struct Shape {
  dnnl::primitive primitive;
  dnnl::primitive adding;        ///< adds to the weights that are there; there is none for most
  Desc x, w, y, scratch;         ///< in the order that the primitive takes
  Desc denseX, denseW, denseY;   ///< as the plan has them
  Desc asX, asW, asY;            ///< as the primitive calls them: planes may be one dimension
};

class LibraryConvolution final : public ScratchOperation {
public:
  /// Throws dnnl::error.
  LibraryConvolution(const ConvolutionCall &call, WorkerPool &pool)
      : call(call), shape(call.shape), pool(pool), engine(dnnl::engine::kind::cpu, 0),
        given(call.type == plan::BF16 ? bf16 : f32), factors(factorsOf(call)),
        elementBytes(static_cast<int64_t>(dnnl::memory::data_type_size(given))) {
    for (int i = 0; i < pool.size(); ++i)
      streams.emplace_back(engine);
    chooseTasks();
    call.result == ConvolutionResult::Filter ? bindFilter() : bindImages();
    failures.assign(tasks.size() + 2, dnnl_success);
  }

  Status run() override {
    for (Call &first : before)
      execute(first, 0, failures.size() - 1);
    pool.run(
        static_cast<int64_t>(tasks.size()),
        [](void *self, int64_t task, int worker) {
          auto *own = static_cast<LibraryConvolution *>(self);
          for (Call &step : own->tasks[task])
            own->execute(step, worker, task);
        },
        this);
    if (partials > 1)
      pool.run(sumTasks, [](void *self, int64_t task, int) { static_cast<LibraryConvolution *>(self)->sumPartials(task); }, this);
    for (Call &last : after)
      execute(last, 0, failures.size() - 2);
    for (dnnl_status_t failure : failures)
      if (failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN convolution returned status {}", static_cast<int>(failure)), ""};
    return {};
  }

  ScratchSize scratchSize() const override { return {.worker = workerBytes, .shared = shared.bytes()}; }

  void setScratch(const Scratch &scratch) override {
    auto bind = [&](Call &step, size_t worker) {
      for (auto &[memory, place] : step.places)
        memory.set_data_handle(addressOf(place, scratch, worker));
      if (step.count != 0) {
        step.sum = reinterpret_cast<float *>(addressOf(step.addTo, scratch, worker));
        step.term = reinterpret_cast<const float *>(addressOf(step.addFrom, scratch, worker));
      }
    };
    for (size_t task = 0; task < tasks.size(); ++task)
      for (Call &step : tasks[task])
        bind(step, task % streams.size());
    for (std::vector<Call> *list : {&before, &after})
      for (Call &step : *list)
        bind(step, 0);
    sharedScratch = scratch.shared;
  }

private:
  /// One call of the library with bound memory, a cast, the addition of one block of weight gradients to another, or zeros.
  struct Call {
    dnnl::primitive primitive;
    std::vector<std::pair<dnnl::memory, Place>> places;
    std::vector<dnnl_exec_arg_t> arguments;
    Place addTo, addFrom;
    float *sum = nullptr;
    const float *term = nullptr;
    int64_t count = 0; ///< elements to add; 0: something else
    std::byte *zeros = nullptr;
    size_t zeroBytes = 0; ///< of a tensor; 0: something else
    std::optional<DenseCast> cast; ///< of the first of `places`, which is bf16 where it `widens`, to the second
    bool widens = false;
  };

  static std::byte *addressOf(const Place &place, const Scratch &scratch, size_t worker) {
    switch (place.area) {
    case Place::Area::Worker: return scratch.workers[worker] + place.offset;
    case Place::Area::Shared: return scratch.shared + place.offset;
    default: return place.address;
    }
  }

  static dnnl::memory::data_type factorsOf(const ConvolutionCall &call) {
    const bool isNarrow = call.type == plan::BF16 || call.holdsBFloat16;
    return isNarrow && multipliesBFloat16() && mayUseTiles(call.shape) ? bf16 : f32;
  }

  static Place tensor(std::byte *address) { return {Place::Area::Tensor, address, 0}; }

  //===-- what is computed by which task ----------------------------------===//

  /// Every task reads all weights, or adds a block of them: large weights are worth fewer tasks.
  void chooseTasks() {
    constexpr int64_t manyTasks = 32, someTasks = 8, largeWeights = 1 << 20, mostPartials = 16 << 20;
    int64_t bytes = static_cast<int64_t>(sizeof(float)) * shape.outputs * shape.inputsPerGroup() * shape.windows[0].kernel * shape.windows[1].kernel;
    int64_t most = bytes > largeWeights ? someTasks : manyTasks;
    if (call.result == ConvolutionResult::Filter)
      most = std::clamp<int64_t>(mostPartials / std::max<int64_t>(bytes, 1), 2, someTasks);
    constexpr int64_t fewTerms = 256; // sums of so many take about as long as adding two of them
    splitsOutputs = call.result == ConvolutionResult::Filter && shape.groups == 1 && bytes > largeWeights && shape.images * outputPlane() <= fewTerms;
    if (splitsOutputs)
      most = std::min(someTasks, shape.outputs / leastOutputs);
    taskCount = std::max<int64_t>(1, std::min({call.tasks, splitsOutputs ? most : shape.images, most}));
  }

  /// Of a task, where tasks are output channels: a multiple of what the library has in a block, but for the last.
  Range outputsOf(int64_t task) const {
    if (!splitsOutputs)
      return {0, shape.outputs};
    const Range blocks = pieceOf((shape.outputs + leastOutputs - 1) / leastOutputs, task, taskCount);
    return {blocks.begin * leastOutputs, std::min(blocks.end * leastOutputs, shape.outputs)};
  }

  /// Is a kernel of 1 x 1 at least as fast on the dense order? Measured: with fewer elements per plane the blocked order wins although it
  /// moves the images.
  bool prefersDense() const {
    return isPointwise(shape) && outputPlane() >= largePlane;
  }

  /// Does the library multiply the matrices of bf16 faster than it convolves? For those of f32 it does the same itself.
  bool prefersMatrices() const {
    const bool isSmall = outputPlane() < largePlane && !skips();
    auto stridesFit = [&](size_t d) { return shape.windows[d].output * shape.windows[d].stride <= shape.x[d].held; }; // the library asks for that
    return isPointwise(shape) && factors == bf16 && !(isSmall && call.result == ConvolutionResult::Input) && stridesFit(0) && stridesFit(1);
  }
  int64_t outputPlane() const { return shape.windows[0].output * shape.windows[1].output; }
  /// There are elements between those that windows begin at.
  bool skips() const { return shape.windows[0].stride * shape.windows[1].stride > 1; }

  /// Images of one call: all that a task has, or as many as fit the cache in the order of the library.
  int64_t imagesAtOnce(int64_t images) const {
    constexpr int64_t cacheBytes = 4 << 20;
    constexpr int64_t deepProduct = 512; // sums of fewer terms wait for memory
    if (prefersMatrices() && call.result == ConvolutionResult::Filter && outputPlane() >= deepProduct)
      return 1;
    const bool copies = prefersMatrices() ? skips() || call.result == ConvolutionResult::Filter : !prefersDense();
    if (!copies && given == factors)
      return images;
    const auto &[rows, columns] = shape.windows;
    int64_t bytes = static_cast<int64_t>(dnnl::memory::data_type_size(factors)) *
                    (shape.inputs * rows.input * columns.input + shape.outputs * rows.output * columns.output);
    return std::clamp<int64_t>(cacheBytes / std::max<int64_t>(bytes, 1), 1, images);
  }

  /// Calls f(first image, number of images) for the blocks of a task.
  template <typename Function> void forBlocks(int64_t task, Function f) const {
    Range range = splitsOutputs ? Range{0, shape.images} : pieceOf(shape.images, task, taskCount);
    int64_t blocks = range.size() == 0 ? 0 : (range.size() + imagesAtOnce(range.size()) - 1) / imagesAtOnce(range.size());
    for (int64_t block = 0; block < blocks; ++block) {
      Range piece = pieceOf(range.size(), block, blocks);
      f(range.begin + piece.begin, piece.size());
    }
  }

  /// Bytes of an image in memory.
  int64_t imageBytes(const std::array<PlaneSide, 2> &plane, int64_t channels) const {
    return channels * plane[0].held * plane[1].held * elementBytes;
  }
  /// The first element of an image that takes part.
  std::byte *imagesOf(std::byte *base, int64_t first, int64_t channels, const std::array<PlaneSide, 2> &plane) const {
    int64_t inPlane = plane[0].first * plane[1].held + plane[1].first;
    return base + first * imageBytes(plane, channels) + inPlane * elementBytes;
  }
  std::byte *xFrom(int64_t image) const { return imagesOf(call.x, image, shape.inputs, shape.x); }
  std::byte *yFrom(int64_t image, int64_t channel = 0) const {
    return imagesOf(call.y, image, shape.outputs, shape.y) + imageBytes(shape.y, channel);
  }

  //===-- primitives ------------------------------------------------------===//

  Dims weightDims(int64_t outputs) const {
    const auto &[rows, columns] = shape.windows;
    if (shape.groups == 1)
      return {outputs, shape.inputs, rows.kernel, columns.kernel};
    return {shape.groups, shape.outputsPerGroup(), shape.inputsPerGroup(), rows.kernel, columns.kernel};
  }

  /// Images as the plan has them: those that take part may be cut out of larger planes, and out of more channels.
  Desc dense(const Dims &images, int64_t channels, const std::array<PlaneSide, 2> &plane) const {
    int64_t size = plane[0].held * plane[1].held;
    return Desc(images, given, Dims{channels * size, size, plane[1].held, 1});
  }

  /// For some images and output channels. All numbers of images share one order of the weights: that of the first.
  const Shape &shapeFor(int64_t images, int64_t outputs) {
    if (auto it = shapes.find({images, outputs}); it != shapes.end())
      return it->second;
    const auto &[rows, columns] = shape.windows;
    Dims x{images, shape.inputs, rows.input, columns.input}, y{images, outputs, rows.output, columns.output}, w = weightDims(outputs);
    Tag tag = prefersDense() ? Tag::nchw : Tag::any;
    // Results of bf16 are rounded by the library; weights are sums of several tasks.
    auto typeOf = [&](ConvolutionResult of) {
      return call.result != of ? factors : of == ConvolutionResult::Filter || factors == f32 ? f32 : given;
    };
    Shape made;
    made.denseX = dense(x, shape.inputs, shape.x);
    made.denseY = dense(y, shape.outputs, shape.y);
    made.denseW = Desc(w, given, shape.groups == 1 ? Tag::oihw : Tag::goihw);
    Desc wantedX(x, typeOf(ConvolutionResult::Input), tag), wantedY(y, typeOf(ConvolutionResult::Output), tag);
    const auto known = weights.find(outputs);
    Desc wantedW = known != weights.end() ? known->second : Desc(w, typeOf(ConvolutionResult::Filter), Tag::any);
    Dims strides{rows.stride, columns.stride}, dilates{rows.dilation - 1, columns.dilation - 1};
    Dims before{rows.before, columns.before}, after{rows.after, columns.after};
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    auto forward = [&](dnnl::prop_kind kind) {
      return dnnl::convolution_forward::primitive_desc({kind, direct, wantedX, wantedW, wantedY, strides, dilates, before, after},
                                                       userScratch(), engine);
    };
    auto take = [&](const auto &chosen, const Desc &ofX, const Desc &ofW, const Desc &ofY, auto primitive) {
      made.x = made.asX = ofX, made.w = made.asW = ofW, made.y = made.asY = ofY;
      made.scratch = chosen.scratchpad_desc();
      made.primitive = primitive;
    };
    if (prefersMatrices()) {
      made.denseX = Desc({images, shape.inputs, rows.output, columns.output}, given, strideFrom(made.denseX));
      made.x = planes(images, shape.inputs, typeOf(ConvolutionResult::Input)), made.y = planes(images, outputs, typeOf(ConvolutionResult::Output));
      made.w = Desc(w, typeOf(ConvolutionResult::Filter), Tag::oihw);
      multiplyPlanes(made, images, outputs);
    } else if (call.result == ConvolutionResult::Output) {
      auto chosen = forward(dnnl::prop_kind::forward_training);
      take(chosen, chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc(), dnnl::convolution_forward(chosen));
    } else if (call.result == ConvolutionResult::Input) {
      dnnl::convolution_backward_data::primitive_desc chosen({direct, wantedX, wantedW, wantedY, strides, dilates, before, after},
                                                             userScratch(), engine, hint(x, y, w));
      take(chosen, chosen.diff_src_desc(), chosen.weights_desc(), chosen.diff_dst_desc(), dnnl::convolution_backward_data(chosen));
    } else {
      dnnl::convolution_backward_weights::primitive_desc chosen({direct, wantedX, wantedW, wantedY, strides, dilates, before, after},
                                                                userScratch(), engine, hint(x, y, w));
      take(chosen, chosen.src_desc(), chosen.diff_weights_desc(), chosen.diff_dst_desc(), dnnl::convolution_backward_weights(chosen));
    }
    weights.try_emplace(outputs, made.w);
    return shapes.emplace(std::pair(images, outputs), made).first->second;
  }

  /// Strides of the elements that windows begin at.
  Dims strideFrom(const Desc &images) const {
    const auto *strides = images.data.format_desc.blocking.strides;
    return {strides[0], strides[1], strides[2] * shape.windows[0].stride, strides[3] * shape.windows[1].stride};
  }

  /// What takes part of images; for sums over them, those of a channel one after the other.
  Desc planes(int64_t images, int64_t channels, dnnl::memory::data_type type) const {
    const int64_t row = shape.windows[1].output, plane = outputPlane();
    const bool isFilter = call.result == ConvolutionResult::Filter && images > 1;
    const int64_t channel = isFilter ? images * plane : plane, image = isFilter ? plane : channels * plane;
    return Desc({images, channels, shape.windows[0].output, row}, type, Dims{image, channel, row, 1});
  }

  /// Of every image y [outputs, plane] = w [outputs, inputs] x [inputs, plane], and what follows for its gradients; that of w is a product over
  /// the planes of all images.
  void multiplyPlanes(Shape &made, int64_t images, int64_t outputs) {
    const bool isFilter = call.result == ConvolutionResult::Filter;
    auto matrices = [&](int64_t channels, const Desc &of) {
      const Dims dims{isFilter ? 1 : images, channels, outputPlane() * (isFilter ? images : 1)};
      return Desc(dims, of.data_type(), Tag::abc);
    };
    made.asX = matrices(shape.inputs, made.x);
    made.asY = matrices(outputs, made.y);
    made.asW = made.w.reshape({1, outputs, shape.inputs});
    const std::vector<int> turned{0, 2, 1};
    Desc left = isFilter ? made.asY : made.asW, right = made.asX, result = isFilter ? made.asW : made.asY;
    if (call.result == ConvolutionResult::Input)
      left = made.asW.permute_axes(turned), right = made.asY, result = made.asX;
    if (isFilter)
      right = made.asX.permute_axes(turned);
    auto choose = [&](const dnnl::primitive_attr &attributes) {
      dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(left, right, result), attributes, engine);
      if (made.scratch.get_size() < chosen.scratchpad_desc().get_size())
        made.scratch = chosen.scratchpad_desc();
      return dnnl::matmul(chosen);
    };
    made.primitive = choose(userScratch());
    if (!isFilter)
      return;
    dnnl::post_ops sum;
    sum.append_sum();
    dnnl::primitive_attr adds = userScratch();
    adds.set_post_ops(sum);
    made.adding = choose(adds);
  }

  /// Arguments of a call of `primitive` on tensors there.
  void addArguments(Call &step, const Shape &s, const Place &x, const Place &w, const Place &y, Layout &layout) {
    std::array<int, 3> names{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    if (prefersMatrices() && call.result == ConvolutionResult::Output)
      names = {DNNL_ARG_WEIGHTS, DNNL_ARG_SRC, DNNL_ARG_DST};
    else if (prefersMatrices() && call.result == ConvolutionResult::Input)
      names = {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS};
    else if (prefersMatrices())
      names = {DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SRC};
    else if (call.result == ConvolutionResult::Input)
      names = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
    else if (call.result == ConvolutionResult::Filter)
      names = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
    addArgument(step, names[0], s.asX, x);
    addArgument(step, names[1], s.asW, w);
    addArgument(step, names[2], s.asY, y);
    addArgument(step, DNNL_ARG_SCRATCHPAD, s.scratch, layout.take(s.scratch.get_size()));
  }

  /// The forward convolution that a gradient belongs to, in any order.
  dnnl::convolution_forward::primitive_desc hint(const Dims &x, const Dims &y, const Dims &w) {
    const auto &[rows, columns] = shape.windows;
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, Desc(x, factors, Tag::any), Desc(w, factors, Tag::any),
             Desc(y, factors, Tag::any), Dims{rows.stride, columns.stride}, Dims{rows.dilation - 1, columns.dilation - 1},
             Dims{rows.before, columns.before}, Dims{rows.after, columns.after}},
            engine};
  }

  //===-- calls -----------------------------------------------------------===//

  const dnnl::memory &addPlace(Call &step, const Desc &desc, const Place &place) {
    return step.places.emplace_back(dnnl::memory(desc, engine, place.address ? place.address : DNNL_MEMORY_NONE), place).first;
  }

  void addArgument(Call &step, int argument, const Desc &desc, const Place &place) {
    step.arguments.push_back({argument, addPlace(step, desc, place).get()});
  }

  Call reorder(const dnnl::reorder::primitive_desc &chosen, const Desc &from, const Place &source, const Desc &to, const Place &target, Layout &layout) {
    Call step{dnnl::reorder(chosen)};
    addArgument(step, DNNL_ARG_FROM, from, source);
    addArgument(step, DNNL_ARG_TO, to, target);
    addArgument(step, DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc(), layout.take(chosen.scratchpad_desc().get_size()));
    return step;
  }

  /// By one call, or with a cast of ours in front of it or behind it.
  void addReorder(std::vector<Call> &steps, const Desc &from, const Place &source, const Desc &to, const Place &target, Layout &layout) {
    const dnnl::reorder::primitive_desc chosen(engine, from, engine, to, userScratch());
    const bool widens = from.data_type() == bf16 && to.data_type() == f32, narrows = from.data_type() == f32 && to.data_type() == bf16;
    const Desc &narrow = widens ? from : to, &other = widens ? to : from;
    const bool isPlain = narrow.data.format_desc.blocking.inner_nblks == 0;
    if ((!widens && !narrows) || !isPlain || castsWell(chosen)) {
      steps.push_back(reorder(chosen, from, source, to, target, layout));
      return;
    }
    Call cast;
    cast.cast.emplace(narrow);
    cast.widens = widens;
    const Desc wide = cast.cast->wide();
    const bool isEnough = wide == other;
    const Place place = isEnough ? (widens ? target : source) : layout.take(wide.get_size());
    addPlace(cast, from, widens ? source : place);
    addPlace(cast, to, widens ? place : target);
    if (widens)
      steps.push_back(std::move(cast));
    if (!isEnough && widens)
      steps.push_back(reorder({engine, wide, engine, to, userScratch()}, wide, place, to, target, layout));
    if (!isEnough && narrows)
      steps.push_back(reorder({engine, from, engine, wide, userScratch()}, from, source, wide, place, layout));
    if (narrows)
      steps.push_back(std::move(cast));
  }

  /// The tensor itself where the library takes the dense order, else scratch memory into which a call brings it.
  Place brought(std::vector<Call> &steps, const Desc &dense, const Place &source, const Desc &wanted, Layout &layout) {
    if (wanted == dense)
      return source;
    Place place = layout.take(wanted.get_size());
    addReorder(steps, dense, source, wanted, place, layout);
    return place;
  }

  void grow(const Layout &layout) { workerBytes = std::max(workerBytes, layout.bytes()); }

  /// Some rows or columns in memory take no part in the sums for x: nothing reaches them.
  bool leavesGaps() const {
    auto isPart = [&](size_t d) { return shape.x[d].held != shape.windows[d].input; };
    return isPart(0) || isPart(1) || (prefersMatrices() && skips());
  }

  static Call zerosIn(std::byte *address, int64_t bytes) {
    Call step;
    step.zeros = address;
    step.zeroBytes = static_cast<size_t>(bytes);
    return step;
  }

  /// Forward, or towards the input: images in, images out, weights in one order for all.
  void bindImages() {
    bool forward = call.result == ConvolutionResult::Output;
    Place filter = tensor(call.w);
    for (int64_t task = 0; task < taskCount; ++task) {
      std::vector<Call> steps;
      forBlocks(task, [&](int64_t first, int64_t images) {
        const Shape &s = shapeFor(images, shape.outputs);
        if (task == 0 && steps.empty()) {
          if (s.w != s.denseW) {
            filter = shared.take(s.w.get_size());
            addReorder(before, s.denseW, tensor(call.w), s.w, filter, shared);
          }
        }
        if (!forward && leavesGaps())
          steps.push_back(zerosIn(call.x + first * imageBytes(shape.x, shape.inputs), images * imageBytes(shape.x, shape.inputs)));
        Layout layout(Place::Area::Worker);
        const Desc &dense = forward ? s.denseX : s.denseY, &wanted = forward ? s.x : s.y;
        const Desc &denseResult = forward ? s.denseY : s.denseX, &result = forward ? s.y : s.x;
        Place source = brought(steps, dense, tensor(forward ? xFrom(first) : yFrom(first)), wanted, layout);
        Place target = tensor(forward ? yFrom(first) : xFrom(first)), computed = target;
        if (result != denseResult)
          computed = layout.take(result.get_size());
        Call step{s.primitive};
        addArguments(step, s, forward ? source : computed, filter, forward ? computed : source, layout);
        steps.push_back(std::move(step));
        if (result != denseResult)
          addReorder(steps, result, computed, denseResult, target, layout);
        grow(layout);
      });
      tasks.push_back(std::move(steps));
    }
  }

  /// Towards the weights: every task sums its images, then the sums of all tasks are added; or it has its own weights.
  void bindFilter() {
    partials = splitsOutputs ? 1 : taskCount;
    Place sum; // of the first task, and of all in the end
    const Shape *orders = nullptr;
    for (int64_t task = 0; task < taskCount; ++task) {
      const Range outputs = outputsOf(task);
      const Place weightsOfTask = tensor(call.w + outputs.begin * weightBytes());
      std::vector<Call> steps;
      Place own;
      bool isFirst = true;
      const Shape *chosen = nullptr; // all of a task have one order of weights
      Layout layout(Place::Area::Worker);
      forBlocks(task, [&](int64_t first, int64_t images) {
        const Shape &s = shapeFor(images, outputs.size());
        chosen = &s;
        if (isFirst)
          own = partials == 1 && s.w == s.denseW ? weightsOfTask : shared.take(s.w.get_size());
        layout = Layout(Place::Area::Worker);
        Place x = brought(steps, s.denseX, tensor(xFrom(first)), s.x, layout);
        Place y = brought(steps, s.denseY, tensor(yFrom(first, outputs.begin)), s.y, layout);
        const bool adds = static_cast<bool>(s.adding);
        Place sum = isFirst || adds ? own : layout.take(s.w.get_size());
        Call step{isFirst || !adds ? s.primitive : s.adding};
        addArguments(step, s, x, sum, y, layout);
        steps.push_back(std::move(step));
        partialCount = static_cast<int64_t>(s.w.get_size() / sizeof(float));
        if (!isFirst && !adds) {
          Call more;
          more.addTo = own, more.addFrom = sum, more.count = partialCount;
          steps.push_back(std::move(more));
        }
        isFirst = false;
        grow(layout);
      });
      layout = Layout(Place::Area::Worker);
      if (own.area == Place::Area::Shared && partials == 1)
        addReorder(steps, chosen->w, own, chosen->denseW, weightsOfTask, layout);
      grow(layout);
      tasks.push_back(std::move(steps));
      if (task == 0)
        sum = own, orders = chosen;
    }
    if (sum.area == Place::Area::Shared && partials > 1) // behind the sums of all tasks, which lie one after the other
      addReorder(after, orders->w, sum, orders->denseW, tensor(call.w), shared);
    partialStride = (partialCount * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64 / static_cast<int64_t>(sizeof(float));
  }

  /// Of one output channel.
  int64_t weightBytes() const { return shape.inputsPerGroup() * shape.windows[0].kernel * shape.windows[1].kernel * elementBytes; }

  /// The blocks of all tasks, which lie one after the other in the shared scratch memory, into the first.
  void sumPartials(int64_t task) const {
    auto *base = reinterpret_cast<float *>(sharedScratch);
    Range range = pieceOf(partialCount, task, sumTasks);
    for (int64_t partial = 1; partial < partials; ++partial)
      addTo(base + range.begin, base + partial * partialStride + range.begin, range.size());
  }

  static void addTo(float *sum, const float *term, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      sum[i] += term[i];
  }

  void execute(Call &step, int worker, size_t failure) {
    if (step.count != 0)
      return addTo(step.sum, step.term, step.count);
    if (step.zeroBytes != 0) {
      std::memset(step.zeros, 0, step.zeroBytes);
      return;
    }
    if (step.cast) {
      void *from = step.places[0].first.get_data_handle(), *to = step.places[1].first.get_data_handle();
      if (step.widens)
        step.cast->toWide(static_cast<const BFloat16 *>(from), static_cast<float *>(to));
      else
        step.cast->toNarrow(static_cast<const float *>(from), static_cast<BFloat16 *>(to));
      return;
    }
    dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), streams[worker].get(),
                                                  static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success)
      failures[failure] = status;
  }

  static constexpr int64_t sumTasks = 16;

  ConvolutionCall call;
  Convolution shape;
  WorkerPool &pool;
  dnnl::engine engine;
  const dnnl::memory::data_type given;   ///< elements in the plan
  const dnnl::memory::data_type factors; ///< elements that are multiplied
  const int64_t elementBytes;            ///< of those in the plan
  std::vector<dnnl::stream> streams;     ///< one per worker
  static constexpr int64_t leastOutputs = 64; ///< of a task
  static constexpr int64_t largePlane = 128;  ///< elements
  int64_t taskCount = 1;
  bool splitsOutputs = false;                           ///< tasks are output channels, not images
  std::map<std::pair<int64_t, int64_t>, Shape> shapes;  ///< by numbers of images and outputs; used while binding
  std::map<int64_t, Desc> weights;                      ///< their orders, by number of outputs
  std::vector<std::vector<Call>> tasks;
  std::vector<Call> before, after; ///< by the first worker alone
  Layout shared{Place::Area::Shared};
  std::byte *sharedScratch = nullptr;
  int64_t partials = 1, partialCount = 0, partialStride = 0; ///< weight gradients of tasks, in elements
  std::vector<dnnl_status_t> failures; ///< by task, then of `after` and `before`
  size_t workerBytes = 0;
};

} // namespace

Result<std::unique_ptr<ScratchOperation>> prepareLibraryConvolution(const ConvolutionCall &call, WorkerPool &pool) {
  try {
    return std::unique_ptr<ScratchOperation>(new LibraryConvolution(call, pool));
  } catch (const dnnl::error &error) {
    const auto &[rows, columns] = call.shape.windows;
    return Error{error.status == dnnl_out_of_memory ? ExitCode::NoResource : ExitCode::Internal,
                 fmt::format("oneDNN cannot convolve {} images of {}x{}x{} with {}x{} windows: {}", call.shape.images,
                             call.shape.inputs, rows.input, columns.input, rows.kernel, columns.kernel, error.what()),
                 ""};
  }
}

} // namespace msc::device::calls
