#include "runtime/plan/PlanIndex.h"

#include "runtime/plan/ElementTypes.h"

#include <fmt/format.h>

namespace msc {

Sharding toSharding(const plan::Sharding &message) {
  Sharding sharding;
  sharding.axes.assign(message.axes().begin(), message.axes().end());
  for (const auto &dim : message.dims())
    sharding.dims.emplace_back(dim.axes().begin(), dim.axes().end());
  for (const auto &partial : message.partial())
    sharding.partial.push_back({static_cast<int32_t>(partial.axis()), static_cast<ReduceKind>(partial.kind())});
  return sharding;
}

plan::Sharding fromSharding(const Sharding &sharding) {
  plan::Sharding message;
  for (int64_t size : sharding.axes)
    message.add_axes(static_cast<uint32_t>(size));
  for (const std::vector<int32_t> &dim : sharding.dims) {
    plan::Sharding::Dimension *added = message.add_dims();
    for (int32_t axis : dim)
      added->add_axes(static_cast<uint32_t>(axis));
  }
  for (const PartialAxis &partial : sharding.partial) {
    plan::Sharding::Partial *added = message.add_partial();
    added->set_axis(static_cast<uint32_t>(partial.axis));
    added->set_kind(static_cast<plan::Reduction>(partial.kind));
  }
  return message;
}

static_assert(plan::F32 == 0 && plan::F64 == 1 && plan::I32 == 2 && plan::I64 == 3 && plan::BOOL == 4 &&
              plan::F16 == 5 && plan::BF16 == 6); // the order of elementTypes

size_t elementBytes(plan::DataType type) { return elementTypeFacts(type).bytes; }

const char *dataTypeName(plan::DataType type) { return elementTypeFacts(type).name; }

const char *collectiveName(plan::Collective::Kind kind) {
  switch (kind) {
  case plan::Collective::ALL_REDUCE: return "AllReduce";
  case plan::Collective::ALL_GATHER: return "AllGather";
  case plan::Collective::REDUCE_SCATTER: return "ReduceScatter";
  case plan::Collective::ALL_TO_ALL: return "AlltoAll";
  case plan::Collective::PERMUTE: return "CollectivePermute";
  case plan::Collective::EXCHANGE: return "Exchange";
  case plan::Collective::BROADCAST: return "Broadcast";
  default: return "?";
  }
}

std::string placeOf(const plan::Plan &plan, uint32_t location) {
  if (location >= static_cast<uint32_t>(plan.locations_size()))
    return "";
  const plan::Location &at = plan.locations(static_cast<int>(location));
  if (at.file() >= static_cast<uint32_t>(plan.files_size()))
    return "";
  const std::string &file = plan.files(static_cast<int>(at.file()));
  return at.line() == 0 ? file : fmt::format("{}:{}", file, at.line());
}

std::string titleOf(const plan::Plan &plan, const plan::Step &step) {
  std::string place = placeOf(plan, step.location());
  return place.empty() ? fmt::format("step '{}'", step.name()) : fmt::format("step '{}' ({})", step.name(), place);
}

template <typename Message> static const plan::CopyRegions *regionsOf(const Message &message) {
  return message.has_regions() ? &message.regions() : nullptr;
}

std::vector<MovedTensor> tensorsOf(const plan::Collective &collective) {
  std::vector<MovedTensor> tensors{{collective.source(), collective.target(), regionsOf(collective)}};
  for (const plan::Collective::Part &part : collective.also())
    tensors.push_back({part.source(), part.target(), regionsOf(part)});
  return tensors;
}

std::vector<MovedTensor> tensorsOf(const plan::Copy &copy) {
  std::vector<MovedTensor> tensors{{copy.source(), copy.target(), regionsOf(copy)}};
  for (const plan::Copy::Part &part : copy.also())
    tensors.push_back({part.source(), copy.target(), regionsOf(part)});
  return tensors;
}

CopyRegions toRegions(const plan::CopyRegions &message, uint32_t operand) {
  CopyRegions regions;
  for (const plan::CopyRegions::Region &entry : message.regions()) {
    CopyRegion &region = regions.emplace_back(CopyRegion{operand, {}});
    auto number = [](const auto &list, int i, int64_t missing) { return i < list.size() ? list[i] : missing; };
    int dimensions = std::max({entry.source_size(), entry.target_size(), entry.size_size(), entry.source_stride_size(),
                               entry.target_stride_size()});
    for (int i = 0; i < dimensions; ++i)
      region.ranges.push_back({number(entry.source(), i, 0), number(entry.target(), i, 0), number(entry.size(), i, 0),
                               number(entry.source_stride(), i, 1), number(entry.target_stride(), i, 1)});
  }
  return regions;
}

plan::CopyRegions fromRegions(const CopyRegions &regions) {
  plan::CopyRegions message;
  for (const CopyRegion &region : regions) {
    plan::CopyRegions::Region *entry = message.add_regions();
    bool strided = std::any_of(region.ranges.begin(), region.ranges.end(), [](const CopyRange &range) {
      return range.sourceStride != 1 || range.targetStride != 1;
    });
    for (const CopyRange &range : region.ranges) {
      entry->add_source(range.source);
      entry->add_target(range.target);
      entry->add_size(range.size);
      if (strided) {
        entry->add_source_stride(range.sourceStride);
        entry->add_target_stride(range.targetStride);
      }
    }
  }
  return message;
}

BodyAccess accessOf(const plan::Step &step) {
  BodyAccess access;
  switch (step.body_case()) {
  case plan::Step::kMatmul: {
    const plan::MatMul &matmul = step.matmul();
    access.reads = {matmul.left(), matmul.right()};
    if (matmul.bias() != 0)
      access.reads.push_back(matmul.bias() - 1);
    access.writes = {matmul.result()};
    break;
  }
  case plan::Step::kCall:
    access.reads.assign(step.call().operands().begin(), step.call().operands().end());
    access.writes.assign(step.call().results().begin(), step.call().results().end());
    break;
  case plan::Step::kCopy:
    for (const MovedTensor &tensor : tensorsOf(step.copy()))
      access.reads.push_back(tensor.source);
    access.writes = {step.copy().target()};
    break;
  case plan::Step::kFill: access = {{}, {step.fill().target()}}; break;
  case plan::Step::kCollective:
    for (const MovedTensor &tensor : tensorsOf(step.collective())) {
      access.reads.push_back(tensor.source);
      access.writes.push_back(tensor.target);
    }
    break;
  default: break;
  }
  return access;
}

static constexpr int deepestView = 16;

PlanIndex::PlanIndex(const plan::Plan &plan) : source(&plan) {
  for (const plan::Sharding &message : plan.shardings())
    shardings.push_back(toSharding(message));
  for (int i = 0; i < plan.buffers_size(); ++i) {
    shapes.emplace_back(plan.buffers(i).shape().begin(), plan.buffers(i).shape().end());
    // A view may show a view; longer chains, and rings, end at a view here and are refused by the checker.
    auto root = static_cast<uint32_t>(i);
    for (int hops = 0; plan.buffers(static_cast<int>(root)).view_of() != 0 && hops < deepestView; ++hops)
      root = plan.buffers(static_cast<int>(root)).view_of() - 1;
    roots.push_back(root);
  }
}

std::string PlanIndex::bufferTitle(uint32_t index) const {
  std::string at = place(buffer(index).location());
  return at.empty() ? fmt::format("'{}'", buffer(index).name()) : fmt::format("'{}' ({})", buffer(index).name(), at);
}

bool PlanIndex::isIdle(const plan::Step &step, int64_t rank) const {
  return !step.has_collective() && !step.has_wait() &&
         std::all_of(step.writes().begin(), step.writes().end(),
                     [&](uint32_t buffer) { return localCount(buffer, rank) == 0; });
}

const plan::Variant *PlanIndex::variantOf(const plan::Program &program, int64_t rank) {
  for (const plan::Program::RankRange &range : program.ranges())
    if (rank >= range.first() && rank <= range.last())
      return &program.variants(static_cast<int>(range.variant()));
  return nullptr;
}

const plan::Program *PlanIndex::program(plan::Program::Purpose purpose) const {
  for (const plan::Program &program : source->programs())
    if (program.purpose() == purpose)
      return &program;
  return nullptr;
}

std::vector<int64_t> membersOf(const plan::Group &group, int64_t rank) {
  std::vector<int64_t> matrix(group.matrix().begin(), group.matrix().end());
  std::vector<int32_t> axes(group.axes().begin(), group.axes().end());
  return groupOf(matrix, axes, rank);
}

bool isGiven(const plan::OperatorNote &note) {
  return note.origin() == "user" || note.origin() == "dump" || note.origin().find(" within sharding ") != std::string::npos;
}

} // namespace msc
