// Values of a cluster at one point: loads, bodies, row buffers, stores.
#include "passes/codegen/cpu/ClusterEmitter.h"

#include "llvm/ADT/STLExtras.h"

namespace msc::codegen {

using llvm::Value;

static std::vector<int64_t> key(const Access &access) {
  return std::vector<int64_t>(access.strides.begin(), access.strides.end());
}

// The address of the first lane. The part that the range decides is computed once per row.
Value *ClusterEmitter::address(unsigned pointer, const Access &access, const Point &point) {
  mlir::Type element = cluster.pointers[pointer].element;
  auto offset = [&](bool inner) {
    Value *sum = nullptr;
    for (unsigned dim = 0; dim < cluster.rank(); ++dim) {
      if (schedule.isInner(dim) != inner || access.strides[dim] == 0)
        continue;
      Value *term = builder.CreateNSWMul(point.position[dim], number(access.strides[dim]));
      sum = sum ? builder.CreateNSWAdd(sum, term) : term;
    }
    return sum;
  };
  bool inRow = scopes.size() > 1 && schedule.form != Schedule::Tiles;
  auto &bases = scopes[inRow ? 1 : 0].bases;
  auto known = bases.find({pointer, key(access)});
  Value *base;
  if (inRow && known != bases.end()) {
    base = known->second;
  } else {
    Value *outer = offset(false);
    base = outer ? memory.advance(element, function->getArg(pointer), outer) : function->getArg(pointer);
    if (inRow && scopes.size() == 2)
      bases[{pointer, key(access)}] = base;
  }
  Value *inner = offset(true);
  return inner ? memory.advance(element, base, inner) : base;
}

ClusterEmitter::Lanes ClusterEmitter::load(unsigned pointer, const Access &access, const Point &point) {
  auto name = std::make_pair(pointer, key(access));
  for (Scope &scope : llvm::reverse(scopes))
    if (auto known = scope.loads.find(name); known != scope.loads.end())
      return known->second;
  mlir::Type element = cluster.pointers[pointer].element;
  int vector = schedule.vectorDim;
  Lanes lanes;
  if (schedule.form == Schedule::Tiles && schedule.staged[pointer]) {
    Value *line = memory.advance(element, tiles[pointer], builder.CreateNSWMul(tileRow, number(schedule.lanes)));
    lanes = {memory.load(element, line, 1, {})};
  } else {
    bool inLanes = vector >= 0 && access.has(vector);
    Value *from = address(pointer, access, point);
    int64_t stride = inLanes ? access.strides[vector] : 0;
    for (unsigned group = 0; group < (inLanes ? point.groups : 1); ++group)
      lanes.push_back(memory.load(element, memory.advance(element, from, group * schedule.lanes * stride), stride,
                                  point.mask(group)));
  }
  scopes.back().loads[name] = lanes;
  return lanes;
}

void ClusterEmitter::preload(llvm::function_ref<bool(const Access &)> fits, const Point &point) {
  for (const Node &node : cluster.nodes)
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer && fits(operand.access))
        load(operand.index, operand.access, point);
      else if (operand.kind == Operand::Pointer && scopes.size() == 2 && schedule.form != Schedule::Tiles)
        address(operand.index, operand.access, point);
  if (scopes.size() == 2 && schedule.form != Schedule::Tiles)
    for (const Store &target : cluster.stores)
      address(target.pointer, target.access, point);
}

ClusterEmitter::Lanes ClusterEmitter::operandValue(unsigned node, const Operand &operand, const Point &point) {
  if (operand.kind == Operand::Constant)
    return {body.splat(operand.constant)};
  if (operand.kind == Operand::Pointer)
    return load(operand.index, operand.access, point);
  return value(operand.index, operand.result, point);
}

Value *ClusterEmitter::scratchAddress(unsigned id, const Point &point) {
  int64_t stride = 1;
  Value *offset = number(0);
  for (unsigned dim : llvm::reverse(schedule.innerDims)) {
    offset = builder.CreateAdd(offset, builder.CreateMul(point.position[dim], number(stride)));
    stride *= cluster.sizes[dim];
  }
  mlir::Type element = mlir::getElementTypeOrSelf(cluster.nodes[id].op.getResultTypes()[0]);
  return memory.advance(element, scratch[id], offset);
}

ClusterEmitter::Lanes ClusterEmitter::value(unsigned id, unsigned result, const Point &point) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto known = scope.values.find({id, result}); known != scope.values.end())
      return known->second;
  const Node &node = cluster.nodes[id];
  assert(!node.isReduction() && "reductions are finished before their values are used");
  unsigned groups = schedule.variesInLanes(node) ? point.groups : 1;
  if (schedule.kept[id] && currentLevel > schedule.level[id]) {
    mlir::Type element = mlir::getElementTypeOrSelf(node.op.getResultTypes()[0]);
    Lanes lanes;
    for (unsigned group = 0; group < point.groups; ++group)
      lanes.push_back(memory.load(element, memory.advance(element, scratchAddress(id, point), int64_t(group) * schedule.lanes),
                                  1, point.mask(group)));
    return scopes.back().values[{id, result}] = lanes;
  }
  llvm::SmallVector<Lanes> operands;
  for (const Operand &operand : node.operands)
    operands.push_back(operandValue(id, operand, point));
  std::vector<Lanes> results(node.op.getNumResults());
  for (unsigned group = 0; group < groups; ++group) {
    Values arguments;
    for (const Lanes &lanes : operands)
      arguments.push_back(at(lanes, group));
    Values outcome = body.emit(*node.op.getBody(), arguments,
                               [&](unsigned loop) { return indexVector(node, loop, point, group); });
    for (auto [lanes, vector] : llvm::zip(results, outcome))
      lanes.push_back(vector);
  }
  for (auto [number, lanes] : llvm::enumerate(results))
    scopes.back().values[{id, unsigned(number)}] = lanes;
  return results[result];
}

Value *ClusterEmitter::indexVector(const Node &node, unsigned loop, const Point &point, unsigned group) {
  int dim = node.loopDims[loop];
  Value *base = dim < 0 ? number(0) : point.position[dim];
  Value *splat = builder.CreateVectorSplat(schedule.lanes, base);
  if (dim < 0 || dim != schedule.vectorDim)
    return splat;
  llvm::SmallVector<llvm::Constant *> offsets;
  for (unsigned lane = 0; lane < schedule.lanes; ++lane)
    offsets.push_back(builder.getInt64(int64_t(group) * schedule.lanes + lane));
  return builder.CreateAdd(splat, llvm::ConstantVector::get(offsets));
}

void ClusterEmitter::store(const Store &target, const Lanes &lanes, const Point &point) {
  mlir::Type element = cluster.pointers[target.pointer].element;
  int vector = schedule.vectorDim;
  if (schedule.form == Schedule::Tiles && schedule.staged[target.pointer]) {
    Value *line = memory.advance(element, tiles[target.pointer], builder.CreateNSWMul(tileRow, number(schedule.lanes)));
    return memory.store(element, lanes[0], line, 1, {});
  }
  bool inLanes = vector >= 0 && target.access.has(vector);
  Value *to = address(target.pointer, target.access, point);
  int64_t stride = inLanes ? target.access.strides[vector] : 0;
  bool streams = canStream(target);
  for (unsigned group = 0; group < (inLanes ? point.groups : 1); ++group) {
    Value *place = memory.advance(element, to, group * schedule.lanes * stride);
    if (streams && point.mask(group).isFull()) {
      memory.stream(element, at(lanes, group), place);
      hasStreamed = true;
    } else {
      memory.store(element, at(lanes, group), place, stride, point.mask(group));
    }
  }
}

bool ClusterEmitter::canStream(const Store &target) const {
  const Pointer &pointer = cluster.pointers[target.pointer];
  bool startsWhole = schedule.form == Schedule::Flat || schedule.form == Schedule::Rows;
  if (!schedule.streams || !startsWhole || pointer.read || pointer.element.isInteger(1) || schedule.vectorDim < 0)
    return false;
  for (unsigned dim = 0; dim < cluster.rank(); ++dim)
    if (target.access.strides[dim] != 1 ? target.access.strides[dim] % schedule.lanes != 0 : int(dim) != schedule.vectorDim)
      return false;
  return target.access.strides[schedule.vectorDim] == 1;
}

} // namespace msc::codegen
