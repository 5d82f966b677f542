#include "test/e2e/NetworkGenerator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>

namespace msc::e2e {

static int64_t countOf(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// "(2, 3)"; one element is "(2)", which reads as a tuple where one is expected.
static std::string tuple(const Shape &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

static std::string typeText(const Value &value) {
  std::string text = tuple(value.shape);
  return value.type + "[" + text.substr(1, text.size() - 2) + "]";
}

/// Number of results of an operator.
static int resultsOf(const std::string &op) {
  static const std::map<std::string, int> several = {
      {"LayerNorm", 3}, {"BatchNorm", 3}, {"RmsNorm", 2}, {"NLLLoss", 2}, {"ArgMaxWithValue", 2}, {"ArgMinWithValue", 2},
      {"TopK", 2}, {"Dropout", 2}, {"ScaledDotProductAttention", 2}, {"GroupNorm", 3}};
  auto found = several.find(op);
  return found == several.end() ? 1 : found->second;
}

std::string Network::text(const std::map<std::string, std::string> &strategies, const std::string &context) const {
  std::ostringstream out;
  out << "network random(";
  for (size_t i = 0; i < inputs.size(); ++i)
    out << (i ? ", " : "") << "%" << inputs[i].name << ": " << typeText(inputs[i]);
  out << ") {\n";
  for (const Value &parameter : parameters)
    out << "  param %" << parameter.name << ": " << typeText(parameter) << " = Normal(0.5)" << (parameter.state ? " {requires_grad: false}\n" : "\n");
  for (const Node &node : nodes) {
    out << "  %" << node.name;
    for (size_t more = 1; more < node.results; ++more)
      out << ", %" << node.name << "_" << more;
    out << " = " << node.op << "(" << node.arguments << ")";
    if (auto strategy = strategies.find(node.name); strategy != strategies.end())
      out << " {in_strategy: " << strategy->second << "}";
    if (node.recompute)
      out << " {recompute: true}";
    out << "\n";
  }
  out << "  return loss: %loss";
  for (const std::string &output : outputs)
    out << ", " << output << ": %" << output;
  out << "\n}\ndataset {source: Random(seed: 1), columns: {";
  for (size_t i = 0; i < inputs.size(); ++i)
    out << (i ? ", " : "") << inputs[i].name << ": uniform";
  out << "}, steps: 1}\ntrain {optimizer: " << optimizer << ", minimize: loss, epochs: 1}\ncontext {" << context << "}\n";
  return out.str();
}

namespace {

constexpr int64_t mostElements = 1500;
constexpr double mostMagnitude = 8;

/// Builds one network node by node. Values are named by index; a reference to one does not survive a new one.
class Builder {
public:
  explicit Builder(Random &random) : random(random) {
    network.type = random.chance(50) ? "f32" : "f64";
    Shape batch = randomShape(random.between(2, 4));
    if (random.chance(50)) // enough samples for every device
      batch[0] = random.between(8, 13);
    addInput("x", batch);
    if (random.chance(25))
      addInput("z", randomShape(random.between(1, 3)));
  }

  Network build() {
    int64_t wanted = random.between(5, 31);
    pool.push_back(addMatMul(0));
    while (static_cast<int64_t>(network.nodes.size()) < wanted)
      grow();
    finish();
    return std::move(network);
  }

private:
  //===-- values ----------------------------------------------------------===//

  Shape randomShape(int64_t rank) {
    Shape shape;
    for (int64_t i = 0; i < rank; ++i)
      shape.push_back(random.chance(45) ? random.pick<int64_t>({2, 4, 6, 8, 12}) : random.between(1, rank > 2 ? 7 : 13));
    while (countOf(shape) > mostElements / 2)
      *std::max_element(shape.begin(), shape.end()) /= 2;
    return shape;
  }

  void addInput(const std::string &name, const Shape &shape) {
    network.inputs.push_back({name, network.type, shape});
    pool.push_back(add({name, network.type, shape, -1, 1}));
  }

  int add(Value value) {
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }

  /// A new trained parameter with elements in [-bound, bound].
  int parameter(const Shape &shape, double bound = 1) {
    Value value{"w" + std::to_string(network.parameters.size()), network.type, shape, -bound, bound};
    network.parameters.push_back(value);
    return add(value);
  }

  /// A parameter that is not trained.
  int state(const Shape &shape) {
    int index = parameter(shape);
    network.parameters.back().state = true;
    return index;
  }

  std::string use(int index) {
    values[index].used = true;
    return "%" + values[index].name;
  }
  const Shape &shape(int index) const { return values[index].shape; }
  double magnitude(int index) const { return std::max(std::abs(values[index].low), std::abs(values[index].high)); }

  /// A node with bounds for its result; floats that have grown are squashed.
  int node(const std::string &op, const std::string &arguments, const Shape &shape, double low, double high,
           const std::string &type = "") {
    std::string name = "v" + std::to_string(network.nodes.size());
    auto results = static_cast<size_t>(resultsOf(op)); // the further ones are not used
    network.nodes.push_back({name, op, arguments, results, random.chance(10)});
    int result = add({name, type.empty() ? network.type : type, shape, low, high});
    return magnitude(result) > mostMagnitude && type.empty() ? squash(result) : result;
  }

  int squash(int value) {
    if (random.chance(40))
      return node(random.chance(50) ? "Tanh" : "Sigmoid", use(value), shape(value), -1, 1);
    double factor = 1 / magnitude(value);
    return node("Mul", use(value) + ", " + std::to_string(factor), shape(value), values[value].low * factor,
                values[value].high * factor);
  }

  /// Any float value, most often a recent one that nobody has used.
  int anyValue() {
    if (random.chance(60))
      for (size_t i = pool.size(); i-- > 0;)
        if (!values[pool[i]].used && random.chance(70))
          return pool[i];
    return random.pick(pool);
  }

  /// A value of exactly the wanted shape that nobody has to know twice: from the pool, else a parameter.
  int valueOfShape(const Shape &wanted, int other) {
    std::vector<int> fitting;
    for (int value : pool)
      if (value != other && shape(value) == wanted)
        fitting.push_back(value);
    return !fitting.empty() && random.chance(70) ? random.pick(fitting) : parameter(wanted);
  }

  /// A value whose elements are at least 0.1, through Tanh and Exp if need be.
  int positive(int value) {
    if (values[value].low >= 0.1)
      return value;
    if (random.chance(30)) {
      int squared = node(random.chance(50) ? "Abs" : "Sigmoid", use(value), shape(value), 0, magnitude(value));
      return node("Add", use(squared) + ", 0.5", shape(value), 0.5, values[squared].high + 0.5);
    }
    int bounded = node("Tanh", use(value), shape(value), -1, 1);
    return node("Exp", use(bounded), shape(value), std::exp(-1), std::exp(1));
  }

  //===-- operators -------------------------------------------------------===//

  void grow() {
    using Step = int (Builder::*)(int);
    static const std::vector<std::pair<int, Step>> steps = {
        {24, &Builder::addUnary},   {18, &Builder::addBinary},    {16, &Builder::addMatMul}, {7, &Builder::addBiasAdd},
        {8, &Builder::addSelect},   {13, &Builder::addReduction}, {9, &Builder::addReshape}, {8, &Builder::addTranspose},
        {5, &Builder::addBroadcast}, {4, &Builder::addCast},      {4, &Builder::addElementLoss}, {5, &Builder::addTied},
        {10, &Builder::addNormalised}, {3, &Builder::addRange},
        {46, &Builder::addFunction}, {16, &Builder::addQuotient}, {20, &Builder::addLogical}, {12, &Builder::addChoice},
        {14, &Builder::addTermLoss}, {22, &Builder::addLookup}, {9, &Builder::addScan}, {12, &Builder::addIndexed}, {10, &Builder::addNamesake}, {9, &Builder::addAttention}, {10, &Builder::addGated}, {6, &Builder::addGroupNorm}, {22, &Builder::addPool}, {28, &Builder::addConvolution}, {9, &Builder::addBatchNorm},
        {18, &Builder::addView}, {16, &Builder::addSlice}, {20, &Builder::addParts}, {18, &Builder::addJoin},
        {34, &Builder::addAround}, {14, &Builder::addTriangle}, {8, &Builder::addDropout}};
    int total = 0;
    for (const auto &[weight, step] : steps)
      total += weight;
    int64_t roll = random.below(total);
    for (const auto &[weight, step] : steps)
      if ((roll -= weight) < 0) {
        int result = (this->*step)(anyValue());
        if (countOf(shape(result)) <= mostElements)
          pool.push_back(result);
        return;
      }
  }

  int addUnary(int x) {
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

  /// The less common functions of one element.
  int addFunction(int x) {
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

  /// The less common functions of two elements; the second operand of quotients is away from 0.
  int addQuotient(int x) {
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

  /// Conditions joined, negated, counted; then a value that depends on one.
  int addLogical(int x) {
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

  /// Where extrema stand, and places named by whole numbers.
  int addChoice(int x) {
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

  /// Whole numbers 0 to most of the given shape, computed from a value of it. `lowest` may be -1: numbers of nothing.
  int indices(const Shape &wanted, int64_t lowest, int64_t most) {
    int value = valueOfShape(wanted, -1);
    int bounded = node("Sigmoid", use(value), wanted, 0, 1);
    double width = static_cast<double>(most - lowest) + 0.9;
    int spread = node("Mul", use(bounded) + ", " + std::to_string(width), wanted, 0, std::min(width, mostMagnitude));
    int moved = node("Add", use(spread) + ", " + std::to_string(lowest), wanted, -1, mostMagnitude);
    int whole = node("Floor", use(moved), wanted, -1, mostMagnitude);
    std::string type = random.chance(50) ? "i32" : "i64";
    return node("Cast", use(whole) + ", " + type, wanted, -1, mostMagnitude, type);
  }

  int addLookup(int x) {
    if (shape(x).empty() || countOf(shape(x)) == 0)
      return addUnary(x);
    auto rank = static_cast<int64_t>(shape(x).size());
    int64_t axis = random.chance(50) ? 0 : random.between(-rank, rank - 1), dim = axis < 0 ? axis + rank : axis;
    auto at = static_cast<size_t>(dim);
    int64_t size = shape(x)[at], most = std::min<int64_t>(size - 1, 5), kind = random.below(14);
    double low = std::min(values[x].low, 0.0), high = std::max(values[x].high, 0.0);
    Shape numbered = kind < 6 ? randomShape(random.between(1, 2)) : Shape();
    Shape rows = shape(x);
    rows.erase(rows.begin() + (kind < 4 ? dim : 0));
    rows.insert(rows.begin() + (kind < 4 ? dim : 0), numbered.begin(), numbered.end());
    if (kind < 6 && countOf(rows) > mostElements)
      return addUnary(x);
    if (kind < 4)
      return node("Gather", use(x) + ", " + use(indices(numbered, 0, most)) + ", " + std::to_string(axis), rows, low, high);
    if (kind < 6)
      return node("EmbeddingLookup", use(x) + ", " + use(indices(numbered, -1, 4)) + (random.chance(50) ? ", 1" : ""), rows, low, high);
    if (kind == 6) {
      Shape index = shape(x);
      index[at] = random.between(1, 6);
      if (countOf(index) > mostElements)
        return addUnary(x);
      return node("GatherD", use(x) + ", " + use(indices(index, size > 1 ? -1 : 0, most)) + ", " + std::to_string(axis), index, low, high);
    }
    Shape ids(shape(x).begin(), shape(x).begin() + random.between(1, rank));
    double bound = magnitude(x) * 3;
    if (kind < 9) {
      int64_t segments = random.between(1, 6);
      Shape sums(shape(x).begin() + static_cast<long>(ids.size()), shape(x).end());
      sums.insert(sums.begin(), segments);
      return node("UnsortedSegmentSum", use(x) + ", " + use(indices(ids, -1, segments)) + ", " + std::to_string(segments), sums, -bound, bound);
    }
    if (kind >= 10)
      return extremumOfRows(x, ids);
    Shape table(shape(x).begin() + static_cast<long>(ids.size()), shape(x).end());
    table.insert(table.begin(), random.between(2, 6));
    int base = valueOfShape(table, x);
    return node("ScatterAdd", use(base) + ", " + use(indices(ids, -1, table[0])) + ", " + use(x), table, -bound - magnitude(base), bound + magnitude(base));
  }

  /// The largest or smallest rows of the same number; every number occurs.
  int extremumOfRows(int x, const Shape &ids) {
    int64_t segments = 1;
    Shape most(shape(x).begin() + static_cast<long>(ids.size()), shape(x).end());
    most.insert(most.begin(), segments);
    return node(random.chance(50) ? "UnsortedSegmentMax" : "UnsortedSegmentMin",
                use(x) + ", " + use(indices(ids, 0, 0)) + ", " + std::to_string(segments), most, values[x].low, values[x].high);
  }

  /// Slices by indices of several numbers, updates at such places, and look-ups in batches.
  int addIndexed(int x) {
    if (shape(x).empty() || countOf(shape(x)) == 0)
      return addUnary(x);
    auto rank = static_cast<int64_t>(shape(x).size());
    int64_t depth = random.between(1, std::min<int64_t>(rank, 3)), kind = random.below(4);
    int64_t most = *std::min_element(shape(x).begin(), shape(x).begin() + depth) - 1;
    Shape leading = randomShape(random.between(0, 2)), slices = leading;
    slices.insert(slices.end(), shape(x).begin() + depth, shape(x).end());
    if (countOf(slices) > mostElements / 2 || countOf(slices) == 0)
      return addUnary(x);
    Shape numbered = leading;
    numbered.push_back(depth);
    double low = values[x].low, high = values[x].high;
    if (kind == 0)
      return node("GatherNd", use(x) + ", " + use(indices(numbered, 0, std::min<int64_t>(most, 5))), slices, low, high);
    if (kind == 1 && rank > 1) { // the first dimension is a batch
      int64_t axis = random.between(1, rank - 1), count = random.between(1, 4);
      Shape rows = shape(x);
      int64_t last = std::min<int64_t>(rows[static_cast<size_t>(axis)] - 1, 5);
      rows[static_cast<size_t>(axis)] = count;
      return node("Gather", use(x) + ", " + use(indices({shape(x)[0], count}, 0, last)) + ", " + std::to_string(axis) + ", batch_dims: 1",
                  rows, low, high);
    }
    int updates = valueOfShape(slices, x);
    std::string arguments = use(x) + ", " + use(indices(numbered, random.chance(50) ? -1 : 0, std::min<int64_t>(most + 1, 5))) + ", " + use(updates);
    if (kind == 2)
      return node("TensorScatterUpdate", arguments, shape(x), std::min(low, values[updates].low), std::max(high, values[updates].high));
    double bound = magnitude(x) + 3 * magnitude(updates);
    return node("TensorScatterAdd", arguments, shape(x), -bound, bound);
  }

  /// Other names of products and sums, and constants.
  int addNamesake(int x) {
    int64_t kind = random.below(4), columns = shape(x).empty() ? 1 : shape(x).back();
    double bound = magnitude(x) * static_cast<double>(columns) + 1;
    if (kind == 0 && shape(x).size() > 1 && countOf(shape(x)) > 0) {
      int64_t outputs = random.between(1, 7);
      Shape out = shape(x);
      out.back() = outputs;
      std::string arguments = use(x) + ", " + use(parameter({outputs, columns}));
      if (random.chance(60))
        arguments += ", " + use(parameter({outputs}));
      return countOf(out) > mostElements ? addUnary(x) : node("Dense", arguments, out, -bound, bound);
    }
    if (kind == 1 && shape(x).size() > 1 && countOf(shape(x)) > 0) {
      bool transposed = random.chance(50);
      Shape right = shape(x), out = shape(x);
      out.back() = random.between(1, 6);
      right[right.size() - 2] = transposed ? out.back() : columns;
      right.back() = transposed ? columns : out.back();
      if (countOf(right) > mostElements || countOf(out) > mostElements)
        return addUnary(x);
      return node("BatchMatMul", use(x) + ", " + use(parameter(right)) + (transposed ? ", transpose_b: true" : ""), out, -bound, bound);
    }
    if (kind == 2 && !shape(x).empty()) {
      int fill = node("Fill", "type: " + network.type + ", shape: " + tuple(shape(x)) + ", value: 0.25", shape(x), 0.25, 0.25);
      return node("AddN", use(x) + ", " + use(valueOfShape(shape(x), x)) + ", " + use(fill), shape(x), -magnitude(x) - 10, magnitude(x) + 10);
    }
    int numbers = node("LinSpace", "start: -0.5, stop: 1.0, num: " + std::to_string(columns), {columns}, -0.5, 1, "f32");
    int cast = node("Cast", use(numbers) + ", " + network.type, {columns}, -0.5, 1, network.type);
    return node("Add", use(x) + ", " + use(cast), shape(x).empty() ? Shape{1} : shape(x), values[x].low - 0.5, values[x].high + 1);
  }

  int addScan(int x) {
    if (shape(x).empty() || countOf(shape(x)) == 0)
      return addUnary(x);
    auto rank = static_cast<int64_t>(shape(x).size());
    if (random.chance(50)) {
      int64_t axis = random.between(-rank, rank - 1);
      double bound = magnitude(x) * 3;
      std::string how = random.pick<std::string>({"", ", exclusive: true", ", reverse: true", ", exclusive: true, reverse: true"});
      return node("CumSum", use(x) + ", " + std::to_string(axis) + how, shape(x), -bound, bound);
    }
    Shape chosen = shape(x);
    chosen.back() = random.between(1, std::min<int64_t>(chosen.back(), 4));
    return node("TopK", use(x) + ", " + std::to_string(chosen.back()) + (random.chance(30) ? ", sorted: false" : ""), chosen,
                values[x].low, values[x].high);
  }

  /// A value as (batch, sequence, width) attends to itself, or to a parameter.
  int addAttention(int x) {
    if (shape(x).size() != 3 || countOf(shape(x)) == 0) {
      if (shape(x).size() < 2 || countOf(shape(x)) == 0)
        return addUnary(x);
      Shape merged{shape(x)[0], 1, shape(x).back()};
      merged[1] = countOf(shape(x)) / (merged[0] * merged[2]);
      x = node("Reshape", use(x) + ", " + tuple(merged), merged, values[x].low, values[x].high);
    }
    int64_t width = shape(x)[2], heads = width % 4 == 0 && random.chance(50) ? 4 : width % 2 == 0 ? 2 : width % 3 == 0 ? 3 : 1;
    bool self = random.chance(40);
    int64_t shared = self ? heads : heads == 4 ? random.pick<int64_t>({1, 2, 4}) : random.pick<int64_t>({1, heads});
    Shape keys{shape(x)[0], self ? shape(x)[1] : random.between(1, 7), width / heads * shared};
    if (countOf(keys) > mostElements)
      return addUnary(x);
    int key = self ? x : valueOfShape(keys, x), value = self && random.chance(50) ? x : valueOfShape(keys, x);
    std::string rest = ", heads: " + std::to_string(heads) + (random.chance(50) ? ", causal: true" : "") +
                       (random.chance(30) ? ", scale: 0.5" : "");
    std::string tensors = use(x) + ", " + use(key) + ", " + use(value);
    if (random.chance(75))
      tensors += ", " + use(mask({shape(x)[0], heads, shape(x)[1], keys[1]}));
    return node("ScaledDotProductAttention", tensors + rest, shape(x), values[value].low,
                values[value].high);
  }

  /// What repeats to (batch, heads, queries, keys): numbers to be added, or which keys a query attends to.
  int mask(Shape wanted) {
    for (int64_t &size : wanted)
      if (random.chance(35))
        size = 1;
    wanted.erase(wanted.begin(), wanted.begin() + random.below(3));
    int given = parameter(wanted);
    return random.chance(65) ? given : node("GreaterEqual", use(given) + ", -0.25", wanted, 0, 1, "bool");
  }

  /// What stands around attention: a gate, and positions.
  int addGated(int x) {
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

  /// A partner for a pointwise operator: of the same shape, or smaller and broadcast.
  int partner(int x) {
    Shape wanted = shape(x);
    if (random.chance(45)) {
      wanted.erase(wanted.begin(), wanted.begin() + random.below(static_cast<int64_t>(wanted.size()) + 1));
      for (int64_t &size : wanted)
        if (random.chance(30))
          size = 1;
    }
    return valueOfShape(wanted, x);
  }

  int addBinary(int x) {
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

  int addMatMul(int x) {
    if (shape(x).size() < 2)
      return addBroadcast(x);
    Shape left = shape(x);
    bool transposeLeft = random.chance(30), transposeRight = random.chance(35);
    size_t rank = left.size();
    int64_t depth = left[rank - (transposeLeft ? 2 : 1)], rows = left[rank - (transposeLeft ? 1 : 2)];
    int64_t columns = random.chance(40) ? random.pick<int64_t>({2, 4, 8, 12}) : random.between(1, 11);
    Shape right = transposeRight ? Shape{columns, depth} : Shape{depth, columns};
    Shape batch(left.begin(), left.end() - 2);
    if (!batch.empty() && random.chance(45)) {
      Shape own = batch;
      if (random.chance(30))
        own.erase(own.begin());
      for (int64_t &size : own)
        if (random.chance(25))
          size = 1;
      if (own.size() == batch.size() && shape(x)[0] == 1 && random.chance(50)) { // each operand is repeated somewhere
        own[0] = random.between(2, 3);
        batch[0] = own[0];
      }
      right.insert(right.begin(), own.begin(), own.end());
    } else if (batch.empty() && random.chance(8)) {
      batch = {random.between(2, 4)}; // a matrix meets a batch of matrices
      right.insert(right.begin(), batch[0]);
    }
    int y = countOf(right) <= mostElements ? valueOfShape(right, x) : parameter(right);
    double bound = 2 * magnitude(x) * magnitude(y) * std::sqrt(static_cast<double>(depth));
    Shape result = batch;
    result.insert(result.end(), {rows, columns});
    std::string transposed = transposeLeft ? ", transpose_a: true" : "";
    if (transposeRight)
      transposed += ", transpose_b: true";
    if (network.nodes.size() < 24 && random.chance(8)) // beside the product itself, which gradients go through
      pool.push_back(wholeProduct(x, y, transposed, result, static_cast<double>(depth)));
    return node("MatMul", use(x) + ", " + use(y) + transposed, result, -bound, bound);
  }

  /// Two products by the same matrix: contributions to its gradient are added.
  int addTied(int x) {
    if (shape(x).size() < 2)
      return addUnary(x);
    int w = parameter({shape(x).back(), shape(x).back()});
    double depth = std::sqrt(static_cast<double>(shape(x).back()));
    double bound = 2 * magnitude(x) * magnitude(w) * depth;
    int once = node("MatMul", use(x) + ", " + use(w), shape(x), -bound, bound);
    int bounded = node("Tanh", use(once), shape(x), -1, 1);
    bound = 2 * magnitude(w) * depth;
    return node("MatMul", use(bounded) + ", " + use(w), shape(x), -bound, bound);
  }

  /// A product of the signs of two values in whole numbers.
  int wholeProduct(int x, int y, const std::string &transposed, const Shape &result, double bound) {
    std::string type = random.chance(50) ? "i64" : "i32";
    std::string operands;
    for (int operand : {x, y}) {
      int sign = node("Sign", use(operand), shape(operand), -1, 1);
      int whole = node("Cast", use(sign) + ", " + type, shape(operand), -1, 1, type);
      operands += (operands.empty() ? "" : ", ") + use(whole);
    }
    int product = node("MatMul", operands + transposed, result, -bound, bound, type);
    return node("Cast", use(product) + ", " + network.type, result, -bound, bound);
  }

  int addBiasAdd(int x) {
    if (shape(x).size() < 2)
      return addBinary(x);
    bool last = shape(x).size() < 4 || random.chance(50);
    int64_t channels = last ? shape(x).back() : shape(x)[1];
    int bias = parameter({channels});
    std::string arguments = use(x) + ", " + use(bias);
    if (last && shape(x).size() > 3)
      arguments += ", data_format: NHWC";
    double bound = magnitude(x) + 1;
    return node("BiasAdd", arguments, shape(x), -bound, bound);
  }

  int addCondition(int x) {
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

  int addSelect(int x) {
    int condition = addCondition(valueOfShape(shape(x), x));
    if (random.chance(20)) {
      int number = node("Cast", use(condition) + ", " + network.type, shape(x), 0, 1);
      return node("Mul", use(number) + ", " + use(x), shape(x), -magnitude(x), magnitude(x));
    }
    int y = partner(x);
    double most = std::max(magnitude(x), magnitude(y));
    return node("Select", use(condition) + ", " + use(x) + ", " + use(y), shape(x), -most, most);
  }

  int addReduction(int x) {
    if (shape(x).empty())
      return addUnary(x);
    static const std::vector<std::string> ops = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
    std::string op = random.pick(ops);
    if (op == "ReduceProd" && magnitude(x) > 1)
      x = node("Tanh", use(x), shape(x), -1, 1);
    bool keep = random.chance(40);
    int64_t rank = static_cast<int64_t>(shape(x).size());
    Shape axes, result;
    for (int64_t dim = 0; dim < rank; ++dim) {
      bool reduced = random.chance(rank == 1 ? 60 : 45);
      if (reduced)
        axes.push_back(random.chance(25) ? dim - rank : dim);
      if (!reduced || keep)
        result.push_back(reduced ? 1 : shape(x)[dim]);
    }
    if (axes.empty()) // an empty tuple means all
      result = keep ? Shape(rank, 1) : Shape();
    double count = static_cast<double>(countOf(shape(x))) / static_cast<double>(countOf(result));
    double bound = magnitude(x) * (op == "ReduceSum" ? 2 * std::sqrt(count) : 1);
    std::string arguments = use(x);
    if (!axes.empty())
      arguments += ", " + tuple(axes);
    if (keep)
      arguments += ", keep_dims: true";
    return node(op, arguments, result, -bound, bound);
  }

  /// Splits, merges and new dimensions of size 1.
  Shape otherShape(Shape shape) {
    for (int64_t change = random.between(1, 3); change > 0; --change) {
      size_t rank = shape.size();
      int64_t kind = random.below(5);
      if (kind <= 1 && rank >= 2) { // merge two neighbours
        size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(rank) - 1));
        shape[at] *= shape[at + 1];
        shape.erase(shape.begin() + static_cast<long>(at) + 1);
      } else if (kind <= 3 && rank >= 1) { // split one
        size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(rank)));
        for (int64_t divisor : {random.between(2, 6), int64_t{2}, int64_t{3}})
          if (shape[at] % divisor == 0 && shape[at] > divisor && rank < 5) {
            shape[at] /= divisor;
            shape.insert(shape.begin() + static_cast<long>(at) + random.below(2), divisor);
            break;
          }
      } else if (rank < 4) {
        shape.insert(shape.begin() + random.below(static_cast<int64_t>(rank) + 1), 1);
      }
    }
    return shape;
  }

  int addReshape(int x) {
    Shape result = otherShape(shape(x)), written = result;
    if (!written.empty() && random.chance(30))
      written[static_cast<size_t>(random.below(static_cast<int64_t>(written.size())))] = -1;
    return node("Reshape", use(x) + ", " + tuple(written), result, values[x].low, values[x].high);
  }

  /// Dimensions of size 1 made and left out, or all but the first merged.
  int addView(int x) {
    auto rank = static_cast<int64_t>(shape(x).size());
    if (rank >= 1 && random.chance(30)) {
      int64_t rest = countOf(Shape(shape(x).begin() + 1, shape(x).end()));
      return node("Flatten", use(x), {shape(x)[0], rest}, values[x].low, values[x].high);
    }
    auto one = std::find(shape(x).begin(), shape(x).end(), 1);
    if (one == shape(x).end() && rank < 4) {
      int64_t axis = random.between(-rank - 1, rank);
      Shape result = shape(x);
      result.insert(result.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
      x = node("ExpandDims", use(x) + ", " + std::to_string(axis), result, values[x].low, values[x].high);
      one = std::find(shape(x).begin(), shape(x).end(), 1);
      if (random.chance(60))
        return x;
    }
    if (one == shape(x).end())
      return addReshape(x);
    Shape result = shape(x);
    bool all = random.chance(50);
    std::string axis = all ? "" : ", " + std::to_string(one - shape(x).begin());
    all ? static_cast<void>(std::erase(result, 1)) : static_cast<void>(result.erase(result.begin() + (one - shape(x).begin())));
    return node("Squeeze", use(x) + axis, result, values[x].low, values[x].high);
  }

  int addSlice(int x) {
    if (shape(x).empty() || random.chance(50))
      return shape(x).empty() ? addUnary(x) : addStridedSlice(x);
    Shape begin, size, result;
    for (int64_t whole : shape(x)) {
      bool cuts = random.chance(55);
      begin.push_back(cuts ? random.below(whole) : 0);
      result.push_back(cuts ? random.between(1, whole - begin.back()) : whole);
      size.push_back(begin.back() + result.back() == whole && random.chance(40) ? -1 : result.back());
    }
    return node("Slice", use(x) + ", " + tuple(begin) + ", " + tuple(size), result, values[x].low, values[x].high);
  }

  /// Entries of a StridedSlice, one by one.
  struct Entries {
    Shape begin, end, strides, result;
    std::map<std::string, int64_t> masks;
    void set(const std::string &mask) { masks[mask] |= int64_t{1} << begin.size(); }
    void add(int64_t first, int64_t behind, int64_t stride) {
      begin.push_back(first);
      end.push_back(behind);
      strides.push_back(stride);
    }
  };

  /// One dimension: every n-th element forwards or backwards, or one element alone.
  void takeSome(Entries &entries, int64_t size, bool mayShrink) {
    int64_t first = random.below(size), stride = random.pick<int64_t>({1, 1, 1, 2, 3, -1, -2});
    if (mayShrink && random.chance(15)) {
      entries.set("shrink_axis_mask");
      return entries.add(random.chance(50) ? first : first - size, 0, 1);
    }
    if (stride < 0 ? first == 0 : first == size - 1)
      first = size - 1 - first; // there is something to take
    int64_t most = stride > 0 ? (size - first + stride - 1) / stride : first / -stride + 1;
    int64_t count = random.between(std::min<int64_t>(2, most), most), behind = first + stride * count;
    entries.result.push_back(count);
    if (behind < 0 || (count == most && random.chance(40)))
      entries.set("end_mask");
    if ((stride > 0 ? first == 0 : first == size - 1) && random.chance(40))
      entries.set("begin_mask");
    behind = std::clamp<int64_t>(behind, 0, size + 3);
    entries.add(random.chance(30) ? first - size : first, behind, stride);
  }

  int addStridedSlice(int x) {
    Entries entries;
    size_t dim = 0;
    bool ellipsis = false;
    while (dim < shape(x).size() && !(dim > 0 && random.chance(20))) {
      if (random.chance(10) && shape(x).size() < 4) {
        entries.set("new_axis_mask");
        entries.add(0, 0, 1);
        entries.result.push_back(1);
      } else if (!ellipsis && random.chance(12)) {
        ellipsis = true;
        entries.set("ellipsis_mask");
        entries.add(0, 0, 1);
        size_t named = static_cast<size_t>(random.below(static_cast<int64_t>(shape(x).size() - dim) + 1));
        for (; dim < shape(x).size() - named; ++dim)
          entries.result.push_back(shape(x)[dim]);
        for (; dim < shape(x).size(); ++dim)
          takeSome(entries, shape(x)[dim], false);
      } else {
        takeSome(entries, shape(x)[dim++], shape(x).size() > 1);
      }
    }
    for (; dim < shape(x).size(); ++dim)
      entries.result.push_back(shape(x)[dim]);
    std::string arguments = use(x) + ", " + tuple(entries.begin) + ", " + tuple(entries.end) + ", " + tuple(entries.strides);
    for (const auto &[mask, bits] : entries.masks)
      arguments += ", " + mask + ": " + std::to_string(bits);
    return node("StridedSlice", arguments, entries.result, values[x].low, values[x].high);
  }

  /// An operator with a result per shape; the pool gets all but the last, which is returned.
  int parts(const std::string &op, const std::string &arguments, const std::vector<Shape> &shapes, int x) {
    double low = values[x].low, high = values[x].high;
    std::string name = "v" + std::to_string(network.nodes.size());
    network.nodes.push_back({name, op, use(x) + ", " + arguments, shapes.size()});
    int result = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      result = add({i == 0 ? name : name + "_" + std::to_string(i), network.type, shapes[i], low, high});
      if (i + 1 < shapes.size() && random.chance(70))
        pool.push_back(result);
    }
    return result;
  }

  int addParts(int x) {
    if (shape(x).empty())
      return addUnary(x);
    auto rank = static_cast<int64_t>(shape(x).size());
    int64_t axis = random.between(-rank, rank - 1), dim = axis < 0 ? axis + rank : axis, size = shape(x)[dim];
    Shape part = shape(x);
    if (size <= 4 && random.chance(40)) {
      part.erase(part.begin() + dim);
      return parts("Unstack", std::to_string(axis) + (random.chance(50) ? ", " + std::to_string(size) : ""),
                   std::vector<Shape>(static_cast<size_t>(size), part), x);
    }
    for (int64_t count : {random.between(2, 4), int64_t{2}, int64_t{3}})
      if (size % count == 0 && random.chance(70)) {
        part[dim] = size / count;
        return parts("Split", "axis: " + std::to_string(axis) + ", output_num: " + std::to_string(count),
                     std::vector<Shape>(static_cast<size_t>(count), part), x);
      }
    std::vector<Shape> shapes;
    Shape sizes;
    for (int64_t left = size; left > 0; left -= sizes.back()) {
      sizes.push_back(sizes.size() == 2 ? left : random.between(1, left));
      part[dim] = sizes.back();
      shapes.push_back(part);
    }
    if (random.chance(30))
      sizes[static_cast<size_t>(random.below(static_cast<int64_t>(sizes.size())))] = -1;
    return parts("SplitV", tuple(sizes) + ", " + std::to_string(axis), shapes, x);
  }

  int addJoin(int x) {
    auto rank = static_cast<int64_t>(shape(x).size());
    bool stacks = rank == 0 || (rank < 4 && random.chance(40));
    int64_t places = stacks ? rank + 1 : rank, axis = random.between(-places, places - 1);
    int64_t dim = axis < 0 ? axis + places : axis;
    Shape result = shape(x);
    if (stacks)
      result.insert(result.begin() + dim, 1);
    double most = magnitude(x);
    std::string arguments = use(x);
    for (int64_t more = random.between(1, 2); more > 0; --more) {
      Shape wanted = shape(x);
      if (!stacks && random.chance(60))
        wanted[dim] = random.between(1, 5);
      int other = random.chance(15) ? x : valueOfShape(wanted, x);
      arguments += ", " + use(other);
      most = std::max(most, magnitude(other));
      result[dim] += stacks ? 1 : shape(other)[dim];
    }
    if (random.chance(40))
      arguments = "(" + arguments + ")";
    return node(stacks ? "Stack" : "Concat", arguments + ", " + std::to_string(axis), result, -most, most);
  }

  /// "((1, 2), (0, 0))" for each dimension, and the shape with these added.
  std::string paddings(Shape &shape, int64_t least, int64_t repeated) {
    std::string text = "(";
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t most = std::min<int64_t>(3, shape[dim] - 1 + repeated), before = 0, behind = 0;
      if (most >= least && random.chance(50)) {
        before = random.between(0, most);
        behind = random.between(0, most);
      }
      text += (dim ? ", (" : "(") + std::to_string(before) + ", " + std::to_string(behind) + ")";
      shape[dim] += before + behind;
    }
    return text + ")";
  }

  /// Elements around a value, copies of it, or its elements in another order.
  int addAround(int x) {
    if (shape(x).empty())
      return addUnary(x);
    double low = values[x].low, high = values[x].high;
    Shape result = shape(x);
    auto rank = static_cast<int64_t>(result.size());
    int64_t axis = random.between(-rank, rank - 1);
    switch (random.below(5)) {
    case 0: {
      std::string text = paddings(result, 0, 4); // zeros: any number
      return node("Pad", use(x) + ", " + text, result, std::min(low, 0.0), std::max(high, 0.0));
    }
    case 1: {
      bool symmetric = random.chance(50);
      std::string text = paddings(result, 1, symmetric ? 1 : 0);
      return node("MirrorPad", use(x) + ", " + text + (symmetric ? ", mode: SYMMETRIC" : ""), result, low, high);
    }
    case 2: {
      Shape multiples;
      for (int64_t &size : result) {
        multiples.push_back(random.chance(45) ? random.between(2, 3) : 1);
        size *= multiples.back();
      }
      if (rank < 4 && random.chance(25)) {
        multiples.insert(multiples.begin(), random.between(1, 3));
        result.insert(result.begin(), multiples.front());
      }
      return node("Tile", use(x) + ", " + tuple(multiples), result, low, high);
    }
    case 3:
      return node("Roll", use(x) + ", " + std::to_string(random.between(-9, 9)) + ", " + std::to_string(axis), result, low, high);
    default: return node("ReverseV2", use(x) + ", " + std::to_string(axis), result, low, high);
    }
  }

  int addTriangle(int x) {
    if (shape(x).size() < 2)
      return addView(x);
    int64_t diagonal = random.between(-2, 2);
    return node(random.chance(50) ? "Triu" : "Tril", use(x) + (diagonal ? ", " + std::to_string(diagonal) : ""), shape(x),
                std::min(values[x].low, 0.0), std::max(values[x].high, 0.0));
  }

  int addTranspose(int x) {
    if (shape(x).size() < 2)
      return addReshape(x);
    Shape order(shape(x).size()), result;
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    for (int64_t dim : order)
      result.push_back(shape(x)[static_cast<size_t>(dim)]);
    return node("Transpose", use(x) + ", " + tuple(order), result, values[x].low, values[x].high);
  }

  int addBroadcast(int x) {
    Shape result = shape(x);
    for (int64_t &size : result)
      if (size == 1)
        size = random.between(2, 5);
    if (result == shape(x) && result.size() < 4)
      result.insert(result.begin(), random.between(2, 4));
    if (result.size() < 2)
      result.insert(result.begin(), random.between(2, 4));
    Shape written = result;
    for (size_t back = 1; back <= shape(x).size(); ++back)
      if (random.chance(20) && shape(x)[shape(x).size() - back] == result[result.size() - back])
        written[written.size() - back] = -1;
    return node("BroadcastTo", use(x) + ", " + tuple(written), result, values[x].low, values[x].high);
  }

  int addCast(int x) {
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

  int addNormalised(int x) {
    if (shape(x).empty() || countOf(shape(x)) == 0)
      return addUnary(x);
    auto rank = static_cast<int64_t>(shape(x).size());
    if (random.chance(50)) {
      int64_t axis = random.between(-rank, rank - 1);
      std::string arguments = use(x) + (axis == -1 ? "" : ", axis: " + std::to_string(axis));
      if (random.chance(50))
        return node("Softmax", arguments, shape(x), 0, 1);
      return node("LogSoftmax", arguments, shape(x), -2 * magnitude(x) - 4, 0);
    }
    int64_t first = random.below(rank), params = random.below(rank);
    bool layer = random.chance(50);
    if (!layer)
      params = first;
    int gamma = parameter(Shape(shape(x).begin() + params, shape(x).end()));
    double bound = std::sqrt(static_cast<double>(countOf(Shape(shape(x).begin() + first, shape(x).end())))) + 1;
    if (!layer)
      return node("RmsNorm", use(x) + ", " + use(gamma) + ", epsilon: 0.125", shape(x), -bound, bound);
    int beta = parameter(shape(gamma));
    std::string axes = ", begin_norm_axis: " + std::to_string(random.chance(50) ? first : first - rank) +
                       ", begin_params_axis: " + std::to_string(params);
    return node("LayerNorm", use(x) + ", " + use(gamma) + ", " + use(beta) + axes + ", epsilon: 0.125", shape(x), -bound,
                bound);
  }

  int addGroupNorm(int x) {
    if (shape(x).size() < 2 || countOf(shape(x)) == 0)
      return addUnary(x);
    Shape channels{shape(x)[1]};
    int64_t groups = groupOf(channels[0]);
    int weight = parameter(channels), bias = parameter(channels);
    double bound = std::sqrt(static_cast<double>(countOf(shape(x)) / shape(x)[0] / groups)) + 1;
    return node("GroupNorm", use(x) + ", " + use(weight) + ", " + use(bias) + ", " + std::to_string(groups) + ", eps: 0.125", shape(x),
                -bound, bound);
  }

  /// The value itself if it has four dimensions, else its elements as images; -1 if they cannot be.
  int image(int x) {
    if (shape(x).size() == 4)
      return x;
    Shape parts{1, 1, 1, 1};
    int64_t rest = countOf(shape(x));
    for (int64_t divisor = 2; divisor <= rest && rest > 1; ++divisor)
      for (; rest % divisor == 0; rest /= divisor)
        *std::min_element(parts.begin(), parts.end()) *= divisor;
    std::sort(parts.begin(), parts.end());
    if (countOf(parts) == 0 || parts.back() > 40)
      return -1;
    if (random.chance(60)) // many images, small or large ones
      std::swap(parts[0], parts[2]);
    return node("Reshape", use(x) + ", " + tuple(parts), parts, values[x].low, values[x].high);
  }

  /// Windows over `shape` as attributes; `kernel` gets their sizes and `result` how many there are, in both directions.
  std::string windows(const Shape &shape, const char *stride, bool dilated, Shape &kernel, Shape &result) {
    kernel = {random.between(1, std::min<int64_t>(3, shape[2])), random.between(1, std::min<int64_t>(3, shape[3]))};
    Shape strides{random.between(1, 2), random.between(1, 3)}, pad(4, 0), dilation{1, 1};
    std::string mode = random.pick<std::string>({"valid", "same", "pad"});
    for (size_t side = 0; side < 4; ++side)
      pad[side] = random.below(kernel[side / 2]);
    result.clear();
    for (size_t d : {0, 1}) {
      if (dilated && random.chance(25) && 2 * kernel[d] - 1 <= shape[2 + d])
        dilation[d] = 2;
      int64_t room = shape[2 + d] - (kernel[d] - 1) * dilation[d] - 1 + (mode == "pad" ? pad[2 * d] + pad[2 * d + 1] : 0);
      result.push_back(mode == "same" ? (shape[2 + d] + strides[d] - 1) / strides[d] : room / strides[d] + 1);
    }
    return ", kernel_size: " + tuple(kernel) + ", " + stride + ": " + tuple(strides) + ", pad_mode: " + mode +
           (mode == "pad" ? ", pad: " + tuple(pad) : "") + (dilation != Shape{1, 1} ? ", dilation: " + tuple(dilation) : "");
  }

  /// A divisor of the channels, often 1 or all of them.
  int64_t groupOf(int64_t channels) {
    std::vector<int64_t> divisors{1, 1, channels};
    for (int64_t d = 2; d < channels; ++d)
      if (channels % d == 0)
        divisors.push_back(d);
    return random.pick(divisors);
  }

  int addConvolution(int value) {
    int x = image(value);
    if (x < 0)
      return addUnary(value);
    if (random.chance(25))
      return addTransposed(x);
    Shape kernel, result, in = shape(x);
    int64_t group = groupOf(in[1]), outputs = group * random.between(1, std::max<int64_t>(1, 6 / group));
    std::string attributes = windows(in, "stride", true, kernel, result);
    int w = parameter({outputs, in[1] / group, kernel[0], kernel[1]});
    result.insert(result.begin(), {in[0], outputs});
    double bound = 2 * magnitude(x) * std::sqrt(static_cast<double>(countOf(shape(w)) / outputs));
    return node("Conv2D", use(x) + ", " + use(w) + attributes + (group == 1 ? "" : ", group: " + std::to_string(group)), result,
                -bound, bound);
  }

  int addTransposed(int x) {
    Shape in = shape(x), kernel{random.between(1, 3), random.between(1, 3)}, stride{random.between(1, 2), random.between(1, 2)};
    int64_t group = groupOf(in[1]), perGroup = random.between(1, std::max<int64_t>(1, 4 / group));
    bool same = random.chance(40);
    Shape result{in[0], group * perGroup};
    for (size_t d : {0, 1})
      result.push_back(same ? in[2 + d] * stride[d] : (in[2 + d] - 1) * stride[d] + kernel[d]);
    int w = parameter({in[1], perGroup, kernel[0], kernel[1]});
    double bound = 2 * magnitude(x) * std::sqrt(static_cast<double>(kernel[0] * kernel[1] * in[1]));
    return node("Conv2DTranspose", use(x) + ", " + use(w) + ", stride: " + tuple(stride) + (same ? ", pad_mode: same" : "") +
                                       (group == 1 ? "" : ", group: " + std::to_string(group)), result, -bound, bound);
  }

  /// Elements kept at random, or times a random number by their signs.
  int addDropout(int x) {
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

  int addBatchNorm(int x) {
    if (shape(x).size() < 2 || countOf(shape(x)) == 0)
      return addUnary(x);
    Shape channels{shape(x)[1]};
    int gamma = parameter(channels), beta = parameter(channels);
    double bound = std::sqrt(static_cast<double>(countOf(shape(x)) / channels[0])) + 1;
    std::string arguments = use(x) + ", " + use(gamma) + ", " + use(beta) + ", ";
    if (random.chance(75)) {
      int mean = state(channels), variance = state(channels);
      return node("BatchNorm", arguments + use(mean) + ", " + use(variance) + (random.chance(50) ? "" : ", is_training: true") +
                                   ", epsilon: 0.125, momentum: 0.25", shape(x), -bound, bound);
    }
    int mean = parameter(channels), variance = positive(parameter(channels));
    bound = 4 * magnitude(x) + 8;
    return node("BatchNorm", arguments + use(mean) + ", " + use(variance) + ", is_training: false, epsilon: 0.125", shape(x), -bound, bound);
  }

  int addPool(int value) {
    int x = image(value);
    if (x < 0)
      return addUnary(value);
    int64_t kind = random.below(3);
    Shape result, kernel;
    if (kind == 0) {
      result = {random.between(1, std::min<int64_t>(3, shape(x)[2])), random.between(1, std::min<int64_t>(3, shape(x)[3]))};
      std::string size = tuple(result);
      result.insert(result.begin(), {shape(x)[0], shape(x)[1]});
      return node("AdaptiveAvgPool2D", use(x) + ", output_size: " + size, result, values[x].low, values[x].high);
    }
    std::string attributes = windows(shape(x), "strides", false, kernel, result);
    result.insert(result.begin(), {shape(x)[0], shape(x)[1]});
    if (kind == 1)
      return node("MaxPool", use(x) + attributes, result, values[x].low, values[x].high);
    attributes += random.chance(30) ? ", count_include_pad: true" : "";
    return node("AvgPool", use(x) + attributes, result, std::min(values[x].low, 0.0), std::max(values[x].high, 0.0));
  }

  /// Numbers in order, as floats up to 1.
  int addRange(int x) {
    if (shape(x).empty())
      return addUnary(x);
    int64_t size = shape(x).back(), delta = random.pick<int64_t>({-3, -1, 1, 2}), start = random.between(-4, 4);
    double bound = 4 + 3 * static_cast<double>(size);
    int whole = node("Range", "start: " + std::to_string(start) + ", limit: " + std::to_string(start + delta * size) +
                                  ", delta: " + std::to_string(delta), {size}, -bound, bound, "i32");
    int numbers = node("Cast", use(whole) + ", " + network.type, {size}, -bound, bound, network.type);
    int scaled = node("Mul", use(numbers) + ", " + std::to_string(1 / bound), {size}, -1, 1);
    return node("Add", use(x) + ", " + use(scaled), shape(x), values[x].low - 1, values[x].high + 1);
  }

  /// Cross entropy between a value and classes, or probabilities, that are computed from another; of each row.
  int crossEntropy(int x, const std::string &reduction, const Shape &result) {
    double most = 2 * magnitude(x) + 4;
    std::string target;
    bool sparse = random.chance(60);
    if (sparse) { // classes -1, which is none, 0 and 1
      int rows = parameter(Shape(shape(x).begin(), shape(x).end() - 1));
      int sign = node("Sign", use(rows), shape(rows), -1, 1);
      target = use(node("Cast", use(sign) + ", " + (random.chance(50) ? "i32" : "i64"), shape(rows), -1, 1, "i32"));
    } else {
      int other = valueOfShape(shape(x), x);
      target = use(node("Softmax", use(other), shape(x), 0, 1));
    }
    return node("SoftmaxCrossEntropyWithLogits", use(x) + ", " + target + (sparse ? ", sparse: true" : "") + reduction, result, 0, most);
  }

  /// A loss of terms: one per element, their sum or their mean.
  int termLoss(int x, const std::string &reduction, Shape result) {
    static const std::vector<std::string> ops = {"L1Loss", "SmoothL1Loss", "BinaryCrossEntropy", "BCEWithLogitsLoss", "KLDivLoss"};
    std::string op = random.pick(ops);
    int y = valueOfShape(shape(x), x);
    if (op == "BinaryCrossEntropy")
      x = node("Sigmoid", use(x), shape(x), 0, 1);
    if (op != "L1Loss" && op != "SmoothL1Loss")
      y = node("Sigmoid", use(y), shape(y), 0, 1);
    std::string arguments = use(x) + ", " + use(y);
    if (op == "BinaryCrossEntropy" || op == "BCEWithLogitsLoss")
      arguments += ", " + use(parameter(Shape(shape(x).end() - std::min<long>(1, static_cast<long>(shape(x).size())), shape(x).end())));
    if (op == "BCEWithLogitsLoss")
      arguments += ", 2.0";
    if (op == "SmoothL1Loss" && random.chance(50))
      arguments += ", beta: 0.25";
    double bound = 3 * (magnitude(x) + magnitude(y) + 1);
    return node(op, arguments + reduction, result, -bound, bound);
  }

  int addTermLoss(int x) {
    if (shape(x).empty() || countOf(shape(x)) == 0 || random.chance(45))
      return termLoss(x, ", reduction: none", shape(x));
    if (shape(x).back() < 2)
      return addReduction(x);
    // Classes 0 and 1.
    int sign = node("Sign", use(parameter(Shape(shape(x).begin(), shape(x).end() - 1))), Shape(shape(x).begin(), shape(x).end() - 1), -1, 1);
    int size = node("Abs", use(sign), shape(sign), 0, 1);
    int labels = node("Cast", use(size) + ", i32", shape(sign), 0, 1, "i32");
    if (random.chance(45))
      return node("SparseSoftmaxCrossEntropyWithLogits", use(x) + ", " + use(labels), {}, 0, 2 * magnitude(x) + 4);
    int weight = positive(parameter({shape(x).back()}));
    std::string word = random.pick<std::string>({"mean", "sum", "none"});
    double bound = 3 * magnitude(x);
    return node("NLLLoss", use(x) + ", " + use(labels) + ", " + use(weight) + ", reduction: " + word,
                word == "none" ? shape(sign) : Shape(), -bound, bound);
  }

  int addElementLoss(int x) {
    if (!shape(x).empty() && countOf(shape(x)) > 0 && random.chance(50))
      return crossEntropy(x, ", reduction: none", Shape(shape(x).begin(), shape(x).end() - 1));
    int y = valueOfShape(shape(x), x);
    double most = magnitude(x) + magnitude(y);
    return node("MSELoss", use(x) + ", " + use(y) + ", reduction: none", shape(x), 0, most * most);
  }

  //===-- the end ---------------------------------------------------------===//

  /// A scalar that depends on a value.
  int toScalar(int value) {
    if (!shape(value).empty() && countOf(shape(value)) > 0 && random.chance(20))
      return crossEntropy(value, random.chance(25) ? ", reduction: sum" : "", {});
    int64_t kind = random.below(4);
    if (countOf(shape(value)) > 0 && random.chance(15))
      return termLoss(value, random.chance(50) ? ", reduction: mean" : ", reduction: sum", {});
    if (kind == 0 && countOf(shape(value)) > 0) {
      Value label{"label" + std::to_string(network.inputs.size()), network.type, shape(value)};
      network.inputs.push_back(label);
      int target = add(label);
      double most = magnitude(value) + 1;
      std::string word = random.chance(25) ? ", reduction: sum" : "";
      return node("MSELoss", use(value) + ", " + use(target) + word, {}, 0, most * most);
    }
    if (kind == 1 && magnitude(value) < 3)
      value = node("Square", use(value), shape(value), 0, magnitude(value) * magnitude(value));
    double bound = magnitude(value) * 2 * std::sqrt(static_cast<double>(countOf(shape(value))));
    if (kind == 2)
      return node("ReduceSum", use(value), {}, -bound, bound);
    return node("ReduceMean", use(value), {}, values[value].low, values[value].high);
  }

  void finish() {
    int loss = toScalar(pool.back());
    if (std::all_of(network.parameters.begin(), network.parameters.end(), [](const Value &value) { return value.state; })) {
      int w = parameter({}); // something has to be trained
      loss = node("Mul", use(loss) + ", " + use(w), {}, -magnitude(loss), magnitude(loss));
    }
    for (int value : std::vector<int>(pool)) {
      bool isInput = std::any_of(network.inputs.begin(), network.inputs.end(),
                                 [&](const Value &input) { return input.name == values[value].name; });
      if (values[value].used || isInput)
        continue;
      if (network.nodes.size() < 34 && random.chance(60)) {
        int term = toScalar(value);
        loss = node("Add", use(loss) + ", " + use(term), {}, values[loss].low + values[term].low,
                    values[loss].high + values[term].high);
      } else {
        network.outputs.push_back(values[value].name);
      }
    }
    while (network.nodes.size() < 5)
      loss = node("Mul", use(loss) + ", 0.75", {}, values[loss].low, values[loss].high);
    network.nodes.back().name == values[loss].name ? rename(loss) : rename(node("Neg", use(loss), {}, -1, 1));
    network.optimizer = optimizer() + treatment();
    dropUnusedInputs();
  }

  void rename(int loss) {
    network.nodes.back().name = "loss";
    values[loss].name = "loss";
  }

  void dropUnusedInputs() {
    std::erase_if(network.inputs, [&](const Value &input) {
      return std::none_of(values.begin(), values.end(),
                          [&](const Value &value) { return value.name == input.name && value.used; });
    });
  }

  /// What becomes of gradients before the optimizer takes them.
  std::string treatment() {
    std::string text;
    if (random.chance(15))
      text += random.chance(50) ? ", loss_scale: FixedLossScale(4)" : ", loss_scale: DynamicLossScale(4, scale_window: 1)";
    if (random.chance(10))
      text += ", accumulate_steps: 2";
    if (random.chance(15))
      text += ", clip_value: 0.5";
    if (random.chance(25))
      text += ", clip_global_norm: 0.25";
    return text;
  }

  std::string optimizer() {
    std::string rest;
    if (random.chance(40))
      rest += ", weight_decay: 0.01";
    if (random.chance(30))
      rest += ", loss_scale: 2.0";
    switch (random.below(10)) {
    case 0: return "Adam(0.01" + rest + (random.chance(40) ? ", use_nesterov: true)" : ")");
    case 1: return "AdamW(0.01" + rest + ")";
    case 2: return "AdamWeightDecay(0.01" + rest + ")";
    case 3: return "Lamb(0.01" + rest + ")";
    case 4: return "RMSProp(0.01" + rest + (random.chance(50) ? ", momentum: 0.5, centered: true)" : ")");
    case 5: return "Adagrad(0.01" + rest + ")";
    case 6: return "SGD(learning_rate: 0.05" + rest + ")";
    case 7: return "SGD(learning_rate: 0.05, momentum: 0.5" + rest + (random.chance(50) ? ", nesterov: true)" : ", dampening: 0.25)");
    default: return "Momentum(learning_rate: 0.1, momentum: 0.9" + rest + (random.chance(40) ? ", use_nesterov: true)" : ")");
    }
  }

  Random &random;
  Network network;
  std::vector<Value> values;
  std::vector<int> pool; ///< float values that operators may take
};

} // namespace

Network generateNetwork(Random &random) { return Builder(random).build(); }

} // namespace msc::e2e
