// What operators share that copy boxes of elements: rule, gradient and cost follow from the regions.
#pragma once

#include "dialects/net/NetInterfaces.h"

namespace msc::net {

/// Shapes of operands and results, all of as many dimensions, and what is copied into each result.
struct RegionCopy {
  std::vector<std::vector<int64_t>> operands, results;
  std::vector<msc::CopyRegions> regions; ///< [result]

  /// Dimensions along which elements change the place in some result.
  std::vector<bool> movedDimensions() const;
};

/// What an operator with RegionsInterface copies, on global shapes.
RegionCopy regionCopyOf(mlir::Operation *op);

/// Every index of every dimension to itself.
msc::CopyRegion wholeRegion(llvm::ArrayRef<int64_t> shape, uint32_t operand = 0);

/// All combinations of one range per dimension, of operand 0.
msc::CopyRegions allRegions(llvm::ArrayRef<std::vector<msc::CopyRange>> rangesOfDims);

/// Dimensions in which nothing changes the place pass through. The others carry an Exchanged factor: a cut is shared by all
/// operands and results that have more than one element there; one with a single element stays whole.
ShardingRule regionsRule(const RegionCopy &copy);
ShardingRule regionsRule(mlir::Operation *op);

/// The gradient of one operand: everything goes back to where it came from and is added there, in the order of results and
/// regions. `dy` are the gradients of the results, null where nothing flows back. Null if no element was copied.
mlir::Value gradientOfRegions(mlir::OpBuilder &builder, mlir::Location loc, const RegionCopy &copy, mlir::ValueRange dy,
                              uint32_t operand);
void buildRegionsGradient(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange dy,
                          const llvm::SmallBitVector &wanted, llvm::MutableArrayRef<mlir::Value> gradients);

/// Every element of the results is read and written once; nothing is computed.
OperatorCost copyCost(mlir::Operation *op, llvm::ArrayRef<std::vector<int64_t>> resultShapes);

/// True if the operator copies out of one operand and fills with zeros: terms of a sum go through it.
bool isLinearCopy(mlir::Operation *op);

} // namespace msc::net
