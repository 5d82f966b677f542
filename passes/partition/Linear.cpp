#include "passes/partition/Linear.h"

#include "dialects/net/NetOps.h"
#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::passes {

bool isLinearIn(mlir::Operation *op, unsigned operand) {
  if (llvm::isa<net::RealDivOp>(op))
    return operand == 0;
  if (net::isLinearCopy(op))
    return true;
  return llvm::isa<net::MatMulOp, net::Conv2DOp, net::Conv2DTransposeOp, net::Conv2DBackpropInputOp, net::Conv2DBackpropFilterOp,
                   net::AvgPoolOp, net::AvgPoolGradOp, net::AdaptiveAvgPool2DOp, net::AdaptiveAvgPool2DGradOp, net::MulOp, net::NegOp, net::ReduceMeanOp, net::ReduceSumOp, net::TransposeOp>(op);
}

bool addsPartials(mlir::Operation *op) { return llvm::isa<net::AddOp>(op); }

std::optional<Sharding> partialResult(const Sharding &result, const Sharding &operand, const std::vector<Sharding> &others) {
  if (result.isPartial())
    return std::nullopt;
  std::optional<std::vector<int64_t>> refined = commonRefinement({&result.axes, &operand.axes});
  for (const Sharding &other : others)
    if (refined)
      refined = commonRefinement({&*refined, &other.axes});
  if (!refined)
    return std::nullopt;
  Sharding terms = refine(operand, *refined), left = refine(result, *refined);
  std::vector<Sharding> whole{left};
  for (const Sharding &other : others)
    whole.push_back(refine(other, *refined));
  for (const PartialAxis &partial : terms.partial)
    for (const Sharding &sharding : whole) {
      if (sharding.isPartial() || partial.kind != ReduceKind::Sum)
        return std::nullopt;
      for (const auto &dim : sharding.dims)
        if (std::find(dim.begin(), dim.end(), partial.axis) != dim.end())
          return std::nullopt;
    }
  left.partial = terms.partial;
  return left.canonical();
}

} // namespace msc::passes
