// Products, attention, norms, convolutions, pooling, losses.
#include "test/e2e/NetworkBuilder.h"

namespace msc::e2e {

int NetworkBuilder::addAttention(int x) {
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

int NetworkBuilder::mask(Shape wanted) {
  for (int64_t &size : wanted)
    if (random.chance(35))
      size = 1;
  wanted.erase(wanted.begin(), wanted.begin() + random.below(3));
  int given = parameter(wanted);
  return random.chance(65) ? given : node("GreaterEqual", use(given) + ", -0.25", wanted, 0, 1, "bool");
}

int NetworkBuilder::addMatMul(int x) {
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

int NetworkBuilder::addTied(int x) {
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

int NetworkBuilder::wholeProduct(int x, int y, const std::string &transposed, const Shape &result, double bound) {
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

int NetworkBuilder::addBiasAdd(int x) {
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

int NetworkBuilder::addNormalised(int x) {
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

int NetworkBuilder::addGroupNorm(int x) {
  if (shape(x).size() < 2 || countOf(shape(x)) == 0)
    return addUnary(x);
  Shape channels{shape(x)[1]};
  int64_t groups = groupOf(channels[0]);
  int weight = parameter(channels), bias = parameter(channels);
  double bound = std::sqrt(static_cast<double>(countOf(shape(x)) / shape(x)[0] / groups)) + 1;
  return node("GroupNorm", use(x) + ", " + use(weight) + ", " + use(bias) + ", " + std::to_string(groups) + ", eps: 0.125", shape(x),
              -bound, bound);
}

int NetworkBuilder::image(int x) {
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

std::string NetworkBuilder::windows(const Shape &shape, const char *stride, bool dilated, Shape &kernel, Shape &result) {
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

int64_t NetworkBuilder::groupOf(int64_t channels) {
  std::vector<int64_t> divisors{1, 1, channels};
  for (int64_t d = 2; d < channels; ++d)
    if (channels % d == 0)
      divisors.push_back(d);
  return random.pick(divisors);
}

int NetworkBuilder::addConvolution(int value) {
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

int NetworkBuilder::addTransposed(int x) {
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

int NetworkBuilder::addBatchNorm(int x) {
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

int NetworkBuilder::addPool(int value) {
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

int NetworkBuilder::crossEntropy(int x, const std::string &reduction, const Shape &result) {
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

int NetworkBuilder::termLoss(int x, const std::string &reduction, Shape result) {
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

int NetworkBuilder::addTermLoss(int x) {
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

int NetworkBuilder::addElementLoss(int x) {
  if (!shape(x).empty() && countOf(shape(x)) > 0 && random.chance(50))
    return crossEntropy(x, ", reduction: none", Shape(shape(x).begin(), shape(x).end() - 1));
  int y = valueOfShape(shape(x), x);
  double most = magnitude(x) + magnitude(y);
  return node("MSELoss", use(x) + ", " + use(y) + ", reduction: none", shape(x), 0, most * most);
}

} // namespace msc::e2e
