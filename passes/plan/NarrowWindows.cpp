#include "passes/plan/NarrowWindows.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Halo.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace msc::passes {

static bool gathersWindows(OpOperand &use) {
  Operation *user = use.getOwner();
  if (!isa<net::HaloInterface>(user))
    return false;
  std::vector<Sharding> shardings;
  for (Value operand : user->getOperands())
    shardings.push_back(dist::shardingOf(operand));
  return llvm::any_of(net::halosOf(user, shardings),
                      [&](const net::HaloWindows &windows) { return windows.operand == use.getOperandNumber(); });
}

bool isReadInWindows(net::CastOp cast) {
  Type from = getElementTypeOrSelf(cast->getOperand(0).getType()), to = getElementTypeOrSelf(cast.getResult().getType());
  return (from.isBF16() || from.isF16()) && to.isF32() && !cast->use_empty() && llvm::all_of(cast->getUses(), gathersWindows);
}

Value storedNarrow(Value operand) {
  auto cast = operand.getDefiningOp<net::CastOp>();
  return cast && isReadInWindows(cast) ? cast->getOperand(0) : Value();
}

} // namespace msc::passes
