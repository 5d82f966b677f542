#include "test/reference/LinalgInterpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace msc::reference {
namespace {

/// Holds every whole number of 64 bits.
using Scalar = long double;
using Scalars = DenseMap<Value, Scalar>;
using Values = DenseMap<Value, Tensor>;
using Function = std::function<Scalar(Operation *, const std::vector<Scalar> &)>;

double narrow(Scalar value) {
  return static_cast<double>(value);
}

template <typename Op> void addScalar(llvm::StringMap<Function> &table, double (*f)(double)) {
  table[Op::getOperationName()] = [f](Operation *, const std::vector<Scalar> &x) { return Scalar(f(narrow(x[0]))); };
}
template <typename Op> void addScalar(llvm::StringMap<Function> &table, double (*f)(double, double)) {
  table[Op::getOperationName()] = [f](Operation *, const std::vector<Scalar> &x) {
    return Scalar(f(narrow(x[0]), narrow(x[1])));
  };
}

Scalar compareFloats(Operation *op, const std::vector<Scalar> &x) {
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case arith::CmpFPredicate::OGT:
    return x[0] > x[1];
  case arith::CmpFPredicate::OGE:
    return x[0] >= x[1];
  case arith::CmpFPredicate::OLT:
    return x[0] < x[1];
  case arith::CmpFPredicate::OLE:
    return x[0] <= x[1];
  case arith::CmpFPredicate::OEQ:
    return x[0] == x[1];
  case arith::CmpFPredicate::UNE:
    return x[0] != x[1];
  default:
    return std::nan("");
  }
}

Scalar compareIntegers(Operation *op, const std::vector<Scalar> &x) {
  switch (cast<arith::CmpIOp>(op).getPredicate()) {
  case arith::CmpIPredicate::sgt:
    return x[0] > x[1];
  case arith::CmpIPredicate::sge:
    return x[0] >= x[1];
  case arith::CmpIPredicate::slt:
    return x[0] < x[1];
  case arith::CmpIPredicate::sle:
    return x[0] <= x[1];
  case arith::CmpIPredicate::eq:
    return x[0] == x[1];
  case arith::CmpIPredicate::ne:
    return x[0] != x[1];
  default:
    return std::nan("");
  }
}

Scalar constantValue(Operation *op, const std::vector<Scalar> &) {
  Attribute value = cast<arith::ConstantOp>(op).getValue();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  APInt bits = cast<IntegerAttr>(value).getValue();
  return bits.getBitWidth() == 1 ? static_cast<Scalar>(bits.getZExtValue()) : static_cast<Scalar>(bits.getSExtValue());
}

double nanMax(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
}
double nanMin(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y);
}
double same(double x) {
  return x;
}

/// An operation on whole numbers, whose result wraps at the width of its type.
template <typename Op> void addWhole(llvm::StringMap<Function> &table, uint64_t (*f)(uint64_t, uint64_t)) {
  table[Op::getOperationName()] = [f](Operation *op, const std::vector<Scalar> &x) -> Scalar {
    auto bits = [](Scalar value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); };
    Type type = op->getResult(0).getType();
    unsigned unused = 64 - (type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
    uint64_t result = f(bits(x[0]), bits(x[1])) << unused;
    return type.isInteger(1) ? Scalar(result != 0) : static_cast<Scalar>(static_cast<int64_t>(result) >> unused);
  };
}

llvm::StringMap<Function> scalarFunctions() {
  llvm::StringMap<Function> t;
  addScalar<arith::AddFOp>(t, [](double x, double y) { return x + y; });
  addWhole<arith::AddIOp>(t, [](uint64_t x, uint64_t y) { return x + y; });
  addScalar<arith::SubFOp>(t, [](double x, double y) { return x - y; });
  addWhole<arith::SubIOp>(t, [](uint64_t x, uint64_t y) { return x - y; });
  addScalar<arith::MulFOp>(t, [](double x, double y) { return x * y; });
  addWhole<arith::MulIOp>(t, [](uint64_t x, uint64_t y) { return x * y; });
  addScalar<arith::DivFOp>(t, [](double x, double y) { return x / y; });
  addScalar<arith::RemFOp>(t, [](double x, double y) { return std::fmod(x, y); });
  addScalar<arith::RemSIOp>(t, [](double x, double y) { return std::fmod(x, y == 0 ? 1 : y); });
  addScalar<arith::FloorDivSIOp>(t, [](double x, double y) { return y == 0 ? 0 : std::floor(x / y); });
  addWhole<arith::AndIOp>(t, [](uint64_t x, uint64_t y) { return x & y; });
  addWhole<arith::OrIOp>(t, [](uint64_t x, uint64_t y) { return x | y; });
  addWhole<arith::XOrIOp>(t, [](uint64_t x, uint64_t y) { return x ^ y; });
  addWhole<arith::ShRUIOp>(t, [](uint64_t x, uint64_t y) { return x >> y; });
  addScalar<arith::NegFOp>(t, [](double x) { return -x; });
  addScalar<arith::MaximumFOp>(t, nanMax);
  addScalar<arith::MinimumFOp>(t, nanMin);
  addScalar<arith::MaxSIOp>(t, nanMax);
  addScalar<arith::MinSIOp>(t, nanMin);
  addScalar<arith::ExtFOp>(t, same);
  addScalar<arith::TruncFOp>(t, same);
  addScalar<arith::ExtSIOp>(t, same);
  addScalar<arith::TruncIOp>(t, same);
  addScalar<arith::ExtUIOp>(t, same);
  addScalar<arith::IndexCastOp>(t, same);
  addScalar<arith::SIToFPOp>(t, same);
  addScalar<arith::UIToFPOp>(t, same);
  addScalar<arith::FPToSIOp>(t, [](double x) { return std::trunc(x); });
  addScalar<math::ExpOp>(t, [](double x) { return std::exp(x); });
  addScalar<math::LogOp>(t, [](double x) { return std::log(x); });
  addScalar<math::SqrtOp>(t, [](double x) { return std::sqrt(x); });
  addScalar<math::TanhOp>(t, [](double x) { return std::tanh(x); });
  addScalar<math::ErfOp>(t, [](double x) { return std::erf(x); });
  addScalar<math::SinOp>(t, [](double x) { return std::sin(x); });
  addScalar<math::CosOp>(t, [](double x) { return std::cos(x); });
  addScalar<math::TanOp>(t, [](double x) { return std::tan(x); });
  addScalar<math::ExpM1Op>(t, [](double x) { return std::expm1(x); });
  addScalar<math::Log1pOp>(t, [](double x) { return std::log1p(x); });
  addScalar<math::FloorOp>(t, [](double x) { return std::floor(x); });
  addScalar<math::CeilOp>(t, [](double x) { return std::ceil(x); });
  addScalar<math::RoundEvenOp>(t, [](double x) { return std::nearbyint(x); });
  addScalar<math::TruncOp>(t, [](double x) { return std::trunc(x); });
  addScalar<math::AbsFOp>(t, [](double x) { return std::fabs(x); });
  addScalar<math::AbsIOp>(t, [](double x) { return std::fabs(x); });
  addScalar<math::PowFOp>(t, [](double x, double y) { return std::pow(x, y); });
  t[arith::CmpFOp::getOperationName()] = compareFloats;
  t[arith::CmpIOp::getOperationName()] = compareIntegers;
  t[arith::ConstantOp::getOperationName()] = constantValue;
  t[arith::SelectOp::getOperationName()] = [](Operation *, const std::vector<Scalar> &x) {
    return x[0] != 0 ? x[1] : x[2];
  };
  return t;
}

class Machine {
public:
  LogicalResult run(Operation &op) {
    if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
      ArrayRef<int64_t> shape = empty.getType().getShape();
      tensors[empty] = Tensor(std::vector<int64_t>(shape.begin(), shape.end()), std::nan(""));
      return success();
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      outer[constant] = constantValue(&op, {});
      return success();
    }
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      tensors[fill.getResult(0)] = Tensor(tensors[fill.getOutputs()[0]].shape, outer[fill.getInputs()[0]]);
      return success();
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return runGeneric(generic);
    return op.emitError("not known to the interpreter of lowerings");
  }

  Values tensors;

private:
  LogicalResult runGeneric(linalg::GenericOp op) {
    SmallVector<int64_t> loops = op.getStaticLoopRanges();
    std::vector<Tensor> targets;
    for (Value target : op.getOutputs())
      targets.push_back(tensors[target]);
    LogicalResult sound = success();
    forEachIndex({loops.begin(), loops.end()}, [&](const auto &index) {
      if (succeeded(sound))
        sound = iterate(op, index, targets);
    });
    for (auto [result, target] : llvm::zip(op.getResults(), targets))
      tensors[result] = target;
    return sound;
  }

  LogicalResult iterate(linalg::GenericOp op, const std::vector<int64_t> &index, std::vector<Tensor> &targets) {
    Scalars scalars = outer;
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    auto place = [&](size_t operand) {
      SmallVector<int64_t> at = maps[operand].compose(index);
      return std::vector<int64_t>(at.begin(), at.end());
    };
    size_t inputs = op.getInputs().size();
    for (auto [i, argument] : llvm::enumerate(op.getRegion().getArguments()))
      scalars[argument] = i < inputs ? tensors[op.getInputs()[i]].at(place(i)) : targets[i - inputs].at(place(i));
    for (Operation &inner : op.getRegion().front().without_terminator()) {
      if (auto position = dyn_cast<linalg::IndexOp>(inner)) {
        scalars[position] = static_cast<double>(index[position.getDim()]);
        continue;
      }
      auto function = functions.find(inner.getName().getStringRef());
      if (function == functions.end())
        return inner.emitError("not known to the interpreter of lowerings");
      std::vector<Scalar> x;
      for (Value operand : inner.getOperands())
        x.push_back(scalars.at(operand));
      scalars[inner.getResult(0)] = function->second(&inner, x);
    }
    for (auto [i, value] : llvm::enumerate(op.getRegion().front().getTerminator()->getOperands()))
      targets[i].at(place(inputs + i)) = scalars.at(value);
    return success();
  }

  llvm::StringMap<Function> functions = scalarFunctions();
  Scalars outer;
};

} // namespace

FailureOr<std::vector<Tensor>> runLowered(Operation *op, const std::vector<Tensor> &operands,
                                          const std::vector<std::vector<int64_t>> &resultShapes) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  Machine machine;
  // Operands are empties that get their elements after the fact.
  SmallVector<Value> values, results;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), operands)) {
    Type element = cast<RankedTensorType>(operand.getType()).getElementType();
    values.push_back(builder.create<tensor::EmptyOp>(op->getLoc(), tensor.shape, element));
  }
  SmallVector<Type> types;
  for (auto [result, shape] : llvm::zip(op->getResults(), resultShapes))
    types.push_back(RankedTensorType::get(shape, cast<RankedTensorType>(result.getType()).getElementType()));
  if (failed(cast<net::Lower>(op).lowerToLinalg(builder, values, types, results)) || failed(verify(*module)))
    return failure();
  if (TypeRange(ValueRange(results)) != TypeRange(types))
    return op->emitError("lowering gives other types than asked for");
  for (Operation &inner : *module->getBody()) {
    if (failed(machine.run(inner)))
      return failure();
    for (auto [value, tensor] : llvm::zip(values, operands))
      machine.tensors[value] = tensor;
  }
  std::vector<Tensor> given;
  for (Value result : results)
    given.push_back(machine.tensors[result]);
  return given;
}

} // namespace msc::reference
