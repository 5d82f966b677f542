#include "passes/codegen/KernelLibrary.h"

#include "passes/codegen/cpu/ClusterEmitter.h"
#include "passes/codegen/KernelKey.h"
#include "passes/codegen/cpu/MatMulEmitter.h"
#include "passes/codegen/cpu/ObjectModule.h"
#include "passes/codegen/nvptx/KernelEmitter.h"
#include "passes/codegen/nvptx/ProductEmitter.h"
#include "passes/codegen/nvptx/PtxModule.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <functional>
#include <system_error>
#include <thread>

namespace msc::codegen {

namespace {

/// Symbols by key: two kernels share one exactly if their keys agree.
class Symbols {
public:
  /// The symbol of a key, and whether it is new.
  std::pair<std::string, bool> of(const std::string &key, llvm::StringRef prefix) {
    auto [entry, isNew] = symbols.try_emplace(key);
    if (!isNew)
      return {entry->second, false};
    std::string symbol = prefix.str();
    llvm::raw_string_ostream(symbol) << llvm::format_hex_no_prefix(llvm::xxh3_64bits(llvm::StringRef(key)), 16);
    while (!taken.insert(symbol).second) // two keys with one hash
      symbol += "_";
    return {entry->second = symbol, true};
  }
  unsigned size() const { return symbols.size(); }

private:
  llvm::StringMap<std::string> symbols;
  llvm::StringSet<> taken;
};

} // namespace

struct KernelLibrary::State {
  std::vector<std::unique_ptr<ObjectModule>> modules; ///< one per instruction set of CPUs
  std::unique_ptr<PtxModule> ptx;
  Symbols symbols, entries;

  /// The symbol of a key; `emit` is called once per instruction set for a key that is new.
  std::string define(const std::string &key, llvm::function_ref<void(ObjectModule &, llvm::StringRef)> emit) {
    auto [symbol, isNew] = symbols.of(key, "k_");
    for (auto &module : modules)
      if (isNew)
        emit(*module, symbol);
    return symbol;
  }
  GpuLaunch defineGpu(const Cluster &cluster, Schedule schedule);
  GpuLaunch defineGpu(const MatMulShape &shape);
};

// The largest end is no part of the code: kernels that differ in it alone are one.
GpuLaunch KernelLibrary::State::defineGpu(const Cluster &cluster, Schedule schedule) {
  schedule.streams = false;
  GpuSchedule gpu = scheduleForGpu(cluster, schedule);
  std::string key = kernelKey(cluster, schedule) + (gpu.wide ? "\nwide" : "");
  llvm::raw_string_ostream(key) << "\n" << gpu.block << " " << gpu.team << " " << gpu.pieces;
  auto [entry, isNew] = entries.of(key, "g_");
  if (isNew)
    KernelEmitter(cluster, schedule, gpu, ptx->module(), entry).emit();
  return {entry, gpu.block, gpu.items, gpu.blockItems, gpu.mostRange, gpu.unitScratch()};
}

GpuLaunch KernelLibrary::State::defineGpu(const MatMulShape &shape) {
  auto [entry, isNew] = entries.of(matMulKey(shape), "g_");
  if (isNew)
    ProductEmitter(shape, ptx->module(), entry).emit();
  int64_t tiles = std::max<int64_t>(1, llvm::divideCeil(shape.n, ProductEmitter::side));
  return {entry, ProductEmitter::block, tiles, ProductEmitter::side, (int64_t(1) << 60) / (tiles * ProductEmitter::side), 0};
}

KernelLibrary::KernelLibrary(KernelTargets targets) : state(std::make_unique<State>()) {
  if (targets.cpu)
    for (const char *isa : {"x86-64-v3", "x86-64-v4"})
      if (!targets.thisProcessor || (isa == std::string("x86-64-v4")) == bool(__builtin_cpu_supports("x86-64-v4")))
        state->modules.push_back(std::make_unique<ObjectModule>(isa));
  if (targets.gpu)
    state->ptx = std::make_unique<PtxModule>();
}
KernelLibrary::~KernelLibrary() = default;

unsigned KernelLibrary::size() const { return state->symbols.size(); }

std::string KernelLibrary::irText() const {
  std::string text;
  llvm::raw_string_ostream(text) << state->modules[0]->module();
  return text;
}

std::string KernelLibrary::gpuIrText() const { return state->ptx->irText(); }

std::string KernelLibrary::whyNot(llvm::ArrayRef<mlir::func::FuncOp> variants) {
  std::string reason;
  std::optional<KernelForm> form;
  for (mlir::func::FuncOp func : variants) {
    auto cluster = analyseCluster(func, reason, form ? &*form : nullptr);
    if (mlir::failed(cluster))
      return reason;
    auto schedule = scheduleCluster(*cluster, reason, form ? &*form : nullptr);
    if (mlir::failed(schedule))
      return reason;
    if (!form)
      form = formOf(*cluster, *schedule);
  }
  return "";
}

// Sizes that stand in the code: all but those of the first range dimension, which is only counted. That one too where a
// tensor has another dimension outside of it, whose stride it decides.
static llvm::SmallVector<std::pair<unsigned, unsigned>> constantSizes(const Cluster &cluster, const Schedule &schedule) {
  llvm::SmallBitVector constant(cluster.rank(), true);
  if (!schedule.rangeDims.empty()) {
    unsigned lead = schedule.rangeDims[0];
    auto isOutermost = [&](const Access &access) {
      for (unsigned dim = 0; access.has(lead) && dim < cluster.rank(); ++dim)
        if (access.has(dim) && access.positions[dim] < access.positions[lead])
          return false;
      return true;
    };
    bool free = llvm::all_of(cluster.stores, [&](const Store &store) { return isOutermost(store.access); });
    for (const Node &node : cluster.nodes)
      for (const Operand &operand : node.operands)
        free &= operand.kind != Operand::Pointer || isOutermost(operand.access);
    if (free)
      constant.reset(lead);
  }
  llvm::SmallVector<std::pair<unsigned, unsigned>> sizes;
  for (unsigned dim : constant.set_bits())
    for (unsigned loop : cluster.origin[dim])
      if (cluster.places[loop].first >= 0)
        sizes.push_back(cluster.places[loop]);
  return sizes;
}

mlir::FailureOr<CompiledKernel> KernelLibrary::add(mlir::func::FuncOp func, const CompiledKernel *like, bool streams) {
  std::string reason;
  const KernelForm *form = like ? like->form.get() : nullptr;
  auto cluster = analyseCluster(func, reason, form);
  if (mlir::failed(cluster))
    return func.emitError() << "cluster '" << func.getName() << "' cannot be one kernel: " << reason;
  auto schedule = scheduleCluster(*cluster, reason, form);
  if (mlir::failed(schedule))
    return func.emitError() << "cluster '" << func.getName() << "' cannot be one kernel: " << reason;
  schedule->streams = streams;
  CompiledKernel kernel;
  kernel.symbol = state->define(kernelKey(*cluster, *schedule), [&](ObjectModule &object, llvm::StringRef symbol) {
    ClusterEmitter(*cluster, *schedule, object.module(), symbol).emit();
  });
  if (state->ptx)
    kernel.gpu = state->defineGpu(*cluster, *schedule);
  for (unsigned dim : schedule->rangeDims)
    for (unsigned loop : cluster->origin[dim]) {
      kernel.rangeDims.push_back(loop);
      kernel.rangeSizes.push_back(cluster->places[loop]);
    }
  kernel.innerSizes = constantSizes(*cluster, *schedule);
  kernel.pointers = cluster->pointers.size();
  kernel.unit = schedule->unit;
  kernel.flat = schedule->form == Schedule::Flat;
  if (schedule->isCut() && !state->modules.empty()) {
    kernel.pieces = schedule->pieces;
    kernel.scratch = int64_t(sizeof(double)) * schedule->pieces * schedule->parts;
  }
  kernel.form = std::make_shared<KernelForm>(formOf(*cluster, *schedule));
  return kernel;
}

/// The same product with as few batch dimensions as possible: neighbours that the same operands have are one.
static MatMulShape withMergedBatches(MatMulShape shape) {
  llvm::SmallVector<BatchDim> merged;
  for (const BatchDim &dim : shape.batch) {
    if (dim.size == 1)
      continue;
    if (!merged.empty() && merged.back().inLeft == dim.inLeft && merged.back().inRight == dim.inRight)
      merged.back().size *= dim.size;
    else
      merged.push_back(dim);
  }
  shape.batch = merged;
  return shape;
}

mlir::FailureOr<CompiledKernel> KernelLibrary::addMatMul(const MatMulShape &shape, mlir::Location location) {
  if (!shape.element.isF32() && !shape.element.isF64() && !shape.element.isInteger(32) && !shape.element.isInteger(64))
    return mlir::emitError(location) << "a matrix product of '" << shape.element << "' has no kernel";
  CompiledKernel kernel;
  MatMulShape merged = withMergedBatches(shape);
  kernel.symbol = state->define(matMulKey(merged), [&](ObjectModule &object, llvm::StringRef symbol) {
    // v3 has half the registers, each half as wide.
    MatMulEmitter(merged, object.isa() == "x86-64-v4" ? 3 : 1, object.module(), symbol).emit();
  });
  if (state->ptx)
    kernel.gpu = state->defineGpu(merged);
  kernel.pointers = 3;
  for (unsigned dim = 0; dim <= shape.batch.size(); ++dim)
    kernel.rangeSizes.push_back({2, dim});
  kernel.unit = MatMulEmitter::rowsPerStep;
  return kernel;
}

mlir::FailureOr<llvm::SmallVector<CodeObject>> KernelLibrary::finish(mlir::Location location) {
  struct Outcome {
    std::string isa, bytes, error;
    std::function<llvm::Expected<std::string>()> compile;
  };
  std::vector<Outcome> outcomes;
  for (auto &module : state->modules)
    outcomes.push_back({module->isa().str(), "", "", [&module = *module] { return module.compile(); }});
  if (state->ptx)
    outcomes.push_back({"nvptx64", "", "", [this] { return state->ptx->compile(); }});
  auto run = [](Outcome &outcome) {
    if (auto result = outcome.compile())
      outcome.bytes = std::move(*result);
    else
      outcome.error = llvm::toString(result.takeError());
  };
  std::vector<std::thread> others(outcomes.size());
  for (size_t i = 1; i < outcomes.size(); ++i)
    try {
      others[i] = std::thread(run, std::ref(outcomes[i]));
    } catch (const std::system_error &) { // the limits of the process allow no further one
      run(outcomes[i]);
    }
  if (!outcomes.empty())
    run(outcomes[0]);
  for (std::thread &other : others)
    if (other.joinable())
      other.join();
  llvm::SmallVector<CodeObject> objects;
  for (Outcome &outcome : outcomes) {
    if (!outcome.error.empty())
      return mlir::emitError(location) << "internal error in kernels for '" << outcome.isa << "': " << outcome.error;
    objects.push_back({outcome.isa, std::move(outcome.bytes)});
  }
  return objects;
}

} // namespace msc::codegen
