// Elements, teams and tiles: which thread computes what, and the sweeps within a row.
#include "passes/codegen/nvptx/KernelEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace msc::codegen {

using llvm::Value;

static llvm::SmallVector<bool> readOnlyPointers(const Cluster &cluster) {
  llvm::SmallVector<bool> list;
  for (const Pointer &pointer : cluster.pointers)
    list.push_back(!pointer.written);
  return list;
}

KernelEmitter::KernelEmitter(const Cluster &cluster, const Schedule &schedule, const GpuSchedule &gpu, llvm::Module &module,
                             llvm::StringRef symbol)
    : cluster(cluster), schedule(schedule), gpu(gpu),
      function(createGpuKernel(module, symbol, readOnlyPointers(cluster), gpu.block, gpu.pieces > 1, gpu.minBlocks)), builder(&function->getEntryBlock()),
      index(builder.getIntNTy(gpu.wide ? 64 : 32)), body(builder, 1), memory(builder), loops(builder), threads(builder, index),
      varying(cluster.rank()) {}

KernelEmitter::Group KernelEmitter::origin() {
  Group group;
  group.position.assign(cluster.rank(), number(0));
  return group;
}

llvm::Function *KernelEmitter::emit() {
  scopes.emplace_back();
  thread = threads.thread();
  end = builder.CreateTrunc(function->getArg(function->arg_size() - 1), index);
  // What no dimension indexes is read once.
  preload(Point{{origin()}}, [](const Access &access) { return llvm::all_of(access.positions, [](int p) { return p < 0; }); });
  switch (gpu.form) {
  case GpuSchedule::Elements: emitElements(); break;
  case GpuSchedule::Teams: emitTeams(); break;
  case GpuSchedule::Tiles: emitTiles(); break;
  }
  builder.CreateRetVoid();
  return function;
}

void KernelEmitter::decompose(Value *rest, llvm::ArrayRef<unsigned> dims, Group &group) {
  for (unsigned i = dims.size(); i-- > 0;) {
    Value *size = number(std::max<int64_t>(1, cluster.sizes[dims[i]]));
    group.position[dims[i]] = i == 0 ? rest : builder.CreateURem(rest, size);
    if (i > 0)
      rest = builder.CreateUDiv(rest, size);
  }
}

// Thread t of the grid takes the vectors t, t + threads, ... of all elements in order, some of them at the same time.
void KernelEmitter::emitElements() {
  bool isFlat = schedule.form == Schedule::Flat;
  if (gpu.groups > 1)
    varying.set();
  else if (schedule.vectorDim >= 0)
    varying.set(schedule.vectorDim);
  int64_t perUnit = gpu.swept / gpu.vector;
  Value *count = isFlat ? builder.CreateUDiv(end, number(gpu.vector)) : builder.CreateMul(end, number(perUnit));
  Value *first = builder.CreateAdd(builder.CreateMul(threads.block(), number(gpu.block)), thread);
  Value *stride = builder.CreateMul(threads.blocks(), number(gpu.block));
  auto step = [&](const Point &point) {
    scopes.emplace_back();
    llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
    for (const Store &target : cluster.stores)
      ready.push_back({&target, value(target.node, target.result, point)});
    storeAll(ready, point, nullptr);
    scopes.pop_back();
  };
  loops.loop(first, count, builder.CreateMul(stride, number(gpu.groups)), {}, [&](Value *vector, const Values &) -> Values {
    Point point{{}, gpu.vector};
    for (unsigned i = 0; i < gpu.groups; ++i) {
      Group group = origin();
      Value *place = vector;
      if (i > 0) {
        Value *further = builder.CreateAdd(vector, builder.CreateMul(stride, number(i)));
        group.valid = builder.CreateICmpULT(further, count);
        place = builder.CreateSelect(group.valid, further, vector);
      }
      if (isFlat) {
        group.position[0] = builder.CreateMul(place, number(gpu.vector));
      } else {
        Value *size = number(std::max<int64_t>(1, perUnit));
        decompose(builder.CreateUDiv(place, size), schedule.rangeDims, group);
        decompose(builder.CreateMul(builder.CreateURem(place, size), number(gpu.vector)), schedule.innerDims, group);
      }
      point.groups.push_back(std::move(group));
    }
    step(point);
    return {};
  });
  if (!isFlat || gpu.vector == 1)
    return;
  Value *done = builder.CreateMul(count, number(gpu.vector));
  threads.when(builder.CreateICmpULT(first, builder.CreateSub(end, done)), [&] {
    Group group = origin();
    group.position[0] = builder.CreateAdd(done, first);
    step(Point{{std::move(group)}});
  });
}

// All threads of a block run through the same loops, so that every barrier is reached by all of them; those that have no
// unit of the range compute one again and store nothing.
void KernelEmitter::emitTeams() {
  for (unsigned dim : schedule.innerDims)
    varying.set(dim);
  unsigned units = gpu.teams();
  Value *unit = gpu.strided ? builder.CreateURem(thread, number(units)) : builder.CreateUDiv(thread, number(gpu.team));
  lane = gpu.strided ? builder.CreateUDiv(thread, number(units)) : builder.CreateURem(thread, number(gpu.team));
  if (units == 1)
    unit = number(0), lane = thread;
  Value *perBlock = number(units);
  if (gpu.pieces > 1) {
    Value *bundles = builder.CreateUDiv(builder.CreateAdd(end, number(units - 1)), perBlock);
    Value *count = builder.CreateMul(bundles, number(gpu.pieces));
    loops.loop(threads.block(), count, threads.blocks(), {}, [&](Value *place, const Values &) -> Values {
      Value *bundle = builder.CreateUDiv(place, number(gpu.pieces));
      piece = builder.CreateURem(place, number(gpu.pieces));
      emitPiece(builder.CreateMul(bundle, perBlock), unit, bundle);
      return {};
    });
    return;
  }
  Value *low = builder.CreateMul(threads.block(), perBlock), *step = builder.CreateMul(threads.blocks(), perBlock);
  loops.loop(low, end, step, {}, [&](Value *base, const Values &) -> Values {
    emitRow(rowOf(base, unit).first);
    return {};
  });
}

// The row of the thread and its number; one that is not there is computed as another one and not stored.
std::pair<KernelEmitter::Point, Value *> KernelEmitter::rowOf(Value *base, Value *unit) {
  Value *place = builder.CreateAdd(base, unit);
  active = nullptr;
  if (gpu.teams() > 1) {
    active = builder.CreateICmpULT(place, end);
    place = builder.CreateSelect(active, place, base);
  }
  Group group = origin();
  decompose(place, schedule.rangeDims, group);
  return {Point{{std::move(group)}}, place};
}

// One sweep over a piece of the row, and in the block that comes last what follows from all of them.
void KernelEmitter::emitPiece(Value *base, Value *unit, Value *bundle) {
  auto [row, place] = rowOf(base, unit);
  mergingLevels = 2; // barriers stand between two uses of an array
  scopes.emplace_back();
  preload(row, [&](const Access &access) { return !varies(access); });
  Values parts = emitSweep(0, row);
  threads.when(threads.both(active, builder.CreateICmpEQ(lane, number(0))), [&] {
    for (auto [i, part] : llvm::enumerate(parts))
      handOver(part, partSlot(i, piece, place));
  });
  threads.when(threads.comesLast(partSlot(parts.size(), number(0), bundle), gpu.pieces), [&] {
    scopes.emplace_back();
    finishReductions(0, row, gatherPieces(parts, place));
    for (unsigned level = 0; level < schedule.levels; ++level)
      storeRowValues(level, row);
    scopes.pop_back();
  });
  scopes.pop_back();
}

void KernelEmitter::storeRowValues(unsigned level, const Point &row) {
  llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
  for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
    const Node &node = cluster.nodes[target.node];
    if (storeLevel == level && (node.isReduction() || !schedule.isSwept(node)))
      ready.push_back({&target, value(target.node, target.result, row)});
  }
  if (!ready.empty())
    storeAll(ready, row, threads.both(active, gpu.team > 1 ? builder.CreateICmpEQ(lane, number(0)) : nullptr));
}

void KernelEmitter::emitRow(const Point &row) {
  mergingLevels = 0;
  for (unsigned level = 0; level < schedule.levels; ++level)
    for (unsigned id = 0; id < cluster.nodes.size(); ++id)
      if (reduces(id, level)) {
        ++mergingLevels;
        break;
      }
  scopes.emplace_back();
  auto isRowValue = [&](const Access &access) { return !varies(access); };
  preload(row, isRowValue);
  if (llvm::any_of(cluster.stores, [&](const Store &target) { return cluster.pointers[target.pointer].read && isRowValue(target.access); }))
    threads.barrier(); // everyone has read what will be overwritten
  kept.assign(gpu.groups, {}); // one step per sweep: what is computed once stays in registers
  for (unsigned level = 0; level < schedule.levels; ++level) {
    storeRowValues(level, row);
    if (hasWork(level))
      finishReductions(level, row, emitSweep(level, row));
  }
  scopes.pop_back();
}

bool KernelEmitter::hasWork(unsigned level) const {
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (reduces(id, level))
      return true;
  for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
    const Node &node = cluster.nodes[target.node];
    if (storeLevel == level && !node.isReduction() && schedule.isSwept(node))
      return true;
  }
  return false;
}

// Vectors of the sweep for one step that begins at element `start`; `left` elements are left in it.
KernelEmitter::Point KernelEmitter::stepOf(const Point &row, Value *start, int64_t left) {
  Point point;
  point.vector = gpu.vector;
  int64_t perGroup = int64_t(gpu.team) * gpu.vector;
  for (unsigned i = 0; i < gpu.groups && int64_t(i) * perGroup < left; ++i) {
    Group group = row.groups[0];
    Value *inGroup = builder.CreateMul(lane, number(gpu.vector)), *inStep = builder.CreateAdd(inGroup, number(i * perGroup));
    if ((i + 1) * perGroup > left) {
      group.valid = builder.CreateICmpULT(inStep, number(left));
      decompose(builder.CreateSelect(group.valid, builder.CreateAdd(start, inStep), number(0)), schedule.innerDims, group);
    } else if (schedule.innerDims.size() == 1) {
      group.position[schedule.innerDims[0]] = builder.CreateAdd(start, inGroup);
      group = group.shifted(schedule.innerDims[0], i * perGroup);
    } else {
      decompose(builder.CreateAdd(start, inStep), schedule.innerDims, group);
    }
    point.groups.push_back(std::move(group));
  }
  return point;
}

Values KernelEmitter::emitSweep(unsigned level, const Point &row) {
  // Values of the row that the sweep needs are computed before it.
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (!schedule.isSwept(cluster.nodes[id]) && !cluster.nodes[id].isReduction() && schedule.level[id] <= level)
      for (unsigned result = 0; result < cluster.nodes[id].op.getNumResults(); ++result)
        value(id, result, row);
  startReductions(level, row);
  int64_t perStep = int64_t(gpu.team) * gpu.elements(), whole = gpu.swept / perStep * perStep;
  if (gpu.resident)
    return partsOf(emitResidentSweep(level, row));
  auto step = [&](Value *start, int64_t left, const Values &carried) {
    scopes.emplace_back();
    Values next = emitStep(level, stepOf(row, start, left), carried);
    scopes.pop_back();
    return next;
  };
  Value *low = number(0), *high = number(whole), *lowRest = high;
  if (piece) { // the last one has the rest that is no whole step
    low = builder.CreateMul(piece, number(gpu.pieceSize));
    Value *next = builder.CreateAdd(low, number(gpu.pieceSize));
    lowRest = builder.CreateSelect(builder.CreateICmpULT(next, number(gpu.swept)), number(gpu.swept), high);
    high = builder.CreateSelect(builder.CreateICmpULT(next, high), next, high);
  }
  Values found = loops.loop(low, high, perStep, initial,
                            [&](Value *start, const Values &carried) { return step(start, perStep, carried); });
  if (whole < gpu.swept)
    found = loops.loop(lowRest, number(gpu.swept), perStep, found,
                       [&](Value *start, const Values &carried) { return step(start, gpu.swept - whole, carried); });
  return partsOf(found);
}

// One vector after the other, so that only what is kept is there for all of them; some are read ahead.
Values KernelEmitter::emitResidentSweep(unsigned level, const Point &row) {
  Point all = stepOf(row, number(0), gpu.swept);
  Values found = initial;
  unsigned ahead = 0;
  auto within = [&](unsigned group, llvm::function_ref<void(const Point &)> body) {
    scopes.push_back(std::move(kept[group]));
    body(Point{{all.groups[group]}, all.vector});
    kept[group] = std::move(scopes.back());
    scopes.pop_back();
  };
  for (unsigned group = 0; group < all.groups.size(); ++group) {
    for (unsigned loads = 0; ahead < all.groups.size() && (ahead <= group || loads * gpu.vector * (ahead - group) < gpu.ahead); ++ahead)
      within(ahead, [&](const Point &point) { loads = loadAhead(level, point); });
    within(group, [&](const Point &point) {
      found = emitStep(level, point, found);
      if (gpu.rereads)
        scopes.back().loads.clear();
    });
  }
  return found;
}

unsigned KernelEmitter::loadAhead(unsigned level, const Point &point) {
  llvm::SmallBitVector seen(cluster.nodes.size());
  auto visit = [&](auto &self, unsigned id) -> void {
    const Node &node = cluster.nodes[id];
    bool isKnown = seen[id] || llvm::any_of(scopes, [&](const Scope &scope) { return scope.values.count({id, 0}); });
    seen.set(id);
    if (isKnown)
      return;
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer)
        load(operand.index, operand.access, point);
      else if (operand.kind == Operand::Node && !cluster.nodes[operand.index].isReduction())
        self(self, operand.index);
  };
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (reduces(id, level))
      visit(visit, id);
  for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel))
    if (storeLevel == level && !cluster.nodes[target.node].isReduction() && schedule.isSwept(cluster.nodes[target.node]))
      visit(visit, target.node);
  return scopes.back().loads.size();
}

// One step of a sweep: everything is computed before anything is stored.
Values KernelEmitter::emitStep(unsigned level, const Point &point, const Values &carried) {
  Values next = carried;
  unsigned slot = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    unsigned inputs = node.op.getNumDpsInputs(), results = node.op.getNumResults(), width = sums();
    llvm::SmallVector<Lanes> operands;
    for (unsigned i = 0; i < inputs; ++i)
      operands.push_back(operandValue(node.operands[i], point));
    for (unsigned element = 0; element < point.elements(); ++element) {
      Values arguments;
      for (const Lanes &lanes : operands)
        arguments.push_back(at(lanes, element));
      for (unsigned result = 0; result < results; ++result)
        arguments.push_back(carried[slot + result * width + element]);
      Values sums = body.emit(*node.op.getBody(), arguments,
                              [&](unsigned loop) { return indexValue(node, loop, point, element); });
      Value *valid = point.groups[element / point.vector].valid;
      for (unsigned result = 0; result < results; ++result) {
        unsigned place = slot + result * width + element;
        next[place] = valid ? builder.CreateSelect(valid, sums[result], carried[place]) : sums[result];
      }
    }
    slot += results * width;
  }
  llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
  for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
    const Node &node = cluster.nodes[target.node];
    if (storeLevel == level && !node.isReduction() && schedule.isSwept(node))
      ready.push_back({&target, value(target.node, target.result, point)});
  }
  storeAll(ready, point, active);
  return next;
}

} // namespace msc::codegen
