#include "passes/codegen/KernelLibrary.h"

#include "passes/codegen/ClusterEmitter.h"
#include "passes/codegen/KernelKey.h"
#include "passes/codegen/MatMulEmitter.h"
#include "passes/codegen/ObjectModule.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <thread>

namespace msc::codegen {

struct KernelLibrary::State {
  std::array<ObjectModule, 2> modules = {ObjectModule("x86-64-v3"), ObjectModule("x86-64-v4")};
  llvm::StringMap<std::string> symbols; ///< key -> symbol
  llvm::StringSet<> taken;

  /// The symbol of a key; `emit` is called once per instruction set for a key that is new.
  std::string define(const std::string &key, llvm::function_ref<void(ObjectModule &, llvm::StringRef)> emit);
};

std::string KernelLibrary::State::define(const std::string &key,
                                         llvm::function_ref<void(ObjectModule &, llvm::StringRef)> emit) {
  auto [entry, isNew] = symbols.try_emplace(key);
  if (!isNew)
    return entry->second;
  std::string symbol;
  llvm::raw_string_ostream(symbol) << "k_" << llvm::format_hex_no_prefix(llvm::xxh3_64bits(llvm::StringRef(key)), 16);
  while (!taken.insert(symbol).second) // two keys with one hash
    symbol += "_";
  for (ObjectModule &module : modules)
    emit(module, symbol);
  return entry->second = symbol;
}

KernelLibrary::KernelLibrary() : state(std::make_unique<State>()) {}
KernelLibrary::~KernelLibrary() = default;

unsigned KernelLibrary::size() const { return state->symbols.size(); }

std::string KernelLibrary::irText() const {
  std::string text;
  llvm::raw_string_ostream(text) << state->modules[0].module();
  return text;
}

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
  for (unsigned dim : schedule->rangeDims)
    for (unsigned loop : cluster->origin[dim]) {
      kernel.rangeDims.push_back(loop);
      kernel.rangeSizes.push_back(cluster->places[loop]);
    }
  kernel.innerSizes = constantSizes(*cluster, *schedule);
  kernel.pointers = cluster->pointers.size();
  kernel.unit = schedule->unit;
  kernel.flat = schedule->form == Schedule::Flat;
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
  kernel.pointers = 3;
  for (unsigned dim = 0; dim <= shape.batch.size(); ++dim)
    kernel.rangeSizes.push_back({2, dim});
  kernel.unit = MatMulEmitter::rowsPerStep;
  return kernel;
}

mlir::FailureOr<llvm::SmallVector<CodeObject>> KernelLibrary::finish(mlir::Location location) {
  std::array<std::string, 2> bytes, errors;
  auto compile = [&](size_t i) {
    if (auto result = state->modules[i].compile())
      bytes[i] = std::move(*result);
    else
      errors[i] = llvm::toString(result.takeError());
  };
  std::thread other(compile, 1);
  compile(0);
  other.join();
  llvm::SmallVector<CodeObject> objects;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!errors[i].empty())
      return mlir::emitError(location) << "internal error in kernels for '" << state->modules[i].isa() << "': " << errors[i];
    objects.push_back({state->modules[i].isa().str(), std::move(bytes[i])});
  }
  return objects;
}

} // namespace msc::codegen
