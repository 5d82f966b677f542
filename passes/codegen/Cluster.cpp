#include "passes/codegen/Cluster.h"

#include "passes/codegen/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace msc::codegen {

namespace arith = mlir::arith;
using mlir::failure;
using mlir::linalg::GenericOp;

mlir::Operation *matchCombiner(GenericOp op, unsigned result) {
  mlir::Block &body = *op.getBody();
  mlir::BlockArgument accumulator = body.getArgument(op.getNumDpsInputs() + result);
  mlir::Operation *combiner = body.getTerminator()->getOperand(result).getDefiningOp();
  if (!combiner || combiner->getBlock() != &body || !accumulator.hasOneUse() || *accumulator.getUsers().begin() != combiner)
    return nullptr;
  bool known = mlir::isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                         arith::MinNumFOp, arith::AddIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
                         arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(combiner);
  return known ? combiner : nullptr;
}

namespace {

/// Classes of loops that run together. No class holds two loops of one operator.
class LoopClasses {
public:
  unsigned add(unsigned node, int64_t size) {
    parent.push_back(parent.size());
    members.push_back({node});
    sizes.push_back(size);
    return parent.size() - 1;
  }
  unsigned find(unsigned loop) const { return parent[loop] == loop ? loop : find(parent[loop]); }
  bool join(unsigned a, unsigned b) {
    a = find(a), b = find(b);
    if (a == b)
      return true;
    if (sizes[a] != sizes[b] || llvm::any_of(members[a], [&](unsigned node) { return llvm::is_contained(members[b], node); }))
      return false;
    parent[b] = a;
    members[a].append(members[b]);
    return true;
  }
  int64_t size(unsigned loop) const { return sizes[loop]; }

private:
  llvm::SmallVector<unsigned> parent;
  llvm::SmallVector<llvm::SmallVector<unsigned>> members;
  llvm::SmallVector<int64_t> sizes;
};

/// Builds a Cluster in four steps: collect the operators, unite their loops, choose the domain, express accesses in it.
class Analysis {
public:
  Analysis(mlir::func::FuncOp func, std::string &reason, const KernelForm *like) : func(func), reason(reason), like(like) {}
  mlir::FailureOr<Cluster> run();

private:
  mlir::LogicalResult collect();
  mlir::LogicalResult addGeneric(GenericOp op);
  mlir::LogicalResult uniteLoops();
  void uniteSoftly();
  mlir::LogicalResult chooseDomain();
  mlir::LogicalResult resolveOperands();
  mlir::LogicalResult resolveOperand(unsigned node, mlir::Value value, mlir::AffineMap map, Operand &operand);
  mlir::LogicalResult resolveStores();
  mlir::LogicalResult checkInPlace();
  Access accessOf(unsigned node, mlir::AffineMap map, mlir::Type type) const;
  void findPlaces();
  mlir::LogicalResult collapse();
  bool together(unsigned dim, const Access &access) const;
  bool collapsible(unsigned dim) const;
  void mergeWithNext(unsigned dim);
  mlir::LogicalResult fail(const llvm::Twine &text) {
    reason = text.str();
    return failure();
  }
  unsigned loopId(unsigned node, unsigned loop) const { return firstLoop[node] + loop; }

  mlir::func::FuncOp func;
  std::string &reason;
  const KernelForm *like;
  Cluster cluster;
  llvm::DenseMap<mlir::Value, std::pair<unsigned, unsigned>> produced; ///< value -> node, result
  llvm::SmallVector<unsigned> firstLoop;
  LoopClasses classes;
};

std::string text(mlir::AffineExpr expression) {
  std::string result;
  llvm::raw_string_ostream(result) << expression;
  return result;
}

mlir::LogicalResult Analysis::addGeneric(GenericOp op) {
  Node node;
  node.op = op;
  for (mlir::AffineMap map : op.getIndexingMapsArray())
    for (mlir::AffineExpr expression : map.getResults()) {
      auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expression);
      if (!mlir::isa<mlir::AffineDimExpr>(expression) && !(constant && constant.getValue() == 0))
        return fail("index expression '" + text(expression) + "' is not a plain dimension");
    }
  for (mlir::Operation &inner : *op.getBody()) {
    if (!isSupportedInBody(inner))
      return fail("'" + inner.getName().getStringRef() + "' has no code in kernels");
    node.usesIndex |= mlir::isa<mlir::linalg::IndexOp>(inner);
  }
  for (mlir::Type type : op->getOperandTypes()) {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (tensor && !tensor.hasStaticShape())
      return fail("a tensor has a dynamic shape");
    if (!isSupportedType(mlir::getElementTypeOrSelf(type)))
      return fail("an element type has no code in kernels");
  }
  unsigned id = cluster.nodes.size();
  firstLoop.push_back(firstLoop.empty() ? 0 : firstLoop.back() + cluster.nodes.back().op.getNumLoops());
  for (int64_t size : op.getStaticLoopRanges())
    classes.add(id, size);
  for (auto [number, value] : llvm::enumerate(op.getResults()))
    produced[value] = {id, number};
  cluster.nodes.push_back(std::move(node));
  return mlir::success();
}

mlir::LogicalResult Analysis::collect() {
  if (!func.getBody().hasOneBlock())
    return fail("the body is not one block");
  for (mlir::Operation &op : func.getBody().front().without_terminator()) {
    if (auto generic = mlir::dyn_cast<GenericOp>(op)) {
      if (mlir::failed(addGeneric(generic)))
        return failure();
    } else if (!mlir::isa<mlir::tensor::EmptyOp, mlir::linalg::FillOp, arith::ConstantOp>(op)) {
      return fail("'" + op.getName().getStringRef() + "' cannot stand in a kernel");
    }
  }
  if (cluster.nodes.empty())
    return fail("there is nothing to compute");
  return mlir::success();
}

// A value ties the loops of its producer to those of its consumers.
mlir::LogicalResult Analysis::uniteLoops() {
  for (auto [id, node] : llvm::enumerate(cluster.nodes))
    for (mlir::OpOperand &operand : node.op->getOpOperands()) {
      auto found = produced.find(operand.get());
      if (found == produced.end())
        continue;
      auto [producer, result] = found->second;
      GenericOp source = cluster.nodes[producer].op;
      mlir::AffineMap from = source.getIndexingMapMatchingResult(mlir::cast<mlir::OpResult>(operand.get()));
      mlir::AffineMap to = node.op.getMatchingIndexingMap(&operand);
      for (auto [a, b] : llvm::zip(from.getResults(), to.getResults())) {
        auto x = mlir::dyn_cast<mlir::AffineDimExpr>(a), y = mlir::dyn_cast<mlir::AffineDimExpr>(b);
        if (x && y && !classes.join(loopId(producer, x.getPosition()), loopId(id, y.getPosition())))
          return fail("a value is used in two index orders");
      }
    }
  uniteSoftly();
  return mlir::success();
}

// Operators that share no value may still run together: first along arguments that both read, then by position.
void Analysis::uniteSoftly() {
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<unsigned, mlir::AffineMap>>> readers;
  for (auto [id, node] : llvm::enumerate(cluster.nodes))
    for (mlir::OpOperand &operand : node.op->getOpOperands())
      if (mlir::isa<mlir::BlockArgument>(operand.get()))
        readers[operand.get()].push_back({unsigned(id), node.op.getMatchingIndexingMap(&operand)});
  for (mlir::BlockArgument argument : func.getArguments()) {
    auto &list = readers[argument];
    for (size_t i = 1; i < list.size(); ++i)
      for (auto [a, b] : llvm::zip(list[0].second.getResults(), list[i].second.getResults())) {
        auto x = mlir::dyn_cast<mlir::AffineDimExpr>(a), y = mlir::dyn_cast<mlir::AffineDimExpr>(b);
        if (x && y)
          classes.join(loopId(list[0].first, x.getPosition()), loopId(list[i].first, y.getPosition()));
      }
  }
}

mlir::LogicalResult Analysis::chooseDomain() {
  // Most loops; among equals most that are not of size 1, so that a row result kept as [rows, 1] does not win.
  auto weight = [&](unsigned id) {
    auto sizes = cluster.nodes[id].op.getStaticLoopRanges();
    return std::make_pair(sizes.size(), llvm::count_if(sizes, [](int64_t size) { return size != 1; }));
  };
  for (unsigned id = 1; id < cluster.nodes.size(); ++id)
    if (weight(id) > weight(cluster.widest))
      cluster.widest = id;
  if (like && like->widest < cluster.nodes.size())
    cluster.widest = like->widest;
  unsigned widest = cluster.widest;
  GenericOp top = cluster.nodes[widest].op;
  cluster.sizes = top.getStaticLoopRanges();
  unsigned rank = cluster.rank();
  for (unsigned dim = 0; dim < rank; ++dim)
    cluster.origin.push_back({dim});
  cluster.reduced.resize(rank);
  for (auto [id, node] : llvm::enumerate(cluster.nodes)) {
    unsigned loops = node.op.getNumLoops();
    for (unsigned back = 1; back <= std::min(loops, rank); ++back)
      if (classes.size(loopId(id, loops - back)) != 1) // ties by position, aligned on the right; refused where already tied
        classes.join(loopId(widest, rank - back), loopId(id, loops - back));
    node.dims.resize(rank);
    node.reduced.resize(rank);
    for (unsigned loop = 0; loop < loops; ++loop) {
      int dim = -1;
      for (unsigned candidate = 0; candidate < rank; ++candidate)
        if (classes.find(loopId(widest, candidate)) == classes.find(loopId(id, loop)))
          dim = candidate;
      if (dim < 0 && classes.size(loopId(id, loop)) != 1)
        return fail("an operator iterates over a dimension of size " + llvm::Twine(classes.size(loopId(id, loop))) +
                    " that the widest operator does not have");
      node.loopDims.push_back(dim);
      if (dim < 0)
        continue;
      node.dims.set(dim);
      if (node.op.getIteratorTypesArray()[loop] == mlir::utils::IteratorType::reduction)
        node.reduced.set(dim);
    }
    if (node.isReduction() && cluster.reduced.any() && cluster.reduced != node.reduced)
      return fail("operators reduce over different dimensions");
    cluster.reduced |= node.reduced;
  }
  return mlir::success();
}

Access Analysis::accessOf(unsigned node, mlir::AffineMap map, mlir::Type type) const {
  Access access;
  access.strides.assign(cluster.rank(), 0);
  access.positions.assign(cluster.rank(), -1);
  auto shape = mlir::cast<mlir::RankedTensorType>(type).getShape();
  int64_t stride = 1;
  for (int position = int(map.getNumResults()) - 1; position >= 0; --position) {
    auto loop = mlir::dyn_cast<mlir::AffineDimExpr>(map.getResult(position));
    int dim = loop ? cluster.nodes[node].loopDims[loop.getPosition()] : -1;
    if (dim >= 0) {
      access.strides[dim] += stride;
      access.positions[dim] = position;
    }
    stride *= shape[position];
  }
  return access;
}

mlir::LogicalResult Analysis::resolveOperand(unsigned id, mlir::Value value, mlir::AffineMap map, Operand &operand) {
  while (auto fill = value.getDefiningOp<mlir::linalg::FillOp>())
    value = fill.getInputs()[0];
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    operand.kind = Operand::Pointer;
    operand.index = argument.getArgNumber();
    operand.access = accessOf(id, map, value.getType());
    cluster.pointers[operand.index].read = true;
    return mlir::success();
  }
  if (auto found = produced.find(value); found != produced.end()) {
    operand.kind = Operand::Node;
    std::tie(operand.index, operand.result) = found->second;
    return mlir::success();
  }
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return fail("an operand of a body is not defined");
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue())) {
    if (!dense.isSplat())
      return fail("a constant tensor holds different values");
    operand.constant = dense.getSplatValue<mlir::TypedAttr>();
  } else {
    operand.constant = mlir::cast<mlir::TypedAttr>(constant.getValue());
  }
  return mlir::success();
}

mlir::LogicalResult Analysis::resolveOperands() {
  for (auto [id, node] : llvm::enumerate(cluster.nodes)) {
    for (mlir::OpOperand &use : node.op->getOpOperands()) {
      Operand operand;
      // The destination of an operator that does not read it carries no value.
      mlir::BlockArgument argument = node.op.getMatchingBlockArgument(&use);
      if (argument.use_empty()) {
        operand.constant = mlir::cast<mlir::TypedAttr>(mlir::Builder(func.getContext()).getZeroAttr(argument.getType()));
      } else if (mlir::failed(resolveOperand(id, use.get(), node.op.getMatchingIndexingMap(&use), operand))) {
        return failure();
      }
      node.operands.push_back(std::move(operand));
    }
    for (unsigned result = 0; node.isReduction() && result < node.op.getNumResults(); ++result)
      node.combiners.push_back(matchCombiner(node.op, result));
  }
  return mlir::success();
}

mlir::LogicalResult Analysis::resolveStores() {
  llvm::SmallVector<int> inPlace(func.getNumResults(), -1);
  for (unsigned argument = 0; argument < func.getNumArguments(); ++argument)
    if (auto target = func.getArgAttrOfType<mlir::IntegerAttr>(argument, "msc.in_place")) {
      if (target.getInt() < 0 || target.getInt() >= int64_t(func.getNumResults()))
        return fail("'msc.in_place' names result " + llvm::Twine(target.getInt()) + " of " +
                    llvm::Twine(func.getNumResults()));
      if (func.getArgumentTypes()[argument] != func.getResultTypes()[target.getInt()])
        return fail("'msc.in_place' ties an argument and a result of different types");
      inPlace[target.getInt()] = argument;
    }
  auto returned = func.getBody().front().getTerminator()->getOperands();
  for (auto [number, value] : llvm::enumerate(returned)) {
    auto found = produced.find(value);
    if (found == produced.end())
      return fail("result " + llvm::Twine(number) + " is not computed by an operator of the cluster");
    Store store;
    std::tie(store.node, store.result) = found->second;
    GenericOp source = cluster.nodes[store.node].op;
    store.access = accessOf(store.node, source.getIndexingMapMatchingResult(mlir::cast<mlir::OpResult>(value)), value.getType());
    store.pointer = inPlace[number] >= 0 ? inPlace[number] : cluster.pointers.size();
    if (inPlace[number] < 0)
      cluster.pointers.push_back({mlir::getElementTypeOrSelf(value.getType())});
    cluster.pointers[store.pointer].written = true;
    cluster.stores.push_back(std::move(store));
  }
  return checkInPlace();
}

// Memory that is read and written: every element is read at the place where it is written, and nowhere else.
mlir::LogicalResult Analysis::checkInPlace() {
  for (const Store &store : cluster.stores)
    for (const Node &node : cluster.nodes)
      for (const Operand &operand : node.operands)
        if (operand.kind == Operand::Pointer && operand.index == store.pointer && !(operand.access == store.access))
          return fail("argument " + llvm::Twine(operand.index) + " is updated in place but read in another index order");
  return mlir::success();
}

void Analysis::findPlaces() {
  cluster.places.assign(cluster.rank(), {-1, -1});
  auto visit = [&](unsigned pointer, const Access &access) {
    for (unsigned dim = 0; dim < cluster.rank(); ++dim)
      if (access.has(dim) && cluster.places[dim].first < 0)
        cluster.places[dim] = {int(pointer), access.positions[dim]};
  };
  for (const Node &node : cluster.nodes)
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer)
        visit(operand.index, operand.access);
  for (const Store &store : cluster.stores)
    visit(store.pointer, store.access);
}

// One index can stand for both dims: the tensor has both, one after the other, or none. Following a form, a dim of size 1
// goes along with anything.
bool Analysis::together(unsigned dim, const Access &access) const {
  if (like && (cluster.sizes[dim] == 1 || cluster.sizes[dim + 1] == 1))
    return true;
  if (!access.has(dim) && !access.has(dim + 1))
    return true;
  return access.has(dim) && access.has(dim + 1) && access.positions[dim] < access.positions[dim + 1] &&
         access.strides[dim] == access.strides[dim + 1] * cluster.sizes[dim + 1];
}

bool Analysis::collapsible(unsigned dim) const {
  bool sizeOne = like && (cluster.sizes[dim] == 1 || cluster.sizes[dim + 1] == 1);
  for (const Node &node : cluster.nodes) {
    if ((node.dims[dim] != node.dims[dim + 1] && !sizeOne) || node.reduced[dim] != node.reduced[dim + 1] ||
        (node.usesIndex && node.dims[dim]))
      return false;
    for (const Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer && !together(dim, operand.access))
        return false;
  }
  return llvm::all_of(cluster.stores, [&](const Store &store) { return together(dim, store.access); });
}

void Analysis::mergeWithNext(unsigned dim) {
  // The inner one decides the stride, unless it has only one position.
  unsigned gone = cluster.sizes[dim + 1] == 1 ? dim + 1 : dim;
  auto drop = [&](auto &list) { list.erase(list.begin() + gone); };
  auto dropBit = [&](llvm::SmallBitVector &bits) {
    for (unsigned i = gone; i + 1 < bits.size(); ++i)
      bits[i] = bits[i + 1];
    bits.resize(bits.size() - 1);
  };
  cluster.sizes[dim] = cluster.sizes[dim + 1] = cluster.sizes[dim] * cluster.sizes[dim + 1];
  cluster.origin[dim].append(cluster.origin[dim + 1]);
  cluster.origin[dim + 1] = cluster.origin[dim];
  drop(cluster.sizes);
  drop(cluster.origin);
  dropBit(cluster.reduced);
  for (Node &node : cluster.nodes) {
    dropBit(node.dims);
    dropBit(node.reduced);
    for (int &loop : node.loopDims)
      loop -= loop > int(dim);
    for (Operand &operand : node.operands)
      if (operand.kind == Operand::Pointer) {
        drop(operand.access.strides);
        drop(operand.access.positions);
      }
  }
  for (Store &store : cluster.stores) {
    drop(store.access.strides);
    drop(store.access.positions);
  }
}

mlir::LogicalResult Analysis::collapse() {
  auto inOneGroup = [&](unsigned dim) {
    return llvm::any_of(like->groups, [&](const auto &group) {
      return llvm::is_contained(group, cluster.origin[dim].back()) && llvm::is_contained(group, cluster.origin[dim + 1].front());
    });
  };
  for (int dim = int(cluster.rank()) - 2; dim >= 0; --dim) {
    bool wanted = !like || inOneGroup(dim);
    if (wanted && collapsible(dim))
      mergeWithNext(dim);
    else if (wanted && like)
      return fail("it cannot take the form of the kernel for other sizes");
  }
  return mlir::success();
}

mlir::FailureOr<Cluster> Analysis::run() {
  for (mlir::Type type : func.getArgumentTypes()) {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !isSupportedType(tensor.getElementType()))
      return mlir::FailureOr<Cluster>(fail("an argument is not a tensor of static shape and known element type"));
    cluster.pointers.push_back({tensor.getElementType()});
  }
  if (mlir::failed(collect()) || mlir::failed(uniteLoops()) || mlir::failed(chooseDomain()) ||
      mlir::failed(resolveOperands()) || mlir::failed(resolveStores()))
    return failure();
  findPlaces();
  if (mlir::failed(collapse()))
    return failure();
  return std::move(cluster);
}

} // namespace

mlir::FailureOr<Cluster> analyseCluster(mlir::func::FuncOp func, std::string &reason, const KernelForm *like) {
  return Analysis(func, reason, like).run();
}

} // namespace msc::codegen
