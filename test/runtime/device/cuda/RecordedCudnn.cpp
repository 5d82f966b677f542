// cuDNN for the recording driver: convolutions of two dimensions in three directions, by engines of which most may not be
// taken.
#include "runtime/device/cpu/calls/Elements.h"
#include "test/runtime/device/cuda/RecordedState.h"

#include <array>
#include <cstring>

namespace msc::test {
namespace {

using namespace device::cuda::cudnn;
using Sizes = std::array<int64_t, 4>;
using Pair = std::array<int64_t, 2>;

RecordingDriver::State *world = nullptr;

struct Value {
  Type type;
  int64_t count;
  std::vector<std::byte> bytes;
};

struct Item {
  Kind kind;
  bool isFinal = false;
  std::map<Attribute, Value> values;

  template <typename T> T get(Attribute attribute) const {
    T value = {};
    const std::vector<std::byte> &bytes = values.at(attribute).bytes;
    std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
    return value;
  }
  const Item &item(Attribute attribute) const;
  template <typename T> void put(Attribute attribute, Type type, T value) {
    Value &stored = values[attribute] = {type, 1, std::vector<std::byte>(sizeof(value))};
    std::memcpy(stored.bytes.data(), &value, sizeof(value));
  }
};

/// All that exist. A descriptor that is used has to.
std::map<Descriptor, std::unique_ptr<Item>> items;

Item &itemOf(Descriptor descriptor) {
  static Item wrong{};
  auto found = items.find(descriptor);
  if (found != items.end())
    return *found->second;
  world->violations.push_back("a descriptor of cuDNN is used that does not exist");
  return wrong;
}
const Item &Item::item(Attribute attribute) const { return itemOf(get<Descriptor>(attribute)); }

/// A stream is set for all that follows.
struct Opened {
  void *stream = nullptr;
};
Opened &openedOf(Handle handle) { return *reinterpret_cast<Opened *>(handle); }

struct Engine {
  std::vector<Note> notes;
  int64_t workspace = 0;
  bool takesAll = false; ///< planes that lie apart, and uneven padding
};
const std::vector<Engine> engines{{{Note::TensorCore}, 512},
                                  {{Note::Nondeterministic}, 0},
                                  {{}, int64_t{4} << 30},
                                  {{Note::Winograd}, 4096},
                                  {{Note::WinogradTile13x13}, 0},
                                  {{Note::DownConvertInputs}, 0},
                                  {{Note::ReducedPrecisionReduction}, 0},
                                  {{}, 0, true}};
const std::vector<int64_t> proposed{1, 0, 2, 3}, fallbacks{4, 5, 6, 7};

struct Needed {
  Attribute attribute;
  Type type;
  int64_t count = 1;
};
const std::map<Kind, std::vector<Needed>> required{
    {Kind::Tensor,
     {{Attribute::TensorDataType, Type::DataType},
      {Attribute::TensorSizes, Type::Int64, 4},
      {Attribute::TensorStrides, Type::Int64, 4},
      {Attribute::TensorNumber, Type::Int64},
      {Attribute::TensorAlignment, Type::Int64}}},
    {Kind::Convolution,
     {{Attribute::ConvolutionComputeType, Type::DataType},
      {Attribute::ConvolutionModeOf, Type::ConvolutionMode},
      {Attribute::ConvolutionDimensions, Type::Int64},
      {Attribute::ConvolutionDilations, Type::Int64, 2},
      {Attribute::ConvolutionStrides, Type::Int64, 2},
      {Attribute::ConvolutionPaddingBefore, Type::Int64, 2},
      {Attribute::ConvolutionPaddingAfter, Type::Int64, 2}}},
    {Kind::Forward,
     {{Attribute::ForwardAlpha, Type::Float},
      {Attribute::ForwardBeta, Type::Float},
      {Attribute::ForwardConvolution, Type::Descriptor},
      {Attribute::ForwardX, Type::Descriptor},
      {Attribute::ForwardW, Type::Descriptor},
      {Attribute::ForwardY, Type::Descriptor}}},
    {Kind::BackwardData,
     {{Attribute::BackwardDataAlpha, Type::Float},
      {Attribute::BackwardDataBeta, Type::Float},
      {Attribute::BackwardDataConvolution, Type::Descriptor},
      {Attribute::BackwardDataX, Type::Descriptor},
      {Attribute::BackwardDataW, Type::Descriptor},
      {Attribute::BackwardDataY, Type::Descriptor}}},
    {Kind::BackwardFilter,
     {{Attribute::BackwardFilterAlpha, Type::Float},
      {Attribute::BackwardFilterBeta, Type::Float},
      {Attribute::BackwardFilterConvolution, Type::Descriptor},
      {Attribute::BackwardFilterX, Type::Descriptor},
      {Attribute::BackwardFilterW, Type::Descriptor},
      {Attribute::BackwardFilterY, Type::Descriptor}}},
    {Kind::OperationGraph, {{Attribute::GraphHandle, Type::Handle}, {Attribute::GraphOperations, Type::Descriptor}}},
    {Kind::Heuristic, {{Attribute::HeuristicGraph, Type::Descriptor}, {Attribute::HeuristicModeOf, Type::HeuristicMode}}},
    {Kind::Engine, {{Attribute::EngineGraph, Type::Descriptor}, {Attribute::EngineNumber, Type::Int64}}},
    {Kind::EngineConfig, {{Attribute::ConfigEngine, Type::Descriptor}}},
    {Kind::ExecutionPlan, {{Attribute::PlanHandle, Type::Handle}, {Attribute::PlanConfig, Type::Descriptor}}},
    {Kind::VariantPack,
     {{Attribute::PackNumbers, Type::Int64, 3},
      {Attribute::PackPointers, Type::VoidPointer, 3},
      {Attribute::PackWorkspace, Type::VoidPointer}}}};

/// A tensor as it lies in memory.
struct Tensor {
  DataType type;
  Sizes sizes, strides;
  int64_t number, alignment;
  std::byte *data = nullptr;

  explicit Tensor(const Item &item)
      : type(item.get<DataType>(Attribute::TensorDataType)), sizes(item.get<Sizes>(Attribute::TensorSizes)),
        strides(item.get<Sizes>(Attribute::TensorStrides)), number(item.get<int64_t>(Attribute::TensorNumber)),
        alignment(item.get<int64_t>(Attribute::TensorAlignment)) {}

  int64_t at(int64_t n, int64_t c, int64_t row, int64_t column) const {
    return n * strides[0] + c * strides[1] + row * strides[2] + column * strides[3];
  }
  Access access(bool writes) const {
    auto address = reinterpret_cast<uint64_t>(data);
    auto count = static_cast<uint64_t>(at(sizes[0] - 1, sizes[1] - 1, sizes[2] - 1, sizes[3] - 1) + 1);
    return {address, address + count * (type == DataType::Float ? 4 : 2), writes};
  }
  /// Channels are neighbours.
  bool isTurned() const { return strides == Sizes{sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]}; }
  bool isDense() const { return strides == Sizes{sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}; }
};

/// The one operation of a graph.
struct Operation {
  Kind kind;
  Tensor x, w, y;
  Pair stride, dilation, before, after;
  bool isPlain; ///< sums in f32 of which nothing is scaled

  explicit Operation(const Item &graph) : Operation(graph.item(Attribute::GraphOperations), 0) {}
  /// The attributes of a direction follow each other: alpha, beta, convolution, and three tensors.
  Operation(const Item &item, int)
      : kind(item.kind), x(tensor(item, Attribute::ForwardX, Attribute::BackwardDataX, Attribute::BackwardFilterX)),
        w(tensor(item, Attribute::ForwardW, Attribute::BackwardDataW, Attribute::BackwardFilterW)),
        y(tensor(item, Attribute::ForwardY, Attribute::BackwardDataY, Attribute::BackwardFilterY)) {
    const Item &c = item.item(
        choose(kind, Attribute::ForwardConvolution, Attribute::BackwardDataConvolution, Attribute::BackwardFilterConvolution));
    stride = c.get<Pair>(Attribute::ConvolutionStrides), dilation = c.get<Pair>(Attribute::ConvolutionDilations);
    before = c.get<Pair>(Attribute::ConvolutionPaddingBefore), after = c.get<Pair>(Attribute::ConvolutionPaddingAfter);
    auto number = [&](Attribute f, Attribute d, Attribute b) { return item.get<float>(choose(kind, f, d, b)); };
    isPlain = c.get<DataType>(Attribute::ConvolutionComputeType) == DataType::Float &&
              c.get<ConvolutionMode>(Attribute::ConvolutionModeOf) == ConvolutionMode::CrossCorrelation &&
              c.get<int64_t>(Attribute::ConvolutionDimensions) == 2 &&
              number(Attribute::ForwardAlpha, Attribute::BackwardDataAlpha, Attribute::BackwardFilterAlpha) == 1 &&
              number(Attribute::ForwardBeta, Attribute::BackwardDataBeta, Attribute::BackwardFilterBeta) == 0;
  }

  static Attribute choose(Kind kind, Attribute forward, Attribute data, Attribute filter) {
    return kind == Kind::Forward ? forward : kind == Kind::BackwardData ? data : filter;
  }
  static Tensor tensor(const Item &item, Attribute forward, Attribute data, Attribute filter) {
    return Tensor(item.item(choose(item.kind, forward, data, filter)));
  }
  const Tensor &result() const { return kind == Kind::Forward ? y : kind == Kind::BackwardData ? x : w; }

  bool fits() const {
    bool fit = isPlain && x.sizes[0] == y.sizes[0] && y.sizes[1] == w.sizes[0] && x.sizes[1] % w.sizes[1] == 0 &&
               w.sizes[0] % (x.sizes[1] / w.sizes[1]) == 0 && (w.isDense() || w.isTurned()) && x.type == w.type && x.type == y.type;
    for (size_t d : {0, 1}) {
      int64_t kernel = (w.sizes[2 + d] - 1) * dilation[d] + 1, padded = x.sizes[2 + d] + before[d] + after[d];
      fit = fit && before[d] >= 0 && after[d] >= 0 && padded >= kernel && y.sizes[2 + d] == (padded - kernel) / stride[d] + 1;
    }
    return fit;
  }
  bool isUsual() const {
    bool isTurned = x.isTurned() && w.isTurned() && y.isTurned() && x.sizes[1] % 8 == 0 && y.sizes[1] % 8 == 0;
    return (isTurned || (x.isDense() && w.isDense() && y.isDense())) && before == after;
  }

  template <typename Element> void compute() const {
    const Tensor &target = result();
    std::vector<double> sums(static_cast<size_t>(target.sizes[0] * target.sizes[1] * target.sizes[2] * target.sizes[3]));
    auto number = [](const Tensor &tensor, int64_t place) {
      return static_cast<double>(static_cast<float>(reinterpret_cast<const Element *>(tensor.data)[place]));
    };
    auto index = [&](const Tensor &t, int64_t n, int64_t c, int64_t i, int64_t j) {
      return static_cast<size_t>(((n * t.sizes[1] + c) * t.sizes[2] + i) * t.sizes[3] + j);
    };
    int64_t outputs = w.sizes[0] / (x.sizes[1] / w.sizes[1]);
    for (int64_t n = 0; n < y.sizes[0]; ++n)
      for (int64_t o = 0; o < y.sizes[1]; ++o)
        for (int64_t i = 0; i < y.sizes[2]; ++i)
          for (int64_t j = 0; j < y.sizes[3]; ++j)
            for (int64_t k = 0; k < w.sizes[1]; ++k)
              for (int64_t s = 0; s < w.sizes[2]; ++s)
                for (int64_t t = 0; t < w.sizes[3]; ++t) {
                  int64_t c = o / outputs * w.sizes[1] + k;
                  int64_t row = i * stride[0] - before[0] + s * dilation[0],
                          column = j * stride[1] - before[1] + t * dilation[1];
                  if (row < 0 || row >= x.sizes[2] || column < 0 || column >= x.sizes[3])
                    continue;
                  if (kind == Kind::Forward)
                    sums[index(y, n, o, i, j)] += number(x, x.at(n, c, row, column)) * number(w, w.at(o, k, s, t));
                  else if (kind == Kind::BackwardData)
                    sums[index(x, n, c, row, column)] += number(y, y.at(n, o, i, j)) * number(w, w.at(o, k, s, t));
                  else
                    sums[index(w, o, k, s, t)] += number(y, y.at(n, o, i, j)) * number(x, x.at(n, c, row, column));
                }
    for (int64_t n = 0; n < target.sizes[0]; ++n)
      for (int64_t c = 0; c < target.sizes[1]; ++c)
        for (int64_t i = 0; i < target.sizes[2]; ++i)
          for (int64_t j = 0; j < target.sizes[3]; ++j)
            reinterpret_cast<Element *>(target.data)[target.at(n, c, i, j)] =
                static_cast<Element>(static_cast<float>(sums[index(target, n, c, i, j)]));
  }
};

#define CUDNN_ENTER(name)                                                                                                      \
  std::lock_guard lock(world->mutex);                                                                                          \
  if (world->enter(name) != CUDA_SUCCESS)                                                                                      \
    return Code::ExecutionFailed;

Code create(Handle *handle) {
  CUDNN_ENTER("cudnnCreate")
  world->notWhileCapturing("cudnnCreate");
  ++world->live["cuDNN handle"];
  *handle = reinterpret_cast<Handle>(new Opened);
  return Code::Success;
}
Code destroy(Handle handle) {
  std::lock_guard lock(world->mutex);
  --world->live["cuDNN handle"];
  delete &openedOf(handle);
  return Code::Success;
}
Code setStream(Handle handle, void *stream) {
  CUDNN_ENTER("cudnnSetStream")
  openedOf(handle).stream = stream;
  return Code::Success;
}
Code createDescriptor(Kind kind, Descriptor *descriptor) {
  CUDNN_ENTER("cudnnBackendCreateDescriptor")
  auto made = std::make_unique<Item>(Item{kind, false, {}});
  *descriptor = made.get();
  items[*descriptor] = std::move(made);
  ++world->live["cuDNN descriptor"];
  return Code::Success;
}
Code destroyDescriptor(Descriptor descriptor) {
  std::lock_guard lock(world->mutex);
  --world->live["cuDNN descriptor"];
  items.erase(descriptor);
  return Code::Success;
}

Code setAttribute(Descriptor descriptor, Attribute attribute, Type type, int64_t count, const void *values) {
  CUDNN_ENTER("cudnnBackendSetAttribute")
  Item &item = itemOf(descriptor);
  size_t bytes = type == Type::Int64 || type == Type::Handle || type == Type::VoidPointer || type == Type::Descriptor ? 8 : 4;
  Value value{type, count, std::vector<std::byte>(bytes * static_cast<size_t>(count))};
  std::memcpy(value.bytes.data(), values, value.bytes.size());
  if (item.isFinal || count < 1)
    return Code::BadParameter;
  if (type == Type::Descriptor && !itemOf(*static_cast<const Descriptor *>(values)).isFinal)
    return Code::BadParameter;
  item.values[attribute] = std::move(value);
  return Code::Success;
}

const Item &graphOf(const Item &plan) {
  return plan.item(Attribute::PlanConfig).item(Attribute::ConfigEngine).item(Attribute::EngineGraph);
}
int64_t engineOf(const Item &plan) {
  return plan.item(Attribute::PlanConfig).item(Attribute::ConfigEngine).get<int64_t>(Attribute::EngineNumber);
}

Code finalize(Descriptor descriptor) {
  CUDNN_ENTER("cudnnBackendFinalize")
  Item &item = itemOf(descriptor);
  for (const Needed &needed : required.at(item.kind)) {
    auto found = item.values.find(needed.attribute);
    if (found == item.values.end() || found->second.type != needed.type || found->second.count != needed.count) {
      world->violations.push_back(
          fmt::format("attribute {} of a descriptor of cuDNN is not what it has to be", static_cast<int>(needed.attribute)));
      return Code::BadParameter;
    }
  }
  if (item.kind == Kind::OperationGraph && !Operation(item).fits()) {
    world->violations.push_back("sizes of a convolution of cuDNN do not fit");
    return Code::BadParameter;
  }
  if (item.kind == Kind::ExecutionPlan) {
    const Engine &engine = engines[static_cast<size_t>(engineOf(item))];
    if (engine.takesAll ? !world->owner.cudnnTakesAll : !Operation(graphOf(item)).isUsual())
      return Code::NotSupported;
  }
  item.isFinal = true;
  return Code::Success;
}

Code getResults(const Item &heuristic, int64_t wanted, int64_t *count, void *values) {
  const std::vector<int64_t> &found =
      heuristic.get<HeuristicMode>(Attribute::HeuristicModeOf) == HeuristicMode::A ? proposed : fallbacks;
  *count = world->owner.cudnnProposes ? static_cast<int64_t>(found.size()) : 0;
  for (int64_t i = 0; i < std::min(wanted, *count); ++i) {
    Item &config = itemOf(static_cast<Descriptor *>(values)[i]);
    config.put(Attribute::EngineNumber, Type::Int64, found[static_cast<size_t>(i)]);
    config.put(Attribute::EngineGraph, Type::Descriptor, heuristic.get<Descriptor>(Attribute::HeuristicGraph));
    config.put(Attribute::ConfigEngine, Type::Descriptor, static_cast<Descriptor>(&config)); // is both
    config.isFinal = true;
  }
  return Code::Success;
}

Code getAttribute(Descriptor descriptor, Attribute attribute, Type, int64_t wanted, int64_t *count, void *values) {
  CUDNN_ENTER("cudnnBackendGetAttribute")
  Item &item = itemOf(descriptor);
  if (!item.isFinal)
    return Code::BadParameter;
  *count = 1;
  switch (attribute) {
  case Attribute::HeuristicResults: return getResults(item, wanted, count, values);
  case Attribute::GraphEngines: *static_cast<int64_t *>(values) = static_cast<int64_t>(engines.size()); break;
  case Attribute::PlanWorkspaceBytes:
    *static_cast<int64_t *>(values) = engines[static_cast<size_t>(engineOf(item))].workspace;
    break;
  case Attribute::ConfigEngine: {
    const Item &engine = item.item(Attribute::ConfigEngine);
    Item &target = itemOf(*static_cast<Descriptor *>(values));
    target.values = engine.values;
    target.isFinal = true;
    break;
  }
  case Attribute::EngineNotes: {
    const std::vector<Note> &notes = engines[static_cast<size_t>(item.get<int64_t>(Attribute::EngineNumber))].notes;
    *count = static_cast<int64_t>(notes.size());
    std::copy(notes.begin(), notes.end(), static_cast<Note *>(values));
    break;
  }
  default: return Code::NotSupported;
  }
  return Code::Success;
}

Code execute(Handle handle, Descriptor descriptor, Descriptor pack) {
  CUDNN_ENTER("cudnnBackendExecute")
  const Item &plan = itemOf(descriptor), &bound = itemOf(pack);
  if (!plan.isFinal || !bound.isFinal)
    return Code::BadParameter;
  auto numbers = bound.get<std::array<int64_t, 3>>(Attribute::PackNumbers);
  auto pointers = bound.get<std::array<std::byte *, 3>>(Attribute::PackPointers);
  Operation operation(graphOf(plan));
  for (Tensor *tensor : {&operation.x, &operation.w, &operation.y}) {
    auto place = std::find(numbers.begin(), numbers.end(), tensor->number);
    if (place == numbers.end())
      return Code::BadParameter;
    tensor->data = pointers[static_cast<size_t>(place - numbers.begin())];
    if (reinterpret_cast<uint64_t>(tensor->data) % static_cast<uint64_t>(tensor->alignment) != 0)
      world->violations.push_back("a tensor of cuDNN is aligned to less than was said");
  }
  auto workspace = bound.get<uint64_t>(Attribute::PackWorkspace);
  auto bytes = static_cast<uint64_t>(engines[static_cast<size_t>(engineOf(plan))].workspace);
  auto writes = [&](const Tensor &tensor) { return &tensor == &operation.result(); };
  std::vector<Access> accesses{{workspace, workspace + bytes, true}};
  for (const Tensor *tensor : {&operation.x, &operation.w, &operation.y})
    accesses.push_back(tensor->access(writes(*tensor)));
  ++world->callCounts[fmt::format("convolutions by engine {}", engineOf(plan))];
  world->enqueue(static_cast<CUstream>(openedOf(handle).stream), {"cudnnBackendExecute", accesses, [=] {
                                                                    ++world->executed;
                                                                    if (operation.x.type == DataType::Float)
                                                                      operation.compute<float>();
                                                                    else if (operation.x.type == DataType::Half)
                                                                      operation.compute<_Float16>();
                                                                    else
                                                                      operation.compute<device::calls::BFloat16>();
                                                                    return CUDA_SUCCESS;
                                                                  }});
  return Code::Success;
}

size_t version() { return 91300; }
const char *errorText(Code code) { return code == Code::NotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS"; }

} // namespace

void recordCudnnIn(RecordingDriver::State *state) {
  world = state;
  items.clear();
}

void fillCudnnTable(Table &t) {
  t.cudnnCreate = create, t.cudnnDestroy = destroy, t.cudnnSetStream = setStream;
  t.cudnnBackendCreateDescriptor = createDescriptor, t.cudnnBackendDestroyDescriptor = destroyDescriptor;
  t.cudnnBackendSetAttribute = setAttribute, t.cudnnBackendGetAttribute = getAttribute;
  t.cudnnBackendFinalize = finalize, t.cudnnBackendExecute = execute;
  t.cudnnGetVersion = version, t.cudnnGetErrorString = errorText;
}

} // namespace msc::test
