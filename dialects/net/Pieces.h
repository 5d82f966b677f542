// What operators know about devices: into how many pieces the partition cuts each factor of their rule when it puts others in
// their place (outside of it nothing is cut), and how many devices there are.
#pragma once

#include "dialects/net/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace msc::net {

inline constexpr llvm::StringLiteral piecesAttributeName = "net.pieces";

inline void setPieces(mlir::Operation *op, llvm::ArrayRef<int64_t> pieces) {
  op->setAttr(piecesAttributeName, mlir::Builder(op->getContext()).getDenseI64ArrayAttr(pieces));
}

/// Do all pieces of a factor begin at multiples of its block?
inline bool piecesFit(const Factor &factor, int64_t pieces) {
  if (factor.block == 1 || pieces > factor.size)
    return factor.block == 1;
  for (int64_t piece = 0; piece < pieces; ++piece)
    if (msc::pieceOf(factor.size, piece, pieces).begin % factor.block != 0)
      return false;
  return true;
}

/// Pieces of factor `factor` of the operator's rule, at least 1.
inline int64_t piecesOfFactor(mlir::Operation *op, int64_t factor) {
  auto pieces = op->getAttrOfType<mlir::DenseI64ArrayAttr>(piecesAttributeName);
  return pieces ? pieces[factor] : 1;
}

/// Of a plan.
inline constexpr int64_t mostDevices = 1 << 20;

/// The number of devices, an attribute of the network from when strategies are chosen.
inline constexpr llvm::StringLiteral networkDevicesAttributeName = "dist.devices";

/// Devices that the network around an operator (or the network itself) is compiled for; 1 as long as none are chosen.
inline int64_t devicesOf(mlir::Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto devices = op->getAttrOfType<mlir::IntegerAttr>(networkDevicesAttributeName))
      return devices.getInt();
  return 1;
}

} // namespace msc::net
