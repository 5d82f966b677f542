#include "runtime/device/cpu/MatMul.h"

#include <algorithm>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace msc::device {
namespace {

/// Not by oneDNN, whose ReLU makes a zero of NaN.
void applyReLU(float *elements, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    elements[i] = 0.0f > elements[i] ? 0.0f : elements[i];
}

/// Sums of nothing: every row is the epilogue of zero.
class EmptyMatMul final : public ScratchOperation {
public:
  explicit EmptyMatMul(const MatMulSpec &spec) : spec(spec) {}

  Status run() override {
    const auto *bias = reinterpret_cast<const float *>(spec.bias);
    for (const MatMulSpec::Batch &batch : spec.batches) {
      float *result = reinterpret_cast<float *>(spec.result) + batch.result;
      for (int64_t i = 0; i < spec.rows * spec.columns; ++i)
        result[i] = bias ? bias[i % spec.columns] : 0.0f;
      if (spec.relu)
        applyReLU(result, spec.rows * spec.columns);
    }
    return {};
  }
  ScratchSize scratchSize() const override { return {}; }
  void setScratch(const Scratch &) override {}

private:
  MatMulSpec spec;
};

/// The library reads a right operand by columns of some 64 elements. Where its rows lie far apart, every one of them is in another page,
/// at worst all in the same places of the cache: products of 256 x 768 x 3072 reach 66 GFLOP/s so, and 210 with the operand in the order
/// that the library wants. Bringing it there takes as long as some 40 rows of the product; it is done once for all tasks.
bool isWorthPacking(const MatMulSpec &spec) {
  constexpr int64_t pageBytes = 4096, mostBytes = 64 << 20;
  const int64_t rowBytes = spec.columns * static_cast<int64_t>(sizeof(float)), bytes = spec.depth * rowBytes;
  for (const MatMulSpec::Batch &batch : spec.batches)
    if (batch.right != spec.batches.front().right)
      return false;
  if (bytes > mostBytes || spec.columns < 64)
    return false;
  const int64_t rows = spec.rows * static_cast<int64_t>(spec.batches.size());
  if (spec.transposeRight)
    return rows >= 1024;
  return rows >= (rowBytes % pageBytes == 0 ? 64 : 256);
}

class LibraryMatMul final : public ScratchOperation {
public:
  /// Throws dnnl::error.
  LibraryMatMul(const MatMulSpec &spec, WorkerPool &pool)
      : spec(spec), pool(pool), engine(dnnl::engine::kind::cpu, 0), packs(isWorthPacking(spec)) {
    for (int i = 0; i < pool.size(); ++i)
      streams.emplace_back(engine);
    for (const std::vector<RowBlock> &blocks : splitRows(spec.batches.size(), spec.rows, spec.tasks)) {
      int worker = static_cast<int>(tasks.size()) % pool.size();
      tasks.emplace_back();
      for (const RowBlock &block : blocks)
        tasks.back().push_back(bind(block, worker));
    }
    failures.assign(tasks.size(), dnnl_success);
  }

  Status run() override {
    pool.run(
        static_cast<int64_t>(packed.size()),
        [](void *self, int64_t task, int worker) { static_cast<LibraryMatMul *>(self)->pack(task, worker); }, this);
    pool.run(
        static_cast<int64_t>(tasks.size()),
        [](void *self, int64_t task, int worker) { static_cast<LibraryMatMul *>(self)->runTask(task, worker); }, this);
    for (const Packed &order : packed)
      if (order.failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN reorder returned status {}", static_cast<int>(order.failure)), ""};
    for (dnnl_status_t failure : failures)
      if (failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN matmul returned status {}", static_cast<int>(failure)), ""};
    return {};
  }
  ScratchSize scratchSize() const override { return {.worker = largestScratch, .shared = packedBytes}; }
  void setScratch(const Scratch &scratch) override {
    for (size_t task = 0; task < tasks.size(); ++task)
      for (Call &call : tasks[task])
        call.scratch.set_data_handle(scratch.workers[task % streams.size()]);
    for (Packed &order : packed)
      order.memory.set_data_handle(scratch.shared + order.offset);
  }

private:
  /// The right operand in an order that the library chose.
  struct Packed {
    dnnl::memory::desc desc;
    size_t offset = 0; ///< in shared scratch memory
    dnnl::memory given, memory;
    dnnl::reorder reorder;
    dnnl_status_t failure = dnnl_success;
  };
  struct Call {
    dnnl::matmul primitive;
    dnnl::memory left, right, bias, result, scratch;
    std::vector<dnnl_exec_arg_t> arguments;
    int64_t elements = 0; ///< of the result
  };
  /// A primitive for one number of rows, and the shapes that it takes.
  struct Shape {
    dnnl::memory::desc left, right, bias, result, scratch;
    dnnl::matmul primitive;
    std::optional<size_t> packed; ///< which order of the right operand
  };

  static std::byte *at(std::byte *base, int64_t element) { return base + element * static_cast<int64_t>(sizeof(float)); }

  const Shape &shapeFor(int64_t rows) {
    if (auto it = shapes.find(rows); it != shapes.end())
      return it->second;
    using Desc = dnnl::memory::desc;
    constexpr auto f32 = dnnl::memory::data_type::f32;
    Shape shape;
    shape.left = Desc({rows, spec.depth}, f32,
                      spec.transposeLeft ? dnnl::memory::dims{1, spec.rows} : dnnl::memory::dims{spec.depth, 1});
    shape.right = Desc({spec.depth, spec.columns}, f32,
                       spec.transposeRight ? dnnl::memory::dims{1, spec.depth} : dnnl::memory::dims{spec.columns, 1});
    shape.result = Desc({rows, spec.columns}, f32, dnnl::memory::dims{spec.columns, 1});
    shape.bias = Desc({1, spec.columns}, f32, dnnl::memory::dims{spec.columns, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Desc right = packs ? Desc({spec.depth, spec.columns}, f32, dnnl::memory::format_tag::any) : shape.right;
    auto description = spec.bias ? dnnl::matmul::desc(shape.left, right, shape.bias, shape.result)
                                 : dnnl::matmul::desc(shape.left, right, shape.result);
    dnnl::matmul::primitive_desc chosen(description, attributes, engine);
    shape.scratch = chosen.scratchpad_desc();
    shape.primitive = dnnl::matmul(chosen);
    if (packs && chosen.weights_desc() != shape.right)
      shape.packed = orderFor(chosen.weights_desc(), shape.right);
    largestScratch = std::max(largestScratch, shape.scratch.get_size());
    return shapes.emplace(rows, shape).first->second;
  }

  /// Other numbers of rows may want other orders.
  size_t orderFor(const dnnl::memory::desc &desc, const dnnl::memory::desc &given) {
    for (size_t i = 0; i < packed.size(); ++i)
      if (packed[i].desc == desc)
        return i;
    Packed order{desc, packedBytes, dnnl::memory(given, engine, at(spec.right, spec.batches.front().right)),
                 dnnl::memory(desc, engine, DNNL_MEMORY_NONE), {}};
    order.reorder = dnnl::reorder(order.given, order.memory);
    packedBytes += (desc.get_size() + 63) / 64 * 64;
    packed.push_back(std::move(order));
    return packed.size() - 1;
  }

  void pack(int64_t task, int worker) {
    Packed &order = packed[static_cast<size_t>(task)];
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, order.given.get()}, {DNNL_ARG_TO, order.memory.get()}};
    order.failure = dnnl_primitive_execute(order.reorder.get(), streams[static_cast<size_t>(worker)].get(), 2, arguments);
  }

  Call bind(const RowBlock &block, int worker) {
    const Shape &shape = shapeFor(block.end - block.begin);
    const MatMulSpec::Batch &batch = spec.batches[block.batch];
    int64_t rowLeft = spec.transposeLeft ? 1 : spec.depth;
    Call call{shape.primitive};
    call.elements = (block.end - block.begin) * spec.columns;
    call.left = dnnl::memory(shape.left, engine, at(spec.left, batch.left + block.begin * rowLeft));
    call.right = shape.packed ? packed[*shape.packed].memory : dnnl::memory(shape.right, engine, at(spec.right, batch.right));
    call.result = dnnl::memory(shape.result, engine, at(spec.result, batch.result + block.begin * spec.columns));
    call.scratch = dnnl::memory(shape.scratch, engine, DNNL_MEMORY_NONE);
    call.arguments = {{DNNL_ARG_SRC, call.left.get()},
                      {DNNL_ARG_WEIGHTS, call.right.get()},
                      {DNNL_ARG_DST, call.result.get()},
                      {DNNL_ARG_SCRATCHPAD, call.scratch.get()}};
    if (spec.bias) {
      call.bias = dnnl::memory(shape.bias, engine, spec.bias);
      call.arguments.push_back({DNNL_ARG_BIAS, call.bias.get()});
    }
    return call;
  }

  void runTask(int64_t task, int worker) {
    for (Call &call : tasks[task]) {
      if (dnnl_status_t status = dnnl_primitive_execute(call.primitive.get(), streams[worker].get(),
                                                        static_cast<int>(call.arguments.size()), call.arguments.data());
          status != dnnl_success)
        failures[task] = status;
      if (spec.relu)
        applyReLU(static_cast<float *>(call.result.get_data_handle()), call.elements);
    }
  }

  MatMulSpec spec;
  WorkerPool &pool;
  dnnl::engine engine;
  const bool packs;
  std::vector<Packed> packed;
  size_t packedBytes = 0;
  std::vector<dnnl::stream> streams; ///< one per worker
  std::map<int64_t, Shape> shapes;   ///< by number of rows; used while binding
  std::vector<std::vector<Call>> tasks;
  std::vector<dnnl_status_t> failures; ///< by task
  size_t largestScratch = 0;
};

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

Result<std::unique_ptr<ScratchOperation>> prepareMatMul(const MatMulSpec &spec, WorkerPool &pool) {
  if (spec.operands != plan::F32 || spec.type != plan::F32)
    return Error{ExitCode::BadFile, fmt::format("the plan multiplies {} as it is, which GPUs alone do", dataTypeName(spec.operands)),
                 "compile the network again with --device-target auto"};
  if (spec.depth == 0)
    return std::unique_ptr<ScratchOperation>(new EmptyMatMul(spec));
  try {
    return std::unique_ptr<ScratchOperation>(new LibraryMatMul(spec, pool));
  } catch (const dnnl::error &error) {
    return Error{error.status == dnnl_out_of_memory ? ExitCode::NoResource : ExitCode::Internal,
                 fmt::format("oneDNN cannot multiply {}x{} by {}x{}: {}", spec.rows, spec.depth, spec.depth,
                             spec.columns, error.what()),
                 ""};
  }
}

} // namespace msc::device
