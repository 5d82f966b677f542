#include "passes/plan/NarrowWindows.h"

#include "dialects/dist/DistDialect.h"

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

DenseI64ArrayAttr windowedSizes(Operation *op, ArrayRef<net::HaloWindows> all) {
  if (all.empty())
    return {};
  SmallVector<int64_t> sizes;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto windows = llvm::find_if(all, [&](const net::HaloWindows &w) { return w.operand == index; });
    if (windows != all.end())
      llvm::append_range(sizes, windows->windowed);
    else
      sizes.append(cast<RankedTensorType>(operand.getType()).getRank(), 0);
  }
  return Builder(op->getContext()).getDenseI64ArrayAttr(sizes);
}

} // namespace msc::passes
