#include "dialects/net/FixedPieces.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace msc::net {

constexpr llvm::StringLiteral kFixedPieces = "net.fixed_pieces", kFixedPlace = "net.fixed_place";

std::vector<int64_t> getFixedPieces(Operation *op) {
  auto pieces = op->getAttrOfType<DenseI64ArrayAttr>(kFixedPieces);
  return pieces ? pieces.asArrayRef().vec() : std::vector<int64_t>();
}

std::string getFixedPlace(Operation *op) {
  auto place = op->getAttrOfType<StringAttr>(kFixedPlace);
  return place ? place.getValue().str() : "";
}

void setFixedPieces(Operation *op, ArrayRef<int64_t> pieces, StringRef place) {
  op->removeAttr(kFixedPieces);
  op->removeAttr(kFixedPlace);
  if (pieces.empty())
    return;
  op->setAttr(kFixedPieces, DenseI64ArrayAttr::get(op->getContext(), pieces));
  if (!place.empty())
    op->setAttr(kFixedPlace, StringAttr::get(op->getContext(), place));
}

} // namespace msc::net
