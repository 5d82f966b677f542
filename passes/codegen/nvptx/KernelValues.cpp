// Values of a cluster at the elements of one step: loads, bodies, stores, tiles.
#include "passes/codegen/nvptx/KernelEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace msc::codegen {

using llvm::Value;

static std::vector<int64_t> key(const Access &access) {
  return std::vector<int64_t>(access.strides.begin(), access.strides.end());
}

bool KernelEmitter::varies(const Access &access) const {
  return llvm::any_of(varying.set_bits(), [&](unsigned dim) { return access.has(dim); });
}

Value *KernelEmitter::address(unsigned pointer, const Access &access, const Group &group) {
  Value *offset = number(0);
  for (unsigned dim = 0; dim < cluster.rank(); ++dim)
    if (access.strides[dim] != 0)
      offset = builder.CreateAdd(offset, builder.CreateMul(group.position[dim], number(access.strides[dim])));
  mlir::Type element = cluster.pointers[pointer].element;
  Value *place = memory.advance(element, function->getArg(pointer), offset);
  int64_t further = 0;
  for (auto [dim, by] : group.shift)
    further += by * access.strides[dim];
  return further == 0 ? place : builder.CreateConstInBoundsGEP1_64(memory.memory(element), place, further);
}

Value *KernelEmitter::positionOf(const Group &group, unsigned dim, int64_t further) {
  if (auto shift = group.shift.find(dim); shift != group.shift.end())
    further += shift->second;
  return further == 0 ? group.position[dim] : builder.CreateAdd(group.position[dim], number(further));
}

KernelEmitter::Lanes KernelEmitter::load(unsigned pointer, const Access &access, const Point &point) {
  auto name = std::make_pair(pointer, key(access));
  for (Scope &scope : llvm::reverse(scopes))
    if (auto known = scope.loads.find(name); known != scope.loads.end())
      return known->second;
  mlir::Type element = cluster.pointers[pointer].element;
  int vector = schedule.vectorDim;
  bool along = vector >= 0 && access.has(vector);
  Lanes lanes;
  if (gpu.form == GpuSchedule::Tiles && schedule.staged[pointer]) {
    for (unsigned group = 0; group < point.groups.size(); ++group) {
      Value *line = builder.CreateAdd(tileLine, number(8 * group));
      Value *raw = builder.CreateLoad(memory.memory(element), tilePlace(pointer, tileColumn, line));
      lanes.push_back(memory.toRegister(element, raw));
    }
  } else if (!varies(access)) {
    lanes = memory.load(element, address(pointer, access, point.groups[0]), 1);
  } else {
    for (const Group &group : point.groups) {
      if (along && access.strides[vector] == 1) {
        lanes.append(memory.load(element, address(pointer, access, group), point.vector));
        continue;
      }
      Value *single = nullptr;
      for (unsigned i = 0; i < point.vector; ++i) {
        if (along || !single)
          single = memory.load(element, address(pointer, access, along ? group.shifted(vector, i) : group), 1)[0];
        lanes.push_back(single);
      }
    }
  }
  scopes.back().loads[name] = lanes;
  return lanes;
}

void KernelEmitter::preload(const Point &point, llvm::function_ref<bool(const Access &)> fits) {
  for (const Node &node : cluster.nodes)
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer && fits(operand.access))
        load(operand.index, operand.access, point);
}

KernelEmitter::Lanes KernelEmitter::operandValue(const Operand &operand, const Point &point) {
  if (operand.kind == Operand::Constant)
    return {body.splat(operand.constant)};
  if (operand.kind == Operand::Pointer)
    return load(operand.index, operand.access, point);
  return value(operand.index, operand.result, point);
}

KernelEmitter::Lanes KernelEmitter::value(unsigned id, unsigned result, const Point &point) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto known = scope.values.find({id, result}); known != scope.values.end())
      return known->second;
  const Node &node = cluster.nodes[id];
  assert(!node.isReduction() && "reductions are finished before their values are used");
  llvm::SmallVector<Lanes> operands;
  for (const Operand &operand : node.operands)
    operands.push_back(operandValue(operand, point));
  std::vector<Lanes> results(node.op.getNumResults());
  unsigned count = varies(node.dims) ? point.elements() : 1;
  for (unsigned element = 0; element < count; ++element) {
    Values arguments;
    for (const Lanes &lanes : operands)
      arguments.push_back(at(lanes, element));
    Values outcome = body.emit(*node.op.getBody(), arguments,
                               [&](unsigned loop) { return indexValue(node, loop, point, element); });
    for (auto [lanes, single] : llvm::zip(results, outcome))
      lanes.push_back(single);
  }
  for (auto [number, lanes] : llvm::enumerate(results))
    scopes.back().values[{id, unsigned(number)}] = lanes;
  return results[result];
}

Value *KernelEmitter::indexValue(const Node &node, unsigned loop, const Point &point, unsigned element) {
  int dim = node.loopDims[loop];
  if (dim < 0)
    return builder.getInt64(0);
  int64_t inVector = dim == schedule.vectorDim ? element % point.vector : 0;
  return builder.CreateZExt(positionOf(point.groups[element / point.vector], dim, inVector), builder.getInt64Ty());
}

// A result that lacks a dimension of the sweep is written by who is at its begin.
void KernelEmitter::store(const Store &target, const Lanes &lanes, const Point &point, unsigned number_) {
  const Group &group = point.groups[number_];
  mlir::Type element = cluster.pointers[target.pointer].element;
  int vector = schedule.vectorDim;
  Values values;
  for (unsigned i = 0; i < point.vector; ++i)
    values.push_back(at(lanes, number_ * point.vector + i));
  if (gpu.form == GpuSchedule::Tiles && schedule.staged[target.pointer]) {
    Value *line = builder.CreateAdd(tileLine, number(8 * number_));
    builder.CreateStore(memory.toMemory(element, values[0]), tilePlace(target.pointer, tileColumn, line));
    return;
  }
  if (vector >= 0 && target.access.has(vector)) {
    if (target.access.strides[vector] == 1)
      return memory.store(element, values, address(target.pointer, target.access, group));
    for (unsigned i = 0; i < point.vector; ++i)
      memory.store(element, values[i], address(target.pointer, target.access, group.shifted(vector, i)));
    return;
  }
  Value *isFirst = nullptr;
  for (unsigned dim : schedule.innerDims)
    if (!target.access.has(dim) && positionOf(group, dim) != number(0))
      isFirst = threads.both(isFirst, builder.CreateICmpEQ(positionOf(group, dim), number(0)));
  threads.when(isFirst, [&] { memory.store(element, values[0], address(target.pointer, target.access, group)); });
}

void KernelEmitter::storeAll(llvm::ArrayRef<std::pair<const Store *, Lanes>> targets, const Point &point, Value *condition) {
  if (targets.empty())
    return;
  for (unsigned group = 0; group < point.groups.size(); ++group)
    threads.when(threads.both(condition, point.groups[group].valid), [&] {
      for (auto &[target, lanes] : targets)
        store(*target, lanes, point, group);
    });
}

// Tiles ---------------------------------------------------------------------------------------------------------------

static constexpr int64_t side = 32, lineOfTile = side + 1;

/// Tiles are stored as the tensor is: [vector dimension][tile dimension].
Value *KernelEmitter::tilePlace(unsigned pointer, Value *line, Value *column) {
  Value *offset = builder.CreateAdd(builder.CreateMul(line, number(lineOfTile)), column);
  return memory.advance(cluster.pointers[pointer].element, tiles[pointer], offset);
}

// 32 x 32 elements at a time: 32 threads side by side along the vector dimension, 8 along the tile dimension. Transposed
// tensors are read and written with the threads the other way round.
void KernelEmitter::emitTiles() {
  unsigned tile = schedule.tileDim, vector = schedule.vectorDim;
  varying.set(tile);
  for (unsigned pointer : schedule.staged.set_bits())
    tiles[pointer] = threads.shared(memory.memory(cluster.pointers[pointer].element), side * lineOfTile);
  llvm::ArrayRef<unsigned> outer = llvm::ArrayRef(schedule.rangeDims).drop_back();
  int64_t width = cluster.sizes[vector], wideTiles = llvm::divideCeil(width, side);
  Value *tileExtent = outer.empty() ? end : number(cluster.sizes[tile]);
  Value *highTiles = builder.CreateUDiv(builder.CreateAdd(tileExtent, number(side - 1)), number(side));
  Value *count = builder.CreateMul(highTiles, number(wideTiles));
  if (!outer.empty())
    count = builder.CreateMul(count, builder.CreateUDiv(end, number(std::max<int64_t>(1, cluster.sizes[tile]))));
  bool writesTiles = llvm::any_of(schedule.staged.set_bits(), [&](unsigned pointer) { return cluster.pointers[pointer].written; });
  tileColumn = builder.CreateURem(thread, number(side));
  tileLine = builder.CreateUDiv(thread, number(side));
  loops.loop(threads.block(), count, threads.blocks(), {}, [&](Value *number_, const Values &) -> Values {
    scopes.emplace_back();
    Value *columns = number(std::max<int64_t>(1, wideTiles));
    Value *column = builder.CreateMul(builder.CreateURem(number_, columns), number(side));
    Value *rest = builder.CreateUDiv(number_, columns);
    Group corner = origin();
    Value *row = rest;
    if (!outer.empty()) {
      decompose(builder.CreateUDiv(rest, highTiles), outer, corner);
      row = builder.CreateURem(rest, highTiles);
    }
    corner.position[tile] = builder.CreateMul(row, number(side));
    corner.position[vector] = column;
    Point place{{corner}};
    moveTiles(place, tileExtent, true);
    Point point;
    for (unsigned i = 0; i < gpu.groups; ++i) {
      Group group = corner;
      Value *y = builder.CreateAdd(corner.position[tile], builder.CreateAdd(tileLine, number(8 * i)));
      Value *x = builder.CreateAdd(column, tileColumn);
      group.valid = builder.CreateAnd(builder.CreateICmpULT(y, tileExtent), builder.CreateICmpULT(x, number(width)));
      group.position[tile] = builder.CreateSelect(group.valid, y, number(0));
      group.position[vector] = builder.CreateSelect(group.valid, x, number(0));
      point.groups.push_back(std::move(group));
    }
    llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
    for (const Store &target : cluster.stores)
      ready.push_back({&target, value(target.node, target.result, point)});
    storeAll(ready, point, nullptr);
    if (writesTiles) {
      threads.barrier();
      moveTiles(place, tileExtent, false);
    }
    threads.barrier(); // the next tile may overwrite this one
    scopes.pop_back();
    return {};
  });
}

void KernelEmitter::moveTiles(const Point &corner, Value *tileExtent, bool in) {
  unsigned tile = schedule.tileDim, vector = schedule.vectorDim;
  auto move = [&](unsigned pointer, const Access &access) {
    mlir::Type element = cluster.pointers[pointer].element;
    for (unsigned i = 0; i < gpu.groups; ++i) {
      Group group = corner.groups[0];
      Value *line = builder.CreateAdd(tileLine, number(8 * i));
      group.position[tile] = builder.CreateAdd(group.position[tile], tileColumn);
      group.position[vector] = builder.CreateAdd(group.position[vector], line);
      Value *valid = builder.CreateAnd(builder.CreateICmpULT(group.position[tile], tileExtent),
                                       builder.CreateICmpULT(group.position[vector], number(cluster.sizes[vector])));
      threads.when(valid, [&] {
        Value *outside = address(pointer, access, group), *inside = tilePlace(pointer, line, tileColumn);
        llvm::Type *type = memory.memory(element);
        builder.CreateStore(builder.CreateLoad(type, in ? outside : inside), in ? inside : outside);
      });
    }
  };
  llvm::SmallBitVector moved(cluster.pointers.size());
  auto visit = [&](unsigned pointer, const Access &access) {
    if (!schedule.staged[pointer] || moved[pointer])
      return;
    moved.set(pointer);
    move(pointer, access);
  };
  if (!in) {
    for (const Store &target : cluster.stores)
      visit(target.pointer, target.access);
    return;
  }
  for (const Node &node : cluster.nodes)
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer)
        visit(operand.index, operand.access);
  if (moved.any())
    threads.barrier();
}

} // namespace msc::codegen
