// Rows, columns and tiles: the loops around a row, and the sweeps within it.
#include "passes/codegen/cpu/ClusterEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace msc::codegen {

using llvm::Value;

/// Steps after which partial sums are added to the total: rounding errors grow with the number of steps in a block plus
/// the number of blocks, not with their product.
static constexpr int64_t blockSteps = 128;

llvm::Function *createKernel(llvm::Module &module, llvm::StringRef symbol, unsigned pointers) {
  llvm::LLVMContext &context = module.getContext();
  llvm::SmallVector<llvm::Type *> types(pointers, llvm::PointerType::get(context, 0));
  types.append(2, llvm::Type::getInt64Ty(context));
  auto *function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                          llvm::GlobalValue::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i = 0; i < pointers; ++i) {
    function->addParamAttr(i, llvm::Attribute::NoAlias);
    function->addParamAttr(i, llvm::Attribute::NoCapture);
    function->addParamAttr(i, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  }
  llvm::BasicBlock::Create(context, "entry", function);
  return function;
}

ClusterEmitter::ClusterEmitter(const Cluster &cluster, const Schedule &schedule, llvm::Module &module,
                               llvm::StringRef symbol)
    : cluster(cluster), schedule(schedule), function(createKernel(module, symbol, cluster.pointers.size() + schedule.isCut())),
      builder(&function->getEntryBlock()), body(builder, schedule.lanes), memory(builder, schedule.lanes), loops(builder) {}

llvm::Function *ClusterEmitter::emit() {
  scopes.emplace_back();
  auto buffer = [&](mlir::Type element, int64_t count) {
    auto *slot = builder.CreateAlloca(memoryType(element, builder.getContext()), number(count));
    slot->setAlignment(llvm::Align(64));
    return slot;
  };
  int64_t swept = 1;
  for (unsigned dim : schedule.innerDims)
    swept *= cluster.sizes[dim];
  for (unsigned node : schedule.kept.set_bits())
    scratch[node] = buffer(mlir::getElementTypeOrSelf(cluster.nodes[node].op.getResultTypes()[0]), swept);
  for (unsigned pointer : schedule.staged.set_bits())
    tiles[pointer] = buffer(cluster.pointers[pointer].element, int64_t(schedule.lanes) * schedule.lanes);

  Point origin;
  origin.position.assign(cluster.rank(), number(0));
  // What no dimension indexes is read once per call.
  preload([](const Access &access) { return llvm::all_of(access.positions, [](int p) { return p < 0; }); }, origin);
  if (schedule.isCut())
    emitPieces();
  else if (schedule.form == Schedule::Rows)
    emitRows();
  else if (schedule.form == Schedule::Tiles)
    emitTiles();
  else
    emitColumns();
  if (hasStreamed) // such writes are seen in order by others only behind a fence
    builder.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  builder.CreateRetVoid();
  return function;
}

void ClusterEmitter::decompose(Value *index, llvm::ArrayRef<unsigned> dims, Point &point) {
  for (unsigned i = dims.size(); i-- > 0;) {
    Value *size = number(std::max<int64_t>(1, cluster.sizes[dims[i]]));
    point.position[dims[i]] = i == 0 ? index : builder.CreateURem(index, size);
    if (i > 0)
      index = builder.CreateUDiv(index, size);
  }
}

void ClusterEmitter::emitRows() {
  Point point;
  point.position.assign(cluster.rank(), number(0));
  Value *begin = function->getArg(function->arg_size() - 2), *end = function->getArg(function->arg_size() - 1);
  loops.loop(begin, end, 1, {}, [&](Value *row, const Values &) -> Values {
    Point inner = point;
    decompose(row, schedule.rangeDims, inner);
    emitRow(inner);
    return {};
  });
}

// The row up to its sums, in pieces; then all that follows from these, once.
void ClusterEmitter::emitPieces() {
  Point point;
  point.position.assign(cluster.rank(), number(0));
  Value *begin = function->getArg(function->arg_size() - 2), *end = function->getArg(function->arg_size() - 1);
  const int64_t last = schedule.pieces - 1, rest = cluster.sizes[schedule.innerDims[0]] - last * schedule.pieceSize;
  auto loop = [&](int64_t from, int64_t to, llvm::function_ref<void(Value *)> bodyOf) {
    Value *low = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, number(from));
    Value *high = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, number(to));
    loops.loop(low, high, 1, {}, [&](Value *index, const Values &) -> Values {
      bodyOf(index);
      return {};
    });
  };
  auto reduce = [&](Value *index, int64_t length) {
    piece = Piece{index, builder.CreateNSWMul(index, number(schedule.pieceSize)), length};
    beginRow(point);
    currentLevel = 0;
    emitSweep(0, point);
    scopes.pop_back();
    piece.reset();
  };
  loop(0, last, [&](Value *index) { reduce(index, schedule.pieceSize); });
  loop(last, schedule.pieces, [&](Value *index) { reduce(index, rest); });
  loop(schedule.pieces, schedule.pieces + 1, [&](Value *) { emitRow(point); });
}

Value *ClusterEmitter::partAddress(unsigned part, Value *index) {
  Value *slot = builder.CreateNSWAdd(index, number(part * schedule.pieces));
  return builder.CreateInBoundsGEP(builder.getInt64Ty(), function->getArg(function->arg_size() - 3), slot);
}

// The range runs over `dims` and, fastest, over chunks of the last range dimension of size `chunk`.
void ClusterEmitter::forEachOuter(llvm::ArrayRef<unsigned> dims, int64_t chunk,
                                  llvm::function_ref<void(Point, Value *, Value *)> bodyOf) {
  Point point;
  point.position.assign(cluster.rank(), number(0));
  Value *begin = function->getArg(function->arg_size() - 2), *end = function->getArg(function->arg_size() - 1);
  if (dims.empty())
    return bodyOf(point, begin, end);
  chunk = std::max<int64_t>(chunk, 1);
  Value *first = builder.CreateSDiv(begin, number(chunk));
  Value *last = builder.CreateSDiv(builder.CreateAdd(end, number(chunk - 1)), number(chunk));
  loops.loop(first, last, 1, {}, [&](Value *outer, const Values &) -> Values {
    Point inner = point;
    decompose(outer, dims, inner);
    Value *start = builder.CreateMul(outer, number(chunk));
    Value *low = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, builder.CreateSub(begin, start), number(0));
    Value *high = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder.CreateSub(end, start), number(chunk));
    bodyOf(inner, low, high);
    return {};
  });
}

// Lanes run along the range: whole groups of vectors first, then single vectors under a mask.
void ClusterEmitter::emitColumns() {
  int vector = schedule.vectorDim;
  if (vector < 0)
    return emitRows();
  llvm::ArrayRef<unsigned> outer = llvm::ArrayRef(schedule.rangeDims).drop_back();
  forEachOuter(outer, cluster.sizes[vector], [&](Point point, Value *low, Value *high) {
    int64_t step = int64_t(schedule.lanes) * schedule.unroll;
    Value *whole = builder.CreateMul(builder.CreateSDiv(builder.CreateSub(high, low), number(step)), number(step));
    Value *middle = builder.CreateAdd(low, whole);
    loops.loop(low, middle, step, {}, [&](Value *column, const Values &) -> Values {
      Point inner = point;
      inner.position[vector] = column;
      inner.groups = schedule.unroll;
      emitRow(inner);
      return {};
    });
    loops.loop(middle, high, schedule.lanes, {}, [&](Value *column, const Values &) -> Values {
      Point inner = point;
      inner.position[vector] = column;
      inner.masks = {memory.firstLanes(builder.CreateSub(high, column))};
      emitRow(inner);
      return {};
    });
  });
}

// Square tiles: transposed tensors are brought into (and out of) the order of the lanes through the stack.
void ClusterEmitter::emitTiles() {
  unsigned tile = schedule.tileDim, vector = schedule.vectorDim;
  int64_t lanes = schedule.lanes, width = cluster.sizes[vector];
  llvm::ArrayRef<unsigned> outer = llvm::ArrayRef(schedule.rangeDims).drop_back();
  forEachOuter(outer, cluster.sizes[tile], [&](Point point, Value *low, Value *high) {
    loops.loop(low, high, lanes, {}, [&](Value *row, const Values &) -> Values {
      point.position[tile] = row;
      Value *rows = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder.CreateSub(high, row), number(lanes));
      loops.loop(number(0), number(width), lanes, {}, [&](Value *column, const Values &) -> Values {
        Point inner = point;
        inner.position[vector] = column;
        emitTile(inner, rows, builder.CreateSub(number(width), column));
        return {};
      });
      return {};
    });
  });
}

void ClusterEmitter::emitTile(Point point, Value *tileRows, Value *columnsLeft) {
  unsigned tile = schedule.tileDim, vector = schedule.vectorDim;
  unsigned lanes = schedule.lanes;
  bool wholeTiles = cluster.sizes[vector] % lanes == 0;
  LaneMask columnMask = wholeTiles ? LaneMask() : memory.firstLanes(columnsLeft);
  Value *columns = wholeTiles ? number(lanes) : builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, columnsLeft, number(lanes));
  // The access of a staged pointer: all its accesses are equal.
  auto accessOf = [&](unsigned pointer) -> const Access & {
    for (const Store &target : cluster.stores)
      if (target.pointer == pointer)
        return target.access;
    for (const Node &node : cluster.nodes)
      for (const Operand &operand : node.operands)
        if (operand.kind == Operand::Pointer && operand.index == pointer)
          return operand.access;
    llvm_unreachable("a staged pointer has an access");
  };
  auto move = [&](unsigned pointer, bool in) {
    mlir::Type element = cluster.pointers[pointer].element;
    const Access &access = accessOf(pointer);
    Value *outside = address(pointer, access, point), *stride = number(access.strides[vector]);
    llvm::Function *transpose = tileTransposition(*function->getParent(), element, lanes);
    if (in)
      builder.CreateCall(transpose, {outside, stride, tiles[pointer], number(lanes), columns, tileRows});
    else
      builder.CreateCall(transpose, {tiles[pointer], number(lanes), outside, stride, tileRows, columns});
  };
  for (unsigned pointer : schedule.staged.set_bits())
    if (cluster.pointers[pointer].read)
      move(pointer, true);
  loops.loop(number(0), tileRows, 1, {}, [&](Value *row, const Values &) -> Values {
    Point inner = point;
    inner.position[tile] = builder.CreateAdd(point.position[tile], row);
    inner.masks = {columnMask};
    tileRow = row;
    emitRow(inner);
    return {};
  });
  for (unsigned pointer : schedule.staged.set_bits())
    if (cluster.pointers[pointer].written)
      move(pointer, false);
}

/// Opens the scope of a row. Loads that no inner dimension indexes happen once per row.
void ClusterEmitter::beginRow(const Point &point) {
  scopes.emplace_back();
  preload([&](const Access &access) {
    return llvm::none_of(schedule.innerDims, [&](unsigned dim) { return access.has(dim); });
  }, point);
}

void ClusterEmitter::emitRow(Point point) {
  beginRow(point);
  for (unsigned level = 0; level < schedule.levels; ++level) {
    currentLevel = level;
    llvm::SmallVector<std::pair<const Store *, Lanes>> ready;
    for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
      const Node &node = cluster.nodes[target.node];
      if (storeLevel == level && (node.isReduction() || !schedule.isSwept(node)))
        ready.push_back({&target, value(target.node, target.result, point)});
    }
    for (auto &[target, lanes] : ready)
      store(*target, lanes, point);
    if (level == 0 && schedule.isCut()) // pieces have swept it
      gatherParts(point);
    else if (hasWork(level))
      emitSweep(level, point);
  }
  scopes.pop_back();
}

bool ClusterEmitter::hasWork(unsigned level) const {
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (schedule.level[id] == level && (cluster.nodes[id].isReduction() || schedule.kept[id]))
      return true;
  for (auto [target, storeLevel] : llvm::zip(cluster.stores, schedule.storeLevel)) {
    const Node &node = cluster.nodes[target.node];
    if (storeLevel == level && !node.isReduction() && schedule.isSwept(node))
      return true;
  }
  return false;
}

void ClusterEmitter::emitSweep(unsigned level, Point point) {
  // Values of the row that the sweep needs are computed before it.
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    if (!schedule.isSwept(cluster.nodes[id]) && !cluster.nodes[id].isReduction() && schedule.level[id] <= level)
      for (unsigned result = 0; result < cluster.nodes[id].op.getNumResults(); ++result)
        value(id, result, point);
  startReductions(level, point);
  Values totals = emitSteps(level, point, 0, initial);
  finishReductions(level, point, totals);
}

unsigned ClusterEmitter::slots(unsigned id, const Point &point) const {
  if (schedule.form != Schedule::Rows)
    return schedule.variesInLanes(cluster.nodes[id]) ? point.groups : 1;
  int64_t vectors = (length(schedule.vectorDim) + schedule.lanes - 1) / schedule.lanes;
  return std::max<int64_t>(1, std::min<int64_t>(schedule.unroll, vectors));
}

// Rows: partial values start with the identity in every lane. Columns: every lane is a reduction of its own.
void ClusterEmitter::startReductions(unsigned level, const Point &point) {
  initial.clear();
  carriedCombiners.clear();
  reductionSlots.assign(cluster.nodes.size(), 0);
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    reductionSlots[id] = slots(id, point);
    for (unsigned result = 0; result < node.op.getNumResults(); ++result) {
      const Operand &start = node.operands[node.op.getNumDpsInputs() + result];
      Lanes lanes = schedule.form == Schedule::Rows ? Lanes{body.identity(*node.combiners[result])}
                                                    : operandValue(id, start, point);
      for (unsigned slot = 0; slot < reductionSlots[id]; ++slot) {
        initial.push_back(at(lanes, slot));
        carriedCombiners.push_back(node.combiners[result]);
      }
    }
  }
}

void ClusterEmitter::finishReductions(unsigned level, const Point &point, const Values &carried) {
  unsigned next = 0, part = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    for (unsigned result = 0; result < node.op.getNumResults(); ++result) {
      Values parts(carried.begin() + next, carried.begin() + next + reductionSlots[id]);
      next += reductionSlots[id];
      if (piece)
        builder.CreateStore(builder.CreateExtractElement(mergeLanes(*node.combiners[result], parts), uint64_t(0)), partAddress(part++, piece->index));
      else if (schedule.form == Schedule::Rows)
        keepReduced(id, result, point, mergeLanes(*node.combiners[result], parts));
      else
        scopes.back().values[{id, result}] = parts;
    }
  }
}

/// `total` of all points, without what the reduction starts from.
void ClusterEmitter::keepReduced(unsigned id, unsigned result, const Point &point, Value *total) {
  const Node &node = cluster.nodes[id];
  mlir::Operation &combiner = *node.combiners[result];
  Value *from = at(operandValue(id, node.operands[node.op.getNumDpsInputs() + result], point), 0);
  scopes.back().values[{id, result}] = {from == body.identity(combiner) ? total : body.emitBinary(combiner, total, from)};
}

/// What the pieces of a cut row have found, in their order.
void ClusterEmitter::gatherParts(const Point &point) {
  unsigned part = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id)
    for (unsigned result = 0; reduces(id, 0) && result < cluster.nodes[id].op.getNumResults(); ++result, ++part) {
      mlir::Operation &combiner = *cluster.nodes[id].combiners[result];
      Values totals = loops.loop(number(0), number(schedule.pieces), 1, {body.identity(combiner)}, [&](Value *index, const Values &sum) -> Values {
        Value *found = builder.CreateLoad(sum[0]->getType()->getScalarType(), partAddress(part, index));
        return {body.emitBinary(combiner, sum[0], builder.CreateVectorSplat(schedule.lanes, found))};
      });
      keepReduced(id, result, point, totals[0]);
    }
}

// A fixed tree: vectors in pairs, then halves of the lanes.
Value *ClusterEmitter::mergeLanes(mlir::Operation &combiner, Values parts) {
  while (parts.size() > 1) {
    size_t half = (parts.size() + 1) / 2;
    for (size_t i = half; i < parts.size(); ++i)
      parts[i - half] = body.emitBinary(combiner, parts[i - half], parts[i]);
    parts.resize(half);
  }
  Value *value = parts[0];
  for (unsigned width = schedule.lanes / 2; width > 1; width /= 2) {
    llvm::SmallVector<int> low, high;
    for (unsigned lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    value = body.emitBinary(combiner, builder.CreateShuffleVector(value, low), builder.CreateShuffleVector(value, high));
  }
  value = body.emitBinary(combiner, builder.CreateExtractElement(value, uint64_t(0)),
                          builder.CreateExtractElement(value, uint64_t(1)));
  return builder.CreateVectorSplat(schedule.lanes, value);
}

// Long reductions are summed in blocks.
Values ClusterEmitter::blockedLoop(int64_t high, int64_t step, const Values &carried, LoopBuilder::Body bodyOf) {
  int64_t block = blockSteps * step, whole = high / block * block;
  bool mergeable = !carried.empty() && !llvm::is_contained(carriedCombiners, nullptr);
  if (!mergeable || high < 2 * block)
    return loops.loop(number(0), number(high), step, carried, bodyOf);
  Values fresh;
  for (mlir::Operation *combiner : carriedCombiners)
    fresh.push_back(body.identity(*combiner));
  Values totals = loops.loop(number(0), number(whole), block, carried, [&](Value *start, const Values &outer) {
    Values part = loops.loop(number(0), number(block), step, fresh, [&](Value *inside, const Values &inner) {
      return bodyOf(builder.CreateNSWAdd(start, inside), inner);
    });
    for (auto [i, total] : llvm::enumerate(outer))
      part[i] = body.emitBinary(*carriedCombiners[i], total, part[i]);
    return part;
  });
  return loops.loop(number(whole), number(high), step, totals, bodyOf);
}

Values ClusterEmitter::emitSteps(unsigned level, Point point, unsigned depth, const Values &carried) {
  bool last = schedule.form == Schedule::Rows && depth + 1 == schedule.innerDims.size();
  if (last)
    return emitLaneSteps(level, point, carried);
  if (schedule.form == Schedule::Tiles || depth == schedule.innerDims.size())
    return emitStep(level, point, carried);
  unsigned dim = schedule.innerDims[depth];
  auto step = [&](Value *position, const Values &inner) {
    Point next = point;
    next.position[dim] = place(dim, position);
    return emitSteps(level, next, depth + 1, inner);
  };
  // Only the outermost loop is blocked: inner ones continue its partial values.
  if (depth == 0)
    return blockedLoop(length(dim), 1, carried, step);
  return loops.loop(number(0), number(length(dim)), 1, carried, step);
}

// The sweep along the lanes of a row: groups of vectors, then the rest at constant places, its last vector masked.
Values ClusterEmitter::emitLaneSteps(unsigned level, Point point, const Values &carried) {
  unsigned vector = schedule.vectorDim, lanes = schedule.lanes;
  int64_t size = length(vector), step = int64_t(lanes) * schedule.unroll, whole = size / step * step;
  auto wide = [&](Value *position, const Values &inner) {
    Point next = point;
    next.position[vector] = place(vector, position);
    next.groups = schedule.unroll;
    return emitStep(level, next, inner);
  };
  Values sums = schedule.innerDims.size() == 1 ? blockedLoop(whole, step, carried, wide)
                                               : loops.loop(number(0), number(whole), step, carried, wide);
  if (whole == size)
    return sums;
  Point rest = point;
  rest.position[vector] = place(vector, number(whole));
  rest.groups = (size - whole + lanes - 1) / lanes;
  rest.masks.resize(rest.groups);
  if ((size - whole) % lanes != 0)
    rest.masks.back().valid = (size - whole) % lanes;
  return emitStep(level, rest, sums);
}

// One point of a sweep: everything is computed before anything is stored.
Values ClusterEmitter::emitStep(unsigned level, const Point &point, const Values &carried) {
  scopes.emplace_back();
  Values next = carried;
  unsigned slot = 0;
  for (unsigned id = 0; id < cluster.nodes.size(); ++id) {
    if (!reduces(id, level))
      continue;
    const Node &node = cluster.nodes[id];
    unsigned inputs = node.op.getNumDpsInputs(), results = node.op.getNumResults(), width = reductionSlots[id];
    llvm::SmallVector<Lanes> operands;
    for (unsigned i = 0; i < inputs; ++i)
      operands.push_back(operandValue(id, node.operands[i], point));
    for (unsigned group = 0; group < std::min(width, point.groups); ++group) {
      Values arguments;
      for (const Lanes &lanes : operands)
        arguments.push_back(at(lanes, group));
      for (unsigned result = 0; result < results; ++result)
        arguments.push_back(carried[slot + result * width + group]);
      Values sums = body.emit(*node.op.getBody(), arguments,
                              [&](unsigned loop) { return indexVector(node, loop, point, group); });
      for (unsigned result = 0; result < results; ++result) {
        unsigned place = slot + result * width + group;
        bool masked = schedule.form == Schedule::Rows && !point.mask(group).isFull();
        next[place] = masked ? builder.CreateSelect(memory.maskValue(point.mask(group)), sums[result], carried[place])
                             : sums[result];
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
  for (unsigned id : schedule.kept.set_bits()) {
    if (schedule.level[id] != level)
      continue;
    mlir::Type element = mlir::getElementTypeOrSelf(cluster.nodes[id].op.getResultTypes()[0]);
    Lanes lanes = value(id, 0, point);
    for (unsigned group = 0; group < point.groups; ++group)
      memory.store(element, at(lanes, group),
                   memory.advance(element, scratchAddress(id, point), int64_t(group) * schedule.lanes), 1, point.mask(group));
  }
  for (auto &[target, lanes] : ready)
    store(*target, lanes, point);
  scopes.pop_back();
  return next;
}

} // namespace msc::codegen
