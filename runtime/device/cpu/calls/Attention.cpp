// Attention: tiles of queries (and, going back, of keys) are pieces of work of their own, and no sum crosses two of them.
#include "runtime/plan/calls/Attention.h"

#include "runtime/device/cpu/calls/AttentionTiles.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <vector>

namespace msc::device::calls {
namespace {

template <typename T> const AttentionTiles<T> &tilesOf() {
  bool wide = __builtin_cpu_supports("x86-64-v4");
  if constexpr (std::is_same_v<T, double>)
    return wide ? v4::doubleTiles() : v3::doubleTiles();
  else
    return wide ? v4::floatTiles() : v3::floatTiles();
}

/// The tensors of a call on one rank.
template <typename T> class Heads {
public:
  explicit Heads(const CallSpec &spec) : spec(spec) {
    std::string why;
    shape = *attentionOf(spec.attributes, spec.operands[0], spec.operands[1], why);
  }

  AttentionHead<T> head(int64_t batch, int64_t h) const {
    AttentionHead<T> made;
    int64_t shared = h * shape.keyHeads / shape.heads;
    made.queryStride = shape.heads * shape.size, made.keyStride = shape.keyHeads * shape.size;
    made.queries = shape.queries, made.keys = shape.keys, made.size = shape.size;
    made.firstQuery = shape.firstQuery, made.causal = shape.causal, made.scale = static_cast<T>(shape.scale);
    int64_t query = batch * shape.queries * made.queryStride + h * shape.size;
    int64_t key = batch * shape.keys * made.keyStride + shared * shape.size, statistics = (batch * shape.heads + h) * shape.queries;
    bool forward = spec.results.size() == 2;
    made.query = at(spec.operands[0]) + query;
    made.key = at(spec.operands[1]) + key, made.value = at(spec.operands[2]) + key;
    made.output = at(forward ? spec.results[0] : spec.operands[3]) + query;
    made.logsumexp = at(forward ? spec.results[1] : spec.operands[4]) + statistics;
    if (forward)
      return made;
    made.dout = at(spec.operands[5]) + query;
    made.dquery = at(spec.results[0]) + query;
    made.dkey = at(spec.results[1]) + key, made.dvalue = at(spec.results[2]) + key;
    return made;
  }

  Attention shape;

private:
  static T *at(const CallTensor &tensor) { return reinterpret_cast<T *>(tensor.data); }
  CallSpec spec;
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

template <typename T> Result<std::unique_ptr<ScratchOperation>> forward(const CallSpec &spec, WorkerPool &pool) {
  Heads<T> heads(spec);
  const Attention &shape = heads.shape;
  const AttentionTiles<T> *tiles = &tilesOf<T>();
  int64_t tasks = std::min(spec.tasks, shape.batch * shape.heads * tilesIn(shape.queries));
  auto body = overTiles(shape.batch, shape.heads, shape.queries, tasks,
                        [=](int64_t batch, int64_t h, int64_t first, int64_t rows, std::byte *scratch) {
                          tiles->forward(heads.head(batch, h), first, rows, reinterpret_cast<T *>(scratch));
                        });
  ScratchSize size{.worker = static_cast<size_t>(attentionScratch(shape.size)) * sizeof(T)};
  return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, size));
}

template <typename T> Result<std::unique_ptr<ScratchOperation>> backward(const CallSpec &spec, WorkerPool &pool) {
  Heads<T> heads(spec);
  const Attention shape = heads.shape;
  const AttentionTiles<T> *tiles = &tilesOf<T>();
  int64_t group = shape.keyHeads == 0 ? 0 : shape.heads / shape.keyHeads;
  int64_t queryTasks = std::min(spec.tasks, shape.batch * shape.heads * tilesIn(shape.queries));
  int64_t keyTasks = std::min(spec.tasks, shape.batch * shape.keyHeads * tilesIn(shape.keys));
  auto toQueries = overTiles(shape.batch, shape.heads, shape.queries, queryTasks,
                             [=](int64_t batch, int64_t h, int64_t first, int64_t rows, std::byte *scratch) {
                               tiles->queries(heads.head(batch, h), first, rows, reinterpret_cast<T *>(scratch));
                             });
  std::vector<AttentionHead<T>> all; // those that share keys are neighbours
  for (int64_t i = 0; i < shape.batch * shape.heads; ++i)
    all.push_back(heads.head(i / shape.heads, i % shape.heads));
  auto toKeys = overTiles(shape.batch, shape.keyHeads, shape.keys, keyTasks,
                          [=](int64_t batch, int64_t g, int64_t first, int64_t rows, std::byte *scratch) {
                            const AttentionHead<T> *sharing = all.data() + (batch * shape.keyHeads + g) * group;
                            tiles->keys(sharing, group, first, rows, reinterpret_cast<T *>(scratch));
                          });
  ScratchSize size{.worker = static_cast<size_t>(attentionScratch(shape.size)) * sizeof(T)};
  auto operation = std::make_unique<TaskOperation>(pool, queryTasks, toQueries, size);
  operation->then(keyTasks, toKeys);
  return std::unique_ptr<ScratchOperation>(std::move(operation));
}

} // namespace

void addAttention(Table &table) {
  table["ScaledDotProductAttention"] = [](const CallSpec &spec, WorkerPool &pool) {
    return spec.results[0].type == plan::F64 ? forward<double>(spec, pool) : forward<float>(spec, pool);
  };
  table["ScaledDotProductAttentionGrad"] = [](const CallSpec &spec, WorkerPool &pool) {
    return spec.results[0].type == plan::F64 ? backward<double>(spec, pool) : backward<float>(spec, pool);
  };
}

} // namespace msc::device::calls
