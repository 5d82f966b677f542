#include "ClusterReference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <map>

namespace msc::test {

namespace {

bool isReal(mlir::Type type) { return mlir::isa<mlir::FloatType>(type); }

Scalar fromAttribute(mlir::Attribute value) {
  Scalar scalar;
  if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value))
    scalar.real = real.getValueAsDouble();
  else
    scalar.whole = mlir::cast<mlir::IntegerAttr>(value).getType().isInteger(1)
                       ? mlir::cast<mlir::IntegerAttr>(value).getValue().getZExtValue()
                       : mlir::cast<mlir::IntegerAttr>(value).getValue().getSExtValue();
  return scalar;
}

int64_t wrap(int64_t value, mlir::Type type) {
  if (type.isInteger(1))
    return value & 1;
  return type.isInteger(32) ? int32_t(value) : type.isInteger(8) ? int8_t(value) : value;
}

bool compare(mlir::arith::CmpFPredicate kind, double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return unsigned(kind) >= 8 || false;
  switch (unsigned(kind) % 8) { // the ordered and the unordered kind agree on numbers
  case 1: case 0: return unsigned(kind) % 8 == 1 || unsigned(kind) == 8 ? a == b : false;
  case 2: return a > b;
  case 3: return a >= b;
  case 4: return a < b;
  case 5: return a <= b;
  case 6: return a != b;
  default: return true;
  }
}

/// Runs one body for one point.
class Body {
public:
  explicit Body(mlir::linalg::GenericOp op) : op(op) {}

  std::vector<Scalar> run(const std::vector<Scalar> &arguments, const std::vector<int64_t> &point) {
    values.clear();
    for (auto [argument, value] : llvm::zip(op.getBody()->getArguments(), arguments))
      values[argument.getAsOpaquePointer()] = value;
    for (mlir::Operation &inner : op.getBody()->without_terminator())
      values[inner.getResult(0).getAsOpaquePointer()] = runOp(inner, point);
    std::vector<Scalar> results;
    for (mlir::Value value : op.getBody()->getTerminator()->getOperands())
      results.push_back(get(value));
    return results;
  }

private:
  Scalar get(mlir::Value value) {
    auto known = values.find(value.getAsOpaquePointer());
    return known != values.end() ? known->second : fromAttribute(value.getDefiningOp<mlir::arith::ConstantOp>().getValue());
  }

  Scalar runOp(mlir::Operation &inner, const std::vector<int64_t> &point) {
    if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(inner))
      return fromAttribute(constant.getValue());
    if (auto index = mlir::dyn_cast<mlir::linalg::IndexOp>(inner))
      return {0, point[index.getDim()]};
    std::vector<Scalar> v;
    for (mlir::Value operand : inner.getOperands())
      v.push_back(get(operand));
    if (auto cmp = mlir::dyn_cast<mlir::arith::CmpFOp>(inner))
      return {0, compare(cmp.getPredicate(), v[0].real, v[1].real)};
    if (auto cmp = mlir::dyn_cast<mlir::arith::CmpIOp>(inner))
      return {0, mlir::arith::applyCmpPredicate(cmp.getPredicate(), llvm::APInt(64, v[0].whole), llvm::APInt(64, v[1].whole))};
    if (mlir::isa<mlir::arith::SelectOp>(inner))
      return v[0].whole ? v[1] : v[2];
    llvm::StringRef name = inner.getName().getStringRef();
    mlir::Type type = inner.getResult(0).getType();
    if (isReal(inner.getOperand(0).getType()) && isReal(type))
      return {real(name, v)};
    if (isReal(inner.getOperand(0).getType()))
      return {0, saturate(v[0].real, type)};
    if (isReal(type))
      return {name == "arith.uitofp" ? double(uint64_t(v[0].whole)) : double(v[0].whole)};
    return {0, wrap(whole(name, v, inner.getOperand(0).getType()), type)};
  }

  static int64_t saturate(double value, mlir::Type type) {
    unsigned width = type.getIntOrFloatBitWidth();
    double limit = std::ldexp(1.0, width - 1);
    if (std::isnan(value))
      return 0;
    if (value >= limit)
      return llvm::APInt::getSignedMaxValue(width).getSExtValue();
    if (value < -limit)
      return llvm::APInt::getSignedMinValue(width).getSExtValue();
    return int64_t(value);
  }

  static double real(llvm::StringRef name, const std::vector<Scalar> &v) {
    double a = v[0].real, b = v.size() > 1 ? v[1].real : 0;
    auto nan = [&](double value) { return std::isnan(a) || std::isnan(b) ? std::nan("") : value; };
    static const std::map<llvm::StringRef, std::function<double(double)>> unary = {
        {"arith.negf", [](double x) { return -x; }}, {"arith.extf", [](double x) { return x; }},
        {"arith.truncf", [](double x) { return x; }}, {"math.exp", [](double x) { return std::exp(x); }},
        {"math.log", [](double x) { return std::log(x); }}, {"math.tanh", [](double x) { return std::tanh(x); }},
        {"math.erf", [](double x) { return std::erf(x); }}, {"math.sqrt", [](double x) { return std::sqrt(x); }},
        {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }}, {"math.absf", [](double x) { return std::fabs(x); }},
        {"math.floor", [](double x) { return std::floor(x); }}, {"math.ceil", [](double x) { return std::ceil(x); }},
        {"math.round", [](double x) { return std::round(x); }}, {"math.log1p", [](double x) { return std::log1p(x); }},
        {"math.expm1", [](double x) { return std::expm1(x); }}, {"math.exp2", [](double x) { return std::exp2(x); }}};
    if (auto known = unary.find(name); known != unary.end())
      return known->second(a);
    if (name == "arith.addf") return a + b;
    if (name == "arith.subf") return a - b;
    if (name == "arith.mulf") return a * b;
    if (name == "arith.divf") return a / b;
    if (name == "arith.remf") return std::fmod(a, b);
    if (name == "arith.maximumf") return nan(std::fmax(a, b));
    if (name == "arith.minimumf") return nan(std::fmin(a, b));
    if (name == "arith.maxnumf") return std::fmax(a, b);
    if (name == "arith.minnumf") return std::fmin(a, b);
    if (name == "math.powf") return std::pow(a, b);
    if (name == "math.fma") return a * b + v[2].real;
    llvm::report_fatal_error("the reference does not know '" + name + "'");
  }

  static int64_t whole(llvm::StringRef name, const std::vector<Scalar> &v, mlir::Type from) {
    int64_t a = v[0].whole, b = v.size() > 1 ? v[1].whole : 0;
    if (name == "arith.addi") return int64_t(uint64_t(a) + uint64_t(b));
    if (name == "arith.subi") return int64_t(uint64_t(a) - uint64_t(b));
    if (name == "arith.muli") return int64_t(uint64_t(a) * uint64_t(b));
    if (name == "arith.divsi") return b == 0 ? 0 : b == -1 ? int64_t(-uint64_t(a)) : a / b;
    if (name == "arith.remsi") return b == 0 || b == -1 ? 0 : a % b;
    if (name == "arith.maxsi") return std::max(a, b);
    if (name == "arith.minsi") return std::min(a, b);
    if (name == "arith.andi") return a & b;
    if (name == "arith.ori") return a | b;
    if (name == "arith.xori") return a ^ b;
    if (name == "arith.shli") return int64_t(uint64_t(a) << b);
    if (name == "arith.extui") return from.isInteger(32) ? int64_t(uint32_t(a)) : a;
    if (name == "arith.extsi") return from.isInteger(1) ? -a : a;
    if (name == "arith.trunci" || name == "arith.index_cast") return a;
    llvm::report_fatal_error("the reference does not know '" + name + "'");
  }

  mlir::linalg::GenericOp op;
  std::map<const void *, Scalar> values;
};

/// Runs the operators of a function in order.
class Evaluator {
public:
  std::vector<Tensor> run(mlir::func::FuncOp func, const std::vector<Tensor> &arguments) {
    for (auto [argument, tensor] : llvm::zip(func.getArguments(), arguments))
      tensors[argument.getAsOpaquePointer()] = tensor;
    for (mlir::Operation &op : func.getBody().front().without_terminator())
      if (auto generic = mlir::dyn_cast<mlir::linalg::GenericOp>(op))
        runGeneric(generic);
      else if (auto fill = mlir::dyn_cast<mlir::linalg::FillOp>(op))
        set(fill.getResult(0), filled(fill.getResult(0).getType(), get(fill.getInputs()[0]).elements[0]));
      else if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op))
        set(constant, constantTensor(constant));
      else
        set(op.getResult(0), filled(op.getResult(0).getType(), {}));
    std::vector<Tensor> results;
    for (mlir::Value value : func.getBody().front().getTerminator()->getOperands())
      results.push_back(get(value));
    return results;
  }

private:
  const Tensor &get(mlir::Value value) { return tensors[value.getAsOpaquePointer()]; }
  void set(mlir::Value value, Tensor tensor) { tensors[value.getAsOpaquePointer()] = std::move(tensor); }

  static Tensor filled(mlir::Type type, Scalar value) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    return {tensor, std::vector<Scalar>(tensor.getNumElements(), value)};
  }

  static Tensor constantTensor(mlir::arith::ConstantOp constant) {
    if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue()))
      return filled(dense.getType(), fromAttribute(dense.getSplatValue<mlir::Attribute>()));
    return {nullptr, {fromAttribute(constant.getValue())}};
  }

  static size_t offset(mlir::AffineMap map, const Tensor &tensor, const std::vector<int64_t> &point) {
    size_t result = 0;
    for (auto [dim, expression] : llvm::enumerate(map.getResults())) {
      auto loop = mlir::dyn_cast<mlir::AffineDimExpr>(expression);
      result = result * tensor.type.getDimSize(dim) + (loop ? point[loop.getPosition()] : 0);
    }
    return result;
  }

  void runGeneric(mlir::linalg::GenericOp op) {
    std::vector<Tensor> results;
    for (mlir::Value destination : op.getDpsInits())
      results.push_back(get(destination));
    auto sizes = op.getStaticLoopRanges();
    auto maps = op.getIndexingMapsArray();
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    Body body(op);
    std::vector<int64_t> point(sizes.size());
    for (int64_t step = 0; step < count; ++step) {
      int64_t rest = step;
      for (size_t loop = sizes.size(); loop-- > 0; rest /= sizes[loop])
        point[loop] = rest % sizes[loop];
      std::vector<Scalar> arguments;
      size_t inputs = op.getNumDpsInputs();
      for (size_t i = 0; i < inputs; ++i) {
        const Tensor &tensor = get(op.getDpsInputs()[i]);
        arguments.push_back(tensor.elements[tensor.type ? offset(maps[i], tensor, point) : 0]);
      }
      for (size_t i = 0; i < results.size(); ++i)
        arguments.push_back(results[i].elements[offset(maps[inputs + i], results[i], point)]);
      std::vector<Scalar> outcome = body.run(arguments, point);
      for (size_t i = 0; i < results.size(); ++i)
        results[i].elements[offset(maps[inputs + i], results[i], point)] = outcome[i];
    }
    for (auto [value, tensor] : llvm::zip(op.getResults(), results))
      set(value, std::move(tensor));
  }

  std::map<const void *, Tensor> tensors;
};

} // namespace

std::vector<Tensor> evaluateCluster(mlir::func::FuncOp func, const std::vector<Tensor> &arguments) {
  return Evaluator().run(func, arguments);
}

} // namespace msc::test
