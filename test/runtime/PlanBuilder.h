// Small plans made by hand, for tests of the runtime: every buffer has memory of its own unless the test says otherwise.
#pragma once

#include "runtime/plan/PlanIndex.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace msc::test {

class PlanBuilder {
public:
  explicit PlanBuilder(int64_t devices, plan::Program::Purpose purpose = plan::Program::TRAIN) {
    plan.set_network("tiny");
    plan.set_digest("00");
    plan.set_devices(static_cast<uint32_t>(devices));
    plan.set_device_target("auto");
    plan.set_seed(1);
    plan.add_files("net.mir");
    for (uint32_t line = 1; line <= 30; ++line)
      plan.add_locations()->set_line(line);
    program = plan.add_programs();
    program->set_purpose(purpose);
    variant = program->add_variants();
    auto *range = program->add_ranges();
    range->set_last(static_cast<uint32_t>(devices - 1));
  }

  /// Dimension `dim` of `rank` cut over all devices; -1: replicated.
  Sharding cut(size_t rank, int dim) const {
    Sharding sharding{{plan.devices()}, std::vector<std::vector<int32_t>>(rank), {}};
    if (dim >= 0)
      sharding.dims[dim] = {0};
    return sharding;
  }
  /// A sum over all devices still to be done.
  Sharding partial(size_t rank) const {
    Sharding sharding = cut(rank, -1);
    sharding.partial = {{0, ReduceKind::Sum}};
    return sharding;
  }

  uint32_t buffer(const std::string &name, std::vector<int64_t> shape, const Sharding &sharding,
                  plan::Buffer::Kind kind = plan::Buffer::ACTIVATION, plan::DataType type = plan::F32) {
    plan::Buffer *added = plan.add_buffers();
    added->set_name(name);
    added->set_dtype(type);
    for (int64_t size : shape)
      added->add_shape(size);
    added->set_sharding(static_cast<uint32_t>(plan.shardings_size()));
    *plan.add_shardings() = fromSharding(sharding);
    added->set_kind(kind);
    added->set_offset(plan.arena_bytes());
    added->set_bytes(static_cast<uint64_t>(elementCount(sharding.capacity(shape))) * elementBytes(type));
    added->set_location(static_cast<uint32_t>(plan.buffers_size() % 30));
    plan.set_arena_bytes(plan.arena_bytes() + (added->bytes() + 63) / 64 * 64);
    return static_cast<uint32_t>(plan.buffers_size()) - 1;
  }
  uint32_t viewOf(uint32_t root, const std::string &name, std::vector<int64_t> shape, const Sharding &sharding) {
    uint64_t arena = plan.arena_bytes();
    uint32_t view = buffer(name, std::move(shape), sharding, plan::Buffer::ACTIVATION,
                           plan.buffers(static_cast<int>(root)).dtype());
    plan.set_arena_bytes(arena);
    plan.mutable_buffers(static_cast<int>(view))->set_offset(plan.buffers(static_cast<int>(root)).offset());
    plan.mutable_buffers(static_cast<int>(view))->set_view_of(root + 1);
    return view;
  }

  plan::Step *step(const std::string &name, const std::string &op, const std::vector<uint32_t> &reads,
                   const std::vector<uint32_t> &writes) {
    plan::Step *added = variant->add_steps();
    added->set_name(name);
    added->set_op(op);
    added->set_location(static_cast<uint32_t>(variant->steps_size() % 30));
    added->mutable_reads()->Add(reads.begin(), reads.end());
    added->mutable_writes()->Add(writes.begin(), writes.end());
    return added;
  }
  plan::Step *matmul(const std::string &name, uint32_t left, uint32_t right, uint32_t result, bool transposeLeft = false,
                     bool transposeRight = false) {
    plan::Step *added = step(name, "MatMul", {left, right}, {result});
    added->mutable_matmul()->set_left(left);
    added->mutable_matmul()->set_right(right);
    added->mutable_matmul()->set_result(result);
    added->mutable_matmul()->set_transpose_left(transposeLeft);
    added->mutable_matmul()->set_transpose_right(transposeRight);
    added->mutable_matmul()->set_tasks(1);
    return added;
  }
  /// A kernel of the runtime with attributes that are whole numbers.
  plan::Step *call(const std::string &name, const std::string &kernel, const std::vector<uint32_t> &operands,
                   const std::vector<uint32_t> &results,
                   const std::vector<std::pair<std::string, std::vector<int64_t>>> &attributes, uint32_t tasks = 1) {
    plan::Step *added = step(name, kernel, operands, results);
    added->mutable_call()->set_kernel(kernel);
    added->mutable_call()->mutable_operands()->Add(operands.begin(), operands.end());
    added->mutable_call()->mutable_results()->Add(results.begin(), results.end());
    added->mutable_call()->set_tasks(tasks);
    for (const auto &[key, ints] : attributes) {
      plan::Call::Attribute *attribute = added->mutable_call()->add_attributes();
      attribute->set_name(key);
      attribute->mutable_ints()->Add(ints.begin(), ints.end());
    }
    return added;
  }
  plan::Step *copy(const std::string &name, uint32_t source, uint32_t target) {
    plan::Step *added = step(name, "StridedSlice", {source}, {target});
    added->mutable_copy()->set_source(source);
    added->mutable_copy()->set_target(target);
    return added;
  }
  plan::Step *fill(const std::string &name, uint32_t target, double value) {
    plan::Step *added = step(name, "Fill", {}, {target});
    added->mutable_fill()->set_target(target);
    added->mutable_fill()->set_value(value);
    return added;
  }
  plan::Step *constant(const std::string &name, uint32_t target, double value) {
    variant->add_constants(static_cast<uint32_t>(variant->steps_size()));
    return fill(name, target, value);
  }
  uint32_t group(const std::vector<uint32_t> &matrix, const std::vector<uint32_t> &axes) {
    plan::Group *added = variant->add_groups();
    added->mutable_matrix()->Add(matrix.begin(), matrix.end());
    added->mutable_axes()->Add(axes.begin(), axes.end());
    return static_cast<uint32_t>(variant->groups_size()) - 1;
  }
  /// A collective over all devices unless `group` is given.
  plan::Step *collective(const std::string &name, plan::Collective::Kind kind, uint32_t source, uint32_t target,
                         int group = -1) {
    plan::Step *added = step(name, collectiveName(kind), {source}, {target});
    plan::Collective *body = added->mutable_collective();
    body->set_kind(kind);
    body->set_source(source);
    body->set_target(target);
    body->set_group(group >= 0 ? static_cast<uint32_t>(group) : this->group({plan.devices()}, {0}));
    return added;
  }
  /// One more tensor of a collective.
  void also(plan::Step *step, uint32_t source, uint32_t target) {
    step->add_reads(source);
    step->add_writes(target);
    plan::Collective::Part *part = step->mutable_collective()->add_also();
    part->set_source(source);
    part->set_target(target);
  }
  plan::Step *wait(const std::string &name, uint32_t start) {
    plan::Step *added = step(name, "Wait", {}, {});
    added->mutable_wait()->set_step(start);
    return added;
  }
  uint32_t stepCount() const { return static_cast<uint32_t>(variant->steps_size()); }

  /// One variant of a kernel, called with `arguments`; `range` is a dimension of the first argument, or -1 for end = 1.
  plan::Step *launch(const std::string &symbol, const std::vector<uint32_t> &arguments, const std::vector<uint32_t> &reads,
                     const std::vector<uint32_t> &writes, const std::vector<uint32_t> &rangeDims, uint32_t tasks = 1) {
    plan::Kernel *kernel = plan.add_kernels();
    kernel->set_name(symbol);
    kernel->set_arguments(static_cast<uint32_t>(arguments.size()));
    kernel->add_variants()->set_symbol(symbol);
    plan::Step *added = step(symbol, symbol, reads, writes);
    plan::Launch *body = added->mutable_launch();
    body->set_kernel(static_cast<uint32_t>(plan.kernels_size()) - 1);
    body->mutable_arguments()->Add(arguments.begin(), arguments.end());
    for (uint32_t dim : rangeDims) {
      body->add_range()->set_buffer(arguments[0]);
      body->mutable_range(body->range_size() - 1)->set_dim(dim);
    }
    body->set_tasks(tasks);
    body->set_unit(1);
    return added;
  }

  void parameter(uint32_t buffer, const std::string &kind, double a, double b = 0) {
    plan::Parameter *added = plan.add_parameters();
    added->set_name(plan.buffers(static_cast<int>(buffer)).name());
    added->set_buffer(buffer);
    added->set_trained(true);
    added->mutable_initializer()->set_kind(kind);
    added->mutable_initializer()->set_a(a);
    added->mutable_initializer()->set_b(b);
  }
  void input(uint32_t buffer) {
    plan::Input *added = program->add_inputs();
    added->set_name(plan.buffers(static_cast<int>(buffer)).name());
    added->set_column(added->name());
    added->set_buffer(buffer);
  }
  void output(uint32_t buffer) {
    plan::Output *added = program->add_outputs();
    added->set_name(plan.buffers(static_cast<int>(buffer)).name());
    added->set_buffer(buffer);
  }
  void schedule(uint32_t buffer, const std::string &kind, std::vector<double> values) {
    plan::Schedule *added = plan.add_schedules();
    added->set_name(plan.buffers(static_cast<int>(buffer)).name());
    added->set_buffer(buffer);
    added->set_kind(kind);
    added->mutable_values()->Add(values.begin(), values.end());
  }
  void randomColumn(const std::string &name, const std::string &distribution) {
    if (plan.datasets().empty()) {
      plan.add_datasets()->set_source("Random");
      plan.mutable_datasets(0)->set_seed(1);
      plan.mutable_datasets(0)->set_steps(4);
    }
    plan::Dataset::Column *column = plan.mutable_datasets(0)->add_columns();
    column->set_name(name);
    column->set_distribution(distribution);
  }
  /// The kernels of test/runtime/kernels.c.
  void testKernels() {
    plan.add_objects()->set_isa("x86-64-v3");
    plan.mutable_objects(0)->set_code(kernelCode());
  }
  static std::string kernelCode() {
    std::ifstream file(MSC_TEST_KERNELS, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  plan::Plan plan;
  plan::Program *program;
  plan::Variant *variant;
};

/// x[6, 8] times w[8, 5], the sum over 8 cut over all devices, completed by an AllReduce: buffers x, w, terms, out.
inline PlanBuilder matmulAllReduce(int64_t devices) {
  PlanBuilder builder(devices, plan::Program::PREDICT);
  uint32_t x = builder.buffer("x", {6, 8}, builder.cut(2, 1), plan::Buffer::INPUT);
  uint32_t w = builder.buffer("w", {8, 5}, builder.cut(2, 0), plan::Buffer::PARAMETER);
  uint32_t terms = builder.buffer("terms", {6, 5}, builder.partial(2));
  uint32_t out = builder.buffer("out", {6, 5}, builder.cut(2, -1), plan::Buffer::OUTPUT);
  builder.input(x);
  builder.parameter(w, "normal", 1);
  builder.matmul("matmul", x, w, terms);
  builder.collective("forward_op", plan::Collective::ALL_REDUCE, terms, out);
  builder.output(out);
  builder.randomColumn("x", "uniform");
  return builder;
}

/// Linear regression by gradient descent, data parallel over uneven rows: loss = mean((x w - y)^2).
inline PlanBuilder regression(int64_t devices, uint32_t epochs = 3) {
  PlanBuilder builder(devices);
  constexpr int64_t rows = 10, in = 4, out = 3;
  auto all = [&](size_t rank) { return builder.cut(rank, -1); };
  uint32_t x = builder.buffer("x", {rows, in}, builder.cut(2, 0), plan::Buffer::INPUT);
  uint32_t y = builder.buffer("y", {rows, out}, builder.cut(2, 0), plan::Buffer::INPUT);
  uint32_t w = builder.buffer("w", {in, out}, all(2), plan::Buffer::PARAMETER);
  uint32_t rate = builder.buffer("learning_rate", {}, all(0), plan::Buffer::SCALAR);
  uint32_t scale = builder.buffer("scale", {}, all(0), plan::Buffer::CONSTANT);
  uint32_t predicted = builder.buffer("predicted", {rows, out}, builder.cut(2, 0));
  uint32_t slope = builder.buffer("slope", {rows, out}, builder.cut(2, 0));
  uint32_t lossTerm = builder.buffer("loss_term", {}, builder.partial(0));
  uint32_t loss = builder.buffer("loss", {}, all(0), plan::Buffer::OUTPUT);
  uint32_t gradTerm = builder.buffer("grad_term", {in, out}, builder.partial(2));
  uint32_t grad = builder.buffer("grad", {in, out}, all(2));
  builder.input(x);
  builder.input(y);
  builder.parameter(w, "normal", 0.5);
  builder.schedule(rate, "constant", {0.5});
  builder.constant("scale", scale, 1.0 / (rows * out));
  builder.fill("loss_identity", lossTerm, 0);
  builder.matmul("matmul", x, w, predicted);
  // Accumulates into loss_term, so that a rank without rows leaves the identity there.
  builder.launch("mse", {predicted, y, scale, slope, lossTerm}, {predicted, y, scale, lossTerm}, {slope, lossTerm}, {0, 1});
  builder.collective("loss_sum", plan::Collective::ALL_REDUCE, lossTerm, loss);
  builder.matmul("grad", x, slope, gradTerm, true);
  builder.collective("grad_sum", plan::Collective::ALL_REDUCE, gradTerm, grad);
  builder.launch("sgd", {w, grad, rate}, {w, grad, rate}, {w}, {0, 1});
  builder.output(loss);
  builder.output(predicted);
  builder.randomColumn("x", "uniform");
  builder.randomColumn("y", "uniform");
  builder.plan.mutable_datasets(0)->set_same_batch(true);
  builder.plan.mutable_training()->set_epochs(epochs);
  builder.plan.mutable_training()->set_loss("loss");
  builder.testKernels();
  return builder;
}

} // namespace msc::test
