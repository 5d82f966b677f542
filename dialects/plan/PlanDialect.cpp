#include "dialects/plan/PlanDialect.h"

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace msc::plan_ir;

#include "dialects/plan/PlanDialect.cpp.inc"
#include "dialects/plan/PlanEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

LogicalResult BufferOp::verify() {
  if (!msc::dist::hasSharding(getTensor()))
    return emitOpError("needs a tensor type with a sharding");
  if (getOffset() && *getOffset() % 64 != 0)
    return emitOpError("offset ") << *getOffset() << " is not a multiple of 64";
  return success();
}

LogicalResult KernelOp::verify() {
  if (getSizes().size() != getSymbols().size() || getSymbols().empty())
    return emitOpError("has ") << getSizes().size() << " lists of sizes for " << getSymbols().size() << " symbols";
  if (getGpu() && getGpu()->size() != getSymbols().size())
    return emitOpError("has ") << getGpu()->size() << " launches on GPUs for " << getSymbols().size() << " symbols";
  if (getPieces().has_value() != getScratch().has_value())
    return emitOpError("has pieces or scratch, but not both");
  if (getPieces() && (getPieces()->size() != getSymbols().size() || getScratch()->size() != getSymbols().size()))
    return emitOpError("has ") << getPieces()->size() << " numbers of pieces and " << getScratch()->size() << " of scratch for "
                               << getSymbols().size() << " symbols";
  return success();
}

LogicalResult LaunchOp::verify() {
  auto check = [&](ArrayRef<int64_t> indices, StringRef what) -> LogicalResult {
    for (int64_t index : indices)
      if (index < 0 || index >= static_cast<int64_t>(getArguments().size()))
        return emitOpError() << what << " names argument " << index << ", there are " << getArguments().size();
    return success();
  };
  if (failed(check(getWrites(), "writes")) || failed(check(getUpdates(), "updates")))
    return failure();
  for (ArrayRef<int64_t> pairs : {getInner(), getRange()}) {
    if (pairs.size() % 2 != 0)
      return emitOpError("sizes come in pairs (argument, dimension)");
    for (size_t i = 0; i < pairs.size(); i += 2)
      if (failed(check(pairs[i], "a size")))
        return failure();
  }
  if (getTasks() < 1 || getUnit() < 1)
    return emitOpError("tasks and unit are at least 1");
  return success();
}

static LogicalResult verifyRegionLists(Operation *op, std::optional<ArrayAttr> regions, size_t sources) {
  if (regions && regions->size() != sources)
    return op->emitOpError() << "has " << regions->size() << " lists of regions for " << sources << " sources";
  return success();
}

LogicalResult CopyOp::verify() {
  if (getSources().size() != 1 && !getRegions())
    return emitOpError("copies ") << getSources().size() << " sources without regions";
  return verifyRegionLists(*this, getRegions(), getSources().size());
}

LogicalResult CallOp::verify() {
  if (getTargets().empty() || getTasks() < 1)
    return emitOpError("needs a result and at least 1 task");
  return success();
}

LogicalResult CollectiveOp::verify() {
  if (getSources().empty() || getReasons().size() != getSources().size() || getBytes().size() != getSources().size() || getForOperators().size() != getSources().size())
    return emitOpError("needs a reason, bytes and an operator for each of its ") << getSources().size() << " tensors";
  return verifyRegionLists(*this, getRegions(), getSources().size());
}

bool msc::plan_ir::isStep(Operation *op) {
  return isa<LaunchOp, MatMulOp, CallOp, CopyOp, FillOp, CollectiveOp, WaitOp>(op);
}

Access msc::plan_ir::accessOf(Operation *step) {
  Access access;
  llvm::TypeSwitch<Operation *>(step)
      .Case([&](LaunchOp op) {
        for (auto [index, argument] : llvm::enumerate(op.getArguments())) {
          bool updates = llvm::is_contained(op.getUpdates(), static_cast<int64_t>(index));
          bool writes = llvm::is_contained(op.getWrites(), static_cast<int64_t>(index));
          if (updates || !writes)
            access.reads.push_back(argument);
          if (updates || writes)
            access.writes.push_back(argument);
        }
      })
      .Case([&](MatMulOp op) {
        access.reads = {op.getLeft(), op.getRight()};
        if (op.getBias())
          access.reads.push_back(op.getBias());
        access.writes = {op.getResult()};
      })
      .Case([&](CallOp op) {
        access.reads.append(op.getInputs().begin(), op.getInputs().end());
        access.writes.append(op.getTargets().begin(), op.getTargets().end());
      })
      .Case([&](CopyOp op) {
        access.reads.append(op.getSources().begin(), op.getSources().end());
        access.writes = {op.getTarget()};
      })
      .Case([&](CollectiveOp op) {
        access.reads.append(op.getSources().begin(), op.getSources().end());
        access.writes.append(op.getTargets().begin(), op.getTargets().end());
      })
      .Case([&](FillOp op) { access.writes = {op.getTarget()}; });
  return access;
}

CollectiveOp msc::plan_ir::startOf(WaitOp wait) {
  for (Operation *user : wait.getTarget().getUsers())
    if (auto collective = dyn_cast<CollectiveOp>(user);
        collective && collective.getTargets().front() == wait.getTarget())
      return collective;
  return {};
}

static constexpr llvm::StringLiteral computeUsName = "plan.compute_us";

double msc::plan_ir::computeUs(Operation *step) {
  auto us = step->getAttrOfType<FloatAttr>(computeUsName);
  return us ? us.getValueAsDouble() : 0;
}

void msc::plan_ir::setComputeUs(Operation *step, double us) {
  step->setAttr(computeUsName, Builder(step->getContext()).getF64FloatAttr(us));
}

BufferOp msc::plan_ir::rootBuffer(Value memory) {
  auto buffer = memory.getDefiningOp<BufferOp>();
  while (buffer.getViewOf())
    buffer = buffer.getViewOf().getDefiningOp<BufferOp>();
  return buffer;
}
