// Operators that work element by element.
#include "test/e2e/NetworkBuilder.h"

namespace msc::e2e {

int NetworkBuilder::addUnary(int x) {
  static const std::vector<std::string> ops = {"ReLU", "Sigmoid", "Tanh", "SiLU", "GeLU", "Exp",    "Log",
                                               "Sqrt", "Rsqrt",   "Neg",  "Abs",  "Sign", "Square"};
  std::string op = random.pick(ops);
  if (op == "Log" || op == "Sqrt" || op == "Rsqrt")
    x = positive(x);
  if (op == "Exp" && magnitude(x) > 2)
    x = node("Tanh", use(x), shape(x), -1, 1);
  bool changesNothing = (op == "ReLU" || op == "Abs") && values[x].low >= 0;
  if (op == "Neg" || changesNothing) // no draw of its own: the networks of all seeds stay what they were
    return node("Print", use(x) + ", \"seen:\"", shape(x), values[x].low, values[x].high);
  double low = values[x].low, high = values[x].high, most = magnitude(x);
  std::string arguments = use(x);
  if (op == "GeLU" && random.chance(60))
    arguments += random.chance(50) ? ", approximate: none" : ", approximate: tanh";
  const std::map<std::string, std::pair<double, double>> bounds = {
      {"ReLU", {std::max(low, 0.0), most}}, {"Sigmoid", {0, 1}}, {"Tanh", {-1, 1}},
      {"SiLU", {-0.3, most}}, {"GeLU", {-0.2, most}}, {"Exp", {std::exp(-most), std::exp(most)}},
      {"Log", {-3, 3}}, {"Sqrt", {std::sqrt(std::max(low, 0.0)), std::sqrt(most)}},
      {"Rsqrt", {1 / std::sqrt(most), 1 / std::sqrt(std::max(low, 0.01))}}, {"Neg", {-high, -low}},
      {"Abs", {std::max(low, 0.0), most}}, {"Sign", {-1, 1}}, {"Square", {0, most * most}}};
  return node(op, arguments, shape(x), bounds.at(op).first, bounds.at(op).second);
}

int NetworkBuilder::addFunction(int x) {
  static const std::vector<std::string> ops = {
      "Sin", "Cos", "Tan", "Erf", "Expm1", "Log1p", "Reciprocal", "ReLU6", "HSigmoid", "HSwish", "Softplus", "Softsign",
      "Mish", "SeLU", "Elu", "LeakyReLU", "Floor", "Ceil", "Round", "Trunc", "ZerosLike", "OnesLike"};
  std::string op = random.pick(ops);
  if (op == "Log1p" || op == "Reciprocal")
    x = positive(x);
  if ((op == "Expm1" || op == "Tan") && magnitude(x) > 1)
    x = node("Tanh", use(x), shape(x), -1, 1);
  double most = magnitude(x), low = values[x].low;
  std::string arguments = use(x) + (op == "Elu" && random.chance(50) ? ", alpha: 0.5" : "");
  const std::map<std::string, std::pair<double, double>> bounds = {
      {"Sin", {-1, 1}}, {"Cos", {-1, 1}}, {"Tan", {-1.6, 1.6}}, {"Erf", {-1, 1}}, {"Expm1", {-1, 1.72}},
      {"Log1p", {0.09, most}}, {"Reciprocal", {1 / most, 1 / std::max(low, 0.01)}}, {"ReLU6", {0, most}},
      {"HSigmoid", {0, 1}}, {"HSwish", {-0.4, most}}, {"Softplus", {0, most + 0.7}}, {"Softsign", {-1, 1}},
      {"Mish", {-0.4, most}}, {"SeLU", {-1.8, 1.1 * most}}, {"Elu", {-1, most}}, {"LeakyReLU", {-most, most}},
      {"ZerosLike", {0, 0}}, {"OnesLike", {1, 1}}};
  auto bound = bounds.find(op);
  bool isWhole = bound == bounds.end();
  int result = isWhole ? node(op, arguments, shape(x), -most - 1, most + 1)
                       : node(op, arguments, shape(x), bound->second.first, bound->second.second);
  if (!isWhole && !op.ends_with("Like"))
    return result;
  // Gradients have to reach what is below.
  return node("Add", use(result) + ", " + use(x), shape(x), values[result].low + values[x].low, values[result].high + values[x].high);
}

int NetworkBuilder::addQuotient(int x) {
  static const std::vector<std::string> ops = {"FloorDiv", "FloorMod", "Mod", "DivNoNan", "Xlogy", "SquaredDifference",
                                               "SigmoidCrossEntropyWithLogits"};
  std::string op = random.pick(ops);
  bool whole = op.ends_with("Mod") && random.chance(25);
  int y = partner(x);
  if (op != "SquaredDifference" && op != "SigmoidCrossEntropyWithLogits")
    y = positive(y);
  double a = magnitude(x), b = magnitude(y), ratio = a / std::max(values[y].low, 0.1);
  const std::map<std::string, double> bounds = {
      {"FloorDiv", ratio + 1}, {"FloorMod", b}, {"Mod", b}, {"DivNoNan", ratio}, {"Xlogy", 3 * a},
      {"SquaredDifference", (a + b) * (a + b)}, {"SigmoidCrossEntropyWithLogits", a + a * b + 0.7}};
  if (whole) { // quotients of small whole numbers
    int sign = node("Sign", use(x), shape(x), -1, 1);
    int number = node("Cast", use(sign) + ", i32", shape(x), -1, 1, "i32");
    int rest = node(op, use(number) + ", 3", shape(x), 0, 2, "i32");
    return node("Cast", use(rest) + ", " + network.type, shape(x), -1, 2);
  }
  return node(op, use(x) + ", " + use(y), shape(x), -bounds.at(op), bounds.at(op));
}

int NetworkBuilder::addLogical(int x) {
  int condition = addCondition(x);
  int64_t kind = random.below(4);
  if (kind == 0) {
    condition = node("LogicalNot", use(condition), shape(x), 0, 1, "bool");
  } else if (kind == 1) {
    std::string op = random.pick<std::string>({"IsFinite", "IsInf", "IsNan"});
    condition = node(op, use(x), shape(x), 0, 1, "bool");
  } else if (kind == 2) {
    int other = addCondition(valueOfShape(shape(x), x));
    std::string op = random.pick<std::string>({"LogicalAnd", "LogicalOr", "LogicalXor"});
    condition = node(op, use(condition) + ", " + use(other), shape(x), 0, 1, "bool");
  } else if (!shape(x).empty()) {
    auto rank = static_cast<int64_t>(shape(x).size());
    int64_t axis = random.between(-rank, rank - 1);
    Shape kept = shape(x);
    kept[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = 1;
    std::string op = random.chance(50) ? "ReduceAll" : "ReduceAny";
    condition = node(op, use(condition) + ", " + std::to_string(axis) + ", keep_dims: true", kept, 0, 1, "bool");
  }
  if (random.chance(40))
    return node("MaskedFill", use(x) + ", " + use(condition) + ", 0.25", shape(x), -magnitude(x) - 0.25, magnitude(x) + 0.25);
  Shape own = shape(condition);
  int number = node("Cast", use(condition) + ", " + network.type, own, 0, 1);
  return node("Mul", use(x) + ", " + use(number), shape(x), -magnitude(x), magnitude(x));
}

int NetworkBuilder::addChoice(int x) {
  if (shape(x).empty() || countOf(shape(x)) == 0)
    return addUnary(x);
  auto rank = static_cast<int64_t>(shape(x).size());
  int64_t axis = random.between(-rank, rank - 1), dim = axis < 0 ? axis + rank : axis;
  std::string along = ", " + std::to_string(axis);
  if (random.chance(35)) { // classes -1, which is none, 0 and 1
    int sign = node("Sign", use(x), shape(x), -1, 1);
    int whole = node("Cast", use(sign) + ", " + (random.chance(50) ? "i32" : "i64"), shape(x), -1, 1, "i32");
    Shape hot = shape(x);
    int64_t depth = random.between(2, 4), place = random.between(-1, rank);
    hot.insert(hot.begin() + (place < 0 ? rank : place), depth);
    return node("OneHot", use(whole) + ", " + std::to_string(depth) + ", 0.75, -0.25, axis: " + std::to_string(place) +
                              ", dtype: " + network.type, hot, -0.25, 0.75);
  }
  Shape rows = shape(x);
  bool withValue = random.chance(60), largest = random.chance(50), keep = withValue && random.chance(50);
  if (keep)
    rows[static_cast<size_t>(dim)] = 1;
  else
    rows.erase(rows.begin() + dim);
  double bound = static_cast<double>(shape(x)[static_cast<size_t>(dim)]);
  std::string op = withValue ? largest ? "ArgMaxWithValue" : "ArgMinWithValue" : largest ? "Argmax" : "Argmin";
  int index = node(op, use(x) + along + (keep ? ", keep_dims: true" : ""), rows, 0, bound, "i32");
  std::string second = values[index].name + "_1";
  int number = node("Cast", use(index) + ", " + network.type, rows, 0, bound, network.type);
  int scaled = node("Mul", use(number) + ", " + std::to_string(1 / bound), rows, 0, 1);
  if (!withValue)
    return scaled;
  int value = add({second, network.type, rows, values[x].low, values[x].high});
  return node("Add", use(scaled) + ", " + use(value), rows, -magnitude(x), magnitude(x) + 1);
}

int NetworkBuilder::addGated(int x) {
  if (shape(x).empty() || countOf(shape(x)) == 0)
    return addUnary(x);
  auto rank = static_cast<int64_t>(shape(x).size());
  if (random.chance(50)) {
    int64_t dim = random.between(-rank, rank - 1);
    Shape half = shape(x);
    int64_t &size = half[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
    if (size % 2 != 0)
      return addUnary(x);
    size /= 2;
    return node("Swiglu", use(x) + (dim == -1 ? "" : ", " + std::to_string(dim)), half, -magnitude(x) * magnitude(x),
                magnitude(x) * magnitude(x));
  }
  if (shape(x).back() % 2 != 0)
    return addUnary(x);
  Shape angles(shape(x).begin() + random.below(rank), shape(x).end());
  for (size_t dim = 0; dim + 1 < angles.size(); ++dim)
    if (random.chance(30))
      angles[dim] = 1;
  int angle = parameter(angles), cos = node("Cos", use(angle), angles, -1, 1), sin = node("Sin", use(angle), angles, -1, 1);
  return node("RotaryPositionEmbedding", use(x) + ", " + use(cos) + ", " + use(sin) + (random.chance(50) ? ", mode: 1" : ""), shape(x),
              -2 * magnitude(x), 2 * magnitude(x));
}

int NetworkBuilder::partner(int x) {
  Shape wanted = shape(x);
  if (random.chance(45)) {
    wanted.erase(wanted.begin(), wanted.begin() + random.below(static_cast<int64_t>(wanted.size()) + 1));
    for (int64_t &size : wanted)
      if (random.chance(30))
        size = 1;
  }
  return valueOfShape(wanted, x);
}

int NetworkBuilder::addBinary(int x) {
  static const std::vector<std::string> ops = {"Add", "Sub", "Mul", "Maximum", "Minimum", "RealDiv", "Pow", "Add", "Mul"};
  std::string op = random.pick(ops);
  bool constant = random.chance(15);
  if (op == "Pow") {
    x = positive(x);
    if (magnitude(x) > 3)
      x = node("Sqrt", use(x), shape(x), 0.3, 2.9);
  }
  if (constant) {
    double number = static_cast<double>(random.between(2, 12)) / 8;
    double most = std::max(magnitude(x) + number, op == "Pow" ? std::pow(magnitude(x), number) : 0);
    return node(op, use(x) + ", " + std::to_string(number), shape(x), -most, most);
  }
  int y = partner(x);
  if (op == "RealDiv")
    y = positive(y);
  if (op == "Pow" && magnitude(y) > 1)
    y = node("Tanh", use(y), shape(y), -1, 1);
  double a = magnitude(x), b = magnitude(y);
  double most = op == "Mul" ? a * b : op == "RealDiv" ? a / values[y].low : op == "Pow" ? std::pow(std::max(a, 10.0), b) : a + b;
  // Broadcasting works on both sides: sometimes the smaller operand comes first.
  bool swapped = op != "RealDiv" && op != "Pow" && random.chance(30);
  std::string arguments = swapped ? use(y) + ", " + use(x) : use(x) + ", " + use(y);
  return node(op, arguments, shape(x), -most, most);
}

int NetworkBuilder::addCondition(int x) {
  static const std::vector<std::string> ops = {"Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual"};
  std::string op = random.pick(ops);
  if (op == "Equal" || op == "NotEqual") // equal numbers have to exist
    x = node("Sign", use(x), shape(x), -1, 1);
  if (random.chance(40))
    return node(op, use(x) + (op == "Equal" || op == "NotEqual" ? ", 1.0" : ", 0.125"), shape(x), 0, 1, "bool");
  int y = partner(x);
  if (op == "Equal" || op == "NotEqual")
    y = node("Sign", use(y), shape(y), -1, 1);
  return node(op, use(x) + ", " + use(y), shape(x), 0, 1, "bool");
}

int NetworkBuilder::addSelect(int x) {
  if (random.chance(25)) {
    int y = partner(x), a = node("Sign", use(x), shape(x), -1, 1);
    const std::string b = random.chance(50) ? "1.0" : use(node("Sign", use(y), shape(y), -1, 1));
    const double most = std::max(magnitude(x), magnitude(y));
    return node("SelectEqual", use(a) + ", " + b + ", " + use(x) + ", " + use(y), shape(x), -most, most);
  }
  int condition = addCondition(valueOfShape(shape(x), x));
  if (random.chance(20)) {
    int number = node("Cast", use(condition) + ", " + network.type, shape(x), 0, 1);
    return node("Mul", use(number) + ", " + use(x), shape(x), -magnitude(x), magnitude(x));
  }
  int y = partner(x);
  double most = std::max(magnitude(x), magnitude(y));
  return node("Select", use(condition) + ", " + use(x) + ", " + use(y), shape(x), -most, most);
}

int NetworkBuilder::addCast(int x) {
  std::string other = random.chance(30) ? "i32" : network.type == "f32" ? "f64" : "f32";
  if (other == "i32" || network.type == "f64") { // f64 tests keep their digits: only whole numbers become f32
    x = node("Sign", use(x), shape(x), -1, 1);
    int whole = node("Cast", use(x) + ", " + other, shape(x), -1, 1, other);
    return node("Cast", use(whole) + ", " + network.type, shape(x), -1, 1);
  }
  int wide = node("Cast", use(x) + ", " + other, shape(x), values[x].low, values[x].high, other);
  if (random.chance(50))
    wide = node(random.chance(50) ? "Tanh" : "Neg", use(wide), shape(x), values[x].low, values[x].high, other);
  return node("Cast", use(wide) + ", " + network.type, shape(x), values[wide].low, values[wide].high);
}

int NetworkBuilder::addDropout(int x) {
  if (random.chance(30)) {
    int sign = node("Sign", use(x), shape(x), -1, 1);
    int place = node("Cast", use(sign) + ", i64", shape(x), -1, 1, "i64");
    int word = node("RandomBits", use(place) + ", " + std::to_string(random.below(9)) + ", 5", shape(x), 0, 1, "i64");
    int number = node("Cast", use(word) + ", " + network.type, shape(x), 0, 1);
    int share = node("Mul", use(number) + ", 2.3283064365386963e-10", shape(x), 0, 1);
    return node("Mul", use(x) + ", " + use(share), shape(x), std::min(values[x].low, 0.0), std::max(values[x].high, 0.0));
  }
  std::string arguments = use(x) + (random.chance(50) ? "" : ", keep_prob: 0.75") + (random.chance(50) ? "" : ", Seed0: 5, Seed1: 7");
  return node("Dropout", arguments, shape(x), 2 * std::min(values[x].low, 0.0), 2 * std::max(values[x].high, 0.0));
}

} // namespace msc::e2e
