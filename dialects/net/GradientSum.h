// Additions of what several operators give to one gradient.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace msc::net {

/// The result of its forward operator (`getForwardId`) whose gradient the addition makes; none for other operators.
inline std::optional<int64_t> getGradientSum(mlir::Operation *op) {
  auto result = op->getAttrOfType<mlir::IntegerAttr>("net.gradient_sum");
  return result ? std::optional(result.getInt()) : std::nullopt;
}
inline void setGradientSum(mlir::Operation *op, int64_t result) {
  op->setAttr("net.gradient_sum", mlir::IntegerAttr::get(mlir::IntegerType::get(op->getContext(), 64), result));
}

} // namespace msc::net
