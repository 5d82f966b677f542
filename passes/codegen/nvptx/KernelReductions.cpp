// Reductions of a row: what every thread starts with, and how the parts of a team meet.
#include "passes/codegen/nvptx/KernelEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>

namespace msc::codegen {

using llvm::Value;

constexpr unsigned fewWarps = 4; ///< whose parts every thread reads

// Parts that are merged start with the identity; a reduction in order starts with its initial value.
void KernelEmitter::startReductions(unsigned level, const Point &row) {
  initial.clear();
  carriedCombiners.clear();
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    for (unsigned result = 0; result < node.op.getNumResults(); ++result) {
      mlir::Operation *combiner = node.combiners[result];
      bool inOrder = llvm::is_contained(node.combiners, nullptr);
      const Operand &start = node.operands[node.op.getNumDpsInputs() + result];
      Value *from = inOrder ? at(operandValue(start, row), 0) : body.identity(*combiner);
      for (unsigned slot = 0; slot < sums(); ++slot)
        initial.push_back(from);
      carriedCombiners.push_back(inOrder ? nullptr : combiner);
    }
  }
}

Values KernelEmitter::partsOf(const Values &carried) {
  Values parts;
  for (auto [i, combiner] : llvm::enumerate(carriedCombiners)) {
    Values slots(carried.begin() + i * sums(), carried.begin() + (i + 1) * sums());
    parts.push_back(combiner ? mergeTree(*combiner, slots) : slots[0]);
  }
  if (!parts.empty() && gpu.team > 1)
    mergeTeam(carriedCombiners, parts);
  return parts;
}

void KernelEmitter::finishReductions(unsigned level, const Point &row, const Values &parts) {
  unsigned next = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    for (unsigned result = 0; result < node.op.getNumResults(); ++result, ++next) {
      Value *total = parts[next];
      if (mlir::Operation *combiner = carriedCombiners[next]) {
        Value *from = at(operandValue(node.operands[node.op.getNumDpsInputs() + result], row), 0);
        if (from != body.identity(*combiner))
          total = body.emitBinary(*combiner, total, from);
      }
      scopes.back().values[{id, result}] = {total};
    }
  }
}

Value *KernelEmitter::mergeTree(mlir::Operation &combiner, Values parts) {
  while (parts.size() > 1) {
    size_t half = (parts.size() + 1) / 2;
    for (size_t i = half; i < parts.size(); ++i)
      parts[i - half] = body.emitBinary(combiner, parts[i - half], parts[i]);
    parts.resize(half);
  }
  return parts[0];
}

void KernelEmitter::mergeTeam(llvm::ArrayRef<mlir::Operation *> combiners, Values &parts) {
  // Within a warp: threads of a team are neighbours, or as far apart as there are units side by side.
  unsigned side = gpu.strided ? gpu.teams() : 1, warps = gpu.strided ? gpu.block / 32 : gpu.team / 32;
  for (unsigned mask = (gpu.strided ? 32u : std::min(gpu.team, 32u)) / 2; mask >= side; mask /= 2)
    for (auto [combiner, part] : llvm::zip(combiners, parts))
      part = body.emitBinary(*combiner, part, threads.exchange(part, mask));
  if (warps <= 1)
    return;
  Value *warp = builder.CreateUDiv(thread, number(32)), *inWarp = builder.CreateURem(thread, number(32));
  Value *column = gpu.strided ? builder.CreateURem(thread, number(side)) : number(0);
  // One part per warp and unit goes through shared memory: [warp][unit].
  auto place = [&](Value *array, llvm::Type *type, Value *line) {
    Value *offset = builder.CreateAdd(builder.CreateMul(line, number(side)), column);
    return builder.CreateInBoundsGEP(type, array, builder.CreateZExt(offset, builder.getInt64Ty()));
  };
  llvm::SmallVector<llvm::Type *> types;
  for (Value *part : parts)
    types.push_back(part->getType()->isIntegerTy(1) ? builder.getInt8Ty() : part->getType());
  Values arrays;
  const size_t together = partsTogether(warps * side);
  if (together < SIZE_MAX) {
    while (sharedArrays.size() < std::min(together, parts.size()))
      sharedArrays.push_back(threads.shared(builder.getInt64Ty(), warps * side));
    arrays = sharedArrays;
  } else {
    for (llvm::Type *type : types)
      arrays.push_back(threads.shared(type, warps * side));
  }
  for (size_t first = 0; first < parts.size(); first += arrays.size()) {
    const size_t last = std::min(parts.size(), first + arrays.size());
    threads.when(side < 32 ? builder.CreateICmpULT(inWarp, number(side)) : nullptr, [&] {
      for (size_t i = first; i < last; ++i)
        builder.CreateStore(builder.CreateZExtOrBitCast(parts[i], types[i]), place(arrays[i - first], types[i], warp));
    });
    threads.barrier();
    auto read = [&](size_t i, Value *line) {
      Value *loaded = builder.CreateLoad(types[i], place(arrays[i - first], types[i], line));
      return builder.CreateTruncOrBitCast(loaded, parts[i]->getType());
    };
    for (size_t i = first; i < last; ++i) {
      if (side == 1 && warps > fewWarps) { // each thread reads one: all of them would take registers from what is kept
        unsigned lines = llvm::PowerOf2Ceil(warps);
        Value *line = builder.CreateURem(inWarp, number(lines)), *exists = builder.CreateICmpULT(line, number(warps));
        Value *mine = read(i, lines == warps ? line : builder.CreateSelect(exists, line, number(0)));
        Value *part = lines == warps ? mine : builder.CreateSelect(exists, mine, body.identity(*combiners[i]));
        for (unsigned mask = lines / 2; mask > 0; mask /= 2)
          part = body.emitBinary(*combiners[i], part, threads.exchange(part, mask));
        parts[i] = part;
        continue;
      }
      Values all;
      for (unsigned line = 0; line < warps; ++line)
        all.push_back(read(i, number(line)));
      parts[i] = mergeTree(*combiners[i], all);
    }
    if (mergingLevels == 1 || together < SIZE_MAX) // otherwise the barrier of another sweep, with arrays of its own, stands between
      threads.barrier();
  }
}

size_t KernelEmitter::partsTogether(unsigned elements) const {
  constexpr int64_t flag = 64; // of ThreadBuilder::comesLast, and what lies between
  int64_t all = flag;
  for (const Node &node : cluster.nodes)
    if (node.isReduction())
      for (mlir::Type type : node.op.getResultTypes()) {
        const unsigned bits = llvm::cast<mlir::RankedTensorType>(type).getElementType().getIntOrFloatBitWidth();
        all += llvm::alignTo(elements * llvm::divideCeil(bits, 8), 16) * (gpu.pieces > 1 ? 2 : 1);
      }
  return all <= mostSharedBytes ? SIZE_MAX : (mostSharedBytes - flag) / llvm::alignTo(8 * elements, 16);
}

// Pieces --------------------------------------------------------------------------------------------------------------

// [part][piece][unit], 8 bytes each; behind them one counter per unit, of which the first unit of a block has its own.
Value *KernelEmitter::partSlot(unsigned part, Value *piece, Value *unit) {
  Value *line = builder.CreateAdd(piece, number(part * gpu.pieces));
  Value *place = builder.CreateAdd(builder.CreateMul(line, end), unit);
  Value *scratch = function->getArg(function->arg_size() - 2);
  return builder.CreateInBoundsGEP(builder.getInt64Ty(), scratch, builder.CreateZExt(place, builder.getInt64Ty()));
}

// Volatile: blocks on other processors read it from the cache that all share.
void KernelEmitter::handOver(Value *part, Value *slot) {
  bool isBool = part->getType()->isIntegerTy(1);
  builder.CreateStore(isBool ? builder.CreateZExt(part, builder.getInt8Ty()) : part, slot, /*isVolatile=*/true);
}

Values KernelEmitter::gatherPieces(const Values &parts, Value *unit) {
  Values totals;
  for (auto [i, part] : llvm::enumerate(parts)) {
    bool isBool = part->getType()->isIntegerTy(1);
    Values found;
    for (int64_t first = 0; first < gpu.pieces; first += gpu.team) {
      Value *from = builder.CreateAdd(lane, number(first)), *exists = nullptr;
      if (first + gpu.team > gpu.pieces) {
        exists = builder.CreateICmpULT(from, number(gpu.pieces));
        from = builder.CreateSelect(exists, from, number(0));
      }
      Value *loaded = builder.CreateLoad(isBool ? builder.getInt8Ty() : part->getType(), partSlot(i, from, unit), /*isVolatile=*/true);
      loaded = builder.CreateTruncOrBitCast(loaded, part->getType());
      found.push_back(exists ? builder.CreateSelect(exists, loaded, body.identity(*carriedCombiners[i])) : loaded);
    }
    totals.push_back(mergeTree(*carriedCombiners[i], found));
  }
  mergeTeam(carriedCombiners, totals);
  return totals;
}

} // namespace msc::codegen
