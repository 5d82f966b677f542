#include "dialects/net/ops/support/Regions.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

#include <map>

using namespace mlir;
using namespace msc::net;

RegionCopy msc::net::regionCopyOf(Operation *op) {
  RegionCopy copy;
  for (Value operand : op->getOperands())
    copy.operands.push_back(shapeOf(operand));
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    copy.results.push_back(shapeOf(result));
    copy.regions.push_back(cast<RegionsInterface>(op).copyRegions(index));
  }
  return copy;
}

std::vector<bool> RegionCopy::movedDimensions() const {
  std::vector<bool> moved(results.front().size(), false);
  for (size_t i = 0; i < results.size(); ++i)
    for (auto [dim, moves] : llvm::enumerate(msc::movedDimensions(regions[i], operands, results[i])))
      moved[dim] = moved[dim] || moves;
  return moved;
}

msc::CopyRegion msc::net::wholeRegion(ArrayRef<int64_t> shape, uint32_t operand) {
  msc::CopyRegion region{operand, {}};
  for (int64_t size : shape)
    region.ranges.push_back({0, 0, size});
  return region;
}

msc::CopyRegions msc::net::allRegions(ArrayRef<std::vector<msc::CopyRange>> rangesOfDims) {
  msc::CopyRegions regions(1);
  for (const std::vector<msc::CopyRange> &ranges : rangesOfDims) {
    msc::CopyRegions grown;
    for (const msc::CopyRegion &region : regions)
      for (const msc::CopyRange &range : ranges) {
        grown.push_back(region);
        grown.back().ranges.push_back(range);
      }
    regions = std::move(grown);
  }
  return regions;
}

ShardingRule msc::net::regionsRule(const RegionCopy &copy) {
  ShardingRule rule;
  for (const auto &shape : copy.operands)
    rule.operands.emplace_back(shape.size());
  for (const auto &shape : copy.results)
    rule.results.emplace_back(shape.size());
  for (auto [dim, moves] : llvm::enumerate(copy.movedDimensions())) {
    std::vector<std::pair<DimFactors *, int64_t>> carriers;
    auto gather = [&, dim = dim, moves = moves](auto &dims, const auto &shapes) {
      for (auto [factors, shape] : llvm::zip(dims, shapes))
        if (!moves || shape[dim] > 1)
          carriers.emplace_back(&factors[dim], shape[dim]);
    };
    gather(rule.operands, copy.operands);
    gather(rule.results, copy.results);
    if (carriers.empty())
      continue;
    auto smallest = llvm::min_element(llvm::make_second_range(carriers));
    int32_t factor = rule.add({.name = factorName(dim),
                               .size = *smallest,
                               .kind = moves ? FactorKind::Exchanged : FactorKind::PassThrough});
    for (auto &[factors, size] : carriers)
      *factors = {factor};
  }
  return rule;
}

ShardingRule msc::net::regionsRule(Operation *op) {
  return regionsRule(regionCopyOf(op));
}

/// Regions that write nothing twice, as one operator that names only the gradients it reads.
static Value copyBack(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, msc::CopyRegions regions, ValueRange dy) {
  std::map<uint32_t, uint32_t> numbers;
  SmallVector<Value> operands;
  for (msc::CopyRegion &region : regions) {
    auto [number, isNew] = numbers.try_emplace(region.operand, operands.size());
    if (isNew)
      operands.push_back(dy[region.operand]);
    region.operand = number->second;
  }
  return builder.create<CopyRegionsOp>(loc, operands, shape, msc::flattened(regions), llvm::APFloat(0.0));
}

Value msc::net::gradientOfRegions(OpBuilder &builder, Location loc, const RegionCopy &copy, ValueRange dy,
                                  uint32_t operand) {
  msc::CopyRegions back;
  for (size_t result = 0; result < copy.results.size(); ++result)
    for (const msc::CopyRegion &region : copy.regions[result])
      if (dy[result] && region.operand == operand) {
        back.push_back(msc::transposed(region));
        back.back().operand = result;
      }
  Value sum;
  for (msc::CopyRegions &regions : msc::withoutOverlap(back)) {
    Value term = copyBack(builder, loc, copy.operands[operand], std::move(regions), dy);
    sum = sum ? builder.create<AddOp>(loc, sum, term) : term;
  }
  return sum;
}

void msc::net::buildRegionsGradient(Operation *op, OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                    MutableArrayRef<Value> gradients) {
  RegionCopy copy = regionCopyOf(op);
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (wanted[operand])
      gradients[operand] = gradientOfRegions(builder, op->getLoc(), copy, dy, operand);
}

OperatorCost msc::net::copyCost(Operation *op, ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost;
  for (auto [result, shape] : llvm::zip(op->getResults(), resultShapes))
    cost.bytesWritten += static_cast<double>(msc::elementCount(shape)) * elementBytes(result.getType());
  cost.bytesRead = cost.bytesWritten;
  return cost;
}

bool msc::net::isLinearCopy(Operation *op) {
  auto copies = dyn_cast<RegionsInterface>(op);
  return copies && op->getNumOperands() == 1 && copies.fillValue() == 0;
}
