// Programs and the bodies of their local steps.
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/RankClasses.h"
#include "runtime/plan/calls/Call.h"

#include <algorithm>
#include <map>
#include <set>

namespace msc::check {
namespace {

constexpr uint32_t mostStreams = 8;
constexpr uint32_t mostTasks = 1u << 16;
constexpr uint64_t mostScratch = uint64_t{1} << 32; ///< bytes of one launch

template <typename Index, typename List> bool inRange(Index index, const List &list) {
  return index < static_cast<uint64_t>(list.size());
}

std::string pair(const PlanIndex &index, uint32_t a, uint32_t b) {
  return fmt::format("{} and {}", index.bufferTitle(a), index.bufferTitle(b));
}

/// A failed or unfinished proof as an error.
Status proven(Proof proof, const std::string &statement) {
  if (proof == Proof::Yes)
    return {};
  if (proof == Proof::Unknown)
    return bad("{}: this cannot be proven within bounded work", statement);
  return bad("{}, which does not hold on every rank", statement);
}

Status checkRanges(const PlanIndex &index, const plan::Program &program) {
  if (program.variants_size() == 0 || program.ranges_size() == 0)
    return bad("a program has no variant or no ranks");
  int64_t next = 0;
  for (const plan::Program::RankRange &range : program.ranges()) {
    if (range.first() != next || range.last() < range.first())
      return bad("ranks {}-{} of a program follow rank {}", range.first(), range.last(), next - 1);
    if (!inRange(range.variant(), program.variants()))
      return bad("ranks {}-{} run variant {} of {}", range.first(), range.last(), range.variant(),
                 program.variants_size());
    next = int64_t{range.last()} + 1;
  }
  if (next != index.devices())
    return bad("the ranks of a program end at {}, expected {}", next - 1, index.devices() - 1);
  return {};
}

Status checkEnds(const PlanIndex &index, const plan::Program &program) {
  std::set<std::string> names;
  for (const plan::Input &input : program.inputs()) {
    if (!inRange(input.buffer(), index.plan().buffers()) || index.root(input.buffer()) != input.buffer())
      return bad("input '{}' names buffer {}, which is none or a view", input.name(), input.buffer());
    if (!names.insert(input.name()).second)
      return bad("two inputs are called '{}'", input.name());
    if (index.buffer(input.buffer()).kind() != plan::Buffer::INPUT || index.sharding(input.buffer()).isPartial())
      return bad("input '{}' lies in buffer '{}', which is no input or partial", input.name(),
                 index.buffer(input.buffer()).name());
  }
  names.clear();
  for (const plan::Output &output : program.outputs()) {
    if (!inRange(output.buffer(), index.plan().buffers()))
      return bad("output '{}' names buffer {} of {}", output.name(), output.buffer(), index.bufferCount());
    if (!names.insert(output.name()).second)
      return bad("two outputs are called '{}'", output.name());
    if (index.sharding(output.buffer()).isPartial())
      return bad("output '{}' is partial", output.name());
  }
  if (program.purpose() != plan::Program::TRAIN || !index.plan().has_training())
    return {};
  const std::string &loss = index.plan().training().loss();
  for (const plan::Output &output : program.outputs())
    if (output.name() == loss) {
      const plan::Buffer &buffer = index.buffer(output.buffer());
      bool isWhole = buffer.dtype() == plan::I32 || buffer.dtype() == plan::I64 || buffer.dtype() == plan::BOOL;
      if (elementCount(index.shape(output.buffer())) != 1 || isWhole)
        return bad("the loss '{}' is no scalar of floats", loss);
      if (!index.sharding(output.buffer()).isReplicated())
        return bad("the loss '{}' is not known to every rank", loss);
      return {};
    }
  return bad("the loss '{}' is no output of the training program", loss);
}

Status checkGroup(const PlanIndex &index, const plan::Group &group, int number) {
  __int128 product = 1;
  for (uint32_t size : group.matrix()) {
    product *= std::max<uint32_t>(size, 1);
    if (size == 0 || product > index.devices())
      break;
  }
  if (product != index.devices() || std::count(group.matrix().begin(), group.matrix().end(), 0u) != 0)
    return bad("the device matrix of group {} does not cover {} devices", number, index.devices());
  std::set<uint32_t> used;
  for (uint32_t axis : group.axes())
    if (!inRange(axis, group.matrix()) || !used.insert(axis).second)
      return bad("group {} names axis {}, which does not exist or is named twice", number, axis);
  return {};
}

/// Everything that a step names exists.
Status checkStepIndices(const PlanIndex &index, const plan::Variant &variant, int number) {
  const plan::Step &step = variant.steps(number);
  const auto &buffers = index.plan().buffers();
  if (step.body_case() == plan::Step::BODY_NOT_SET)
    return bad("{} has nothing to do", at(index, step));
  if (step.stream() >= mostStreams)
    return bad("{} runs on stream {}, expected 0-{}", at(index, step), step.stream(), mostStreams - 1);
  for (uint32_t earlier : step.after())
    if (earlier >= static_cast<uint32_t>(number))
      return bad("{} waits for step {}, which does not come before it", at(index, step), earlier);
  auto known = [&](const auto &list) {
    return std::all_of(list.begin(), list.end(), [&](uint32_t buffer) { return inRange(buffer, buffers); });
  };
  BodyAccess body = accessOf(step);
  bool named = known(step.reads()) && known(step.writes()) && known(body.reads) && known(body.writes);
  if (step.has_launch()) {
    named &= known(step.launch().arguments()) && inRange(step.launch().kernel(), index.plan().kernels());
    for (const auto *sizes : {&step.launch().inner(), &step.launch().range()})
      for (const plan::SizeOf &size : *sizes)
        named &= inRange(size.buffer(), buffers) && inRange(size.dim(), index.shape(size.buffer()));
  }
  if (step.has_collective())
    named &= inRange(step.collective().group(), variant.groups()) &&
             plan::Collective::Kind_IsValid(step.collective().kind()) &&
             plan::Reduction_IsValid(step.collective().reduction());
  if (!named)
    return bad("{} names a buffer, kernel, dimension or group that does not exist", at(index, step));
  return {};
}

/// Step.reads and Step.writes say at least what the body does, and nothing more is written.
Status checkAccess(const PlanIndex &index, const plan::Step &step) {
  std::set<uint32_t> reads(step.reads().begin(), step.reads().end());
  std::set<uint32_t> writes(step.writes().begin(), step.writes().end());
  BodyAccess body = accessOf(step);
  for (uint32_t buffer : body.reads)
    if (!reads.count(buffer))
      return bad("{} reads {} without saying so", at(index, step), index.bufferTitle(buffer));
  std::set<uint32_t> allowed(body.writes.begin(), body.writes.end());
  if (step.has_launch())
    allowed.insert(step.launch().arguments().begin(), step.launch().arguments().end());
  for (uint32_t buffer : body.writes)
    if (!writes.count(buffer))
      return bad("{} writes {} without saying so", at(index, step), index.bufferTitle(buffer));
  for (uint32_t buffer : writes)
    if (!allowed.count(buffer))
      return bad("{} says that it writes {}, but it does not", at(index, step), index.bufferTitle(buffer));
  return {};
}

/// Do all ranks for which some result is not empty find their inner sizes among the variants of the kernel, and can a GPU
/// count that far?
Status checkVariants(const PlanIndex &index, const plan::Step &step) {
  const plan::Launch &launch = step.launch();
  const plan::Kernel &kernel = index.plan().kernels(static_cast<int>(launch.kernel()));
  std::map<std::vector<int64_t>, const plan::Kernel::Variant *> variants;
  for (const plan::Kernel::Variant &variant : kernel.variants())
    variants[{variant.inner().begin(), variant.inner().end()}] = &variant;
  RankClasses classes(index.devices());
  for (const auto *sizes : {&launch.inner(), &launch.range()})
    for (const plan::SizeOf &size : *sizes)
      classes.addSizes(index.sharding(size.buffer()), index.shape(size.buffer()));
  for (uint32_t buffer : step.writes())
    classes.addSizes(index.sharding(buffer), index.shape(buffer));
  for (int64_t rank : classes.ranks()) {
    std::vector<int64_t> inner;
    for (const plan::SizeOf &size : launch.inner())
      inner.push_back(index.localShape(size.buffer(), rank)[size.dim()]);
    bool works = std::any_of(step.writes().begin(), step.writes().end(),
                             [&](uint32_t buffer) { return index.localCount(buffer, rank) != 0; });
    if (!works)
      continue;
    auto variant = variants.find(inner);
    if (variant == variants.end())
      return bad("{}: kernel '{}' has no variant for the inner sizes ({}) of rank {}", at(index, step), kernel.name(),
                 fmt::join(inner, ", "), rank);
    int64_t end = 1;
    for (const plan::SizeOf &size : launch.range())
      end *= index.localShape(size.buffer(), rank)[size.dim()];
    int64_t most = 0; // what is written has the dimensions that are counted
    for (uint32_t buffer : step.writes())
      most = std::max(most, index.localCount(buffer, rank));
    if (end > most)
      return bad("{} has a range of {} on rank {}, where it writes tensors of up to {} elements", at(index, step), end, rank, most);
    if (variant->second->pieces() != 0 && end != 1)
      return bad("{} has a range of {} on rank {}, kernel '{}' cuts one unit into pieces", at(index, step), end, rank, kernel.name());
    if (variant->second->has_gpu() && static_cast<uint64_t>(end) > variant->second->gpu().most_range())
      return bad("{} has a range of {} on rank {}, kernel '{}' counts to {} on a GPU", at(index, step), end, rank, kernel.name(),
                 variant->second->gpu().most_range());
    if (uint64_t scratch = variant->second->gpu().unit_scratch(); scratch != 0 && static_cast<uint64_t>(end) > mostScratch / scratch)
      return bad("{} takes {} bytes of scratch for each of {} units on rank {}, expected up to {} bytes", at(index, step), scratch, end,
                 rank, mostScratch);
  }
  return {};
}

Status checkLaunch(const PlanIndex &index, const plan::Step &step) {
  const plan::Launch &launch = step.launch();
  const plan::Kernel &kernel = index.plan().kernels(static_cast<int>(launch.kernel()));
  if (static_cast<uint32_t>(launch.arguments_size()) != kernel.arguments())
    return bad("{} passes {} arguments to kernel '{}', expected {}", at(index, step), launch.arguments_size(),
               kernel.name(), kernel.arguments());
  if (launch.tasks() < 1 || launch.tasks() > mostTasks)
    return bad("{} has {} tasks, expected 1-{}", at(index, step), launch.tasks(), mostTasks);
  if (launch.inner_size() != kernel.variants(0).inner_size())
    return bad("{} gives {} inner sizes to kernel '{}', expected {}", at(index, step), launch.inner_size(),
               kernel.name(), kernel.variants(0).inner_size());
  std::set<uint32_t> arguments(launch.arguments().begin(), launch.arguments().end());
  __int128 end = 1;
  for (const auto *sizes : {&launch.inner(), &launch.range()})
    for (const plan::SizeOf &size : *sizes) {
      if (!arguments.count(size.buffer()))
        return bad("{} takes a size of {}, which is none of its arguments", at(index, step),
                   index.bufferTitle(size.buffer()));
      if (sizes == &launch.range() && (end *= index.shape(size.buffer())[size.dim()]) > INT64_MAX)
        return bad("{} has a range that is too long", at(index, step));
    }
  std::set<uint32_t> reads(step.reads().begin(), step.reads().end());
  std::set<uint32_t> writes(step.writes().begin(), step.writes().end());
  for (int i = 0; i < launch.arguments_size(); ++i) {
    uint32_t buffer = launch.arguments(i);
    if (!reads.count(buffer) && !writes.count(buffer))
      return bad("{} passes {}, but neither reads nor writes it", at(index, step), index.bufferTitle(buffer));
    for (int k = 0; k < i; ++k)
      if ((writes.count(buffer) || writes.count(launch.arguments(k))) && overlaps(index, buffer, launch.arguments(k)))
        return bad("{} passes the same memory twice as {}, and writes it", at(index, step),
                   pair(index, launch.arguments(k), buffer));
  }
  return checkVariants(index, step);
}

CutDimension cut(const PlanIndex &index, uint32_t buffer, size_t dim) {
  return {&index.sharding(buffer), dim, index.shape(buffer)[dim]};
}

Status checkSameRange(const PlanIndex &index, const plan::Step &step, uint32_t a, size_t dimA, uint32_t b, size_t dimB) {
  if (index.shape(a)[dimA] != index.shape(b)[dimB])
    return bad("{}: dimension {} (size {}) of {} and dimension {} (size {}) of {} differ", at(index, step), dimA,
               index.shape(a)[dimA], index.bufferTitle(a), dimB, index.shape(b)[dimB], index.bufferTitle(b));
  return proven(sameRange(cut(index, a, dimA), cut(index, b, dimB)),
                fmt::format("{} needs dimension {} of {} and dimension {} of {} cut alike", at(index, step), dimA,
                            index.bufferTitle(a), dimB, index.bufferTitle(b)));
}

/// Leading dimensions of one operand against those of the result: equal, or size 1.
Status checkBatch(const PlanIndex &index, const plan::Step &step, uint32_t operand, uint32_t result) {
  size_t batch = index.shape(operand).size() - 2, batchResult = index.shape(result).size() - 2;
  for (size_t i = 0; i < batch; ++i) {
    if (index.shape(operand)[i] == 1)
      continue;
    if (Status status = checkSameRange(index, step, operand, i, result, batchResult - batch + i); !status)
      return status;
  }
  return {};
}

/// Operands are f32, or of one narrow type; the result is f32 or of that type, and so is the bias.
Status checkProductTypes(const PlanIndex &index, const plan::Step &step) {
  const plan::MatMul &matmul = step.matmul();
  auto typeOf = [&](uint32_t buffer) { return index.buffer(buffer).dtype(); };
  auto differ = [&](plan::DataType a, plan::DataType b) {
    return bad("{} has operands of type {} and {}", at(index, step), dataTypeName(a), dataTypeName(b));
  };
  const plan::DataType left = typeOf(matmul.left()), right = typeOf(matmul.right()), result = typeOf(matmul.result());
  if (left != plan::F32 && left != plan::F16 && left != plan::BF16)
    return bad("{} multiplies tensors of {}, expected f32, f16 or bf16", at(index, step), dataTypeName(left));
  if (right != left)
    return differ(right, left);
  if (result != plan::F32 && result != left)
    return bad("{} has type {}, expected f32 or the type of its operands, {}", at(index, step), dataTypeName(result), dataTypeName(left));
  if (matmul.bias() != 0 && typeOf(matmul.bias() - 1) != result)
    return differ(typeOf(matmul.bias() - 1), result);
  return {};
}

Status checkMatMul(const PlanIndex &index, const plan::Step &step) {
  const plan::MatMul &matmul = step.matmul();
  uint32_t left = matmul.left(), right = matmul.right(), result = matmul.result();
  size_t ranks[] = {index.shape(left).size(), index.shape(right).size(), index.shape(result).size()};
  bool sums = matmul.sum_batch();
  if (sums && (!matmul.transpose_left() || matmul.transpose_right() || ranks[0] != ranks[1]))
    return bad("{} sums batches of operands of another form", at(index, step));
  if (ranks[0] < 2 || ranks[1] < 2 || ranks[2] != (sums ? 2 : std::max(ranks[0], ranks[1])))
    return bad("{} multiplies {} and {} dimensions to {}", at(index, step), ranks[0], ranks[1], ranks[2]);
  if (Status status = checkProductTypes(index, step); !status)
    return status;
  for (uint32_t operand : accessOf(step).reads)
    if (overlaps(index, operand, result))
      return bad("{} reads and writes the same memory: {}", at(index, step), pair(index, operand, result));
  if (!matmul.activation().empty() && matmul.activation() != "relu")
    return bad("{} has an unknown activation '{}'", at(index, step), matmul.activation());
  if (matmul.tasks() < 1 || matmul.tasks() > mostTasks)
    return bad("{} has {} tasks, expected 1-{}", at(index, step), matmul.tasks(), mostTasks);
  size_t rows = ranks[0] - (matmul.transpose_left() ? 1 : 2), depthLeft = ranks[0] - (matmul.transpose_left() ? 2 : 1);
  size_t columns = ranks[1] - (matmul.transpose_right() ? 2 : 1), depthRight = ranks[1] - (matmul.transpose_right() ? 1 : 2);
  if (Status status = checkSameRange(index, step, left, depthLeft, right, depthRight); !status)
    return status;
  if (Status status = checkSameRange(index, step, left, rows, result, ranks[2] - 2); !status)
    return status;
  if (Status status = checkSameRange(index, step, right, columns, result, ranks[2] - 1); !status)
    return status;
  for (size_t dim = 0; sums && dim + 2 < ranks[0]; ++dim)
    if (Status status = checkSameRange(index, step, left, dim, right, dim); !status)
      return status;
  for (uint32_t operand : {left, right})
    if (Status status = sums ? Status() : checkBatch(index, step, operand, result); !status)
      return status;
  if (matmul.bias() == 0)
    return {};
  if (index.shape(matmul.bias() - 1).size() != 1)
    return bad("{} adds a bias of {} dimensions, expected 1", at(index, step), index.shape(matmul.bias() - 1).size());
  return checkSameRange(index, step, matmul.bias() - 1, 0, result, ranks[2] - 1);
}

/// Every combination of pieces of dimensions 2 and 3: windows end where images do.
void addWindowedRanks(const PlanIndex &index, const plan::Call &call, std::set<int64_t> &ranks) {
  RankClasses classes(index.devices());
  auto visit = [&](uint32_t buffer) {
    Sharding sharding = index.sharding(buffer);
    for (size_t dim = 0; dim < std::min<size_t>(2, sharding.dims.size()); ++dim)
      sharding.dims[dim].clear();
    classes.addPieces(sharding);
  };
  std::for_each(call.operands().begin(), call.operands().end(), visit);
  std::for_each(call.results().begin(), call.results().end(), visit);
  for (int64_t rank : classes.ranks())
    ranks.insert(rank);
}

/// Ranks whose boxes tell whether the tensors of a call fit on all ranks. With equal pieces a box is linear in the digits
/// of the rank: rank 0 and one step along every axis decide. Otherwise every rank may differ.
std::set<int64_t> decidingRanks(const PlanIndex &index, const plan::Call &call) {
  std::set<int64_t> ranks{0, index.devices() - 1};
  bool even = true;
  auto visit = [&](uint32_t buffer) {
    const Sharding &sharding = index.sharding(buffer);
    even &= sharding.isEven(index.shape(buffer));
    for (int64_t axis = static_cast<int64_t>(sharding.axes.size()) - 1, stride = 1; axis >= 0; --axis) {
      if (sharding.axes[axis] > 1)
        ranks.insert(stride);
      stride *= sharding.axes[axis];
    }
  };
  std::for_each(call.operands().begin(), call.operands().end(), visit);
  std::for_each(call.results().begin(), call.results().end(), visit);
  for (int64_t rank = 0; !even && rank < index.devices(); ++rank)
    ranks.insert(rank);
  if (even && slidesWindows(call.kernel()))
    addWindowedRanks(index, call, ranks);
  return ranks;
}

Status checkCallStep(const PlanIndex &index, const plan::Step &step) {
  const plan::Call &call = step.call();
  if (call.tasks() < 1 || call.tasks() > mostTasks)
    return bad("{} has {} tasks, expected 1-{}", at(index, step), call.tasks(), mostTasks);
  if (call.results().empty())
    return bad("{} has nothing to do", at(index, step));
  for (int i = 0; i < call.results_size(); ++i) {
    for (uint32_t operand : call.operands())
      if (overlaps(index, operand, call.results(i)))
        return bad("{} reads and writes the same memory: {}", at(index, step), pair(index, operand, call.results(i)));
    for (int k = 0; k < i; ++k)
      if (overlaps(index, call.results(k), call.results(i)))
        return bad("{} passes the same memory twice as {}, and writes it", at(index, step),
                   pair(index, call.results(k), call.results(i)));
  }
  for (int64_t rank : decidingRanks(index, call))
    if (!index.isIdle(step, rank))
      if (Status status = checkCall(callOn(index, call, rank)); !status)
        return bad("{}: {}", at(index, step), status.error().message);
  return {};
}

} // namespace

Status checkProgramTables(const PlanIndex &index, const plan::Program &program) {
  if (!plan::Program::Purpose_IsValid(program.purpose()))
    return bad("a program has an unknown purpose {}", static_cast<int>(program.purpose()));
  if (Status status = checkRanges(index, program); !status)
    return status;
  if (Status status = checkEnds(index, program); !status)
    return status;
  for (const plan::Variant &variant : program.variants()) {
    for (int i = 0; i < variant.groups_size(); ++i)
      if (Status status = checkGroup(index, variant.groups(i), i); !status)
        return status;
    for (int i = 0; i < variant.steps_size(); ++i)
      if (Status status = checkStepIndices(index, variant, i); !status)
        return status;
    for (uint32_t constant : variant.constants())
      if (!inRange(constant, variant.steps()))
        return bad("a program names constant step {} of {}", constant, variant.steps_size());
  }
  return {};
}

Status checkBodies(const PlanIndex &index, const plan::Variant &variant) {
  for (const plan::Step &step : variant.steps()) {
    Status status = checkAccess(index, step);
    if (status && step.has_launch())
      status = checkLaunch(index, step);
    if (status && step.has_matmul())
      status = checkMatMul(index, step);
    if (status && step.has_call())
      status = checkCallStep(index, step);
    if (status && step.has_copy())
      status = checkCopy(index, step);
    if (!status)
      return status;
  }
  return {};
}

} // namespace msc::check
