// Attention: tiles of queries (and, going back, of keys) are pieces of work of their own, and no sum crosses two of them.
#include "runtime/plan/calls/Attention.h"

#include "runtime/device/cpu/NarrowProducts.h"
#include "runtime/device/cpu/calls/AttentionTiles.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <vector>

namespace msc::device::calls {
namespace {

/// What is computed in.
template <typename Element> using Wide = std::conditional_t<std::is_same_v<Element, double>, double, float>;
template <typename Element> using HeadOf = AttentionHead<Wide<Element>, Element>;
template <typename Element> using TilesOf = AttentionTiles<Wide<Element>, Element>;

template <typename Element> const TilesOf<Element> &tilesOf() {
  bool wide = __builtin_cpu_supports("x86-64-v4");
  if constexpr (std::is_same_v<Element, double>)
    return wide ? v4::doubleTiles() : v3::doubleTiles();
  else if constexpr (std::is_same_v<Element, float>)
    return wide ? v4::floatTiles() : v3::floatTiles();
  else
    return wide && multipliesBFloat16() ? amx::narrowTiles() : wide ? v4::narrowTiles() : v3::narrowTiles();
}

/// The tensors of a call on one rank.
template <typename Element> class Heads {
public:
  using T = Wide<Element>;
  explicit Heads(const CallSpec &spec) : spec(spec) {
    std::string why;
    shape = *attentionOf(spec.attributes, spec.operands[0], spec.operands[1], why);
    size_t own = spec.results.size() == 2 ? 3 : 6;
    if (spec.operands.size() > own) {
      mask = spec.operands[own];
      steps = *attentionMaskOf(shape, spec.operands[0], spec.operands[1], *mask);
    }
  }

  HeadOf<Element> head(int64_t batch, int64_t h) const {
    HeadOf<Element> made;
    int64_t shared = h * shape.keyHeads / shape.heads;
    made.queryStride = shape.heads * shape.size, made.keyStride = shape.keyHeads * shape.size;
    made.queries = shape.queries, made.keys = shape.keys, made.size = shape.size;
    made.firstQuery = shape.firstQuery, made.causal = shape.causal, made.scale = static_cast<T>(shape.scale);
    int64_t query = batch * shape.queries * made.queryStride + h * shape.size;
    int64_t key = batch * shape.keys * made.keyStride + shared * shape.size, statistics = (batch * shape.heads + h) * shape.queries;
    bool forward = spec.results.size() == 2;
    if (mask)
      setMask(made, steps.batch * batch + steps.head * h);
    made.query = at(spec.operands[0]) + query;
    made.key = at(spec.operands[1]) + key, made.value = at(spec.operands[2]) + key;
    made.output = at(forward ? spec.results[0] : spec.operands[3]) + query;
    made.logsumexp = numbersOf(forward ? spec.results[1] : spec.operands[4]) + statistics;
    if (forward)
      return made;
    made.dout = at(spec.operands[5]) + query;
    if (spec.results.size() == 1)
      return made;
    made.dquery = at(spec.results[0]) + query;
    made.dkey = at(spec.results[1]) + key, made.dvalue = at(spec.results[2]) + key;
    return made;
  }

  Attention shape;

private:
  static Element *at(const CallTensor &tensor) { return reinterpret_cast<Element *>(tensor.data); }
  static T *numbersOf(const CallTensor &tensor) { return reinterpret_cast<T *>(tensor.data); }

  void setMask(HeadOf<Element> &head, int64_t first) const {
    if (mask->type == plan::BOOL)
      head.attended = reinterpret_cast<const unsigned char *>(mask->data) + first;
    else
      head.bias = numbersOf(*mask) + first;
    head.maskQueryStep = steps.query, head.maskKeyStep = steps.key;
  }

  CallSpec spec;
  std::optional<CallTensor> mask;
  AttentionMask steps;
};

int64_t tilesIn(int64_t rows) { return (rows + kAttentionTile - 1) / kAttentionTile; }

/// A task: some tiles, counted over batches, heads and rows. `work` gets batch, head, first row, number of rows.
template <typename Work> TaskOperation::Body overTiles(int64_t batches, int64_t heads, int64_t rows, int64_t tasks, Work work) {
  int64_t tiles = tilesIn(rows), total = batches * heads * tiles;
  return [=](int64_t task, std::byte *scratch, std::byte *) {
    Range range = pieceOf(total, task, tasks);
    for (int64_t i = range.begin; i < range.end; ++i) {
      int64_t first = i % tiles * kAttentionTile;
      work(i / tiles / heads, i / tiles % heads, first, std::min(kAttentionTile, rows - first), scratch);
    }
  };
}

template <typename Element> Result<std::unique_ptr<ScratchOperation>> forward(const CallSpec &spec, WorkerPool &pool) {
  using T = Wide<Element>;
  Heads<Element> heads(spec);
  const Attention &shape = heads.shape;
  const TilesOf<Element> *tiles = &tilesOf<Element>();
  int64_t tasks = std::min(spec.tasks, shape.batch * shape.heads * tilesIn(shape.queries));
  auto body = overTiles(shape.batch, shape.heads, shape.queries, tasks,
                        [=](int64_t batch, int64_t h, int64_t first, int64_t rows, std::byte *scratch) {
                          tiles->forward(heads.head(batch, h), first, rows, reinterpret_cast<T *>(scratch));
                        });
  ScratchSize size{.worker = static_cast<size_t>(attentionScratch(shape.size)) * sizeof(T)};
  return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, size));
}

template <typename Element> Result<std::unique_ptr<ScratchOperation>> backward(const CallSpec &spec, WorkerPool &pool) {
  using T = Wide<Element>;
  Heads<Element> heads(spec);
  const Attention shape = heads.shape;
  const TilesOf<Element> *tiles = &tilesOf<Element>();
  int64_t group = shape.keyHeads == 0 ? 0 : shape.heads / shape.keyHeads;
  int64_t queryTasks = std::min(spec.tasks, shape.batch * shape.heads * tilesIn(shape.queries));
  int64_t keyTasks = std::min(spec.tasks, shape.batch * shape.keyHeads * tilesIn(shape.keys));
  auto toQueries = overTiles(shape.batch, shape.heads, shape.queries, queryTasks,
                             [=](int64_t batch, int64_t h, int64_t first, int64_t rows, std::byte *scratch) {
                               tiles->queries(heads.head(batch, h), first, rows, reinterpret_cast<T *>(scratch));
                             });
  std::vector<HeadOf<Element>> all; // those that share keys are neighbours
  for (int64_t i = 0; i < shape.batch * shape.heads; ++i)
    all.push_back(heads.head(i / shape.heads, i % shape.heads));
  auto toKeys = overTiles(shape.batch, shape.keyHeads, shape.keys, keyTasks,
                          [=](int64_t batch, int64_t g, int64_t first, int64_t rows, std::byte *scratch) {
                            const HeadOf<Element> *sharing = all.data() + (batch * shape.keyHeads + g) * group;
                            tiles->keys(sharing, group, first, rows, reinterpret_cast<T *>(scratch));
                          });
  ScratchSize size{.worker = static_cast<size_t>(attentionScratch(shape.size)) * sizeof(T)};
  auto operation = std::make_unique<TaskOperation>(pool, queryTasks, toQueries, size);
  operation->then(keyTasks, toKeys);
  return std::unique_ptr<ScratchOperation>(std::move(operation));
}

/// The gradient of the mask: a task owns some heads of a batch, or of all batches where the mask repeats along them, so that
/// no element gets terms from two tasks.
template <typename Element> Result<std::unique_ptr<ScratchOperation>> maskBackward(const CallSpec &spec, WorkerPool &pool) {
  using T = Wide<Element>;
  auto heads = std::make_shared<Heads<Element>>(spec);
  const Attention shape = heads->shape;
  const TilesOf<Element> *tiles = &tilesOf<Element>();
  const CallTensor &result = spec.results[0];
  int64_t batches = result.box[0].size(), rows = result.box[2].size();
  bool sumsBatch = result.shape[0] == 1, sumsQueries = result.shape[2] == 1;
  int64_t tasks = std::min(spec.tasks, batches * shape.heads);
  auto body = [=, data = reinterpret_cast<T *>(result.data)](int64_t task, std::byte *scratch, std::byte *) {
    Range range = pieceOf(batches * shape.heads, task, tasks);
    for (int64_t i = range.begin; i < range.end; ++i) {
      T *own = data + i * rows * shape.keys;
      std::fill_n(own, rows * shape.keys, T(0));
      int64_t start = sumsBatch ? 0 : i / shape.heads, end = sumsBatch ? shape.batch : start + 1;
      for (int64_t batch = start; batch < end; ++batch) {
        HeadOf<Element> head = heads->head(batch, i % shape.heads);
        head.dmask = own, head.dmaskQueryStep = sumsQueries ? 0 : shape.keys;
        for (int64_t first = 0; first < shape.queries; first += kAttentionTile)
          tiles->mask(head, first, std::min(kAttentionTile, shape.queries - first), reinterpret_cast<T *>(scratch));
      }
    }
  };
  ScratchSize size{.worker = static_cast<size_t>(attentionScratch(shape.size)) * sizeof(T)};
  return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, size));
}

/// Tensors of f16, and gradients of masks beside narrow tensors, are for GPUs alone.
template <Prepare inF32, Prepare inF64, Prepare inBF16> Result<std::unique_ptr<ScratchOperation>> prepare(const CallSpec &spec, WorkerPool &pool) {
  switch (spec.operands[0].type) {
  case plan::F32: return inF32(spec, pool);
  case plan::F64: return inF64(spec, pool);
  case plan::BF16:
    if constexpr (inBF16 != nullptr)
      return inBF16(spec, pool);
    [[fallthrough]];
  default:
    return Error{ExitCode::NoResource, fmt::format("the device {} has no kernel '{}' for {}", "cpu", spec.kernel, dataTypeName(spec.operands[0].type)),
                 "compile the network again with --device-target auto"};
  }
}

} // namespace

void addAttention(Table &table) {
  table["ScaledDotProductAttention"] = prepare<forward<float>, forward<double>, forward<NarrowElement>>;
  table["ScaledDotProductAttentionGrad"] = prepare<backward<float>, backward<double>, backward<NarrowElement>>;
  table["ScaledDotProductAttentionMaskGrad"] = prepare<maskBackward<float>, maskBackward<double>, nullptr>;
}

} // namespace msc::device::calls
