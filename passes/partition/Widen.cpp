#include "passes/partition/Widen.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetOps.h"
#include "dialects/net/Recompute.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace msc::passes {

static bool isNarrow(Type element) { return element.isF16() || element.isBF16(); }
static bool isNarrow(Value value) { return isNarrow(getElementTypeOrSelf(value.getType())); }

bool isForGpusAlone(Operation *op) { return op->getContext()->getLoadedDialect<dist::DistDialect>()->areOnlyGpus(); }

bool computesNarrow(Operation *op) {
  auto lower = dyn_cast<net::Lower>(op);
  if (!lower || isa<net::CastOp>(op))
    return false;
  net::LoweringKind kind = lower.loweringKind();
  if (kind == net::LoweringKind::View || kind == net::LoweringKind::Regions)
    return false;
  auto narrow = [](Value value) { return isNarrow(value); };
  return llvm::any_of(op->getOperands(), narrow) || llvm::any_of(op->getResults(), narrow);
}

/// Same shape and sharding, other elements.
static Type withElement(Type tensor, Type element) { return cast<RankedTensorType>(tensor).clone(element); }

/// What casts have as index of an expansion: their operator stands there itself.
static constexpr int64_t noExpansion = -1;

bool isWideningCast(Operation *op) {
  std::optional<net::Whole> whole = net::getWhole(op);
  return isa<net::CastOp>(op) && whole && whole->index == noExpansion;
}

/// What made the value, before it was moved.
static Operation *makerOf(Value value) {
  Operation *maker = value.getDefiningOp();
  while (isa_and_nonnull<dist::CollectiveOp, dist::SliceOp>(maker))
    maker = maker->getOperand(0).getDefiningOp();
  return maker;
}

/// Of an operator that is computed again: of all who read it in f32, or of who made what it rounds.
static bool isOfCopy(Operation *cast) {
  if (isNarrow(cast->getOperand(0)))
    return llvm::all_of(cast->getUsers(), net::isCopy);
  Operation *maker = makerOf(cast->getOperand(0));
  return maker && net::isCopy(maker);
}

void settleCasts(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isWideningCast(&op) && op.use_empty())
      op.erase();
  for (Operation &op : block)
    if (isWideningCast(&op) && isOfCopy(&op))
      net::setCopy(&op);
}

/// A cast that belongs to `op`.
static net::CastOp castFor(Operation *op, OpBuilder &builder, Value value, Type element) {
  auto cast = builder.create<net::CastOp>(op->getLoc(), value, element);
  cast->getResult(0).setType(withElement(value.getType(), element));
  net::setPhase(cast, net::getPhase(op));
  net::setScope(cast, net::getScope(op));
  net::setInstanceName(cast, (net::getInstanceName(op) + ".Cast").str());
  net::setWhole(cast, op, noExpansion);
  if (std::optional<int64_t> forward = net::getForwardId(op))
    net::setForwardId(cast, *forward);
  return cast;
}

SmallVector<Type> widen(Operation *op) {
  OpBuilder builder(op);
  Type wide = builder.getF32Type();
  DenseMap<Value, Value> casts;
  for (OpOperand &operand : op->getOpOperands())
    if (Value value = operand.get(); isNarrow(value)) {
      auto known = casts.find(value);
      Value inF32 = known != casts.end() ? known->second : castFor(op, builder, value, wide).getResult();
      casts.try_emplace(value, inF32);
      operand.set(inF32);
    }
  for (NamedAttribute attribute : llvm::to_vector(op->getAttrs())) // a type that the results take
    if (auto type = dyn_cast<TypeAttr>(attribute.getValue()); type && isNarrow(type.getValue()))
      op->setAttr(attribute.getName(), TypeAttr::get(wide));
  SmallVector<Type> elements;
  for (Value result : op->getResults()) {
    elements.push_back(isNarrow(result) ? getElementTypeOrSelf(result.getType()) : Type());
    if (elements.back())
      result.setType(withElement(result.getType(), wide));
  }
  return elements;
}

namespace {
/// Which operands of an operator may be narrow, of one type, and how many results are of that type then.
struct NarrowForm {
  SmallVector<unsigned> operands;
  unsigned results = 0;
  bool onCpus = false; ///< they have kernels for bf16
};
} // namespace

static std::optional<NarrowForm> narrowFormOf(Operation *op) {
  if (isa<net::MatMulOp>(op))
    return NarrowForm{{0, 1}, 0, true};
  if (isa<net::ScaledDotProductAttentionOp>(op))
    return NarrowForm{{0, 1, 2}, 1, true};
  if (isa<net::ScaledDotProductAttentionGradOp>(op)) // but for the logarithms
    return NarrowForm{{0, 1, 2, 3, 5}, 3, true};
  if (isa<net::Conv2DOp, net::Conv2DTransposeOp, net::Conv2DBackpropInputOp, net::Conv2DBackpropFilterOp>(op))
    return NarrowForm{{0, 1}, 1, true};
  if (isa<net::MaxPoolGradOp>(op))
    return NarrowForm{{0, 1}, 1};
  if (isa<net::MaxPoolOp, net::AvgPoolOp, net::AvgPoolGradOp, net::AdaptiveAvgPool2DOp, net::AdaptiveAvgPool2DGradOp>(op))
    return NarrowForm{{0}, 1};
  return std::nullopt;
}

/// What is cast to f32 there; null: it is no cast of a narrow value. In plans for CPUs casts of the network stay: the search counts them.
static Value castFrom(Value wide) {
  auto cast = wide.getDefiningOp<net::CastOp>();
  const bool isNarrowed = cast && getElementTypeOrSelf(wide.getType()).isF32() && isNarrow(cast.getOperand());
  return isNarrowed && (isForGpusAlone(cast) || isWideningCast(cast)) ? cast.getOperand() : Value();
}

/// The one narrow type that all these operands have or are cast from; null: they have none, or several.
static Type narrowTypeOf(Operation *op, ArrayRef<unsigned> operands) {
  Type element;
  for (unsigned operand : operands) {
    Value value = op->getOperand(operand);
    if (!isNarrow(value))
      value = castFrom(value);
    if (!value || (element && getElementTypeOrSelf(value.getType()) != element))
      return {};
    element = getElementTypeOrSelf(value.getType());
  }
  return element;
}

bool takesNarrow(Operation *op) {
  std::optional<NarrowForm> form = narrowFormOf(op);
  if (!form || isForGpusAlone(op))
    return form.has_value();
  Type element = form->onCpus ? narrowTypeOf(op, form->operands) : Type();
  return element && element.isBF16(); // CPUs may have instructions for products of these
}

bool isOfOneType(Operation *op) {
  std::optional<NarrowForm> form = narrowFormOf(op);
  return form && form->results > 0;
}

bool holdsBFloat16(Operation *op) {
  const bool isConvolution = isa<net::Conv2DOp, net::Conv2DTransposeOp, net::Conv2DBackpropInputOp, net::Conv2DBackpropFilterOp>(op);
  return isConvolution && !isForGpusAlone(op) && llvm::all_of(op->getOperands(), [](Value operand) {
    auto cast = operand.getDefiningOp<net::CastOp>();
    return cast && getElementTypeOrSelf(cast.getOperand().getType()).isBF16() && getElementTypeOrSelf(cast.getResult().getType()).isF32();
  });
}

/// Nobody reads a value but one cast to that type, if that.
static bool isOnlyRounded(Value value, Type element) {
  auto cast = value.hasOneUse() ? dyn_cast<net::CastOp>(*value.user_begin()) : net::CastOp();
  return value.use_empty() || (cast && getElementTypeOrSelf(cast.getResult().getType()) == element);
}

/// Takes the place of the cast behind it.
static void writeNarrow(Value result, Type element) {
  result.setType(withElement(result.getType(), element));
  if (result.use_empty())
    return;
  auto rounded = cast<net::CastOp>(*result.user_begin());
  if (StringRef name = net::getValueName(rounded.getResult()); !name.empty() && result.getDefiningOp()->getNumResults() == 1)
    net::setValueNames(result.getDefiningOp(), {name});
  rounded.getResult().replaceAllUsesWith(result);
  rounded->erase();
}

void readNarrow(Operation *op) {
  std::optional<NarrowForm> form = narrowFormOf(op);
  if (!form || !takesNarrow(op) || !llvm::all_of(form->operands, [&](unsigned operand) { return castFrom(op->getOperand(operand)); }))
    return;
  Type element = narrowTypeOf(op, form->operands);
  auto results = op->getResults();
  if (!element || !llvm::all_of(results.take_front(form->results), [&](Value result) { return isOnlyRounded(result, element); }))
    return;
  for (unsigned operand : form->operands)
    op->setOperand(operand, castFrom(op->getOperand(operand)));
  for (Value result : results.take_front(std::max(form->results, 1u)))
    if (isOnlyRounded(result, element))
      writeNarrow(result, element);
}

bool isStoredNarrow(Operation *op) {
  auto cast = dyn_cast<net::CastOp>(op);
  return cast && isNarrow(cast.getOperand()) && getElementTypeOrSelf(cast.getResult().getType()).isF32() &&
         isForGpusAlone(op);
}

void castForEachReader(Operation *op) {
  if (!isStoredNarrow(op))
    return;
  auto cast = llvm::cast<net::CastOp>(op);
  SmallVector<Operation *> readers; // one of them, or those that are not fused, keep the cast
  for (Operation *reader : cast->getUsers())
    if (auto lower = dyn_cast<net::Lower>(reader);
        lower && lower.loweringKind() == net::LoweringKind::Generic && !llvm::is_contained(readers, reader))
      readers.push_back(reader);
  auto isOwn = [&](Operation *reader) { return llvm::is_contained(readers, reader); };
  if (llvm::all_of(cast->getUsers(), isOwn) && !readers.empty())
    readers.pop_back();
  for (Operation *reader : readers) {
    OpBuilder builder(reader);
    net::CastOp own = castFor(reader, builder, cast.getOperand(), builder.getF32Type());
    if (net::isCopy(reader))
      net::setCopy(own);
    reader->replaceUsesOfWith(cast.getResult(), own.getResult());
  }
}

Value roundTo(Type element, Value wide, Value result) {
  Operation *op = result.getDefiningOp();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfterValue(wide);
  net::CastOp rounded = castFor(op, builder, wide, element);
  net::setValueNames(rounded, {net::getValueName(result)});
  return rounded.getResult();
}

} // namespace msc::passes
