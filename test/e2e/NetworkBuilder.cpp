// Values, the draw among operators, and the end of a network.
#include "test/e2e/NetworkBuilder.h"

namespace msc::e2e {

/// Number of results of an operator.
static int resultsOf(const std::string &op) {
  static const std::map<std::string, int> several = {
      {"LayerNorm", 3}, {"BatchNorm", 3}, {"RmsNorm", 2}, {"NLLLoss", 2}, {"ArgMaxWithValue", 2}, {"ArgMinWithValue", 2},
      {"TopK", 2}, {"Dropout", 2}, {"ScaledDotProductAttention", 2}, {"GroupNorm", 3}};
  auto found = several.find(op);
  return found == several.end() ? 1 : found->second;
}

NetworkBuilder::NetworkBuilder(Random &random) : random(random) {
  network.type = random.chance(50) ? "f32" : "f64";
  Shape batch = randomShape(random.between(2, 4));
  if (random.chance(50)) // enough samples for every device
    batch[0] = random.between(8, 13);
  addInput("x", batch);
  if (random.chance(25))
    addInput("z", randomShape(random.between(1, 3)));
}

Network NetworkBuilder::build() {
  int64_t wanted = random.between(5, 31);
  pool.push_back(addMatMul(0));
  while (static_cast<int64_t>(network.nodes.size()) < wanted)
    grow();
  finish();
  return std::move(network);
}

Shape NetworkBuilder::randomShape(int64_t rank) {
  Shape shape;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(random.chance(45) ? random.pick<int64_t>({2, 4, 6, 8, 12}) : random.between(1, rank > 2 ? 7 : 13));
  while (countOf(shape) > mostElements / 2)
    *std::max_element(shape.begin(), shape.end()) /= 2;
  return shape;
}

void NetworkBuilder::addInput(const std::string &name, const Shape &shape) {
  network.inputs.push_back({name, network.type, shape});
  pool.push_back(add({name, network.type, shape, -1, 1}));
}

int NetworkBuilder::add(Value value) {
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
}

int NetworkBuilder::parameter(const Shape &shape, double bound) {
  Value value{"w" + std::to_string(network.parameters.size()), network.type, shape, -bound, bound};
  network.parameters.push_back(value);
  return add(value);
}

int NetworkBuilder::state(const Shape &shape) {
  int index = parameter(shape);
  network.parameters.back().state = true;
  return index;
}

std::string NetworkBuilder::use(int index) {
  values[index].used = true;
  return "%" + values[index].name;
}

int NetworkBuilder::node(const std::string &op, const std::string &arguments, const Shape &shape, double low, double high,
           const std::string &type) {
  std::string name = "v" + std::to_string(network.nodes.size());
  auto results = static_cast<size_t>(resultsOf(op)); // the further ones are not used
  network.nodes.push_back({name, op, arguments, results, random.chance(10)});
  int result = add({name, type.empty() ? network.type : type, shape, low, high});
  return magnitude(result) > mostMagnitude && type.empty() ? squash(result) : result;
}

int NetworkBuilder::squash(int value) {
  if (random.chance(40))
    return node(random.chance(50) ? "Tanh" : "Sigmoid", use(value), shape(value), -1, 1);
  double factor = 1 / magnitude(value);
  return node("Mul", use(value) + ", " + std::to_string(factor), shape(value), values[value].low * factor,
              values[value].high * factor);
}

int NetworkBuilder::anyValue() {
  if (random.chance(60))
    for (size_t i = pool.size(); i-- > 0;)
      if (!values[pool[i]].used && random.chance(70))
        return pool[i];
  return random.pick(pool);
}

int NetworkBuilder::valueOfShape(const Shape &wanted, int other) {
  std::vector<int> fitting;
  for (int value : pool)
    if (value != other && shape(value) == wanted)
      fitting.push_back(value);
  return !fitting.empty() && random.chance(70) ? random.pick(fitting) : parameter(wanted);
}

int NetworkBuilder::positive(int value) {
  if (values[value].low >= 0.1)
    return value;
  if (random.chance(30)) {
    int squared = node(random.chance(50) ? "Abs" : "Sigmoid", use(value), shape(value), 0, magnitude(value));
    return node("Add", use(squared) + ", 0.5", shape(value), 0.5, values[squared].high + 0.5);
  }
  int bounded = node("Tanh", use(value), shape(value), -1, 1);
  return node("Exp", use(bounded), shape(value), std::exp(-1), std::exp(1));
}

void NetworkBuilder::grow() {
  using Step = int (NetworkBuilder::*)(int);
  static const std::vector<std::pair<int, Step>> steps = {
      {24, &NetworkBuilder::addUnary},   {18, &NetworkBuilder::addBinary},    {16, &NetworkBuilder::addMatMul}, {7, &NetworkBuilder::addBiasAdd},
      {8, &NetworkBuilder::addSelect},   {13, &NetworkBuilder::addReduction}, {9, &NetworkBuilder::addReshape}, {8, &NetworkBuilder::addTranspose},
      {5, &NetworkBuilder::addBroadcast}, {4, &NetworkBuilder::addCast},      {4, &NetworkBuilder::addElementLoss}, {5, &NetworkBuilder::addTied},
      {10, &NetworkBuilder::addNormalised}, {3, &NetworkBuilder::addRange},
      {46, &NetworkBuilder::addFunction}, {16, &NetworkBuilder::addQuotient}, {20, &NetworkBuilder::addLogical}, {12, &NetworkBuilder::addChoice},
      {14, &NetworkBuilder::addTermLoss}, {22, &NetworkBuilder::addLookup}, {9, &NetworkBuilder::addScan}, {12, &NetworkBuilder::addIndexed}, {10, &NetworkBuilder::addNamesake}, {9, &NetworkBuilder::addAttention}, {10, &NetworkBuilder::addGated}, {6, &NetworkBuilder::addGroupNorm}, {22, &NetworkBuilder::addPool}, {28, &NetworkBuilder::addConvolution}, {9, &NetworkBuilder::addBatchNorm},
      {18, &NetworkBuilder::addView}, {16, &NetworkBuilder::addSlice}, {20, &NetworkBuilder::addParts}, {18, &NetworkBuilder::addJoin},
      {34, &NetworkBuilder::addAround}, {14, &NetworkBuilder::addTriangle}, {8, &NetworkBuilder::addDropout}};
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

int NetworkBuilder::toScalar(int value) {
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

void NetworkBuilder::finish() {
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

void NetworkBuilder::rename(int loss) {
  network.nodes.back().name = "loss";
  values[loss].name = "loss";
}

void NetworkBuilder::dropUnusedInputs() {
  std::erase_if(network.inputs, [&](const Value &input) {
    return std::none_of(values.begin(), values.end(),
                        [&](const Value &value) { return value.name == input.name && value.used; });
  });
}

std::string NetworkBuilder::treatment() {
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

std::string NetworkBuilder::optimizer() {
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

} // namespace msc::e2e
