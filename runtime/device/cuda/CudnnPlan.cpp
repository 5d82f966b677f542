#include "runtime/device/cuda/CudnnPlan.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace msc::device::cuda::cudnn {

Error failed(const Table &table, const char *function, Code code) {
  return {ExitCode::NoResource,
          fmt::format("{} returned {} ({})", function, static_cast<int>(code), table.cudnnGetErrorString(code)), ""};
}

Object::Object(const Table &table, Kind kind) : table(&table) { result = table.cudnnBackendCreateDescriptor(kind, &handle); }
Object::~Object() {
  if (handle)
    table->cudnnBackendDestroyDescriptor(handle);
}
Object::Object(Object &&other) noexcept
    : table(other.table), handle(std::exchange(other.handle, nullptr)), result(other.result) {}

Object &Object::set(Attribute attribute, Type type, int64_t count, const void *values) {
  if (result == Code::Success)
    result = table->cudnnBackendSetAttribute(handle, attribute, type, count, values);
  return *this;
}

bool Object::finalize() {
  if (result == Code::Success)
    result = table->cudnnBackendFinalize(handle);
  return result == Code::Success;
}

int64_t Object::get(Attribute attribute, Type type, int64_t wanted, void *values) const {
  int64_t count = 0;
  if (result != Code::Success ||
      table->cudnnBackendGetAttribute(handle, attribute, type, wanted, &count, values) != Code::Success)
    return -1;
  return wanted == 0 ? count : std::min(count, wanted);
}

Sizes denseStrides(const Sizes &sizes) { return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}; }

Library::~Library() {
  plans.clear();
  if (handle)
    table.cudnnDestroy(handle);
}

std::string Library::name() const {
  size_t version = table.cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

bool Library::open() {
  if (handle || !problem.empty())
    return problem.empty();
  problem = table.problem;
  if (!table.isThere())
    return false;
  if (Code code = table.cudnnCreate(&handle); code != Code::Success) {
    handle = nullptr;
    problem = failed(table, "cudnnCreate", code).message;
  }
  return problem.empty();
}

const Plan *Library::planOf(const Problem &problem) {
  if (!open())
    return nullptr;
  auto [place, isNew] = plans.try_emplace(problem);
  if (isNew)
    place->second = choose(problem);
  return place->second.get();
}

namespace {

/// The attributes of an operation that mean the same in all three directions.
struct Direction {
  Kind kind;
  Attribute alpha, beta, convolution, x, w, y;
};

const Direction &directionOf(ConvolutionResult result) {
  static const Direction forward{
      Kind::Forward,       Attribute::ForwardAlpha, Attribute::ForwardBeta, Attribute::ForwardConvolution,
      Attribute::ForwardX, Attribute::ForwardW,     Attribute::ForwardY};
  static const Direction input{
      Kind::BackwardData,       Attribute::BackwardDataAlpha, Attribute::BackwardDataBeta, Attribute::BackwardDataConvolution,
      Attribute::BackwardDataX, Attribute::BackwardDataW,     Attribute::BackwardDataY};
  static const Direction filter{Kind::BackwardFilter,          Attribute::BackwardFilterAlpha,
                                Attribute::BackwardFilterBeta, Attribute::BackwardFilterConvolution,
                                Attribute::BackwardFilterX,    Attribute::BackwardFilterW,
                                Attribute::BackwardFilterY};
  switch (result) {
  case ConvolutionResult::Output: return forward;
  case ConvolutionResult::Input: return input;
  case ConvolutionResult::Filter: return filter;
  }
  return forward;
}

/// By which tensors are known in a pack.
constexpr std::array<int64_t, 3> numbers{1, 2, 3};

} // namespace

/// Tensors, convolution, operation and, last, the graph of this one operation; empty if cuDNN refuses one.
std::vector<Object> Library::describe(const Problem &problem) {
  std::vector<Object> parts;
  parts.reserve(6);
  auto tensor = [&](size_t which, const Sizes &sizes, const Sizes &strides) {
    parts.emplace_back(table, Kind::Tensor);
    parts.back()
        .set(Attribute::TensorDataType, problem.type)
        .set(Attribute::TensorSizes, sizes)
        .set(Attribute::TensorStrides, strides)
        .set(Attribute::TensorNumber, numbers[which])
        .set(Attribute::TensorAlignment, problem.alignment[which])
        .finalize();
  };
  tensor(0, problem.x, problem.xStrides);
  tensor(1, problem.w, denseStrides(problem.w));
  tensor(2, problem.y, problem.yStrides);
  parts.emplace_back(table, Kind::Convolution);
  parts.back()
      .set(Attribute::ConvolutionComputeType, DataType::Float)
      .set(Attribute::ConvolutionModeOf, ConvolutionMode::CrossCorrelation)
      .set(Attribute::ConvolutionDimensions, int64_t{2})
      .set(Attribute::ConvolutionDilations, problem.dilation)
      .set(Attribute::ConvolutionStrides, problem.stride)
      .set(Attribute::ConvolutionPaddingBefore, problem.before)
      .set(Attribute::ConvolutionPaddingAfter, problem.after)
      .finalize();
  const Direction &direction = directionOf(problem.result);
  parts.emplace_back(table, direction.kind);
  parts.back()
      .set(direction.alpha, 1.0f)
      .set(direction.beta, 0.0f)
      .set(direction.convolution, parts[3])
      .set(direction.x, parts[0])
      .set(direction.w, parts[1])
      .set(direction.y, parts[2])
      .finalize();
  parts.emplace_back(table, Kind::OperationGraph);
  parts.back().set(Attribute::GraphHandle, handle).set(Attribute::GraphOperations, parts[4]).finalize();
  auto isWrong = [](const Object &part) { return part.code() != Code::Success; };
  return std::any_of(parts.begin(), parts.end(), isWrong) ? std::vector<Object>() : std::move(parts);
}

/// The engines that a heuristic thinks of, the best first.
std::vector<Library::Proposal> Library::proposals(const Object &graph, HeuristicMode mode) {
  Object heuristic(table, Kind::Heuristic);
  heuristic.set(Attribute::HeuristicGraph, graph).set(Attribute::HeuristicModeOf, mode);
  if (!heuristic.finalize())
    return {};
  std::vector<Proposal> configs;
  std::vector<Descriptor> descriptors;
  int64_t count = heuristic.get(Attribute::HeuristicResults, Type::Descriptor, 0, nullptr);
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back().emplace_back(table, Kind::EngineConfig);
    descriptors.push_back(configs.back().back().descriptor());
  }
  if (count > 0)
    count = heuristic.get(Attribute::HeuristicResults, Type::Descriptor, count, descriptors.data());
  while (std::ssize(configs) > std::max<int64_t>(count, 0))
    configs.pop_back();
  return configs;
}

/// All engines that know such operations, without any choices made for them.
std::vector<Library::Proposal> Library::everyEngine(const Object &graph) {
  std::vector<Proposal> configs;
  int64_t count = 0;
  graph.get(Attribute::GraphEngines, Type::Int64, 1, &count);
  for (int64_t i = 0; i < count; ++i) {
    Object engine(table, Kind::Engine), config(table, Kind::EngineConfig);
    if (engine.set(Attribute::EngineGraph, graph).set(Attribute::EngineNumber, i).finalize() &&
        config.set(Attribute::ConfigEngine, engine).finalize()) {
      Proposal &made = configs.emplace_back();
      made.push_back(std::move(engine));
      made.push_back(std::move(config));
    }
  }
  return configs;
}

/// The engine computes the same bits every time, and rounds no more than the type of the tensors does.
bool Library::mayRun(const Object &config, const Problem &problem) {
  Object engine(table, Kind::Engine);
  Descriptor place = engine.descriptor();
  if (config.get(Attribute::ConfigEngine, Type::Descriptor, 1, &place) != 1)
    return false;
  std::array<Note, mostNotes> notes = {};
  int64_t count = engine.get(Attribute::EngineNotes, Type::NumericalNote, mostNotes, notes.data());
  bool isWide = problem.type == DataType::Float;
  if (count < 0)
    return false;
  return std::none_of(notes.begin(), notes.begin() + count, [&](Note note) {
    switch (note) {
    case Note::Nondeterministic:
    case Note::DownConvertInputs:
    case Note::ReducedPrecisionReduction:
    case Note::WinogradTile13x13: return true;
    case Note::TensorCore: return isWide && !problem.tensorFloat;
    case Note::Winograd: return !isWide; // its intermediate values are as narrow
    default: return false;
    }
  });
}

std::unique_ptr<Plan> Library::choose(const Problem &problem) {
  std::vector<Object> parts = describe(problem);
  if (parts.empty())
    return nullptr;
  const Object &graph = parts.back();
  auto tryAll = [&](std::vector<Proposal> all) -> std::unique_ptr<Plan> {
    for (Proposal &proposal : all) {
      const Object &config = proposal.back();
      Object plan(table, Kind::ExecutionPlan);
      int64_t bytes = 0;
      if (!mayRun(config, problem) || !plan.set(Attribute::PlanHandle, handle).set(Attribute::PlanConfig, config).finalize() ||
          plan.get(Attribute::PlanWorkspaceBytes, Type::Int64, 1, &bytes) != 1 || bytes < 0 ||
          static_cast<uint64_t>(bytes) > mostWorkspaceBytes)
        continue;
      auto made = std::make_unique<Plan>();
      made->parts = std::move(parts);
      std::move(proposal.begin(), proposal.end(), std::back_inserter(made->parts));
      made->parts.push_back(std::move(plan));
      made->workspaceBytes = static_cast<uint64_t>(bytes);
      return made;
    }
    return nullptr;
  };
  if (auto made = tryAll(proposals(graph, HeuristicMode::A)))
    return made;
  if (auto made = tryAll(proposals(graph, HeuristicMode::Fallback)))
    return made;
  return problem.anyEngine ? tryAll(everyEngine(graph)) : nullptr;
}

Status Library::execute(const Plan &plan, const std::array<void *, 3> &tensors, void *workspace, void *stream) {
  Object pack(table, Kind::VariantPack);
  pack.set(Attribute::PackNumbers, numbers)
      .set(Attribute::PackPointers, tensors)
      .set(Attribute::PackWorkspace, std::array<void *, 1>{workspace});
  if (!pack.finalize())
    return failed(table, "cudnnBackendFinalize", pack.code());
  if (stream != current)
    if (Code code = table.cudnnSetStream(handle, stream); code != Code::Success)
      return failed(table, "cudnnSetStream", code);
  current = stream;
  if (Code code = table.cudnnBackendExecute(handle, plan.descriptor(), pack.descriptor()); code != Code::Success)
    return failed(table, "cudnnBackendExecute", code);
  return {};
}

} // namespace msc::device::cuda::cudnn
