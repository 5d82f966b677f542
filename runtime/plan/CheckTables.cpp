// Tables of a plan: indices, shapes, names, machine code, memory.
#include "runtime/plan/ElfImage.h"
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/PtxText.h"
#include "runtime/plan/RankClasses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace msc::check {
namespace {

constexpr uint32_t mostDevices = 1u << 20;
constexpr int mostDimensions = 32;
constexpr int mostAxes = 64;
/// Elements of one tensor, so that bytes and offsets never overflow.
constexpr int64_t mostElements = int64_t{1} << 48;
constexpr uint64_t largestArena = uint64_t{1} << 60;
constexpr uint64_t alignment = 64;
/// Pointers of one kernel, limited by the table of callers in runtime/device/cpu.
constexpr uint32_t mostArguments = 48;
/// Of one block on a GPU.
constexpr uint32_t mostThreads = 1024;
/// Elements that the launch of a kernel on a GPU may count.
constexpr uint64_t mostItems = uint64_t{1} << 61;
constexpr uint64_t mostUnitScratch = 1 << 20;
constexpr uint32_t mostPieces = 1 << 12;         ///< of a cut row
constexpr uint32_t mostPieceScratch = 1 << 20;   ///< bytes that they share

template <typename Index, typename List> bool inRange(Index index, const List &list) {
  return index < static_cast<uint64_t>(list.size());
}

Status checkShardings(const plan::Plan &plan) {
  for (int i = 0; i < plan.shardings_size(); ++i) {
    const plan::Sharding &message = plan.shardings(i);
    if (message.axes_size() > mostAxes || message.dims_size() > mostDimensions)
      return bad("sharding {} has {} axes and {} dimensions", i, message.axes_size(), message.dims_size());
    for (const auto &partial : message.partial())
      if (!plan::Reduction_IsValid(partial.kind()))
        return bad("sharding {} has an unknown kind of partial value {}", i, static_cast<int>(partial.kind()));
    Sharding sharding = toSharding(message);
    if (std::string wrong = sharding.check(plan.devices(), sharding.dims.size()); !wrong.empty())
      return bad("sharding {} is unsound: {}", i, wrong);
  }
  return {};
}

/// Sizes at least 1 whose product, rounded up in every dimension, stays below mostElements.
std::string shapeProblem(const plan::Buffer &buffer) {
  if (buffer.shape_size() > mostDimensions)
    return fmt::format("has {} dimensions", buffer.shape_size());
  __int128 count = 1;
  for (int64_t size : buffer.shape()) {
    if (size < 1)
      return fmt::format("has a dimension of size {}", size);
    count *= size;
    if (count > mostElements)
      return "has too many elements";
  }
  return "";
}

Status checkBuffer(const plan::Plan &plan, const plan::Buffer &buffer) {
  auto wrong = [&](const std::string &what) {
    std::string place = placeOf(plan, buffer.location());
    return bad("buffer '{}'{} {}", buffer.name(), place.empty() ? "" : " (" + place + ")", what);
  };
  if (elementBytes(buffer.dtype()) == 0)
    return wrong(fmt::format("has an unknown type {}", static_cast<int>(buffer.dtype())));
  if (!plan::Buffer::Kind_IsValid(buffer.kind()))
    return wrong(fmt::format("has an unknown kind {}", static_cast<int>(buffer.kind())));
  if (std::string problem = shapeProblem(buffer); !problem.empty())
    return wrong(problem);
  if (!inRange(buffer.sharding(), plan.shardings()))
    return wrong(fmt::format("names sharding {} of {}", buffer.sharding(), plan.shardings_size()));
  Sharding sharding = toSharding(plan.shardings(static_cast<int>(buffer.sharding())));
  if (sharding.dims.size() != static_cast<size_t>(buffer.shape_size()))
    return wrong(fmt::format("has {} dimensions, its sharding {}", buffer.shape_size(), sharding.dims.size()));
  if (buffer.view_of() > static_cast<uint32_t>(plan.buffers_size()))
    return wrong(fmt::format("is a view of buffer {} of {}", buffer.view_of() - 1, plan.buffers_size()));
  if (buffer.offset() % alignment != 0)
    return wrong(fmt::format("starts at byte {}, not a multiple of {}", buffer.offset(), alignment));
  if (buffer.offset() > plan.arena_bytes() || plan.arena_bytes() - buffer.offset() < buffer.bytes())
    return wrong(fmt::format("takes {} bytes from {}, outside the arena of {}", buffer.bytes(), buffer.offset(),
                             plan.arena_bytes()));
  std::vector<int64_t> shape(buffer.shape().begin(), buffer.shape().end());
  auto needed = static_cast<uint64_t>(elementCount(sharding.capacity(shape))) * elementBytes(buffer.dtype());
  uint64_t rounded = (needed + alignment - 1) / alignment * alignment;
  if (buffer.bytes() < needed || buffer.bytes() > rounded)
    return wrong(fmt::format("has {} bytes, but a rank holds up to {}", buffer.bytes(), needed));
  return {};
}

Status checkBuffers(const plan::Plan &plan) {
  if (plan.arena_bytes() % alignment != 0 || plan.arena_bytes() > largestArena)
    return bad("the arena has {} bytes", plan.arena_bytes());
  for (const plan::Buffer &buffer : plan.buffers()) {
    if (Status status = checkBuffer(plan, buffer); !status)
      return status;
  }
  return {};
}

bool isInitializer(const std::string &kind) {
  constexpr std::string_view known[] = {"zeros",  "ones",      "constant",   "normal",         "uniform", "he_normal",
                                        "he_uniform", "xavier_uniform", "truncated_normal"};
  return std::find(std::begin(known), std::end(known), kind) != std::end(known);
}

Status checkParameters(const plan::Plan &plan) {
  std::set<std::string> names;
  std::set<uint32_t> buffers;
  for (const plan::Parameter &parameter : plan.parameters()) {
    if (!inRange(parameter.buffer(), plan.buffers()))
      return bad("parameter '{}' names buffer {} of {}", parameter.name(), parameter.buffer(), plan.buffers_size());
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(parameter.buffer()));
    if (buffer.kind() != plan::Buffer::PARAMETER || buffer.view_of() != 0)
      return bad("parameter '{}' lies in buffer '{}', which has no memory of its own for the whole run",
                 parameter.name(), buffer.name());
    if (plan.shardings(static_cast<int>(buffer.sharding())).partial_size() != 0)
      return bad("parameter '{}' is partial", parameter.name());
    if (!names.insert(parameter.name()).second)
      return bad("two parameters are called '{}'", parameter.name());
    if (!buffers.insert(parameter.buffer()).second)
      return bad("parameter '{}' lies in buffer '{}' of another parameter", parameter.name(), buffer.name());
    const plan::Initializer &initializer = parameter.initializer();
    if (!isInitializer(initializer.kind()))
      return bad("parameter '{}' has an unknown initializer '{}'", parameter.name(), initializer.kind());
    if (!std::isfinite(initializer.a()) || !std::isfinite(initializer.b()))
      return bad("parameter '{}' has an initializer that is not finite", parameter.name());
  }
  for (const plan::Parameter &parameter : plan.parameters())
    if (!parameter.state_of().empty() && !names.count(parameter.state_of()))
      return bad("'{}' is a state of '{}', which is no parameter", parameter.name(), parameter.state_of());
  return {};
}

/// Number of values that a schedule of this kind takes: at least `least`, at most `most`.
std::tuple<int, int> scheduleValues(const std::string &kind) {
  if (kind == "constant" || kind == "power" || kind == "correction" || kind == "cycle")
    return {1, 1};
  if (kind == "step")
    return {0, 0};
  if (kind == "exponential" || kind == "decay" || kind == "cosine")
    return {3, 3};
  if (kind == "polynomial")
    return {4, 4};
  if (kind == "piecewise")
    return {1, 4095};
  return {1, 0};
}

Status checkSchedules(const plan::Plan &plan) {
  for (const plan::Schedule &schedule : plan.schedules()) {
    if (!inRange(schedule.buffer(), plan.buffers()))
      return bad("schedule '{}' names buffer {} of {}", schedule.name(), schedule.buffer(), plan.buffers_size());
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(schedule.buffer()));
    if (buffer.kind() != plan::Buffer::SCALAR || buffer.view_of() != 0 || buffer.shape_size() != 0)
      return bad("schedule '{}' writes buffer '{}', which is no scalar", schedule.name(), buffer.name());
    if (buffer.dtype() != plan::F32 && buffer.dtype() != plan::F64)
      return bad("schedule '{}' has type {}, expected f32 or f64", schedule.name(), dataTypeName(buffer.dtype()));
    auto [least, most] = scheduleValues(schedule.kind());
    if (schedule.values_size() < least || schedule.values_size() > most)
      return bad("schedule '{}' of kind '{}' has {} values", schedule.name(), schedule.kind(), schedule.values_size());
    if (schedule.kind() == "piecewise" && schedule.values_size() % 2 == 0)
      return bad("schedule '{}' of kind 'piecewise' has {} values", schedule.name(), schedule.values_size());
  }
  return {};
}

/// Runs write what a schedule sets only when its value changes.
Status checkWritesOfSchedules(const plan::Plan &plan) {
  std::map<uint32_t, std::string> set;
  for (const plan::Schedule &schedule : plan.schedules())
    set.emplace(schedule.buffer(), schedule.name());
  for (const plan::Program &program : plan.programs())
    for (const plan::Variant &variant : program.variants())
      for (const plan::Step &step : variant.steps())
        for (uint32_t buffer : step.writes()) {
          uint32_t view = buffer < static_cast<uint32_t>(plan.buffers_size()) ? plan.buffers(static_cast<int>(buffer)).view_of() : 0;
          if (auto known = set.find(view != 0 ? view - 1 : buffer); known != set.end())
            return bad("step '{}' writes what schedule '{}' sets", step.name(), known->second);
        }
  return {};
}

Status checkKernels(const plan::Plan &plan) {
  for (const plan::Kernel &kernel : plan.kernels()) {
    if (kernel.arguments() < 1 || kernel.arguments() > mostArguments)
      return bad("kernel '{}' has {} arguments, expected 1-{}", kernel.name(), kernel.arguments(), mostArguments);
    if (kernel.variants_size() == 0)
      return bad("kernel '{}' has no variant", kernel.name());
    for (const plan::Kernel::Variant &variant : kernel.variants()) {
      if (variant.symbol().empty())
        return bad("kernel '{}' has a variant without a symbol", kernel.name());
      const bool isCut = variant.pieces() != 0;
      if (isCut != (variant.scratch() != 0) || variant.pieces() == 1 || variant.pieces() > mostPieces || variant.scratch() > mostPieceScratch ||
          (isCut && variant.scratch() % (8 * variant.pieces()) != 0))
        return bad("kernel '{}' has a variant in {} pieces with {} bytes of scratch, expected 2-{} and some times 8 for each up to {}, or none",
                   kernel.name(), variant.pieces(), variant.scratch(), mostPieces, mostPieceScratch);
      if (variant.inner_size() != kernel.variants(0).inner_size())
        return bad("kernel '{}' has variants of {} and {} inner sizes", kernel.name(), kernel.variants(0).inner_size(),
                   variant.inner_size());
    }
  }
  return {};
}

/// How a kernel is launched on GPUs agrees with its code.
Status checkGpuLaunch(const plan::Kernel &kernel, const plan::GpuLaunch &launch, const PtxText &text) {
  auto entry = text.entries.find(launch.entry());
  if (entry == text.entries.end())
    return bad("kernel '{}' has no entry '{}' in the PTX", kernel.name(), launch.entry());
  uint32_t parameters = kernel.arguments() + (launch.unit_scratch() != 0 ? 2 : 1);
  if (entry->second.parameters != parameters)
    return bad("kernel '{}' has {} parameters in the PTX, expected {}", kernel.name(), entry->second.parameters, parameters);
  if (launch.block() < 1 || launch.block() > mostThreads || launch.block() != entry->second.block)
    return bad("kernel '{}' is launched in blocks of {} threads, its PTX requires {}", kernel.name(), launch.block(),
               entry->second.block);
  // The product of all three is computed at load.
  bool isSound = launch.items() >= 1 && launch.block_items() >= 1 && launch.most_range() >= 1 &&
                 launch.block_items() <= mostItems && launch.most_range() <= mostItems / launch.items();
  if (!isSound)
    return bad("the grid of kernel '{}' is unsound: {} / {} blocks for each of at most {} units", kernel.name(), launch.items(),
               launch.block_items(), launch.most_range());
  if (launch.unit_scratch() > mostUnitScratch || launch.unit_scratch() % 8 != 0)
    return bad("kernel '{}' takes {} bytes of scratch per unit, expected a multiple of 8 up to {}", kernel.name(),
               launch.unit_scratch(), mostUnitScratch);
  return {};
}

Status checkPtx(const plan::Plan &plan, const std::string &code) {
  Result<PtxText> text = readPtx(code);
  if (!text)
    return bad("its machine code for '{}' is refused: {}", "nvptx64", text.error().message);
  for (const plan::Kernel &kernel : plan.kernels())
    for (const plan::Kernel::Variant &variant : kernel.variants())
      if (Status status = checkGpuLaunch(kernel, variant.gpu(), *text); !status)
        return status;
  return {};
}

Status checkObjects(const plan::Plan &plan) {
  std::set<std::string> isas;
  for (const plan::CodeObject &object : plan.objects()) {
    if (object.isa() != "x86-64-v3" && object.isa() != "x86-64-v4" && object.isa() != "nvptx64")
      return bad("it holds machine code for an unknown instruction set '{}'", object.isa());
    if (!isas.insert(object.isa()).second)
      return bad("it holds machine code for '{}' twice", object.isa());
    if (object.isa() == "nvptx64") {
      if (Status status = checkPtx(plan, object.code()); !status)
        return status;
      continue;
    }
    Result<ElfImage> image = readKernelObject(object.code());
    if (!image)
      return bad("its machine code for '{}' is refused: {}", object.isa(), image.error().message);
    for (const plan::Kernel &kernel : plan.kernels())
      for (const plan::Kernel::Variant &variant : kernel.variants())
        if (!image->defined.count(variant.symbol()))
          return bad("kernel '{}' has no symbol '{}' in the machine code for '{}'", kernel.name(), variant.symbol(),
                     object.isa());
  }
  for (const plan::Kernel &kernel : plan.kernels())
    for (const plan::Kernel::Variant &variant : kernel.variants())
      if (variant.has_gpu() && !isas.count("nvptx64"))
        return bad("kernel '{}' has an entry '{}' for GPUs, but the plan holds no PTX", kernel.name(), variant.gpu().entry());
  return {};
}

bool isDistribution(const std::string &name) {
  constexpr std::string_view known[] = {"uniform", "normal", "zeros", "ones", "constant", "integers"};
  return std::find(std::begin(known), std::end(known), name) != std::end(known);
}

Status checkDatasets(const plan::Plan &plan) {
  for (const plan::Dataset &dataset : plan.datasets()) {
    if (dataset.source() != "Random" && dataset.source() != "Npy")
      return bad("dataset '{}' has an unknown source '{}'", dataset.name(), dataset.source());
    for (const plan::Dataset::Column &column : dataset.columns()) {
      if (dataset.source() == "Random" && !isDistribution(column.distribution()))
        return bad("column '{}' has an unknown distribution '{}'", column.name(), column.distribution());
      if (dataset.source() == "Npy" && column.path().empty())
        return bad("column '{}' has no file", column.name());
      if (column.classes() < 0)
        return bad("column '{}' has {} classes", column.name(), column.classes());
    }
    if (dataset.source() == "Random" && dataset.steps() == 0)
      return bad("dataset '{}' has no steps", dataset.name());
  }
  return {};
}

Status checkLocations(const plan::Plan &plan) {
  for (const plan::Location &location : plan.locations())
    if (!inRange(location.file(), plan.files()))
      return bad("a location names file {} of {}", location.file(), plan.files_size());
  auto known = [&](uint32_t location) { return inRange(location, plan.locations()) || location == 0; };
  for (const plan::Buffer &buffer : plan.buffers())
    if (!known(buffer.location()))
      return bad("buffer '{}' names location {} of {}", buffer.name(), buffer.location(), plan.locations_size());
  for (const plan::Program &program : plan.programs())
    for (const plan::Variant &variant : program.variants())
      for (const plan::Step &step : variant.steps())
        if (!known(step.location()))
          return bad("step '{}' names location {} of {}", step.name(), step.location(), plan.locations_size());
  for (const plan::OperatorNote &note : plan.operators())
    if (!known(note.location()))
      return bad("operator '{}' names location {} of {}", note.name(), note.location(), plan.locations_size());
  return {};
}

bool livesForWholeRun(const plan::Buffer &buffer) {
  return buffer.kind() == plan::Buffer::PARAMETER || buffer.kind() == plan::Buffer::SCALAR ||
         buffer.kind() == plan::Buffer::CONSTANT;
}

/// A view shows the elements of its root one to one on every rank.
Status checkView(const PlanIndex &index, uint32_t view) {
  const plan::Buffer &buffer = index.buffer(view), &root = index.buffer(index.root(view));
  if (root.view_of() != 0)
    return bad("buffer {} is a view of too many views", index.bufferTitle(view));
  if (buffer.offset() != root.offset())
    return bad("view {} starts at byte {}, the buffer '{}' that it shows at {}", index.bufferTitle(view),
               buffer.offset(), root.name(), root.offset());
  if (elementBytes(buffer.dtype()) != elementBytes(root.dtype()))
    return bad("view {} has type {}, the buffer '{}' that it shows {}", index.bufferTitle(view),
               dataTypeName(buffer.dtype()), root.name(), dataTypeName(root.dtype()));
  RankClasses classes(index.devices());
  for (uint32_t which : {view, index.root(view)})
    classes.addSizes(index.sharding(which), index.shape(which));
  for (int64_t rank : classes.ranks())
    if (index.localCount(view, rank) != index.localCount(index.root(view), rank))
      return bad("view {} has {} elements on rank {}, the buffer '{}' that it shows {}", index.bufferTitle(view),
                 index.localCount(view, rank), rank, root.name(), index.localCount(index.root(view), rank));
  return {};
}

} // namespace

Status checkTables(const plan::Plan &plan) {
  if (plan.devices() < 1 || plan.devices() > mostDevices)
    return bad("it is for {} devices, expected 1-{}", plan.devices(), mostDevices);
  Status (*const parts[])(const plan::Plan &) = {checkShardings, checkBuffers, checkParameters, checkSchedules, checkWritesOfSchedules,
                                                 checkKernels,   checkObjects, checkDatasets,   checkLocations};
  for (auto part : parts)
    if (Status status = part(plan); !status)
      return status;
  return {};
}

Status checkMemory(const PlanIndex &index) {
  std::vector<uint32_t> owners;
  for (uint32_t i = 0; i < index.bufferCount(); ++i) {
    if (index.root(i) == i)
      owners.push_back(i);
    else if (Status status = checkView(index, i); !status)
      return status;
  }
  std::sort(owners.begin(), owners.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(index.buffer(a).offset(), a) < std::tuple(index.buffer(b).offset(), b);
  });
  // The buffers that reach furthest so far: of all, and of those that live for the whole run.
  const plan::Buffer *furthest = nullptr, *furthestLasting = nullptr;
  auto endOf = [](const plan::Buffer *buffer) { return buffer ? buffer->offset() + buffer->bytes() : 0; };
  for (uint32_t owner : owners) {
    const plan::Buffer &buffer = index.buffer(owner);
    const plan::Buffer *rival = livesForWholeRun(buffer) ? furthest : furthestLasting;
    if (buffer.offset() < endOf(rival))
      return bad("buffers '{}' and '{}' share memory, but '{}' lives for the whole run", rival->name(), buffer.name(),
                 livesForWholeRun(buffer) ? buffer.name() : rival->name());
    if (endOf(&buffer) > endOf(furthest))
      furthest = &buffer;
    if (livesForWholeRun(buffer) && endOf(&buffer) > endOf(furthestLasting))
      furthestLasting = &buffer;
  }
  return {};
}

} // namespace msc::check
