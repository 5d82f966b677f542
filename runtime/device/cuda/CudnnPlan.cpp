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
  known.clear();
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

Ways *Library::waysOf(const Problem &problem, size_t most) {
  if (!open())
    return nullptr;
  auto [place, isNew] = known.try_emplace(problem);
  if (isNew)
    place->second = choose(problem, most);
  return place->second.plans.empty() ? nullptr : &place->second;
}

uint64_t Ways::workspaceBytes() const {
  uint64_t most = 0;
  for (const auto &plan : plans)
    most = std::max(most, plan->workspaceBytes);
  return most;
}

std::string textOf(const Problem &problem) {
  static const char *const results[] = {"output", "input", "filter"};
  return fmt::format("{} of type {}{} x {} by {} w {} y {} by {} stride {} dilation {} pad {} {} at {}",
                     results[static_cast<size_t>(problem.result)], static_cast<int>(problem.type), problem.tensorFloat ? " tf32" : "",
                     fmt::join(problem.x, ","), fmt::join(problem.xStrides, ","), fmt::join(problem.w, ","),
                     fmt::join(problem.y, ","), fmt::join(problem.yStrides, ","), fmt::join(problem.stride, ","),
                     fmt::join(problem.dilation, ","), fmt::join(problem.before, ","), fmt::join(problem.after, ","),
                     fmt::join(problem.alignment, ","));
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
  tensor(1, problem.w, problem.wStrides);
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

/// Null if cuDNN cannot, or needs too much memory for it.
std::unique_ptr<Plan> Library::planOf(Proposal proposal, const Problem &problem) {
  const Object &config = proposal.back();
  Object plan(table, Kind::ExecutionPlan);
  int64_t bytes = 0;
  if (!mayRun(config, problem) || !plan.set(Attribute::PlanHandle, handle).set(Attribute::PlanConfig, config).finalize() ||
      plan.get(Attribute::PlanWorkspaceBytes, Type::Int64, 1, &bytes) != 1 || bytes < 0 ||
      static_cast<uint64_t>(bytes) > mostWorkspaceBytes)
    return nullptr;
  auto made = std::make_unique<Plan>();
  made->parts = std::move(proposal);
  made->parts.push_back(std::move(plan));
  made->workspaceBytes = static_cast<uint64_t>(bytes);
  return made;
}

Ways Library::choose(const Problem &problem, size_t most) {
  Ways ways;
  auto graph = std::make_shared<const std::vector<Object>>(describe(problem));
  if (graph->empty())
    return ways;
  auto add = [&](std::vector<Proposal> all) {
    for (Proposal &proposal : all)
      if (auto made = ways.plans.size() < most ? planOf(std::move(proposal), problem) : nullptr) {
        made->graph = graph;
        ways.plans.push_back(std::move(made));
      }
  };
  add(proposals(graph->back(), HeuristicMode::A));
  if (ways.plans.empty() || most > 1)
    add(proposals(graph->back(), HeuristicMode::Fallback));
  if (ways.plans.empty() && problem.anyEngine)
    add(everyEngine(graph->back()));
  return ways;
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
