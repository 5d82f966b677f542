#include "passes/partition/MoveSteps.h"

using namespace mlir;

namespace msc::passes {

static dist::CollectiveKind collectiveKind(MoveKind kind) {
  switch (kind) {
  case MoveKind::AllReduce: return dist::CollectiveKind::AllReduce;
  case MoveKind::ReduceScatter: return dist::CollectiveKind::ReduceScatter;
  case MoveKind::AllGather: return dist::CollectiveKind::AllGather;
  case MoveKind::AlltoAll: return dist::CollectiveKind::AlltoAll;
  case MoveKind::CollectivePermute: return dist::CollectiveKind::CollectivePermute;
  case MoveKind::Slice:
  case MoveKind::Exchange: break;
  }
  return dist::CollectiveKind::Exchange;
}

bool isMoveStep(Operation *op) {
  return isa<dist::SliceOp, dist::CollectiveOp>(op);
}

MoveLabel labelOf(Operation *op) {
  MoveLabel label{op->getLoc(), net::getScope(op).str(), net::getPhase(op), net::getForwardId(op),
                  net::getInstanceName(op).str(), op->getAttrOfType<StringAttr>("move").str(), ""};
  if (auto reason = op->getAttrOfType<StringAttr>("reason"))
    label.reason = reason.str();
  StringRef name = label.name, kind = moveKindName(dist::moveKindOf(op));
  if (isMoveStep(op) && label.move == "redistribution" && name.consume_back(kind))
    label.name = name.str();
  return label;
}

Value createSteps(OpBuilder &builder, Value source, ArrayRef<dist::ReshardStep> steps, const MoveLabel &label) {
  for (const dist::ReshardStep &step : steps) {
    Type type = dist::withSharding(source.getType(), step.after);
    auto move = builder.getStringAttr(label.move), reason = builder.getStringAttr(label.reason);
    Operation *op;
    if (step.kind == MoveKind::Slice)
      op = builder.create<dist::SliceOp>(label.loc, type, source, move, reason);
    else
      op = builder.create<dist::CollectiveOp>(
          label.loc, type, dist::CollectiveKindAttr::get(builder.getContext(), collectiveKind(step.kind)), source,
          builder.getDenseI64ArrayAttr(step.groupMatrix), builder.getDenseI32ArrayAttr(step.groupAxes),
          builder.getI64IntegerAttr(step.dimension), builder.getI64IntegerAttr(step.splitDimension),
          builder.getI64IntegerAttr(step.receivedElements), move, reason);
    net::setScope(op, label.scope);
    net::setPhase(op, label.phase);
    if (label.forwardId)
      net::setForwardId(op, *label.forwardId);
    net::setInstanceName(op, label.move == "redistribution" ? label.name + moveKindName(step.kind) : label.name);
    source = op->getResult(0);
  }
  return source;
}

} // namespace msc::passes
