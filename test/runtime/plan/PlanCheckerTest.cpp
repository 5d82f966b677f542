// Sound plans pass; each planted fault is refused with a message that names what and where.
#include "runtime/plan/PlanChecker.h"
#include "test/runtime/PlanBuilder.h"

#include <fmt/format.h>
#include <functional>

using namespace msc;
using namespace msc::test;

namespace {

std::string whyRefused(const plan::Plan &plan) {
  Status status = plan::checkPlan(plan);
  if (status)
    return "";
  EXPECT_EQ(status.error().code, ExitCode::BadFile);
  return status.error().message;
}

plan::Step *stepOf(PlanBuilder &builder, int step) { return builder.variant->mutable_steps(step); }
plan::Buffer *bufferOf(PlanBuilder &builder, int buffer) { return builder.plan.mutable_buffers(buffer); }

TEST(PlanChecker, SoundPlansPass) {
  for (int64_t devices : {1, 2, 3, 4, 6, 8}) {
    EXPECT_EQ(whyRefused(matmulAllReduce(devices).plan), "") << devices;
    EXPECT_EQ(whyRefused(regression(devices).plan), "") << devices;
  }
}

TEST(PlanChecker, ProductsMayBeNarrow) {
  for (plan::DataType result : {plan::F32, plan::BF16}) {
    PlanBuilder builder = matmulAllReduce(1);
    for (auto [number, type] : {std::pair(0, plan::BF16), std::pair(1, plan::BF16), std::pair(2, result), std::pair(3, result)}) {
      plan::Buffer *buffer = bufferOf(builder, number);
      buffer->set_dtype(type);
      buffer->set_bytes(buffer->bytes() / (type == plan::F32 ? 1 : 2));
    }
    EXPECT_EQ(whyRefused(builder.plan), "");
  }
}

/// One fault planted into regression(4) (or matmulAllReduce(4)), and a part of the message that it must give.
struct Fault {
  friend void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.name; }
  const char *name;
  std::function<void(PlanBuilder &)> plant;
  const char *message;
};

class RegressionFault : public testing::TestWithParam<Fault> {};

TEST_P(RegressionFault, IsRefused) {
  PlanBuilder builder = regression(4);
  GetParam().plant(builder);
  std::string why = whyRefused(builder.plan);
  EXPECT_NE(why.find(GetParam().message), std::string::npos) << "got: " << why;
}

// Buffers: 0 x, 1 y, 2 w, 3 learning_rate, 4 scale, 5 predicted, 6 slope, 7 loss_term, 8 loss, 9 grad_term, 10 grad.
// Steps: 0 scale, 1 loss_identity, 2 matmul, 3 mse, 4 loss_sum, 5 grad, 6 grad_sum, 7 sgd.
const Fault tableFaults[] = {
    {"NoDevices", [](auto &b) { b.plan.set_devices(0); }, "it is for 0 devices"},
    {"AxisTwice", [](auto &b) { b.plan.mutable_shardings(0)->mutable_dims(1)->add_axes(0); }, "sharding 0 is unsound: axis 0 is used twice"},
    {"AxisMissing", [](auto &b) { b.plan.mutable_shardings(0)->mutable_dims(0)->set_axes(0, 7); }, "sharding 0 is unsound: axis 7 does not exist"},
    {"HugeAxis", [](auto &b) { b.plan.mutable_shardings(0)->set_axes(0, 4000000000u); }, "does not cover 4 devices"},
    {"HugeShape", [](auto &b) { bufferOf(b, 0)->set_shape(0, int64_t{1} << 62); }, "buffer 'x' (net.mir:2) has too many elements"},
    {"NegativeShape", [](auto &b) { bufferOf(b, 0)->set_shape(0, -1); }, "has a dimension of size -1"},
    {"ShardingIndex", [](auto &b) { bufferOf(b, 5)->set_sharding(99); }, "buffer 'predicted' (net.mir:7) names sharding 99 of 11"},
    {"Unaligned", [](auto &b) { bufferOf(b, 5)->set_offset(8); }, "starts at byte 8, not a multiple of 64"},
    {"OutsideArena", [](auto &b) { bufferOf(b, 5)->set_offset(1 << 20); }, "outside the arena"},
    {"OffsetOverflow", [](auto &b) { bufferOf(b, 5)->set_offset(~uint64_t{63}); }, "outside the arena"},
    {"TooSmall", [](auto &b) { bufferOf(b, 5)->set_bytes(4); }, "buffer 'predicted' (net.mir:7) has 4 bytes, but a rank holds up to 36"},
    {"ParameterInActivation", [](auto &b) { b.plan.mutable_parameters(0)->set_buffer(5); }, "parameter 'w' lies in buffer 'predicted'"},
    {"UnknownInitializer", [](auto &b) { b.plan.mutable_parameters(0)->mutable_initializer()->set_kind("magic"); }, "unknown initializer 'magic'"},
    {"ScheduleInTensor", [](auto &b) { b.plan.mutable_schedules(0)->set_buffer(2); }, "schedule 'learning_rate' writes buffer 'w', which is no scalar"},
    {"ScheduleWritten", [](auto &b) { stepOf(b, 7)->add_writes(3); }, "step 'sgd' writes what schedule 'learning_rate' sets"},
    {"MissingSymbol", [](auto &b) { b.plan.mutable_kernels(0)->mutable_variants(0)->set_symbol("gone"); }, "kernel 'mse' has no symbol 'gone'"},
    {"CodeIsNoElf", [](auto &b) { b.plan.mutable_objects(0)->set_code("text"); }, "machine code for 'x86-64-v3' is refused: it is not an ELF file"},
    {"LocationIndex", [](auto &b) { stepOf(b, 2)->set_location(99); }, "step 'matmul' names location 99 of 30"},
    {"ParameterShared", [](auto &b) { bufferOf(b, 5)->set_offset(bufferOf(b, 2)->offset()); }, "buffers 'w' and 'predicted' share memory, but 'w' lives for the whole run"},
};
INSTANTIATE_TEST_SUITE_P(Tables, RegressionFault, testing::ValuesIn(tableFaults), [](const auto &info) { return info.param.name; });

const Fault programFaults[] = {
    {"RankMissing", [](auto &b) { b.program->mutable_ranges(0)->set_last(2); }, "the ranks of a program end at 2, expected 3"},
    {"VariantIndex", [](auto &b) { b.program->mutable_ranges(0)->set_variant(1); }, "run variant 1 of 1"},
    {"LossMissing", [](auto &b) { b.plan.mutable_training()->set_loss("gain"); }, "the loss 'gain' is no output"},
    {"LossIsATensor", [](auto &b) { b.plan.mutable_training()->set_loss("predicted"); }, "the loss 'predicted' is no scalar of floats"},
    {"GroupMatrix", [](auto &b) { b.variant->mutable_groups(0)->set_matrix(0, 3); }, "the device matrix of group 0 does not cover 4 devices"},
    {"GroupAxis", [](auto &b) { b.variant->mutable_groups(0)->set_axes(0, 1); }, "group 0 names axis 1"},
    {"StepWithoutBody", [](auto &b) { stepOf(b, 2)->clear_body(); }, "step 'matmul' (net.mir:4) has nothing to do"},
    {"BufferIndex", [](auto &b) { stepOf(b, 2)->mutable_matmul()->set_left(77); }, "step 'matmul' (net.mir:4) names a buffer, kernel, dimension or group that does not exist"},
    {"AfterItself", [](auto &b) { stepOf(b, 2)->add_after(2); }, "waits for step 2, which does not come before it"},
    {"HiddenRead", [](auto &b) { stepOf(b, 2)->mutable_reads()->RemoveLast(); }, "step 'matmul' (net.mir:4) reads 'w' (net.mir:4) without saying so"},
    {"HiddenWrite", [](auto &b) { stepOf(b, 2)->clear_writes(); }, "writes 'predicted' (net.mir:7) without saying so"},
    {"ClaimedWrite", [](auto &b) { stepOf(b, 2)->add_writes(6); }, "says that it writes 'slope' (net.mir:8), but it does not"},
    {"ArgumentCount", [](auto &b) { b.plan.mutable_kernels(1)->set_arguments(2); }, "passes 3 arguments to kernel 'sgd', expected 2"},
    {"NoTasks", [](auto &b) { stepOf(b, 3)->mutable_launch()->set_tasks(0); }, "has 0 tasks"},
    {"ForeignSize", [](auto &b) { stepOf(b, 7)->mutable_launch()->mutable_range(0)->set_buffer(0); }, "takes a size of 'x' (net.mir:2), which is none of its arguments"},
    {"LongRange", [](auto &b) { *stepOf(b, 7)->mutable_launch()->add_range() = stepOf(b, 7)->launch().range(0); }, "where it writes tensors of up to 12 elements"},
    {"PiecesOfARange", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->set_pieces(2), b.plan.mutable_kernels(1)->mutable_variants(0)->set_scratch(16); }, "has a range of 12 on rank 0, kernel 'sgd' cuts one unit into pieces"},
    {"OnePiece", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->set_pieces(1); }, "kernel 'sgd' has a variant in 1 pieces with 0 bytes of scratch, expected 2-4096 and some times 8 for each up to 1048576, or none"},
    {"LittlePieceScratch", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->set_pieces(4), b.plan.mutable_kernels(1)->mutable_variants(0)->set_scratch(24); }, "kernel 'sgd' has a variant in 4 pieces with 24 bytes of scratch, expected 2-4096 and some times 8 for each up to 1048576, or none"},
    {"PiecesWithoutScratch", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->set_pieces(4); }, "kernel 'sgd' has a variant in 4 pieces with 0 bytes of scratch, expected 2-4096 and some times 8 for each up to 1048576, or none"},
    {"SameMemoryTwice", [](auto &b) { stepOf(b, 3)->mutable_launch()->set_arguments(1, 6); }, "passes the same memory twice as 'slope' (net.mir:8) and 'slope' (net.mir:8), and writes it"},
    {"MatMulShapes", [](auto &b) { stepOf(b, 2)->mutable_matmul()->set_transpose_left(true); }, "dimension 0 (size 10) of 'x' (net.mir:2) and dimension 0 (size 4) of 'w' (net.mir:4) differ"},
    {"MatMulOfWholeNumbers", [](auto &b) { bufferOf(b, 0)->set_dtype(plan::I32); }, "step 'matmul' (net.mir:4) multiplies tensors of i32, expected f32, f16 or bf16"},
    {"MatMulOfTwoTypes", [](auto &b) { bufferOf(b, 0)->set_dtype(plan::BF16); }, "step 'matmul' (net.mir:4) has operands of type f32 and bf16"},
    {"MatMulToAnother", [](auto &b) { bufferOf(b, 0)->set_dtype(plan::BF16), bufferOf(b, 2)->set_dtype(plan::BF16), bufferOf(b, 5)->set_dtype(plan::F16); }, "step 'matmul' (net.mir:4) has type f16, expected f32 or the type of its operands, bf16"},
    {"MatMulOfF32ToNarrow", [](auto &b) { bufferOf(b, 5)->set_dtype(plan::F16); }, "step 'matmul' (net.mir:4) has type f16, expected f32 or the type of its operands, f32"},
    {"MatMulActivation", [](auto &b) { stepOf(b, 2)->mutable_matmul()->set_activation("mish"); }, "unknown activation 'mish'"},
    {"MatMulInPlace", [](auto &b) { bufferOf(b, 5)->set_offset(bufferOf(b, 0)->offset()); }, "reads and writes the same memory"},
    {"GradientNotReduced", [](auto &b) { b.plan.mutable_shardings(9)->clear_partial(); }, "the group is not the one over which the source is partial"},
    {"WrongReduction", [](auto &b) { stepOf(b, 6)->mutable_collective()->set_reduction(plan::MAX); }, "the source is partial by sum, the reduction is max"},
    {"ReadBeforeWritten", [](auto &b) { b.variant->mutable_steps()->SwapElements(2, 5); }, "before it is written"},
    {"ConstantAtStep", [](auto &b) { b.variant->clear_constants(); }, "which is a constant"},
    {"ScheduleMissing", [](auto &b) { b.plan.clear_schedules(); }, "step 'sgd' (net.mir:9) reads 'learning_rate' (net.mir:5) before it is written"},
    {"OutputOverwritten", [](auto &b) { bufferOf(b, 10)->set_offset(bufferOf(b, 5)->offset()); }, "output 'predicted' is overwritten by 'grad' (net.mir:12) before the end"},
    {"LiveMemoryShared", [](auto &b) { bufferOf(b, 6)->set_offset(bufferOf(b, 0)->offset()); }, "step 'grad' (net.mir:7) reads 'x' (net.mir:2), but its memory was overwritten by 'slope' (net.mir:8)"},
};
INSTANTIATE_TEST_SUITE_P(Programs, RegressionFault, testing::ValuesIn(programFaults), [](const auto &info) { return info.param.name; });

/// PTX with an entry per kernel, and the launches that belong to it.
void addPtx(PlanBuilder &builder) {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n";
  for (plan::Kernel &kernel : *builder.plan.mutable_kernels())
    for (plan::Kernel::Variant &variant : *kernel.mutable_variants()) {
      std::string entry = "g_" + variant.symbol(), parameters;
      for (uint32_t i = 0; i <= kernel.arguments(); ++i)
        parameters += fmt::format("{}\n\t.param .u64 {}_param_{}", i ? "," : "", entry, i);
      if (text.find("\n.visible .entry " + entry + "(") == std::string::npos)
        text += fmt::format("\n.visible .entry {}({}\n)\n.reqntid 256, 1, 1\n{{\n\tret;\n}}\n", entry, parameters);
      plan::GpuLaunch *launch = variant.mutable_gpu();
      launch->set_entry(entry);
      launch->set_block(256);
      launch->set_items(1);
      launch->set_block_items(256);
      launch->set_most_range(1 << 20);
    }
  plan::CodeObject *object = builder.plan.add_objects();
  object->set_isa("nvptx64");
  object->set_code(text);
}

plan::GpuLaunch *gpuOf(PlanBuilder &builder, int kernel) {
  return builder.plan.mutable_kernels(kernel)->mutable_variants(0)->mutable_gpu();
}
void replaceInPtx(PlanBuilder &builder, const std::string &from, const std::string &to) {
  std::string *text = builder.plan.mutable_objects()->rbegin()->mutable_code();
  text->replace(text->find(from), from.size(), to);
}

/// Kernel 1 with memory that its blocks share.
void takeScratch(PlanBuilder &builder, uint64_t bytes) {
  replaceInPtx(builder, ".u64 g_sgd_param_0", ".u64 g_sgd_param_0,\n\t.param .u64 g_sgd_scratch");
  gpuOf(builder, 1)->set_unit_scratch(bytes);
}

TEST(GpuScratch, IsOneMoreParameter) {
  PlanBuilder builder = regression(4);
  addPtx(builder);
  takeScratch(builder, 16);
  EXPECT_EQ(whyRefused(builder.plan), "");
}

class GpuFault : public testing::TestWithParam<Fault> {};

TEST_P(GpuFault, IsRefused) {
  PlanBuilder builder = regression(4);
  addPtx(builder);
  ASSERT_EQ(whyRefused(builder.plan), "");
  GetParam().plant(builder);
  EXPECT_EQ(whyRefused(builder.plan), GetParam().message);
}

const Fault gpuFaults[] = {
    {"NoPtx", [](auto &b) { b.plan.mutable_objects()->RemoveLast(); }, "kernel 'mse' has an entry 'g_mse' for GPUs, but the plan holds no PTX"},
    {"NoLaunch", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->clear_gpu(); }, "kernel 'sgd' has no entry '' in the PTX"},
    {"MissingEntry", [](auto &b) { gpuOf(b, 0)->set_entry("gone"); }, "kernel 'mse' has no entry 'gone' in the PTX"},
    {"OtherParameters", [](auto &b) { b.plan.mutable_kernels(1)->mutable_variants(0)->mutable_gpu()->set_entry("g_mse"); }, "kernel 'sgd' has 6 parameters in the PTX, expected 4"},
    {"OtherBlock", [](auto &b) { gpuOf(b, 0)->set_block(128); }, "kernel 'mse' is launched in blocks of 128 threads, its PTX requires 256"},
    {"NoBlock", [](auto &b) { replaceInPtx(b, ".reqntid 256", ".maxntid 256"); }, "kernel 'mse' is launched in blocks of 256 threads, its PTX requires 0"},
    {"NoItems", [](auto &b) { gpuOf(b, 0)->set_items(0); }, "the grid of kernel 'mse' is unsound: 0 / 256 blocks for each of at most 1048576 units"},
    {"NoBlockItems", [](auto &b) { gpuOf(b, 0)->set_block_items(0); }, "the grid of kernel 'mse' is unsound: 1 / 0 blocks for each of at most 1048576 units"},
    {"GridOverflows", [](auto &b) { gpuOf(b, 0)->set_items(uint64_t{1} << 60); }, "the grid of kernel 'mse' is unsound: 1152921504606846976 / 256 blocks for each of at most 1048576 units"},
    {"ShortRange", [](auto &b) { gpuOf(b, 1)->set_most_range(3); }, "step 'sgd' (net.mir:9) has a range of 12 on rank 0, kernel 'sgd' counts to 3 on a GPU"},
    {"ScratchWithoutParameter", [](auto &b) { gpuOf(b, 1)->set_unit_scratch(16); }, "kernel 'sgd' has 4 parameters in the PTX, expected 5"},
    {"OddScratch", [](auto &b) { takeScratch(b, 12); }, "kernel 'sgd' takes 12 bytes of scratch per unit, expected a multiple of 8 up to 1048576"},
    {"MuchScratch", [](auto &b) { takeScratch(b, uint64_t{1} << 40); }, "kernel 'sgd' takes 1099511627776 bytes of scratch per unit, expected a multiple of 8 up to 1048576"},
    {"NoText", [](auto &b) { b.plan.mutable_objects()->rbegin()->set_code("text"); }, "its machine code for 'nvptx64' is refused: it is no PTX text"},
    {"OldGpu", [](auto &b) { replaceInPtx(b, "sm_80", "sm_70"); }, "its machine code for 'nvptx64' is refused: it is for 'sm_70', expected sm_80 or later"},
    {"EntryTwice", [](auto &b) { replaceInPtx(b, "g_sgd(", "g_mse("); }, "its machine code for 'nvptx64' is refused: it defines 'g_mse' twice"},
    {"Imports", [](auto &b) { replaceInPtx(b, ".visible .entry g_mse", ".extern .func vprintf"); }, "its machine code for 'nvptx64' is refused: it imports ' .func vprintf('"},
    {"OtherTypes", [](auto &b) { replaceInPtx(b, ".u64", ".u32"); }, "its machine code for 'nvptx64' is refused: a parameter has the type '.u32'"},
};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuFault, testing::ValuesIn(gpuFaults), [](const auto &info) { return info.param.name; });

TEST(PlanChecker, MemoryIsSharedAfterTheLastReader) {
  PlanBuilder builder = regression(4);
  // 'grad' (48 bytes) takes the memory of 'slope' (36 bytes), whose last reader is the step before.
  bufferOf(builder, 10)->set_offset(bufferOf(builder, 6)->offset());
  bufferOf(builder, 6)->set_bytes(36);
  EXPECT_EQ(whyRefused(builder.plan), "");
  // 'grad_term' is written by the step that reads 'slope'.
  bufferOf(builder, 9)->set_offset(bufferOf(builder, 6)->offset());
  EXPECT_NE(whyRefused(builder.plan).find("the same memory"), std::string::npos);
}

TEST(PlanChecker, ValueIsReadAfterItsMemoryIsTaken) {
  PlanBuilder builder(2, plan::Program::PREDICT);
  uint32_t a = builder.buffer("a", {4}, builder.cut(1, -1)), b = builder.buffer("b", {4}, builder.cut(1, -1));
  uint32_t c = builder.buffer("c", {4}, builder.cut(1, -1), plan::Buffer::OUTPUT);
  bufferOf(builder, 1)->set_offset(bufferOf(builder, 0)->offset());
  builder.fill("a", a, 1);
  builder.fill("b", b, 2);
  builder.copy("c", a, c);
  builder.output(c);
  EXPECT_EQ(whyRefused(builder.plan),
            "step 'c' (net.mir:4) reads 'a' (net.mir:2), but its memory was overwritten by 'b' (net.mir:3)");
}

// Asynchronous collectives ------------------------------------------------------------------------------------------

/// fill p; start AllReduce p -> q on stream 1; work on stream 0; wait; read q.
PlanBuilder overlapped() {
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t p = builder.buffer("p", {8}, builder.partial(1)), q = builder.buffer("q", {8}, builder.cut(1, -1));
  uint32_t other = builder.buffer("other", {8}, builder.cut(1, -1));
  uint32_t out = builder.buffer("out", {8}, builder.cut(1, -1), plan::Buffer::OUTPUT);
  builder.fill("p", p, 1);
  plan::Step *start = builder.collective("sum", plan::Collective::ALL_REDUCE, p, q);
  start->mutable_collective()->set_asynchronous(true);
  start->set_stream(1);
  start->add_after(0);
  builder.fill("other", other, 2);
  builder.wait("wait", 1);
  builder.copy("out", q, out);
  builder.output(out);
  return builder;
}

TEST(PlanChecker, OverlapPasses) { EXPECT_EQ(whyRefused(overlapped().plan), ""); }

TEST(PlanChecker, StreamsNeedAnEdge) {
  PlanBuilder builder = overlapped();
  stepOf(builder, 1)->clear_after();
  EXPECT_EQ(whyRefused(builder.plan),
            "step 'sum' (net.mir:3) reads 'p' (net.mir:2), but nothing makes it wait for step 'p' (net.mir:2), which writes it");
}

TEST(PlanChecker, WaitBeforeStart) {
  PlanBuilder builder = overlapped();
  builder.variant->mutable_steps()->SwapElements(1, 3);
  EXPECT_NE(whyRefused(builder.plan).find("step 'wait' (net.mir:5) waits for step 1, which does not start before it"),
            std::string::npos);
}

TEST(PlanChecker, NeverAwaited) {
  PlanBuilder builder = overlapped();
  stepOf(builder, 3)->mutable_fill()->set_target(2);
  stepOf(builder, 3)->add_writes(2);
  EXPECT_EQ(whyRefused(builder.plan), "step 'sum' (net.mir:3) is started, but never awaited");
}

TEST(PlanChecker, AwaitedTwice) {
  PlanBuilder builder = overlapped();
  builder.wait("again", 1);
  EXPECT_EQ(whyRefused(builder.plan),
            "step 'sum' (net.mir:3) is awaited twice, by step 'wait' (net.mir:5) and by step 'again' (net.mir:7)");
}

TEST(PlanChecker, SourceOverwrittenInFlight) {
  PlanBuilder builder = overlapped();
  stepOf(builder, 2)->mutable_fill()->set_target(0);
  stepOf(builder, 2)->set_writes(0, 0);
  EXPECT_EQ(whyRefused(builder.plan),
            "step 'other' (net.mir:4) writes 'p' (net.mir:2) while step 'sum' (net.mir:3) is in flight and uses its memory");
}

TEST(PlanChecker, TargetReadInFlight) {
  PlanBuilder builder = overlapped();
  builder.variant->mutable_steps()->SwapElements(3, 4);
  EXPECT_NE(whyRefused(builder.plan).find("nothing makes it wait for step 'wait'"), std::string::npos);
}

TEST(PlanChecker, InFlightMemoryReused) {
  PlanBuilder builder = overlapped();
  bufferOf(builder, 2)->set_offset(bufferOf(builder, 1)->offset());
  EXPECT_NE(whyRefused(builder.plan).find("while step 'sum' (net.mir:3) is in flight"), std::string::npos);
}

// Collectives and shardings -----------------------------------------------------------------------------------------

std::string moves(plan::Collective::Kind kind, int64_t devices, const Sharding &from, const Sharding &to,
                  const std::vector<uint32_t> &matrix, const std::vector<uint32_t> &axes, std::vector<int64_t> shape) {
  PlanBuilder builder(devices, plan::Program::PREDICT);
  uint32_t source = builder.buffer("source", shape, from), target = builder.buffer("target", shape, to);
  builder.fill("source", source, 1);
  builder.collective("move", kind, source, target, static_cast<int>(builder.group(matrix, axes)));
  return whyRefused(builder.plan);
}

TEST(PlanChecker, MovesThatFitPass) {
  Sharding rows{{2, 2}, {{0, 1}, {}}, {}}, halfRows{{2, 2}, {{0}, {}}, {}}, columns{{2, 2}, {{}, {0, 1}}, {}};
  Sharding partialRows{{2, 2}, {{0}, {}}, {{1, ReduceKind::Sum}}}, swapped{{2, 2}, {{1, 0}, {}}, {}};
  using C = plan::Collective;
  EXPECT_EQ(moves(C::ALL_GATHER, 4, rows, halfRows, {2, 2}, {1}, {8, 6}), "");
  EXPECT_EQ(moves(C::ALL_TO_ALL, 4, rows, columns, {2, 2}, {0, 1}, {8, 6}), "");
  EXPECT_EQ(moves(C::PERMUTE, 4, rows, swapped, {2, 2}, {0, 1}, {8, 6}), "");
  EXPECT_EQ(moves(C::REDUCE_SCATTER, 4, partialRows, rows, {2, 2}, {1}, {8, 6}), "");
  EXPECT_EQ(moves(C::ALL_REDUCE, 4, partialRows, halfRows, {2, 2}, {1}, {7, 6}), "");
  EXPECT_EQ(moves(C::EXCHANGE, 6, {{2, 3}, {{0}, {1}}, {}}, {{3, 2}, {{0}, {1}}, {}}, {6}, {0}, {7, 5}), "");
}

TEST(PlanChecker, MovesThatDoNotFitAreRefused) {
  Sharding rows{{2, 2}, {{0, 1}, {}}, {}}, halfRows{{2, 2}, {{0}, {}}, {}}, columns{{2, 2}, {{}, {0, 1}}, {}};
  Sharding partialRows{{2, 2}, {{0}, {}}, {{1, ReduceKind::Sum}}};
  using C = plan::Collective;
  std::string missing = "a rank needs elements that no member of its group holds";
  EXPECT_NE(moves(C::ALL_GATHER, 4, rows, halfRows, {2, 2}, {0}, {8, 6}).find(missing), std::string::npos);
  EXPECT_NE(moves(C::ALL_TO_ALL, 4, rows, columns, {2, 2}, {1}, {8, 6}).find(missing), std::string::npos);
  EXPECT_NE(moves(C::ALL_REDUCE, 4, partialRows, halfRows, {2, 2}, {0, 1}, {8, 6}).find("the group is not the one"), std::string::npos);
  EXPECT_NE(moves(C::ALL_REDUCE, 4, partialRows, rows, {2, 2}, {1}, {8, 6}).find("cut differently"), std::string::npos);
  EXPECT_NE(moves(C::REDUCE_SCATTER, 4, partialRows, columns, {2, 2}, {1}, {8, 6}).find("does not hold all terms"), std::string::npos);
  EXPECT_NE(moves(C::ALL_GATHER, 4, partialRows, halfRows, {2, 2}, {1}, {8, 6}).find(missing), std::string::npos);
}

TEST(PlanChecker, AllReduceInPlaceIsAView) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t terms = builder.buffer("terms", {8}, builder.partial(1));
  uint32_t sum = builder.viewOf(terms, "sum", {8}, builder.cut(1, -1));
  builder.fill("terms", terms, 1);
  plan::Step *step = builder.collective("reduce", plan::Collective::ALL_REDUCE, terms, sum);
  builder.output(sum);
  EXPECT_EQ(whyRefused(builder.plan), "");
  step->mutable_collective()->set_kind(plan::Collective::ALL_GATHER);
  EXPECT_NE(whyRefused(builder.plan).find("source and target share memory"), std::string::npos);
}

TEST(PlanChecker, EveryTensorOfACollectiveIsProven) {
  auto two = [](const Sharding &secondFrom, const Sharding &secondTo, plan::DataType type, bool shared) {
    PlanBuilder builder(4, plan::Program::PREDICT);
    uint32_t a = builder.buffer("a", {8}, builder.partial(1)), x = builder.buffer("x", {8}, builder.cut(1, -1));
    uint32_t b = builder.buffer("b", {6}, secondFrom, plan::Buffer::ACTIVATION, type);
    uint32_t y = shared ? builder.viewOf(a, "y", {8}, builder.cut(1, -1))
                        : builder.buffer("y", {6}, secondTo, plan::Buffer::ACTIVATION, type);
    builder.fill("a", a, 1);
    builder.fill("b", b, 1);
    plan::Step *step = builder.collective("reduce", plan::Collective::ALL_REDUCE, a, x);
    shared ? builder.also(step, a, y) : builder.also(step, b, y);
    return whyRefused(builder.plan);
  };
  PlanBuilder of(4, plan::Program::PREDICT);
  EXPECT_EQ(two(of.partial(1), of.cut(1, -1), plan::F32, false), "");
  EXPECT_NE(two(of.partial(1), of.cut(1, 0), plan::F32, false).find("cut differently"), std::string::npos);
  EXPECT_NE(two(of.cut(1, -1), of.cut(1, -1), plan::F32, false).find("the group is not the one"), std::string::npos);
  EXPECT_NE(two(of.partial(1), of.cut(1, -1), plan::F64, false).find("which differ in type"), std::string::npos);
  EXPECT_NE(two(of.partial(1), of.cut(1, -1), plan::F32, true).find("for two tensors"), std::string::npos);
  // What it does not say that it reads.
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t a = builder.buffer("a", {8}, builder.partial(1)), x = builder.buffer("x", {8}, builder.cut(1, -1));
  uint32_t b = builder.buffer("b", {8}, builder.partial(1)), y = builder.buffer("y", {8}, builder.cut(1, -1));
  builder.fill("a", a, 1);
  builder.fill("b", b, 1);
  plan::Step *step = builder.collective("reduce", plan::Collective::ALL_REDUCE, a, x);
  builder.also(step, b, y);
  step->mutable_reads()->RemoveLast();
  EXPECT_NE(whyRefused(builder.plan).find("reads 'b' "), std::string::npos);
  step->mutable_collective()->mutable_also(0)->set_target(99);
  EXPECT_NE(whyRefused(builder.plan).find("does not exist"), std::string::npos);
}

TEST(PlanChecker, ViewsShowTheSameElements) {
  PlanBuilder builder(2, plan::Program::PREDICT);
  uint32_t a = builder.buffer("a", {4, 6}, builder.cut(2, 0));
  uint32_t view = builder.viewOf(a, "flat", {24}, builder.cut(1, 0));
  EXPECT_EQ(whyRefused(builder.plan), "");
  bufferOf(builder, static_cast<int>(view))->set_shape(0, 12);
  bufferOf(builder, static_cast<int>(view))->set_bytes(24);
  EXPECT_NE(whyRefused(builder.plan).find("view 'flat' (net.mir:3) has 6 elements on rank 0"), std::string::npos);
}

TEST(PlanChecker, CopiesAreLocal) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t rows = builder.buffer("rows", {8, 8}, builder.cut(2, 0)), all = builder.buffer("all", {8, 8}, builder.cut(2, -1));
  builder.fill("all", all, 1);
  builder.copy("slice", all, rows);
  EXPECT_EQ(whyRefused(builder.plan), "");
  plan::Step *back = builder.copy("gather", rows, all);
  EXPECT_NE(whyRefused(builder.plan).find("step 'gather' (net.mir:4) copies what 'all' (net.mir:3) holds from 'rows' "
                                          "(net.mir:2) on the same rank, which does not hold on every rank"),
            std::string::npos);
  back->mutable_copy()->set_target(rows);
}

/// (8) cut over two of four ranks into (5): indices 1 to 5, by a copy or an exchange of pairs.
struct RegionPlan {
  PlanBuilder builder{4, plan::Program::PREDICT};
  plan::Step *step = nullptr;
  plan::CopyRegions *regions = nullptr;

  explicit RegionPlan(bool exchanges, const Sharding &from, const Sharding &to) {
    uint32_t x = builder.buffer("x", {8}, from), y = builder.buffer("y", {5}, to);
    builder.fill("x", x, 1);
    if (exchanges) {
      step = builder.collective("part", plan::Collective::EXCHANGE, x, y, static_cast<int>(builder.group({2, 2}, {1})));
      regions = step->mutable_collective()->mutable_regions();
    } else {
      step = builder.copy("part", x, y);
      regions = step->mutable_copy()->mutable_regions();
    }
    *regions = fromRegions({{0, {{1, 0, 5}}}});
  }
  std::string wrong() const { return whyRefused(builder.plan); }
};

TEST(PlanChecker, RegionsStayWithinTensorsAndRanks) {
  Sharding whole{{2, 2}, {{}}, {}}, inner{{2, 2}, {{1}}, {}}, outer{{2, 2}, {{0}}, {}};
  EXPECT_EQ(RegionPlan(false, whole, inner).wrong(), "");
  EXPECT_EQ(RegionPlan(true, inner, inner).wrong(), "");
  EXPECT_EQ(RegionPlan(true, inner, outer).wrong(), "");
  EXPECT_NE(RegionPlan(false, inner, inner).wrong().find("a dimension along which they move is cut"), std::string::npos);
  EXPECT_NE(RegionPlan(true, outer, outer).wrong().find("is cut beyond the group"), std::string::npos);
  for (bool exchanges : {false, true}) {
    RegionPlan far(exchanges, whole, whole), twice(exchanges, whole, whole), open(exchanges, whole, whole);
    far.regions->mutable_regions(0)->set_source(0, 4);
    EXPECT_NE(far.wrong().find("into 'y' (net.mir:3): a region does not lie within dimension 0"), std::string::npos);
    *twice.regions->add_regions() = twice.regions->regions(0);
    EXPECT_NE(twice.wrong().find("regions 0 and 1 write the same elements"), std::string::npos);
    open.regions->mutable_regions(0)->set_size(0, 4);
    EXPECT_NE(open.wrong().find("leaves elements of 'y' (net.mir:3) without a value"), std::string::npos);
    if (exchanges)
      open.step->mutable_collective()->mutable_fill()->set_value(1);
    else
      open.step->mutable_copy()->mutable_fill()->set_value(1);
    EXPECT_EQ(open.wrong(), "");
  }
  // The last element of every piece: each rank has its own, as long as they are not exchanged.
  for (bool swapped : {false, true}) {
    PlanBuilder builder{4, plan::Program::PREDICT};
    uint32_t x = builder.buffer("x", {8}, inner), y = builder.buffer("y", {2}, inner);
    builder.fill("x", x, 1);
    *builder.copy("ends", x, y)->mutable_copy()->mutable_regions() = fromRegions({{0, {{3, swapped, 1}}}, {0, {{7, !swapped, 1}}}});
    EXPECT_EQ(whyRefused(builder.plan).find("a dimension along which they move is cut") != std::string::npos, swapped);
  }
  RegionPlan gathers(true, inner, inner);
  gathers.step->mutable_collective()->set_kind(plan::Collective::ALL_GATHER);
  EXPECT_NE(gathers.wrong().find("copies regions, which only an exchange does"), std::string::npos);
}

TEST(PlanChecker, UnevenInnerSizesNeedTheirVariants) {
  PlanBuilder builder(3, plan::Program::PREDICT);
  uint32_t a = builder.buffer("a", {4, 7}, builder.cut(2, 1)); // 2, 2, 3 columns
  builder.fill("a", a, 1);
  plan::Step *launch = builder.launch("mark", {a}, {}, {a}, {0});
  builder.testKernels();
  launch->mutable_launch()->add_inner()->set_buffer(a);
  launch->mutable_launch()->mutable_inner(0)->set_dim(1);
  builder.plan.mutable_kernels(0)->mutable_variants(0)->add_inner(2);
  EXPECT_EQ(whyRefused(builder.plan),
            "step 'mark' (net.mir:3): kernel 'mark' has no variant for the inner sizes (3) of rank 2");
  auto *second = builder.plan.mutable_kernels(0)->add_variants();
  second->add_inner(3);
  second->set_symbol("mark");
  EXPECT_EQ(whyRefused(builder.plan), "");
}

// Several variants ----------------------------------------------------------------------------------------------------

/// Two roles on four devices: ranks 0-1 and 2-3; both sum over all devices and over pairs, in the given orders.
PlanBuilder twoRoles(bool swapped) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  Sharding partial = builder.partial(1), pairs{{2, 2}, {{}}, {{0, ReduceKind::Sum}}};
  uint32_t p = builder.buffer("p", {8}, partial), q = builder.buffer("q", {8}, builder.cut(1, -1));
  uint32_t r = builder.buffer("r", {8}, pairs), s = builder.buffer("s", {8}, builder.cut(1, -1));
  auto emit = [&](bool first) {
    builder.fill("p", p, 1);
    builder.fill("r", r, 1);
    uint32_t across = builder.group({2, 2}, {0});
    if (first)
      builder.collective("all", plan::Collective::ALL_REDUCE, p, q);
    builder.collective("pairs", plan::Collective::ALL_REDUCE, r, s, static_cast<int>(across));
    if (!first)
      builder.collective("all", plan::Collective::ALL_REDUCE, p, q);
  };
  emit(true);
  builder.variant = builder.program->add_variants();
  emit(!swapped);
  builder.program->mutable_ranges(0)->set_last(1);
  auto *range = builder.program->add_ranges();
  range->set_first(2);
  range->set_last(3);
  range->set_variant(1);
  return builder;
}

TEST(PlanChecker, RolesThatAgreePass) { EXPECT_EQ(whyRefused(twoRoles(false).plan), ""); }

TEST(PlanChecker, SwappedCollectivesWouldHang) {
  EXPECT_EQ(whyRefused(twoRoles(true).plan),
            "step 'all' (net.mir:4): rank 0 would wait for ever, because the members of its group run other collectives");
}

/// One pooling step over an image whose batch is cut over all devices.
PlanBuilder pooling(int64_t devices, int64_t batch) {
  PlanBuilder builder(devices, plan::Program::PREDICT);
  uint32_t x = builder.buffer("x", {batch, 2, 5, 6}, builder.cut(4, 0), plan::Buffer::INPUT);
  uint32_t y = builder.buffer("y", {batch, 2, 2, 3}, builder.cut(4, 0));
  builder.input(x);
  builder.call("pool", "MaxPool", {x}, {y}, {{"kernel_size", {3, 2}}, {"strides", {2}}});
  builder.output(y);
  return builder;
}

TEST(PlanChecker, SoundCallsPass) {
  for (int64_t devices : {1, 2, 3, 4, 8})
    for (int64_t batch : {2, 7, 8})
      EXPECT_EQ(whyRefused(pooling(devices, batch).plan), "") << devices << " " << batch;
}

TEST(PlanChecker, CallsThatDoNotFitAreRefused) {
  auto why = [](auto plant) {
    PlanBuilder builder = pooling(4, 7);
    plant(builder, builder.variant->mutable_steps(0)->mutable_call());
    return whyRefused(builder.plan);
  };
  auto expect = [&](auto plant, const std::string &message) { EXPECT_EQ(why(plant), "step 'pool' (net.mir:2)" + message); };
  expect([](auto &, auto *call) { call->set_kernel("Magic"); }, ": there is no kernel 'Magic'");
  expect([](auto &, auto *call) { call->set_tasks(0); }, " has 0 tasks, expected 1-65536");
  expect([](auto &, auto *call) { call->set_operands(0, 9); }, " names a buffer, kernel, dimension or group that does not exist");
  expect([](auto &b, auto *call) { call->set_operands(0, 1), b.variant->mutable_steps(0)->set_reads(0, 1); },
         " reads and writes the same memory: 'y' (net.mir:3) and 'y' (net.mir:3)");
  expect([](auto &, auto *call) { call->mutable_attributes(0)->set_ints(0, 5); }, ": MaxPool: dimension 2 has 1 windows, found 2");
  auto whole = [](auto &b, auto *) {
    b.plan.mutable_shardings(1)->mutable_dims(0)->clear_axes();
    b.plan.mutable_buffers(1)->set_bytes(336);
    b.plan.set_arena_bytes(b.plan.arena_bytes() + 384);
  };
  expect(whole, ": MaxPool: batch or channels differ between its tensors");
}

/// A kernel of one row with stride 3 over 8 rows on 4 ranks: outputs take rows 0, 3, 6 and, from the padding, 9.
PlanBuilder strided(const std::vector<int64_t> &rows, const std::vector<int64_t> &halo) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t x = builder.buffer("x", {1, 1, rows[0], 4}, builder.cut(4, 2), plan::Buffer::INPUT);
  uint32_t w = builder.buffer("w", {1, 1, 1, 1}, builder.cut(4, -1), plan::Buffer::INPUT);
  uint32_t y = builder.buffer("y", {1, 1, 4, 4}, builder.cut(4, 2));
  builder.input(x);
  builder.input(w);
  builder.call("conv", "Conv2D", {x, w}, {y}, {{"stride", {3, 1}}, {"pad", {0, 2, 0, 0}}, {"halo", halo}});
  plan::Call::Attribute *mode = builder.variant->mutable_steps(0)->mutable_call()->add_attributes();
  mode->set_name("pad_mode");
  mode->set_text("pad");
  builder.output(y);
  return builder;
}

TEST(PlanChecker, WindowsThatReachBeyondAPieceAreRefused) {
  // Rank 2 has rows 4 and 5 alone; no other rank lacks a row.
  EXPECT_EQ(whyRefused(strided({8}, {}).plan),
            "step 'conv' (net.mir:2): Conv2D: the rank lacks indices of dimension 2 that its windows reach");
  EXPECT_EQ(whyRefused(strided({4}, {0, 0, 8, 0}).plan), "") << "a window of one row for each";
  EXPECT_EQ(whyRefused(strided({4}, {0, 0, 0, 9}).plan), "step 'conv' (net.mir:2): Conv2D: dimension 2 has 2 windows, found 4");
}

TEST(PlanChecker, ConvolutionsAreOfOneFloatType) {
  auto typed = [](plan::DataType w, plan::DataType y) {
    PlanBuilder builder = strided({4}, {0, 0, 8, 0});
    for (auto [number, type] : {std::pair(0, plan::BF16), std::pair(1, w), std::pair(2, y)}) {
      plan::Buffer *buffer = bufferOf(builder, number);
      buffer->set_dtype(type);
      buffer->set_bytes(buffer->bytes() / (type == plan::F32 ? 1 : 2));
    }
    return whyRefused(builder.plan);
  };
  EXPECT_EQ(typed(plan::BF16, plan::BF16), "");
  for (auto [w, y] : {std::pair(plan::BF16, plan::F32), std::pair(plan::F32, plan::BF16), std::pair(plan::F16, plan::BF16)})
    EXPECT_EQ(typed(w, y), "step 'conv' (net.mir:2): Conv2D takes tensors of one float type");
}

TEST(PlanChecker, ManyDevicesAreCheckedQuickly) {
  PlanBuilder large(1 << 16, plan::Program::PREDICT);
  Sharding rows{{256, 256}, {{0, 1}, {}}, {}}, columns{{256, 256}, {{0}, {1}}, {}};
  std::vector<int64_t> shape{1 << 20, 1 << 10};
  uint32_t a = large.buffer("a", shape, rows), b = large.buffer("b", shape, columns);
  large.fill("a", a, 1);
  for (int i = 0; i < 1000; ++i)
    large.collective("move", plan::Collective::ALL_TO_ALL, a, b, static_cast<int>(large.group({256, 256}, {1})));
  EXPECT_EQ(whyRefused(large.plan), "");
}

} // namespace
