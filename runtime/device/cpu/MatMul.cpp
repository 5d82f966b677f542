#include "runtime/device/cpu/MatMul.h"

#include "runtime/device/JoinBatches.h"
#include "runtime/device/cpu/Casts.h"
#include "runtime/device/cpu/NarrowProducts.h"
#include "runtime/device/cpu/calls/Elements.h"

#include <algorithm>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace msc::device {
namespace {

using calls::BFloat16;

constexpr int64_t wideBytes = sizeof(float);

/// Not by oneDNN, whose ReLU makes a zero of NaN.
float relu(float element) { return 0.0f > element ? 0.0f : element; }

/// `stride`: elements from one row to the next.
template <typename Element> void applyReLU(Element *elements, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row)
    for (Element *element = elements + row * stride; element < elements + row * stride + columns; ++element)
      *element = Element(relu(static_cast<float>(*element)));
}

/// Sums of nothing: every row is the epilogue of zero.
class EmptyMatMul final : public ScratchOperation {
public:
  explicit EmptyMatMul(const MatMulSpec &spec) : spec(spec) {}

  Status run() override {
    spec.type == plan::BF16 ? fill<BFloat16>() : fill<float>();
    return {};
  }
  ScratchSize scratchSize() const override { return {}; }
  void setScratch(const Scratch &) override {}

private:
  MatMulSpec spec;

  template <typename Element> void fill() const {
    const auto *bias = reinterpret_cast<const Element *>(spec.bias);
    for (const MatMulSpec::Batch &batch : spec.batches) {
      Element *result = reinterpret_cast<Element *>(spec.result) + batch.result;
      for (int64_t i = 0; i < spec.rows * spec.columns; ++i)
        result[i] = bias ? bias[i % spec.columns] : Element(0.0f);
      if (spec.relu)
        applyReLU(result, spec.rows, spec.columns, spec.columns);
    }
  }
};

/// The library reads a right operand by columns of some 64 elements. Where its rows lie far apart, every one of them is in another page,
/// at worst all in the same places of the cache: products of 256 x 768 x 3072 reach 66 GFLOP/s so, and 210 with the operand in the order
/// that the library wants. Bringing it there takes as long as some 40 rows of the product; it is done once for all tasks.
bool isWorthPacking(const MatMulSpec &spec, const Range &columns) {
  constexpr int64_t pageBytes = 4096, mostBytes = 64 << 20;
  const int64_t rowBytes = spec.columns * wideBytes;
  if (spec.depth * columns.size() * wideBytes > mostBytes || columns.size() < 64)
    return false;
  const int64_t rows = spec.rows * static_cast<int64_t>(spec.batches.size());
  if (spec.transposeRight)
    return rows >= 1024;
  return rows >= (rowBytes % pageBytes == 0 ? 64 : 256);
}

bool isRightShared(const MatMulSpec &spec) {
  return std::ranges::all_of(spec.batches, [&](const MatMulSpec::Batch &batch) { return batch.right == spec.batches.front().right; });
}

bool casts(const MatMulSpec &spec) { return spec.operands == plan::BF16 && !multipliesBFloat16(); }

/// Some columns of all products. Those of bf16 add in f32: by the library's kernels for them where these are fast, else on operands that were
/// cast to f32, which gives the same products (those of two bf16 are exact in f32) and sums in another order.
class LibraryMatMul final : public ScratchOperation {
public:
  /// Throws dnnl::error.
  LibraryMatMul(const MatMulSpec &spec, Range columns, WorkerPool &pool)
      : spec(spec), columns(columns), pool(pool), engine(dnnl::engine::kind::cpu, 0), widens(casts(spec)),
        isNarrow(spec.operands == plan::BF16 && !widens), isShared(isRightShared(spec)), packs(isShared && !isNarrow && isWorthPacking(spec, columns)) {
    for (int i = 0; i < pool.size(); ++i)
      streams.emplace_back(engine);
    if (widens && isShared && !packs)
      wideRight = reserve(sharedBytes, spec.depth * columns.size());
    for (const std::vector<RowBlock> &blocks : splitRows(spec.batches.size(), spec.rows, spec.tasks)) {
      int worker = static_cast<int>(tasks.size()) % pool.size();
      tasks.emplace_back();
      for (const RowBlock &block : blocks)
        for (const RowBlock &part : inParts(block))
          tasks.back().push_back(bind(part, worker));
    }
    failures.assign(tasks.size(), dnnl_success);
  }

  Status run() override {
    if (wideRight)
      pool.run(
          static_cast<int64_t>(tasks.size()), [](void *self, int64_t task, int) { static_cast<LibraryMatMul *>(self)->widenRight(task); }, this);
    pool.run(
        static_cast<int64_t>(packed.size()),
        [](void *self, int64_t task, int worker) { static_cast<LibraryMatMul *>(self)->pack(task, worker); }, this);
    pool.run(
        static_cast<int64_t>(tasks.size()),
        [](void *self, int64_t task, int worker) { static_cast<LibraryMatMul *>(self)->runTask(task, worker); }, this);
    return outcome();
  }

  /// All of it by the calling thread, in the working memory of the first worker.
  void runAlone() {
    for (int64_t task = 0; wideRight && task < std::ssize(tasks); ++task)
      widenRight(task);
    for (int64_t order = 0; order < std::ssize(packed); ++order)
      pack(order, 0);
    for (int64_t task = 0; task < std::ssize(tasks); ++task)
      runTask(task, 0);
  }

  /// Of the last run.
  Status outcome() const {
    for (const Packed &order : packed)
      if (order.failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN reorder returned status {}", static_cast<int>(order.failure)), ""};
    for (dnnl_status_t failure : failures)
      if (failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN matmul returned status {}", static_cast<int>(failure)), ""};
    return {};
  }
  ScratchSize scratchSize() const override { return {.worker = largestScratch, .shared = sharedBytes}; }
  void setScratch(const Scratch &scratch) override {
    shared = scratch.shared;
    for (Packed &order : packed) {
      order.memory.set_data_handle(shared + order.offset);
      if (order.isOfWide)
        order.given.set_data_handle(shared + *wideRight);
    }
    for (size_t task = 0; task < tasks.size(); ++task)
      for (Call &call : tasks[task]) {
        std::byte *own = scratch.workers[task % streams.size()];
        call.scratch.set_data_handle(own);
        if (call.wide.left)
          call.left.set_data_handle(own + *call.wide.left);
        if (call.wide.right)
          call.right.set_data_handle(own + *call.wide.right);
        else if (wideRight && !packs)
          call.right.set_data_handle(shared + *wideRight);
        if (call.wide.result)
          call.result.set_data_handle(own + *call.wide.result);
      }
  }

private:
  /// The right operand in an order that the library chose.
  struct Packed {
    dnnl::memory::desc desc;
    size_t offset = 0; ///< in shared scratch memory
    bool isOfWide = false; ///< made of the operand in f32, not of what is given
    dnnl::memory given, memory;
    dnnl::reorder reorder;
    dnnl_status_t failure = dnnl_success;
  };
  /// Where in a worker's scratch memory tensors lie that are bf16 in the plan and f32 for the library.
  struct Wide {
    std::optional<size_t> left, right, result;
  };
  struct Call {
    dnnl::matmul primitive;
    RowBlock block;
    dnnl::memory left, right, bias, result, scratch;
    Wide wide;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  /// A primitive for one number of rows, and the shapes that it takes.
  struct Shape {
    dnnl::memory::desc left, right, bias, result, scratch;
    dnnl::matmul primitive;
    std::optional<size_t> packed; ///< which order of the right operand
    Wide wide;
  };

  static std::byte *at(std::byte *base, int64_t element, plan::DataType type) {
    return base + element * static_cast<int64_t>(type == plan::BF16 ? sizeof(BFloat16) : sizeof(float));
  }

  /// Room for so many elements of f32; returns where.
  static size_t reserve(size_t &bytes, int64_t elements) {
    const size_t offset = (bytes + 63) / 64 * 64;
    bytes = offset + static_cast<size_t>(elements) * sizeof(float);
    return offset;
  }

  /// What is cast of one at a time takes a few MB, whatever the sizes are.
  std::vector<RowBlock> inParts(const RowBlock &block) const {
    constexpr int64_t mostBytes = 4 << 20;
    if (!widens)
      return {block};
    const int64_t rows = block.end - block.begin, rowBytes = (spec.depth + (roundsResult() ? columns.size() : 0)) * wideBytes;
    const int64_t count = std::min(rows, (rows * rowBytes + mostBytes - 1) / mostBytes);
    std::vector<RowBlock> parts;
    for (int64_t i = 0; i < count; ++i) {
      const Range part = pieceOf(rows, i, count);
      parts.push_back({block.batch, block.begin + part.begin, block.begin + part.end});
    }
    return parts;
  }

  /// Where columns of the right operand, and of a row of the result, begin.
  int64_t firstRight(const MatMulSpec::Batch &batch) const { return batch.right + columns.begin * (spec.transposeRight ? spec.depth : 1); }
  int64_t firstResult(const RowBlock &block) const { return spec.batches[block.batch].result + block.begin * spec.columns + columns.begin; }
  /// Of the right operand as it is given.
  dnnl::memory::dims rightStrides() const {
    return spec.transposeRight ? dnnl::memory::dims{1, spec.depth} : dnnl::memory::dims{spec.columns, 1};
  }

  /// Of its columns in f32, which lie together.
  dnnl::memory::dims wideStrides() const {
    return spec.transposeRight ? dnnl::memory::dims{1, spec.depth} : dnnl::memory::dims{columns.size(), 1};
  }

  /// The library writes f32 beside a result in bf16, whose bias it does not see.
  bool roundsResult() const { return widens && spec.type == plan::BF16; }
  /// A bias of bf16 and ReLU come behind it.
  bool addsBias() const { return spec.bias && !roundsResult(); }

  const Shape &shapeFor(int64_t rows) {
    if (auto it = shapes.find(rows); it != shapes.end())
      return it->second;
    using Desc = dnnl::memory::desc;
    using Type = dnnl::memory::data_type;
    const Type operand = isNarrow ? Type::bf16 : Type::f32, of = isNarrow && spec.type == plan::BF16 ? Type::bf16 : Type::f32;
    // Rows that were cast lie together.
    const int64_t rowsLeft = widens ? rows : spec.rows;
    Shape shape;
    shape.left = Desc({rows, spec.depth}, operand, spec.transposeLeft ? dnnl::memory::dims{1, rowsLeft} : dnnl::memory::dims{spec.depth, 1});
    shape.right = Desc({spec.depth, columns.size()}, operand, widens && !packs ? wideStrides() : rightStrides());
    shape.result = Desc({rows, columns.size()}, of, dnnl::memory::dims{roundsResult() ? columns.size() : spec.columns, 1});
    shape.bias = Desc({1, columns.size()}, of, dnnl::memory::dims{columns.size(), 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Desc right = packs ? Desc({spec.depth, columns.size()}, operand, dnnl::memory::format_tag::any) : shape.right;
    auto description = addsBias() ? dnnl::matmul::desc(shape.left, right, shape.bias, shape.result)
                                  : dnnl::matmul::desc(shape.left, right, shape.result);
    dnnl::matmul::primitive_desc chosen(description, attributes, engine);
    shape.scratch = chosen.scratchpad_desc();
    shape.primitive = dnnl::matmul(chosen);
    if (packs && (widens || chosen.weights_desc() != shape.right))
      shape.packed = orderFor(chosen.weights_desc());
    size_t bytes = shape.scratch.get_size();
    if (widens)
      shape.wide.left = reserve(bytes, rows * spec.depth);
    if (widens && !isShared)
      shape.wide.right = reserve(bytes, spec.depth * columns.size());
    if (roundsResult())
      shape.wide.result = reserve(bytes, rows * columns.size());
    largestScratch = std::max(largestScratch, bytes);
    return shapes.emplace(rows, shape).first->second;
  }

  /// Other numbers of rows may want other orders.
  size_t orderFor(const dnnl::memory::desc &desc) {
    for (size_t i = 0; i < packed.size(); ++i)
      if (packed[i].desc == desc)
        return i;
    const dnnl::memory::desc given({spec.depth, columns.size()}, widens ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, rightStrides());
    Packed order{desc, 0, false, dnnl::memory(given, engine, at(spec.right, firstRight(spec.batches.front()), spec.operands)),
                 dnnl::memory(desc, engine, DNNL_MEMORY_NONE), {}};
    if (widens && !castsWell({engine, given, engine, desc})) {
      order.isOfWide = true;
      order.given = dnnl::memory({{spec.depth, columns.size()}, dnnl::memory::data_type::f32, wideStrides()}, engine, DNNL_MEMORY_NONE);
      if (!wideRight)
        wideRight = reserve(sharedBytes, spec.depth * columns.size());
    }
    order.offset = (sharedBytes + 63) / 64 * 64;
    sharedBytes = order.offset + desc.get_size();
    order.reorder = dnnl::reorder(order.given, order.memory);
    packed.push_back(std::move(order));
    return packed.size() - 1;
  }

  void pack(int64_t task, int worker) {
    Packed &order = packed[static_cast<size_t>(task)];
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, order.given.get()}, {DNNL_ARG_TO, order.memory.get()}};
    order.failure = dnnl_primitive_execute(order.reorder.get(), streams[static_cast<size_t>(worker)].get(), 2, arguments);
  }

  /// Its share of the operand that all tasks read.
  void widenRight(int64_t task) {
    const int64_t rows = spec.transposeRight ? columns.size() : spec.depth;
    widenRight(spec.batches.front(), pieceOf(rows, task, static_cast<int64_t>(tasks.size())), reinterpret_cast<float *>(shared + *wideRight));
  }

  /// Rows of the right operand, or, where it is transposed, columns.
  void widenRight(const MatMulSpec::Batch &batch, const Range &rows, float *wide) const {
    const int64_t count = spec.transposeRight ? spec.depth : columns.size(), stride = spec.transposeRight ? spec.depth : spec.columns;
    const auto *right = reinterpret_cast<const BFloat16 *>(spec.right) + firstRight(batch);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      widen(right + row * stride, wide + row * count, count);
  }

  Call bind(const RowBlock &block, int worker) {
    const Shape &shape = shapeFor(block.end - block.begin);
    const MatMulSpec::Batch &batch = spec.batches[block.batch];
    int64_t rowLeft = spec.transposeLeft ? 1 : spec.depth;
    Call call{shape.primitive};
    call.block = block;
    call.wide = shape.wide;
    // What is cast gets its place with the scratch memory.
    call.left = dnnl::memory(shape.left, engine, at(spec.left, batch.left + block.begin * rowLeft, spec.operands));
    call.right = shape.packed ? packed[*shape.packed].memory : dnnl::memory(shape.right, engine, at(spec.right, firstRight(batch), spec.operands));
    call.result = dnnl::memory(shape.result, engine, at(spec.result, firstResult(block), spec.type));
    call.scratch = dnnl::memory(shape.scratch, engine, DNNL_MEMORY_NONE);
    call.arguments = {{DNNL_ARG_SRC, call.left.get()},
                      {DNNL_ARG_WEIGHTS, call.right.get()},
                      {DNNL_ARG_DST, call.result.get()},
                      {DNNL_ARG_SCRATCHPAD, call.scratch.get()}};
    if (addsBias()) {
      call.bias = dnnl::memory(shape.bias, engine, at(spec.bias, columns.begin, spec.type));
      call.arguments.push_back({DNNL_ARG_BIAS, call.bias.get()});
    }
    return call;
  }

  void runTask(int64_t task, int worker) {
    for (Call &call : tasks[task]) {
      if (widens)
        widenOperands(call);
      if (dnnl_status_t status = dnnl_primitive_execute(call.primitive.get(), streams[worker].get(),
                                                        static_cast<int>(call.arguments.size()), call.arguments.data());
          status != dnnl_success)
        failures[task] = status;
      const int64_t rows = call.block.end - call.block.begin;
      if (roundsResult())
        roundTo(call, rows);
      else if (spec.relu && spec.type == plan::BF16)
        applyReLU(static_cast<BFloat16 *>(call.result.get_data_handle()), rows, columns.size(), spec.columns);
      else if (spec.relu)
        applyReLU(static_cast<float *>(call.result.get_data_handle()), rows, columns.size(), spec.columns);
    }
  }

  void widenOperands(Call &call) {
    const MatMulSpec::Batch &batch = spec.batches[call.block.batch];
    const int64_t rows = call.block.end - call.block.begin;
    const auto *left = reinterpret_cast<const BFloat16 *>(spec.left) + batch.left;
    auto *wide = static_cast<float *>(call.left.get_data_handle());
    if (!spec.transposeLeft)
      widen(left + call.block.begin * spec.depth, wide, rows * spec.depth);
    for (int64_t k = 0; spec.transposeLeft && k < spec.depth; ++k)
      widen(left + k * spec.rows + call.block.begin, wide + k * rows, rows);
    if (call.wide.right)
      widenRight(batch, {0, spec.transposeRight ? columns.size() : spec.depth}, static_cast<float *>(call.right.get_data_handle()));
  }

  void roundTo(Call &call, int64_t rows) {
    const auto *wide = static_cast<const float *>(call.result.get_data_handle());
    const auto *bias = spec.bias ? reinterpret_cast<const BFloat16 *>(spec.bias) + columns.begin : nullptr;
    auto *result = reinterpret_cast<BFloat16 *>(spec.result) + firstResult(call.block);
    for (int64_t row = 0; row < rows; ++row, wide += columns.size(), result += spec.columns)
      for (int64_t i = 0; i < columns.size(); ++i) {
        const float sum = bias ? wide[i] + static_cast<float>(bias[i]) : wide[i];
        result[i] = BFloat16(spec.relu ? relu(sum) : sum);
      }
  }

  MatMulSpec spec;
  const Range columns;
  WorkerPool &pool;
  dnnl::engine engine;
  const bool widens;   ///< operands in bf16 are cast
  const bool isNarrow; ///< the library multiplies bf16
  const bool isShared; ///< all batch entries have one right operand
  const bool packs;
  std::vector<Packed> packed;
  std::optional<size_t> wideRight; ///< where in shared scratch memory the right operand is cast to
  size_t sharedBytes = 0;
  std::byte *shared = nullptr;
  std::vector<dnnl::stream> streams; ///< one per worker
  std::map<int64_t, Shape> shapes;   ///< by number of rows; used while binding
  std::vector<std::vector<Call>> tasks;
  std::vector<dnnl_status_t> failures; ///< by task
  size_t largestScratch = 0;
};

constexpr int64_t fewestRows = 128; ///< of a task

/// Columns one part after the other, in one working memory.
class MatMulByColumns final : public ScratchOperation {
public:
  /// Throws dnnl::error.
  MatMulByColumns(MatMulSpec spec, int64_t count, WorkerPool &pool) {
    const int64_t rows = spec.rows * static_cast<int64_t>(spec.batches.size());
    spec.tasks = std::clamp<int64_t>(rows / fewestRows, 1, spec.tasks);
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(std::make_unique<LibraryMatMul>(spec, pieceOf(spec.columns, i, count), pool));
  }

  Status run() override {
    for (const auto &part : parts)
      if (Status done = part->run(); !done)
        return done;
    return {};
  }
  ScratchSize scratchSize() const override {
    ScratchSize most;
    for (const auto &part : parts)
      most = {std::max(most.worker, part->scratchSize().worker), std::max(most.shared, part->scratchSize().shared)};
    return most;
  }
  void setScratch(const Scratch &scratch) override {
    for (const auto &part : parts)
      part->setScratch(scratch);
  }

private:
  std::vector<std::unique_ptr<LibraryMatMul>> parts;
};

/// Tasks are columns: few rows are not worth cutting, since the library brings the whole right operand into another order for each piece.
class MatMulAcrossColumns final : public ScratchOperation {
public:
  /// Throws dnnl::error.
  MatMulAcrossColumns(MatMulSpec spec, int64_t count, WorkerPool &pool) : pool(pool) {
    spec.tasks = 1;
    const int64_t blocks = (spec.columns + columnBlock - 1) / columnBlock;
    for (int64_t i = 0; i < count; ++i) {
      const Range piece = pieceOf(blocks, i, count);
      parts.push_back(std::make_unique<LibraryMatMul>(
          spec, Range{piece.begin * columnBlock, std::min(piece.end * columnBlock, spec.columns)}, pool));
    }
  }

  Status run() override {
    pool.run(
        std::ssize(parts), [](void *self, int64_t part, int) { static_cast<MatMulAcrossColumns *>(self)->parts[part]->runAlone(); }, this);
    for (const auto &part : parts)
      if (Status done = part->outcome(); !done)
        return done;
    return {};
  }
  ScratchSize scratchSize() const override {
    ScratchSize all;
    for (const auto &part : parts)
      all = {std::max(all.worker, part->scratchSize().worker), all.shared + aligned(part->scratchSize().shared)};
    return all;
  }
  void setScratch(const Scratch &scratch) override {
    std::byte *shared = scratch.shared;
    for (size_t part = 0; part < parts.size(); ++part) { // a task runs on the worker of its number
      parts[part]->setScratch({{scratch.workers[part % scratch.workers.size()]}, shared});
      shared += aligned(parts[part]->scratchSize().shared);
    }
  }

  /// Into how many tasks the columns are cut; 1: rows are cut, or nothing.
  static int64_t tasksOf(const MatMulSpec &spec) {
    if (spec.batches.size() != 1 || spec.rows >= fewestRows * spec.tasks)
      return 1;
    return std::clamp<int64_t>(spec.columns / columnBlock, 1, spec.tasks);
  }

private:
  static constexpr int64_t columnBlock = 64;
  static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

  WorkerPool &pool;
  std::vector<std::unique_ptr<LibraryMatMul>> parts;
};

/// In how many parts the columns are gone through: what is cast of the right operand at a time is bounded.
int64_t columnParts(const MatMulSpec &spec) {
  constexpr int64_t mostBytes = 16 << 20;
  return casts(spec) ? std::min(spec.columns, (spec.depth * spec.columns * wideBytes + mostBytes - 1) / mostBytes) : 1;
}

} // namespace

std::vector<std::vector<RowBlock>> splitRows(size_t batches, int64_t rows, int64_t tasks) {
  auto count = static_cast<int64_t>(batches);
  int64_t pieces = count >= tasks ? 1 : std::min(rows, (tasks + count - 1) / count);
  int64_t groups = pieces == 1 ? std::min(count, tasks) : count;
  std::vector<std::vector<RowBlock>> result;
  for (int64_t group = 0; group < groups; ++group) {
    Range entries = pieceOf(count, group, groups);
    for (int64_t piece = 0; piece < pieces; ++piece) {
      Range part = pieceOf(rows, piece, pieces);
      result.emplace_back();
      for (int64_t batch = entries.begin; batch < entries.end; ++batch)
        result.back().push_back({static_cast<size_t>(batch), part.begin, part.end});
    }
  }
  return result;
}

Result<std::unique_ptr<ScratchOperation>> prepareMatMul(const MatMulSpec &given, WorkerPool &pool) {
  const MatMulSpec spec = joinBatches(given);
  const bool isBFloat16 = spec.operands == plan::BF16 && (spec.type == plan::BF16 || spec.type == plan::F32);
  if (!isBFloat16 && (spec.operands != plan::F32 || spec.type != plan::F32))
    return Error{ExitCode::BadFile, fmt::format("the plan multiplies {} as it is, which GPUs alone do", dataTypeName(spec.operands)),
                 "compile the network again with --device-target auto"};
  if (spec.depth == 0)
    return std::unique_ptr<ScratchOperation>(new EmptyMatMul(spec));
  try {
    if (const int64_t parts = columnParts(spec); parts > 1)
      return std::unique_ptr<ScratchOperation>(new MatMulByColumns(spec, parts, pool));
    if (const int64_t tasks = MatMulAcrossColumns::tasksOf(spec); tasks > 1)
      return std::unique_ptr<ScratchOperation>(new MatMulAcrossColumns(spec, tasks, pool));
    return std::unique_ptr<ScratchOperation>(new LibraryMatMul(spec, {0, spec.columns}, pool));
  } catch (const dnnl::error &error) {
    return Error{error.status == dnnl_out_of_memory ? ExitCode::NoResource : ExitCode::Internal,
                 fmt::format("oneDNN cannot multiply {}x{} by {}x{}: {}", spec.rows, spec.depth, spec.depth,
                             spec.columns, error.what()),
                 ""};
  }
}

} // namespace msc::device
