#include "runtime/device/cpu/MatMul.h"

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <map>

namespace msc::device {
namespace {

/// Plain loops in a fixed order: the type decides the precision, nothing is reassociated.
template <typename T> class PlainMatMul final : public MatMulOperation {
public:
  PlainMatMul(const MatMulSpec &spec, WorkerPool &pool)
      : spec(spec), blocks(splitRows(spec.batches.size(), spec.rows, spec.tasks)), pool(pool) {
    constexpr std::pair<std::string_view, T (*)(T)> table[] = {
        {"", [](T x) { return x; }},
        {"relu", [](T x) { return T(0) > x ? T(0) : x; }},
        {"gelu_erf", [](T x) { return x * T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))); }},
        {"gelu_tanh",
         [](T x) {
           return x * T(0.5) * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
         }},
        {"sigmoid", [](T x) { return T(1) / (T(1) + std::exp(-x)); }},
        {"tanh", [](T x) { return std::tanh(x); }},
        {"silu", [](T x) { return x / (T(1) + std::exp(-x)); }}};
    for (auto [name, function] : table)
      if (name == spec.activation)
        activation = function;
  }

  Status run() override {
    pool.run(
        static_cast<int64_t>(blocks.size()),
        [](void *self, int64_t task, int) {
          auto *operation = static_cast<PlainMatMul *>(self);
          for (const RowBlock &block : operation->blocks[task])
            operation->compute(block);
        },
        this);
    return {};
  }
  size_t scratchBytes() const override { return 0; }
  void setScratch(const std::vector<std::byte *> &) override {}

private:
  void compute(const RowBlock &block) {
    const MatMulSpec::Batch &batch = spec.batches[block.batch];
    const T *left = reinterpret_cast<const T *>(spec.left) + batch.left;
    const T *right = reinterpret_cast<const T *>(spec.right) + batch.right;
    const T *bias = reinterpret_cast<const T *>(spec.bias);
    T *result = reinterpret_cast<T *>(spec.result) + batch.result;
    int64_t strideLeft = spec.transposeLeft ? spec.rows : 1, rowLeft = spec.transposeLeft ? 1 : spec.depth;
    int64_t strideRight = spec.transposeRight ? 1 : spec.columns, columnRight = spec.transposeRight ? spec.depth : 1;
    for (int64_t i = block.begin; i < block.end; ++i) {
      T *row = result + i * spec.columns;
      std::fill_n(row, spec.columns, T(0));
      for (int64_t k = 0; k < spec.depth; ++k) {
        T factor = left[i * rowLeft + k * strideLeft];
        for (int64_t j = 0; j < spec.columns; ++j)
          row[j] += factor * right[k * strideRight + j * columnRight];
      }
      for (int64_t j = 0; j < spec.columns; ++j)
        row[j] = activation(bias ? row[j] + bias[j] : row[j]);
    }
  }

  MatMulSpec spec;
  std::vector<std::vector<RowBlock>> blocks;
  WorkerPool &pool;
  T (*activation)(T) = nullptr;
};

/// oneDNN's post-operation for an activation of the plan.
void appendActivation(dnnl::post_ops &ops, const std::string &name) {
  using dnnl::algorithm;
  const std::map<std::string, algorithm> table = {
      {"relu", algorithm::eltwise_relu},         {"gelu_erf", algorithm::eltwise_gelu_erf},
      {"gelu_tanh", algorithm::eltwise_gelu_tanh}, {"sigmoid", algorithm::eltwise_logistic},
      {"tanh", algorithm::eltwise_tanh},         {"silu", algorithm::eltwise_swish}};
  if (auto it = table.find(name); it != table.end())
    ops.append_eltwise(1.0f, it->second, name == "silu" ? 1.0f : 0.0f, 0.0f);
}

class LibraryMatMul final : public MatMulOperation {
public:
  /// Throws dnnl::error.
  LibraryMatMul(const MatMulSpec &spec, WorkerPool &pool) : spec(spec), pool(pool), engine(dnnl::engine::kind::cpu, 0) {
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
        static_cast<int64_t>(tasks.size()),
        [](void *self, int64_t task, int worker) { static_cast<LibraryMatMul *>(self)->runTask(task, worker); }, this);
    for (dnnl_status_t failure : failures)
      if (failure != dnnl_success)
        return Error{ExitCode::Internal, fmt::format("oneDNN matmul returned status {}", static_cast<int>(failure)), ""};
    return {};
  }
  size_t scratchBytes() const override { return largestScratch; }
  void setScratch(const std::vector<std::byte *> &scratch) override {
    for (size_t task = 0; task < tasks.size(); ++task)
      for (Call &call : tasks[task])
        call.scratch.set_data_handle(scratch[task % streams.size()]);
  }

private:
  struct Call {
    dnnl::matmul primitive;
    dnnl::memory left, right, bias, result, scratch;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  /// A primitive for one number of rows, and the shapes that it takes.
  struct Shape {
    dnnl::memory::desc left, right, bias, result, scratch;
    dnnl::matmul primitive;
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
    dnnl::post_ops after;
    appendActivation(after, spec.activation);
    attributes.set_post_ops(after);
    auto description = spec.bias ? dnnl::matmul::desc(shape.left, shape.right, shape.bias, shape.result)
                                 : dnnl::matmul::desc(shape.left, shape.right, shape.result);
    dnnl::matmul::primitive_desc chosen(description, attributes, engine);
    shape.scratch = chosen.scratchpad_desc();
    shape.primitive = dnnl::matmul(chosen);
    largestScratch = std::max(largestScratch, shape.scratch.get_size());
    return shapes.emplace(rows, shape).first->second;
  }

  Call bind(const RowBlock &block, int worker) {
    const Shape &shape = shapeFor(block.end - block.begin);
    const MatMulSpec::Batch &batch = spec.batches[block.batch];
    int64_t rowLeft = spec.transposeLeft ? 1 : spec.depth;
    Call call{shape.primitive, {}, {}, {}, {}, {}, {}};
    call.left = dnnl::memory(shape.left, engine, at(spec.left, batch.left + block.begin * rowLeft));
    call.right = dnnl::memory(shape.right, engine, at(spec.right, batch.right));
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
    for (Call &call : tasks[task])
      if (dnnl_status_t status = dnnl_primitive_execute(call.primitive.get(), streams[worker].get(),
                                                        static_cast<int>(call.arguments.size()), call.arguments.data());
          status != dnnl_success)
        failures[task] = status;
  }

  MatMulSpec spec;
  WorkerPool &pool;
  dnnl::engine engine;
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

Result<std::unique_ptr<MatMulOperation>> prepareMatMul(const MatMulSpec &spec, WorkerPool &pool) {
  if (spec.type == plan::F64)
    return std::unique_ptr<MatMulOperation>(new PlainMatMul<double>(spec, pool));
  if (spec.type != plan::F32)
    return Error{ExitCode::BadFile, "matrix products on the CPU take f32 or f64", ""};
  if (spec.depth == 0)
    return std::unique_ptr<MatMulOperation>(new PlainMatMul<float>(spec, pool));
  try {
    return std::unique_ptr<MatMulOperation>(new LibraryMatMul(spec, pool));
  } catch (const dnnl::error &error) {
    return Error{error.status == dnnl_out_of_memory ? ExitCode::NoResource : ExitCode::Internal,
                 fmt::format("oneDNN cannot multiply {}x{} by {}x{}: {}", spec.rows, spec.depth, spec.depth,
                             spec.columns, error.what()),
                 ""};
  }
}

} // namespace msc::device
