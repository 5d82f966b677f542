#include "dialects/net/FixedPieces.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace msc::net {

constexpr llvm::StringLiteral kFixedPieces = "net.fixed_pieces";

std::vector<int64_t> getFixedPieces(Operation *op) {
  auto pieces = op->getAttrOfType<DenseI64ArrayAttr>(kFixedPieces);
  return pieces ? pieces.asArrayRef().vec() : std::vector<int64_t>();
}

void setFixedPieces(Operation *op, ArrayRef<int64_t> pieces) {
  if (pieces.empty())
    op->removeAttr(kFixedPieces);
  else
    op->setAttr(kFixedPieces, DenseI64ArrayAttr::get(op->getContext(), pieces));
}

} // namespace msc::net
