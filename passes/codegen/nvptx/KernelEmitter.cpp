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
      function(createGpuKernel(module, symbol, readOnlyPointers(cluster), gpu.block)), builder(&function->getEntryBlock()),
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

// Thread t of the grid takes the vectors t, t + threads, ... of all elements in order.
void KernelEmitter::emitElements() {
  bool isFlat = schedule.form == Schedule::Flat;
  if (schedule.vectorDim >= 0)
    varying.set(schedule.vectorDim);
  int64_t perUnit = gpu.swept / gpu.vector;
  Value *count = isFlat ? builder.CreateUDiv(end, number(gpu.vector)) : builder.CreateMul(end, number(perUnit));
  Value *first = builder.CreateAdd(builder.CreateMul(threads.block(), number(gpu.block)), thread);
  Value *stride = builder.CreateMul(threads.blocks(), number(gpu.block));
  auto step = [&](Group group, unsigned vector) {
    scopes.emplace_back();
    Point point{{std::move(group)}, vector};
    llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
    for (const Store &target : cluster.stores)
      ready.push_back({&target, value(target.node, target.result, point)});
    storeAll(ready, point, nullptr);
    scopes.pop_back();
  };
  loops.loop(first, count, stride, {}, [&](Value *vector, const Values &) -> Values {
    Group group = origin();
    if (isFlat) {
      group.position[0] = builder.CreateMul(vector, number(gpu.vector));
    } else {
      Value *size = number(std::max<int64_t>(1, perUnit));
      decompose(builder.CreateUDiv(vector, size), schedule.rangeDims, group);
      Value *inner = builder.CreateMul(builder.CreateURem(vector, size), number(gpu.vector));
      decompose(inner, schedule.innerDims, group);
    }
    step(group, gpu.vector);
    return {};
  });
  if (!isFlat || gpu.vector == 1)
    return;
  Value *done = builder.CreateMul(count, number(gpu.vector));
  threads.when(builder.CreateICmpULT(first, builder.CreateSub(end, done)), [&] {
    Group group = origin();
    group.position[0] = builder.CreateAdd(done, first);
    step(group, 1);
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
  Value *low = builder.CreateMul(threads.block(), number(units)), *step = builder.CreateMul(threads.blocks(), number(units));
  loops.loop(low, end, step, {}, [&](Value *base, const Values &) -> Values {
    Value *number_ = builder.CreateAdd(base, unit);
    active = nullptr;
    if (units > 1) {
      active = builder.CreateICmpULT(number_, end);
      number_ = builder.CreateSelect(active, number_, base);
    }
    Group group = origin();
    decompose(number_, schedule.rangeDims, group);
    emitRow(Point{{std::move(group)}});
    return {};
  });
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
  if (gpu.resident) // one step per sweep: what is read and computed once stays in registers
    scopes.emplace_back();
  for (unsigned level = 0; level < schedule.levels; ++level) {
    llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
    for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
      const Node &node = cluster.nodes[target.node];
      if (storeLevel == level && (node.isReduction() || !schedule.isSwept(node)))
        ready.push_back({&target, value(target.node, target.result, row)});
    }
    if (!ready.empty())
      storeAll(ready, row, threads.both(active, gpu.team > 1 ? builder.CreateICmpEQ(lane, number(0)) : nullptr));
    if (hasWork(level))
      emitSweep(level, row);
  }
  if (gpu.resident)
    scopes.pop_back();
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
    Value *inStep = builder.CreateAdd(builder.CreateMul(lane, number(gpu.vector)), number(i * perGroup));
    Value *place = builder.CreateAdd(start, inStep);
    if ((i + 1) * perGroup > left) {
      group.valid = builder.CreateICmpULT(inStep, number(left));
      place = builder.CreateSelect(group.valid, place, number(0));
    }
    decompose(place, schedule.innerDims, group);
    point.groups.push_back(std::move(group));
  }
  return point;
}

void KernelEmitter::emitSweep(unsigned level, const Point &row) {
  // Values of the row that the sweep needs are computed before it.
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (!schedule.isSwept(cluster.nodes[id]) && !cluster.nodes[id].isReduction() && schedule.level[id] <= level)
      for (unsigned result = 0; result < cluster.nodes[id].op.getNumResults(); ++result)
        value(id, result, row);
  startReductions(level, row);
  int64_t perStep = int64_t(gpu.team) * gpu.elements(), whole = gpu.swept / perStep * perStep;
  Values sums = initial;
  if (gpu.resident) {
    sums = emitStep(level, stepOf(row, number(0), gpu.swept), sums);
  } else {
    auto step = [&](Value *start, int64_t left, const Values &carried) {
      scopes.emplace_back();
      Values next = emitStep(level, stepOf(row, start, left), carried);
      scopes.pop_back();
      return next;
    };
    sums = loops.loop(number(0), number(whole), perStep, sums,
                      [&](Value *start, const Values &carried) { return step(start, perStep, carried); });
    if (whole < gpu.swept)
      sums = step(number(whole), gpu.swept - whole, sums);
  }
  finishReductions(level, row, sums);
}

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
      for (unsigned slot = 0; slot < gpu.elements(); ++slot)
        initial.push_back(from);
      carriedCombiners.push_back(inOrder ? nullptr : combiner);
    }
  }
}

void KernelEmitter::finishReductions(unsigned level, const Point &row, const Values &carried) {
  Values parts;
  for (auto [i, combiner] : llvm::enumerate(carriedCombiners)) {
    Values slots(carried.begin() + i * gpu.elements(), carried.begin() + (i + 1) * gpu.elements());
    parts.push_back(combiner ? mergeTree(*combiner, slots) : slots[0]);
  }
  if (!parts.empty() && gpu.team > 1)
    mergeTeam(carriedCombiners, parts);
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
  if (!gpu.strided)
    for (unsigned mask = std::min(gpu.team, 32u) / 2; mask > 0; mask /= 2)
      for (auto [combiner, part] : llvm::zip(combiners, parts))
        part = body.emitBinary(*combiner, part, threads.exchange(part, mask));
  if (!gpu.strided && gpu.team <= 32)
    return;
  // One part per warp goes through shared memory: [warp] of one row, or [warp][row] of rows side by side.
  unsigned warps = gpu.strided ? gpu.team : gpu.team / 32, side = gpu.strided ? gpu.teams() : 1;
  Value *warp = gpu.strided ? lane : builder.CreateUDiv(thread, number(32));
  Value *column = gpu.strided ? builder.CreateURem(thread, number(side)) : number(0);
  auto place = [&](Value *array, llvm::Type *type, Value *line) {
    Value *offset = builder.CreateAdd(builder.CreateMul(line, number(side)), column);
    return builder.CreateInBoundsGEP(type, array, builder.CreateZExt(offset, builder.getInt64Ty()));
  };
  Values arrays;
  llvm::SmallVector<llvm::Type *> types;
  for (Value *part : parts) {
    bool isBool = part->getType()->isIntegerTy(1);
    types.push_back(isBool ? builder.getInt8Ty() : part->getType());
    arrays.push_back(threads.shared(types.back(), warps * side));
  }
  Value *writes = gpu.strided ? nullptr : builder.CreateICmpEQ(builder.CreateURem(thread, number(32)), number(0));
  threads.when(writes, [&] {
    for (auto [array, type, part] : llvm::zip(arrays, types, parts))
      builder.CreateStore(builder.CreateZExtOrBitCast(part, type), place(array, type, warp));
  });
  threads.barrier();
  for (auto [i, part] : llvm::enumerate(parts)) {
    Values all;
    for (unsigned line = 0; line < warps; ++line) {
      Value *loaded = builder.CreateLoad(types[i], place(arrays[i], types[i], number(line)));
      all.push_back(builder.CreateTruncOrBitCast(loaded, part->getType()));
    }
    part = mergeTree(*combiners[i], all);
  }
  if (mergingLevels == 1) // otherwise the barrier of another sweep, with arrays of its own, stands between
    threads.barrier();
}

// One step of a sweep: everything is computed before anything is stored.
Values KernelEmitter::emitStep(unsigned level, const Point &point, const Values &carried) {
  Values next = carried;
  unsigned slot = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    unsigned inputs = node.op.getNumDpsInputs(), results = node.op.getNumResults(), width = gpu.elements();
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
