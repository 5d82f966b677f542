#include "test/reference/Interpreter.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace msc::net;

namespace msc::reference {

/// The broadcast shape of tensors whose shapes are known to fit. A size that is not 1 wins, 0 too.
static std::vector<int64_t> commonShape(const std::vector<Tensor> &tensors) {
  std::vector<int64_t> shape;
  for (const Tensor &tensor : tensors) {
    if (tensor.shape.size() > shape.size())
      shape.insert(shape.begin(), tensor.shape.size() - shape.size(), 1);
    for (int64_t back = 1; back <= tensor.rank(); ++back)
      if (int64_t size = tensor.shape[tensor.rank() - back]; size != 1)
        shape[shape.size() - back] = size;
  }
  return shape;
}

static Tensor mapped(const std::vector<Tensor> &x, const std::function<double(const std::vector<double> &)> &f) {
  Tensor result(commonShape(x));
  std::vector<double> elements(x.size());
  forEachIndex(result.shape, [&](const auto &index) {
    for (size_t i = 0; i < x.size(); ++i)
      elements[i] = broadcastAt(x[i], index);
    result.at(index) = f(elements);
  });
  return result;
}

static void addUnary(Table &table, StringRef name, double (*f)(double)) {
  table[name] = [f](Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [f](const auto &e) { return f(e[0]); })};
  };
}

static void addBinary(Table &table, StringRef name, double (*f)(double, double)) {
  table[name] = [f](Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [f](const auto &e) { return f(e[0], e[1]); })};
  };
}

static double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

static double gelu(double x, bool exact) {
  if (exact)
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

static double geluSlope(double x, bool exact) {
  if (exact)
    return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  double c = std::sqrt(2 / std::numbers::pi), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

static std::vector<Tensor> cast(Operation *op, const std::vector<Tensor> &x) {
  Type to = llvm::cast<CastOp>(op).getDstType();
  return {mapped(x, [&](const auto &e) {
    if (to.isInteger(1))
      return e[0] != 0 ? 1.0 : 0.0;
    return llvm::isa<IntegerType>(to) ? std::trunc(e[0]) : e[0];
  })};
}

static void addFunctions(Table &table) {
  addUnary(table, "ReLU", [](double x) { return x < 0 ? 0 : x; });
  addUnary(table, "Sigmoid", sigmoid);
  addUnary(table, "Tanh", [](double x) { return std::tanh(x); });
  addUnary(table, "SiLU", [](double x) { return x * sigmoid(x); });
  addUnary(table, "Exp", [](double x) { return std::exp(x); });
  addUnary(table, "Log", [](double x) { return std::log(x); });
  addUnary(table, "Sqrt", [](double x) { return std::sqrt(x); });
  addUnary(table, "Rsqrt", [](double x) { return 1 / std::sqrt(x); });
  addUnary(table, "Neg", [](double x) { return -x; });
  addUnary(table, "Abs", [](double x) { return std::fabs(x); });
  addUnary(table, "Square", [](double x) { return x * x; });
  addUnary(table, "Sign", [](double x) { return x > 0 ? 1 : x < 0 ? -1 : x; });
  table["GeLU"] = [](Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    bool exact = llvm::cast<GeLUOp>(op).getApproximate() == "none";
    return {mapped(x, [=](const auto &e) { return gelu(e[0], exact); })};
  };
}

static double alphaOf(Operation *op) {
  if (auto elu = llvm::dyn_cast<EluOp>(op))
    return elu.getAlpha().convertToDouble();
  return llvm::cast<LeakyReLUOp>(op).getAlpha().convertToDouble();
}

static double hardSigmoid(double x) {
  return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
}

static double softplus(double x) {
  return x > 30 ? x + std::exp(-x) : std::log1p(std::exp(x));
}

static void addMoreFunctions(Table &table) {
  addUnary(table, "Sin", [](double x) { return std::sin(x); });
  addUnary(table, "Cos", [](double x) { return std::cos(x); });
  addUnary(table, "Tan", [](double x) { return std::tan(x); });
  addUnary(table, "Erf", [](double x) { return std::erf(x); });
  addUnary(table, "Expm1", [](double x) { return std::expm1(x); });
  addUnary(table, "Log1p", [](double x) { return std::log1p(x); });
  addUnary(table, "Reciprocal", [](double x) { return 1 / x; });
  addUnary(table, "ReLU6", [](double x) { return x < 0 ? 0 : x > 6 ? 6 : x; });
  addUnary(table, "HSigmoid", hardSigmoid);
  addUnary(table, "HSwish", [](double x) { return x * hardSigmoid(x); });
  addUnary(table, "Softplus", softplus);
  addUnary(table, "Softsign", [](double x) { return x / (1 + std::fabs(x)); });
  addUnary(table, "Mish", [](double x) { return x * std::tanh(softplus(x)); });
  addUnary(table, "SeLU", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); });
  table["Elu"] = [](Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [a = alphaOf(op)](const auto &e) { return e[0] > 0 ? e[0] : a * std::expm1(e[0]); })};
  };
  table["LeakyReLU"] = [](Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [a = alphaOf(op)](const auto &e) { return e[0] > 0 ? e[0] : a * e[0]; })};
  };
}

static void addSteps(Table &table) {
  addUnary(table, "Floor", [](double x) { return std::floor(x); });
  addUnary(table, "Ceil", [](double x) { return std::ceil(x); });
  addUnary(table, "Round", [](double x) { return std::nearbyint(x); });
  addUnary(table, "Trunc", [](double x) { return std::trunc(x); });
  addUnary(table, "IsFinite", [](double x) { return double(std::isfinite(x)); });
  addUnary(table, "IsInf", [](double x) { return double(std::isinf(x)); });
  addUnary(table, "IsNan", [](double x) { return double(std::isnan(x)); });
  addUnary(table, "LogicalNot", [](double x) { return double(x == 0); });
  addUnary(table, "ZerosLike", [](double) { return 0.0; });
  addUnary(table, "OnesLike", [](double) { return 1.0; });
}

/// x - y * floor(x / y), exactly; an integer divided by 0 leaves x.
static double floorRest(double x, double y) {
  double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/// Integers divided by 0 give 0 and leave 0.
static void addDivision(Table &table, StringRef name, double (*f)(double, double)) {
  table[name] = [f](Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    bool whole = llvm::isa<IntegerType>(llvm::cast<RankedTensorType>(op->getOperand(0).getType()).getElementType());
    return {mapped(x, [=](const auto &e) { return whole && e[1] == 0 ? 0.0 : f(e[0], e[1]); })};
  };
}

static void addMoreArithmetic(Table &table) {
  addDivision(table, "FloorDiv", [](double x, double y) { return std::floor(x / y); });
  addDivision(table, "FloorMod", floorRest);
  addDivision(table, "Mod", [](double x, double y) { return std::fmod(x, y); });
  addBinary(table, "DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; });
  addBinary(table, "SquaredDifference", [](double x, double y) { return (x - y) * (x - y); });
  addBinary(table, "Xlogy", [](double x, double y) { return x == 0 ? 0 : x * std::log(y); });
  addBinary(table, "SigmoidCrossEntropyWithLogits", [](double x, double y) { return softplus(x) - x * y; });
  addBinary(table, "LogicalAnd", [](double x, double y) { return double(x != 0 && y != 0); });
  addBinary(table, "LogicalOr", [](double x, double y) { return double(x != 0 || y != 0); });
  addBinary(table, "LogicalXor", [](double x, double y) { return double((x != 0) != (y != 0)); });
}

static void addBackwardHelpers(Table &table) {
  addBinary(table, "ReluGrad", [](double dy, double y) { return y <= 0 ? 0 : dy; });
  addBinary(table, "SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); });
  addBinary(table, "TanhGrad", [](double y, double dy) { return dy * (1 - y * y); });
  addBinary(table, "SiLUGrad", [](double dy, double x) {
    double s = sigmoid(x);
    return dy * (s + x * s * (1 - s));
  });
  table["GeLUGrad"] = [](Operation *op, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    bool exact = llvm::cast<GeLUGradOp>(op).getApproximate() == "none";
    return {mapped(x, [=](const auto &e) { return e[0] * geluSlope(e[1], exact); })};
  };
}

/// The better of both by `takesX`; NaN if one is NaN.
template <typename TakesX> static double extremum(double x, double y, TakesX takesX) {
  if (std::isnan(x) || std::isnan(y))
    return std::nan("");
  return takesX(x, y) ? x : y;
}

static void addArithmetic(Table &table) {
  addBinary(table, "Add", [](double x, double y) { return x + y; });
  addBinary(table, "Sub", [](double x, double y) { return x - y; });
  addBinary(table, "Mul", [](double x, double y) { return x * y; });
  addBinary(table, "RealDiv", [](double x, double y) { return x / y; });
  addBinary(table, "Pow", [](double x, double y) { return std::pow(x, y); });
  addBinary(table, "Maximum", [](double x, double y) { return extremum(x, y, std::greater<>()); });
  addBinary(table, "Minimum", [](double x, double y) { return extremum(x, y, std::less<>()); });
}

static void addComparisons(Table &table) {
  addBinary(table, "Equal", [](double x, double y) { return double(x == y); });
  addBinary(table, "NotEqual", [](double x, double y) { return double(x != y); });
  addBinary(table, "Greater", [](double x, double y) { return double(x > y); });
  addBinary(table, "GreaterEqual", [](double x, double y) { return double(x >= y); });
  addBinary(table, "Less", [](double x, double y) { return double(x < y); });
  addBinary(table, "LessEqual", [](double x, double y) { return double(x <= y); });
}

void addPointwise(Table &table) {
  addFunctions(table);
  addMoreFunctions(table);
  addSteps(table);
  addMoreArithmetic(table);
  addBackwardHelpers(table);
  addArithmetic(table);
  addComparisons(table);
  table["Cast"] = cast;
  table["MaskedFill"] = [](Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [](const auto &e) { return e[1] != 0 ? e[2] : e[0]; })};
  };
  table["Select"] = [](Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [](const auto &e) { return e[0] != 0 ? e[1] : e[2]; })};
  };
  table["SelectEqual"] = [](Operation *, const std::vector<Tensor> &x) -> std::vector<Tensor> {
    return {mapped(x, [](const auto &e) { return e[0] == e[1] ? e[2] : e[3]; })};
  };
}

} // namespace msc::reference
