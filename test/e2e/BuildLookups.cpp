// Operators that look up, scan and reduce.
#include "test/e2e/NetworkBuilder.h"

namespace msc::e2e {

int NetworkBuilder::indices(const Shape &wanted, int64_t lowest, int64_t most) {
  int value = valueOfShape(wanted, -1);
  int bounded = node("Sigmoid", use(value), wanted, 0, 1);
  double width = static_cast<double>(most - lowest) + 0.9;
  int spread = node("Mul", use(bounded) + ", " + std::to_string(width), wanted, 0, std::min(width, mostMagnitude));
  int moved = node("Add", use(spread) + ", " + std::to_string(lowest), wanted, -1, mostMagnitude);
  int whole = node("Floor", use(moved), wanted, -1, mostMagnitude);
  std::string type = random.chance(50) ? "i32" : "i64";
  return node("Cast", use(whole) + ", " + type, wanted, -1, mostMagnitude, type);
}

int NetworkBuilder::addLookup(int x) {
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

int NetworkBuilder::extremumOfRows(int x, const Shape &ids) {
  int64_t segments = 1;
  Shape most(shape(x).begin() + static_cast<long>(ids.size()), shape(x).end());
  most.insert(most.begin(), segments);
  return node(random.chance(50) ? "UnsortedSegmentMax" : "UnsortedSegmentMin",
              use(x) + ", " + use(indices(ids, 0, 0)) + ", " + std::to_string(segments), most, values[x].low, values[x].high);
}

int NetworkBuilder::addIndexed(int x) {
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

int NetworkBuilder::addNamesake(int x) {
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

int NetworkBuilder::addScan(int x) {
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

int NetworkBuilder::addReduction(int x) {
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

} // namespace msc::e2e
