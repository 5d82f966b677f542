#include "runtime/executor/Executor.h"

#include "runtime/executor/EntryOrder.h"
#include "runtime/executor/FreeMemory.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>

namespace msc {
namespace {

constexpr uint32_t communicationStream = 1; // as plans count streams

comm::ElementType elementTypeOf(const plan::Buffer &buffer) {
  // Both enumerations count the same types in the same order.
  return static_cast<comm::ElementType>(buffer.dtype());
}

/// Element offsets of every batch entry of an operand in the order of the result's entries; dimensions of size 1 repeat.
std::vector<int64_t> batchOffsets(const std::vector<int64_t> &operand, const std::vector<int64_t> &result) {
  size_t missing = result.size() - operand.size();
  int64_t count = 1;
  for (size_t i = 0; i + 2 < result.size(); ++i)
    count *= result[i];
  std::vector<int64_t> offsets(static_cast<size_t>(count), 0);
  int64_t stride = operand[operand.size() - 1] * operand[operand.size() - 2], inner = 1;
  for (size_t i = result.size() - 2; i-- > 0;) {
    int64_t size = i < missing ? 1 : operand[i - missing];
    for (int64_t entry = 0; entry < count && size != 1; ++entry)
      offsets[entry] += entry / inner % result[i] * stride;
    inner *= result[i];
    stride *= size;
  }
  return offsets;
}

} // namespace

int64_t steadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<std::unique_ptr<Executor>> Executor::create(const PlanIndex &index, const plan::Program &program,
                                                   comm::World &world, device::Device &device, std::byte *arena) {
  std::unique_ptr<Executor> executor(new Executor(index, world, device, arena));
  executor->variant = PlanIndex::variantOf(program, world.rank());
  if (!executor->variant)
    return Error{ExitCode::BadFile, fmt::format("no variant of the program is for rank {}", world.rank()), ""};
  if (Status status = executor->bind(program, *executor->variant); !status)
    return status.error();
  return executor;
}

comm::Partition Executor::partitionOf(const plan::Group &group) const {
  comm::Partition partition(static_cast<size_t>(world.size()), -1);
  for (int64_t rank = 0; rank < world.size(); ++rank)
    if (partition[static_cast<size_t>(rank)] < 0)
      for (int64_t member : membersOf(group, rank))
        partition[static_cast<size_t>(member)] = rank;
  return partition;
}

Status Executor::openGroups(const plan::Program &program) {
  if (isOfHost())
    return {};
  // Several descriptions of groups may mean the same.
  std::vector<comm::Partition> distinct;
  for (const plan::Variant &some : program.variants()) {
    std::set<uint32_t> used;
    for (const plan::Step &step : some.steps())
      if (step.has_collective())
        used.insert(step.collective().group());
    for (uint32_t group : used) {
      comm::Partition partition = partitionOf(some.groups(static_cast<int>(group)));
      if (std::find(distinct.begin(), distinct.end(), partition) == distinct.end())
        distinct.push_back(partition);
      if (&some == variant)
        partitions[group] = std::move(partition);
    }
  }
  Status status = device.openGroups(distinct);
  return status ? status : Status(ofRank(status.error()));
}

Status Executor::bind(const plan::Program &program, const plan::Variant &variant) {
  if (Status status = openGroups(program); !status)
    return status;
  std::vector<bool> isConstant(static_cast<size_t>(variant.steps_size()), false);
  for (uint32_t step : variant.constants())
    isConstant[step] = true;
  std::vector<BoundStep> once, always;
  for (int i = 0; i < variant.steps_size(); ++i) {
    std::vector<BoundStep> &list = isConstant[i] ? once : always;
    size_t before = list.size();
    if (Status status = bindStep(variant, static_cast<uint32_t>(i), list); !status)
      return status;
    for (size_t k = before; k < list.size(); ++k)
      list[k].number = static_cast<uint32_t>(i);
  }
  std::optional<FreeMemory> free;
  std::unordered_map<const device::Operation *, uint32_t> stepOf;
  auto freeWhile = [&](const device::Operation &operation) {
    if (!free) { // few operations ask, or none
      free.emplace(index, program, variant);
      for (const std::vector<BoundStep> *list : {&once, &always})
        for (const BoundStep &bound : *list)
          stepOf[bound.operation] = bound.number;
    }
    std::vector<std::span<std::byte>> ranges;
    if (auto step = stepOf.find(&operation); step != stepOf.end())
      for (auto [from, to] : free->at(step->second))
        ranges.emplace_back(arena + from, to - from);
    return ranges;
  };
  if (Status status = device.finishPreparation(freeWhile); !status)
    return status;
  constants = partsOf(once);
  steps = partsOf(always);
  std::copy_if(always.begin(), always.end(), std::back_inserter(single), [](const BoundStep &step) { return step.isActive(); });
  return {};
}

std::vector<device::MemoryRange> Executor::rangesOf(const google::protobuf::RepeatedField<uint32_t> &buffers) const {
  std::vector<device::MemoryRange> ranges;
  for (uint32_t buffer : buffers) {
    const int64_t bytes = index.localCount(buffer, rank) * static_cast<int64_t>(elementBytes(index.buffer(buffer).dtype()));
    if (bytes > 0)
      ranges.push_back({address(buffer), address(buffer) + bytes});
  }
  return ranges;
}

Executor::PartList Executor::partsOf(const std::vector<BoundStep> &list) {
  PartList result;
  std::vector<device::SequenceEntry> entries;
  EntryOrder order;
  uint32_t lastCollective = UINT32_MAX; // of the sequence
  Part part;
  auto close = [&](const BoundStep &end) {
    part.collective = end;
    if (!entries.empty())
      part.sequence = device.makeSequence(std::move(entries));
    if (part.sequence || part.collective.isActive())
      result.parts.push_back(std::move(part));
    part = {};
    entries = {};
    order.restart();
    lastCollective = UINT32_MAX;
  };
  bool areSeparate = device.collectiveForm() != device::CollectiveForm::InSequence;
  for (const BoundStep &bound : list) {
    bool isCollective = bound.step->has_collective();
    result.active += bound.isActive();
    if (bound.isActive() && isCollective && areSeparate) {
      close(bound);
      continue;
    }
    if (!bound.isActive()) {
      order.pass(bound.number, *bound.step);
      continue;
    }
    auto number = static_cast<uint32_t>(entries.size());
    device::SequenceEntry entry{bound.operation, bound.step->stream(), {}, rangesOf(bound.step->reads()), rangesOf(bound.step->writes()), isCollective};
    // Nobody touches what a started collective uses before its wait: it runs beside what follows.
    if (isCollective && bound.step->collective().asynchronous() && entry.stream == 0) {
      entry.stream = communicationStream;
      entry.after = order.start(bound.number, *bound.step, number, communicationStream);
    } else {
      entry.after = order.append(bound.number, *bound.step, number);
    }
    // One collective after the other, in the order of the plan on all ranks, whatever streams they are on.
    if (isCollective && lastCollective != UINT32_MAX && entries[lastCollective].stream != entry.stream)
      entry.after.push_back(lastCollective);
    if (isCollective)
      lastCollective = number;
    entries.push_back(std::move(entry));
    part.steps.push_back(bound.step);
  }
  close({});
  return result;
}

Status Executor::bindStep(const plan::Variant &variant, uint32_t number, std::vector<BoundStep> &list) {
  const plan::Step &step = variant.steps(static_cast<int>(number));
  if (step.has_collective())
    return bindCollective(variant, step, list);
  if (step.has_wait() || index.isIdle(step, rank)) {
    list.push_back({nullptr, nullptr, &step});
    return {};
  }
  if (step.has_copy())
    return bindCopy(step, list);
  if (Status status = keep(step, prepare(step)); !status)
    return status;
  list.push_back({operations.back().get(), nullptr, &step});
  return {};
}

Status Executor::keep(const plan::Step &step, Result<std::unique_ptr<device::Operation>> operation) {
  if (!operation)
    return failed(step, operation.error());
  operations.push_back(std::move(*operation));
  return {};
}

Status Executor::bindCopy(const plan::Step &step, std::vector<BoundStep> &list) {
  const plan::Copy &copy = step.copy();
  auto add = [&](Result<std::unique_ptr<device::Operation>> operation) {
    Status status = keep(step, std::move(operation));
    if (status)
      list.push_back({operations.back().get(), nullptr, &step});
    return status;
  };
  if (copy.has_fill())
    if (Status status = add(prepareFill(copy.target(), copy.fill().value())); !status)
      return status;
  Box target = index.localBox(copy.target(), rank);
  for (const MovedTensor &tensor : tensorsOf(copy)) {
    Box source = index.localBox(tensor.source, rank);
    if (!tensor.regions)
      return add(prepareCopy(tensor.source, tensor.target, regionsOf(target, source, target)));
    for (const CopyRegion &region : toRegions(*tensor.regions)) {
      Box indices = intersect(indicesInSource(region, source), indicesInTarget(region, target));
      if (elementCount(indices) == 0)
        continue;
      if (Status status = add(prepareCopy(tensor.source, tensor.target, regionsOf(region, indices, source, target))); !status)
        return status;
    }
  }
  return {};
}

Result<std::unique_ptr<device::Operation>> Executor::prepare(const plan::Step &step) {
  switch (step.body_case()) {
  case plan::Step::kLaunch: return prepareLaunch(step.launch());
  case plan::Step::kMatmul: return prepareMatMul(step.matmul());
  case plan::Step::kCall: return prepareCall(step.call());
  case plan::Step::kFill: return prepareFill(step.fill().target(), step.fill().value());
  default: return Error{ExitCode::Internal, "the step has no body", ""};
  }
}

Result<std::unique_ptr<device::Operation>> Executor::prepareLaunch(const plan::Launch &launch) {
  const plan::Kernel &kernel = index.plan().kernels(static_cast<int>(launch.kernel()));
  std::vector<int64_t> inner;
  for (const plan::SizeOf &size : launch.inner())
    inner.push_back(localSize(size));
  device::LaunchSpec spec;
  const plan::Kernel::Variant *chosen = nullptr;
  for (const plan::Kernel::Variant &variant : kernel.variants())
    if (std::equal(inner.begin(), inner.end(), variant.inner().begin(), variant.inner().end()))
      chosen = &variant;
  if (!chosen)
    return Error{ExitCode::BadFile,
                 fmt::format("kernel '{}' has no variant for the inner sizes ({})", kernel.name(), fmt::join(inner, ", ")),
                 ""};
  for (uint32_t buffer : launch.arguments())
    spec.arguments.push_back(address(buffer));
  for (const plan::SizeOf &size : launch.range())
    spec.end *= localSize(size);
  spec.tasks = launch.tasks();
  spec.unit = std::max<int64_t>(1, launch.unit());
  spec.symbol = chosen->symbol();
  spec.pieces = chosen->pieces();
  spec.pieceScratch = chosen->scratch();
  if (chosen->has_gpu()) {
    const plan::GpuLaunch &gpu = chosen->gpu();
    auto items = static_cast<uint64_t>(spec.end) * gpu.items();
    spec.entry = gpu.entry();
    spec.scratch = static_cast<uint64_t>(std::max<int64_t>(spec.end, 1)) * gpu.unit_scratch(); // also an empty range takes the argument
    spec.block = gpu.block();
    spec.blocks = static_cast<int64_t>((items + gpu.block_items() - 1) / gpu.block_items());
  }
  return device.prepareLaunch(spec);
}

Result<std::unique_ptr<device::Operation>> Executor::prepareMatMul(const plan::MatMul &matmul) {
  std::vector<int64_t> left = index.localShape(matmul.left(), rank), right = index.localShape(matmul.right(), rank);
  std::vector<int64_t> result = index.localShape(matmul.result(), rank);
  device::MatMulSpec spec;
  spec.rows = result[result.size() - 2];
  spec.columns = result[result.size() - 1];
  if (matmul.sum_batch()) // shards are dense: batches are further rows of both operands
    for (std::vector<int64_t> *shape : {&left, &right})
      *shape = {elementCount(*shape) == 0 ? 0 : elementCount(*shape) / shape->back(), shape->back()};
  spec.depth = left[left.size() - (matmul.transpose_left() ? 2 : 1)];
  spec.operands = index.buffer(matmul.left()).dtype();
  spec.type = index.buffer(matmul.result()).dtype();
  spec.transposeLeft = matmul.transpose_left();
  spec.transposeRight = matmul.transpose_right();
  spec.left = address(matmul.left());
  spec.right = address(matmul.right());
  spec.result = address(matmul.result());
  spec.bias = matmul.bias() == 0 ? nullptr : address(matmul.bias() - 1);
  spec.relu = matmul.activation() == "relu";
  spec.tasks = matmul.tasks();
  std::vector<int64_t> lefts = batchOffsets(left, result), rights = batchOffsets(right, result);
  for (size_t i = 0; i < lefts.size(); ++i)
    spec.batches.push_back({lefts[i], rights[i], static_cast<int64_t>(i) * spec.rows * spec.columns});
  return device.prepareMatMul(spec);
}

Result<std::unique_ptr<device::Operation>> Executor::prepareCall(const plan::Call &call) {
  CallSpec spec = callOn(index, call, rank);
  for (int i = 0; i < call.operands_size(); ++i)
    spec.operands[i].data = address(call.operands(i));
  for (int i = 0; i < call.results_size(); ++i)
    spec.results[i].data = address(call.results(i));
  return device.prepareCall(spec);
}

Result<std::unique_ptr<device::Operation>> Executor::prepareCopy(uint32_t source, uint32_t target, RegionPair pair) {
  device::CopySpec spec{address(source), address(target), std::move(pair.first), std::move(pair.second),
                        elementBytes(index.buffer(target).dtype())};
  return device.prepareCopy(spec);
}

Result<std::unique_ptr<device::Operation>> Executor::prepareFill(uint32_t target, double value) {
  return device.prepareFill({address(target), index.localCount(target, rank), index.buffer(target).dtype(), value});
}

void Executor::bindTensor(BoundCollective &bound, const MovedTensor &tensor, const std::vector<int64_t> &members) {
  auto [source, target, regions] = tensor;
  const Sharding &from = index.sharding(source), &to = index.sharding(target);
  const std::vector<int64_t> &shape = index.shape(source);
  if (bound.kind == plan::Collective::ALL_REDUCE) {
    bound.reduces.push_back({hostAddress(source), hostAddress(target), index.localCount(source, rank)});
  } else if (bound.kind == plan::Collective::REDUCE_SCATTER) {
    bound.pieces.push_back(scatterPieces(from, to, shape, members));
    bound.scatters.push_back({hostAddress(source), hostAddress(target), {}});
  } else {
    size_t position = std::lower_bound(members.begin(), members.end(), rank) - members.begin();
    auto size = static_cast<int64_t>(comm::elementSize(bound.type));
    // Offsets count from where the first tensor is, here and on the peers: offsets in the arena are the same everywhere.
    int64_t sourceOffset = (hostAddress(source) - bound.source) / size;
    int64_t targetOffset = (hostAddress(target) - bound.target) / size;
    auto append = [&](const comm::ExchangePlan &more) {
      appendExchange(bound.exchange, more, sourceOffset, targetOffset);
    };
    if (!regions)
      return append(exchangeBetween(from, to, shape, members, position, bound.type));
    for (const CopyRegion &region : toRegions(*regions))
      append(exchangeRegion(region, {from, shape, to, index.shape(target)}, members, position, bound.type));
  }
}

Status Executor::bindFills(BoundCollective &bound, const plan::Collective &collective) {
  std::set<uint32_t> targets;
  for (const MovedTensor &tensor : tensorsOf(collective)) {
    if (!collective.has_fill() || !targets.insert(tensor.target).second || index.localCount(tensor.target, rank) == 0)
      continue;
    Result<std::unique_ptr<device::Operation>> fill = prepareFill(tensor.target, collective.fill().value());
    if (!fill)
      return fill.error();
    operations.push_back(std::move(*fill));
    bound.fills.push_back(operations.back().get());
  }
  return {};
}

Status Executor::bindCollective(const plan::Variant &variant, const plan::Step &step, std::vector<BoundStep> &list) {
  const plan::Collective &collective = step.collective();
  std::vector<int64_t> members = membersOf(variant.groups(static_cast<int>(collective.group())), rank);
  Result<comm::Group *> group = world.group(members);
  if (!group)
    return failed(step, group.error());
  auto bound = std::make_unique<BoundCollective>();
  bound->kind = collective.kind();
  bound->group = *group;
  bound->source = hostAddress(collective.source());
  bound->target = hostAddress(collective.target());
  bound->type = elementTypeOf(index.buffer(collective.source()));
  bound->exchange.type = bound->type;
  bound->reduction = static_cast<ReduceKind>(collective.reduction());
  bound->label = {step.name(), index.place(step.location()), collective.for_operator()};
  for (const MovedTensor &tensor : tensorsOf(collective))
    bindTensor(*bound, tensor, members);
  if (Status status = bindFills(*bound, collective); !status)
    return failed(step, status.error());
  for (size_t i = 0; i < bound->scatters.size(); ++i)
    bound->scatters[i].pieces = bound->pieces[i];
  if (!isOfHost())
    return bindOnDevice(*bound, step, list);
  bindStaging(*bound, collective);
  collectives.push_back(std::move(bound));
  list.push_back({nullptr, collectives.back().get(), &step});
  return {};
}

Status Executor::bindOnDevice(BoundCollective &bound, const plan::Step &step, std::vector<BoundStep> &list) {
  for (device::Operation *fill : bound.fills)
    list.push_back({fill, nullptr, &step});
  using Kind = device::CollectiveSpec::Kind;
  device::CollectiveSpec spec;
  spec.kind = bound.kind == plan::Collective::ALL_REDUCE       ? Kind::AllReduce
              : bound.kind == plan::Collective::REDUCE_SCATTER ? Kind::ReduceScatter
                                                               : Kind::Exchange;
  spec.partition = &partitions.at(step.collective().group());
  spec.hosts = bound.group;
  spec.type = bound.type;
  spec.reduction = bound.reduction;
  spec.reduces = bound.reduces;
  spec.scatters = bound.scatters;
  spec.source = bound.source, spec.target = bound.target;
  spec.exchange = &bound.exchange;
  spec.label = bound.label;
  if (Status status = keep(step, device.prepareCollective(spec)); !status)
    return status;
  list.push_back({operations.back().get(), nullptr, &step});
  return {};
}

std::byte *Executor::hostAddress(uint32_t buffer) {
  if (device.sharesHostMemory() || !isOfHost())
    return address(buffer);
  if (!mirror) // touched where tensors travel, and nowhere else
    mirror.reset(new std::byte[index.plan().arena_bytes()]);
  return mirror.get() + index.buffer(buffer).offset();
}

Executor::StagedTensor Executor::staged(uint32_t buffer) {
  return {address(buffer), hostAddress(buffer),
          static_cast<size_t>(index.localCount(buffer, rank)) * elementBytes(index.buffer(buffer).dtype())};
}

void Executor::bindStaging(BoundCollective &bound, const plan::Collective &collective) {
  if (device.sharesHostMemory())
    return;
  std::set<uint32_t> sources, targets;
  for (const MovedTensor &tensor : tensorsOf(collective)) {
    if (sources.insert(tensor.source).second)
      bound.sources.push_back(staged(tensor.source));
    if (targets.insert(tensor.target).second)
      bound.targets.push_back(staged(tensor.target));
  }
  if (collective.has_fill()) // what no region writes
    bound.sources.insert(bound.sources.end(), bound.targets.begin(), bound.targets.end());
}

Status Executor::runCollective(BoundCollective &c) {
  for (device::Operation *fill : c.fills)
    if (Status status = fill->run(); !status)
      return status;
  for (const StagedTensor &tensor : c.sources)
    if (Status status = device.download(tensor.mirror, tensor.data, tensor.bytes); !status)
      return status;
  if (Status status = communicate(c); !status)
    return status;
  for (const StagedTensor &tensor : c.targets)
    if (Status status = device.upload(tensor.data, tensor.mirror, tensor.bytes); !status)
      return status;
  return {};
}

Status Executor::communicate(BoundCollective &c) {
  switch (c.kind) {
  case plan::Collective::ALL_REDUCE:
    if (c.reduces.size() > 1)
      return c.group->allReduceMany(c.reduces, c.type, c.reduction, c.label);
    return c.group->allReduce(c.source, c.target, c.reduces[0].count, c.type, c.reduction, c.label);
  case plan::Collective::REDUCE_SCATTER:
    if (c.scatters.size() > 1)
      return c.group->reduceScatterMany(c.scatters, c.type, c.reduction, c.label);
    return c.group->reduceScatter(c.source, c.target, c.pieces[0], c.type, c.reduction, c.label);
  default:
    return c.group->exchange(c.source, c.target, c.exchange, c.label);
  }
}

Status Executor::run(PartList &list) {
  for (Part &part : list.parts) {
    size_t at = 0;
    Status status = part.sequence ? part.sequence->run(at) : Status();
    if (!status)
      return at < part.steps.size() ? failed(*part.steps[at], status.error()) : ofRank(status.error());
    if (part.collective.isActive())
      if (status = run(part.collective); !status)
        return failed(*part.collective.step, status.error());
  }
  return {};
}

Error Executor::ofRank(const Error &error) const {
  return {error.code, fmt::format("rank {} of {}: {}", rank, world.size(), error.message), error.help};
}

Status Executor::runConstants() { return run(constants); }

Status Executor::runStep() { return run(steps); }

Status Executor::runStep(std::span<int64_t> times) {
  if (Status status = device.synchronize(); !status) // the batch is there
    return ofRank(status.error());
  auto next = single.begin();
  int64_t now = steadyNanoseconds();
  for (size_t i = 0; 2 * i < times.size(); ++i) {
    times[2 * i] = now;
    Status status;
    bool isActive = next != single.end() && next->number == i;
    for (; status && next != single.end() && next->number == i; ++next)
      status = run(*next);
    if (status && isActive)
      status = device.synchronize();
    if (!status)
      return failed(variant->steps(static_cast<int>(i)), status.error());
    if (isActive)
      now = steadyNanoseconds();
    times[2 * i + 1] = now;
  }
  return {};
}

Error Executor::failed(const plan::Step &step, const Error &error) const {
  const std::string &user = step.collective().for_operator();
  std::string what = user.empty() ? step.op() : fmt::format("{} for '{}'", step.op(), user);
  return {error.code, fmt::format("rank {} of {}: {} {}: {}", rank, world.size(), index.title(step), what, error.message),
          error.help};
}

} // namespace msc
