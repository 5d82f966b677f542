#include "dialects/dist/DistDialect.h"

#include "dialects/dist/Algebra.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace msc::dist;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

const msc::MachineModel &msc::dist::machineOf(Operation *op) {
  return op->getContext()->getLoadedDialect<DistDialect>()->getMachine();
}

msc::Sharding ShardingAttr::get() const {
  msc::Sharding sharding;
  sharding.axes.assign(getAxes().begin(), getAxes().end());
  for (DenseI32ArrayAttr dim : getDims())
    sharding.dims.emplace_back(dim.asArrayRef().begin(), dim.asArrayRef().end());
  for (auto [axis, kind] : llvm::zip(getPartialAxes(), getPartialKinds()))
    sharding.partial.push_back({axis, static_cast<msc::ReduceKind>(kind)});
  return sharding;
}

ShardingAttr ShardingAttr::get(MLIRContext *context, const msc::Sharding &sharding) {
  SmallVector<DenseI32ArrayAttr> dims;
  for (const auto &dim : sharding.dims)
    dims.push_back(DenseI32ArrayAttr::get(context, dim));
  SmallVector<int32_t> axes, kinds;
  for (const msc::PartialAxis &p : sharding.partial) {
    axes.push_back(p.axis);
    kinds.push_back(static_cast<int32_t>(p.kind));
  }
  return Base::get(context, ArrayRef<int64_t>(sharding.axes), ArrayRef<DenseI32ArrayAttr>(dims),
                   ArrayRef<int32_t>(axes), ArrayRef<int32_t>(kinds));
}

void ShardingAttr::print(AsmPrinter &printer) const { printer << "<\"" << get().str() << "\">"; }

/// Reads the text of msc::Sharding::str().
static std::optional<msc::Sharding> parseShardingText(StringRef text) {
  msc::Sharding sharding;
  text = text.trim();
  if (!text.consume_front("("))
    return std::nullopt;
  auto list = [](StringRef inside, char separator, auto take) {
    if (inside.trim().empty())
      return true;
    SmallVector<StringRef> parts;
    inside.split(parts, separator);
    return llvm::all_of(parts, [&](StringRef part) { return take(part.trim()); });
  };
  auto [axes, rest] = text.split(')');
  if (!list(axes, ',', [&](StringRef part) { return !part.getAsInteger(10, sharding.axes.emplace_back()); }))
    return std::nullopt;
  rest = rest.trim();
  if (!rest.consume_front("["))
    return std::nullopt;
  auto [dims, tail] = rest.split(']');
  bool sound = list(dims, ',', [&](StringRef part) {
    auto &dim = sharding.dims.emplace_back();
    return part == "-" || list(part, '.', [&](StringRef axis) { return !axis.getAsInteger(10, dim.emplace_back()); });
  });
  tail = tail.trim();
  if (!sound)
    return std::nullopt;
  if (tail.empty())
    return sharding;
  if (!tail.consume_front("partial(") || !tail.consume_back(")"))
    return std::nullopt;
  sound = list(tail, ',', [&](StringRef part) {
    auto [kind, axis] = part.split(':');
    for (int k = 0; k <= static_cast<int>(msc::ReduceKind::Max); ++k)
      if (kind.trim() == msc::reduceKindName(static_cast<msc::ReduceKind>(k))) {
        sharding.partial.push_back({0, static_cast<msc::ReduceKind>(k)});
        return !axis.trim().getAsInteger(10, sharding.partial.back().axis);
      }
    return false;
  });
  return sound ? std::optional(sharding) : std::nullopt;
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  std::string text;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseString(&text) || parser.parseGreater())
    return {};
  std::optional<msc::Sharding> sharding = parseShardingText(text);
  if (!sharding) {
    parser.emitError(at, "expected a sharding such as \"(2, 4) [0, 1] partial(sum: 1)\"");
    return {};
  }
  if (std::string wrong = sharding->check(sharding->devices(), sharding->dims.size()); !wrong.empty()) {
    parser.emitError(at) << wrong;
    return {};
  }
  return ShardingAttr::get(parser.getContext(), *sharding);
}

bool msc::dist::hasSharding(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<ShardingAttr>(tensor.getEncoding());
}

msc::Sharding msc::dist::shardingOf(Type type) {
  return cast<ShardingAttr>(cast<RankedTensorType>(type).getEncoding()).get();
}

RankedTensorType msc::dist::withSharding(Type type, const msc::Sharding &sharding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                               ShardingAttr::get(type.getContext(), sharding));
}

std::vector<int64_t> msc::dist::globalShape(Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return {shape.begin(), shape.end()};
}

/// Both sides carry shardings over the same number of devices and agree in shape and element type.
static LogicalResult verifyMove(Operation *op, Type source, Type result) {
  auto from = cast<RankedTensorType>(source), to = cast<RankedTensorType>(result);
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return op->emitOpError("source and result differ in shape or element type");
  if (!hasSharding(from) || !hasSharding(to))
    return op->emitOpError("source and result need a sharding");
  msc::Sharding a = shardingOf(from), b = shardingOf(to);
  if (a.devices() != b.devices())
    return op->emitOpError("source is spread over ") << a.devices() << " devices, result over " << b.devices();
  for (const msc::Sharding &s : {a, b})
    if (std::string wrong = s.check(s.devices(), from.getRank()); !wrong.empty())
      return op->emitOpError("sharding ") << s.str() << ": " << wrong;
  return success();
}

msc::ReduceKind msc::dist::reductionOf(CollectiveOp op) {
  msc::Sharding source = shardingOf(op.getSource().getType());
  return source.partial.empty() ? ReduceKind::Sum : source.partial.back().kind;
}

msc::MoveKind msc::dist::moveKindOf(Operation *step) {
  auto collective = dyn_cast<CollectiveOp>(step);
  if (!collective)
    return MoveKind::Slice;
  switch (collective.getKind()) {
  case CollectiveKind::AllReduce: return MoveKind::AllReduce;
  case CollectiveKind::ReduceScatter: return MoveKind::ReduceScatter;
  case CollectiveKind::AllGather: return MoveKind::AllGather;
  case CollectiveKind::AlltoAll: return MoveKind::AlltoAll;
  case CollectiveKind::CollectivePermute: return MoveKind::CollectivePermute;
  case CollectiveKind::Exchange: break;
  }
  return MoveKind::Exchange;
}

int64_t msc::dist::receivedBytes(CollectiveOp op) {
  Type element = op.getResult().getType().getElementType();
  int64_t bytes = element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8;
  return static_cast<int64_t>(op.getReceivedElements()) * bytes;
}

double msc::dist::stepsUs(ArrayRef<Operation *> steps, const MachineModel &machine) {
  auto first = cast<CollectiveOp>(steps.front());
  int64_t bytes = 0;
  for (Operation *step : steps)
    bytes += receivedBytes(cast<CollectiveOp>(step));
  return machine.moveUs(moveKindOf(first), groupShape(first.getGroupMatrix().vec(), first.getGroupAxes().vec()),
                        static_cast<double>(bytes));
}

double msc::dist::stepUs(Operation *step, const MachineModel &machine) {
  if (isa<CollectiveOp>(step))
    return stepsUs(step, machine);
  auto type = cast<RankedTensorType>(step->getResult(0).getType());
  double bytes = type.getElementType().isInteger(1) ? 1.0 : type.getElementTypeBitWidth() / 8.0;
  int64_t kept = msc::elementCount(shardingOf(type).capacity(globalShape(type)));
  return machine.moveUs(MoveKind::Slice, {}, static_cast<double>(kept) * bytes);
}

static constexpr llvm::StringLiteral fusionAttributeName = "dist.fusion";

std::optional<int64_t> msc::dist::fusionOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(fusionAttributeName);
  return number ? std::optional<int64_t>(number.getInt()) : std::nullopt;
}

void msc::dist::setFusion(Operation *op, int64_t number) {
  op->setAttr(fusionAttributeName, IntegerAttr::get(IntegerType::get(op->getContext(), 64), number));
}

LogicalResult ReshardOp::verify() { return verifyMove(*this, getSource().getType(), getResult().getType()); }

LogicalResult CollectiveOp::verify() {
  if (failed(verifyMove(*this, getSource().getType(), getResult().getType())))
    return failure();
  int64_t devices = 1;
  for (int64_t size : getGroupMatrix())
    devices *= size;
  if (devices != shardingOf(getSource()).devices())
    return emitOpError("the group's device matrix covers ") << devices << " devices";
  for (int32_t axis : getGroupAxes())
    if (axis < 0 || axis >= static_cast<int32_t>(getGroupMatrix().size()))
      return emitOpError("group axis ") << axis << " does not exist";
  return success();
}

LogicalResult SliceOp::verify() {
  if (failed(verifyMove(*this, getSource().getType(), getResult().getType())))
    return failure();
  msc::Sharding from = shardingOf(getSource()), to = shardingOf(getResult());
  std::vector<int64_t> shape = globalShape(getSource().getType());
  if (msc::dist::slicesLocally(from, to, shape))
    return success();
  for (int64_t rank = 0; rank < from.devices(); ++rank) {
    msc::Box wanted = to.localBox(shape, rank);
    if (msc::elementCount(wanted) != 0 && msc::intersect(from.localBox(shape, rank), wanted) != wanted)
      return emitOpError("rank ") << rank << " does not hold what the result asks for";
  }
  return success();
}
