#include "dialects/net/NetOps.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "dialects/net/ops/dropout/Draw.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace msc::net;

LogicalResult DropoutOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Float)) || failed(at.checkPlacesOf(0))) // C1
    return failure();
  double share = op.getKeepProb().convertToDouble();
  if (!(share > 0 && share <= 1)) // C2
    return at.error("'keep_prob' of 'Dropout' is not above 0 and at most 1", {},
                    "'p' of the cell Dropout is the share that is dropped: 1 - keep_prob");
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  results.push_back(tensorOf(at.shape(0), IntegerType::get(at.context, 1)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

/// dx = mask ? dy / keep_prob : 0. The mask is kept, a byte per element: to draw it again would cost about a hundred
/// operations per element. With `recompute` it is drawn again all the same.
LogicalResult DropoutOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                       MutableArrayRef<Value> dx) {
  if (!dy[0])
    return success();
  dx[0] = dy[0];
  if (getCounter())
    dx[0] = builder.create<SelectOp>(getLoc(), getMask(), scaled(builder, getLoc(), dy[0], 1 / getKeepProb().convertToDouble()),
                                     scalarLike(builder, getLoc(), 0, dy[0]));
  return success();
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule DropoutOp::shardingRule() {
  return pointwiseRule(*this);
}

OperatorCost DropoutOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = kDrawOperations * static_cast<double>(msc::elementCount(results[0]));
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

namespace {

class Expansion {
public:
  Expansion(OpBuilder &builder, Location loc, Value x)
      : builder(builder), loc(loc), x(x), shape(cast<RankedTensorType>(x.getType()).getShape()) {}

  Value constant(Type element, double value) {
    return builder.create<ConstantOp>(loc, RankedTensorType::get({}, element), llvm::APFloat(value));
  }

  /// Row-major places in the whole tensor: a row of numbers per dimension, each times the dimension's stride. Every rank
  /// makes those of its own part of x, whose dimensions are the factors of the rule.
  Value places() {
    Value sum = constant(builder.getI64Type(), 0);
    int64_t stride = 1;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
      SmallVector<int64_t> spread(shape.size() - dim, 1), factors(shape.size() - dim);
      spread[0] = shape[dim];
      std::iota(factors.begin(), factors.end(), static_cast<int64_t>(dim));
      sum = builder.create<AddOp>(loc, sum, reshaped(builder, loc, multiples(shape[dim], stride), spread));
      setResultFactors(sum.getDefiningOp(), factors);
    }
    return sum;
  }

  /// Whether each element is kept: its word is below the share of 2^32.
  Value mask(double share, Value step, int64_t stream) {
    Type i64 = builder.getI64Type();
    Value words = builder.create<RandomBitsOp>(loc, places(), step, constant(i64, static_cast<double>(stream)));
    return builder.create<LessOp>(loc, words, constant(i64, std::round(share * 0x1p32)));
  }

  /// The step as this rank counts it, where each of `ranks` draws for itself.
  Value ownStep(Value step, int64_t ranks) {
    Value rank = builder.create<CastOp>(loc, builder.create<RankOp>(loc, ranks), builder.getI64Type());
    return builder.create<AddOp>(loc, step, builder.create<MulOp>(loc, rank, constant(builder.getI64Type(), 0x1p32)));
  }

  Value dropped(Value mask, double share) {
    Value zero = scalarLike(builder, loc, 0, x);
    return builder.create<SelectOp>(loc, mask, scaled(builder, loc, x, 1 / share), zero);
  }

  SmallVector<Value> unchanged() {
    Value every = constant(builder.getI1Type(), 1);
    return {scaled(builder, loc, x, 1), spreadAsX(every)};
  }

private:
  /// 0, stride, 2 * stride, ...
  Value multiples(int64_t count, int64_t stride) {
    Type i64 = builder.getI64Type();
    Value numbers = builder.create<CastOp>(loc, builder.create<RangeOp>(loc, 0, count, 1), i64);
    return stride == 1 ? numbers : builder.create<MulOp>(loc, numbers, constant(i64, static_cast<double>(stride))).getResult();
  }

  Value spreadAsX(Value scalar) {
    Value spread = builder.create<BroadcastToOp>(loc, scalar, shape);
    SmallVector<int64_t> factors(shape.size());
    std::iota(factors.begin(), factors.end(), 0);
    setResultFactors(spread.getDefiningOp(), factors);
    return spread;
  }

  OpBuilder &builder;
  Location loc;
  Value x;
  ArrayRef<int64_t> shape;
};

/// The state of the network that is called so.
Value stateOf(NetworkOp network, StringRef name) {
  for (auto param : network.getBody().front().getOps<ParamOp>())
    if (param.getName() == name)
      return param.getValue();
  llvm_unreachable("whoever begins the training of a network makes its states");
}

} // namespace

LoweringKind DropoutOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> DropoutOp::expand(OpBuilder &builder, ValueRange operands) {
  Expansion parts(builder, getLoc(), operands[0]);
  if (!getCounter())
    return parts.unchanged();
  double share = getKeepProb().convertToDouble();
  Value step = stateOf((*this)->getParentOfType<NetworkOp>(), *getCounter());
  if (auto ranks = (*this)->getAttrOfType<IntegerAttr>(kDrawingRanks))
    step = parts.ownStep(step, ranks.getInt());
  Value mask = parts.mask(share, step, static_cast<int64_t>(getStream().value_or(0)));
  return {parts.dropped(mask, share), mask};
}
