#include "test/passes/partition/RandomNetwork.h"

#include "passes/sharding/Convert.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace msc::test {

using Sizes = std::vector<int64_t>;

static std::string typeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f64";
}

static std::string listText(ArrayRef<int64_t> list) {
  return "array<i64" + std::string(list.empty() ? "" : ": ") +
         llvm::join(llvm::map_range(list, [](int64_t i) { return std::to_string(i); }), ", ") + ">";
}

RandomNetwork::RandomNetwork(TestNetwork &network, uint64_t seed) : network(network), random(seed) {
  Sizes shape;
  for (int64_t rank = 2 + below(2); rank > 0; --rank)
    shape.push_back(2 + below(7));
  pool.push_back(network.input("x", typeText(shape)));
  pool.push_back(network.input("y", typeText(shape)));
  // Everything that is differentiated hangs on this parameter.
  pool.push_back(network.value("Mul", {pool[0], fresh(shape)}, "", "start"));
  for (int64_t steps = 4 + below(14); steps > 0; --steps)
    if (Value made = step())
      pool.push_back(made);
  Value last = pool.back();
  Value loss = below(2) ? network.value("MSELoss", {last, fresh(passes::shapeOf(last))}, "", "loss")
                        : network.value("ReduceMean", {network.value("Square", {last}, "", "squares")},
                                        "{axis = array<i64>}", "loss");
  network.results({loss, last}, {"loss", "last"});
}

/// Mostly recent values, so that networks are deep.
Value RandomNetwork::pick() {
  int64_t back = std::min(below(static_cast<int64_t>(pool.size())), below(static_cast<int64_t>(pool.size())));
  return pool[pool.size() - 1 - back];
}

/// A parameter, sometimes one that is used already.
Value RandomNetwork::fresh(ArrayRef<int64_t> shape) {
  for (auto param : network.network.getBody().getOps<net::ParamOp>())
    if (passes::shapeOf(param.getValue()) == shape.vec() && below(2))
      return param.getValue();
  OpBuilder::InsertionGuard guard(network.builder);
  Block &block = network.network.getBody().front();
  network.builder.setInsertionPointToStart(&block);
  return network.param("p" + std::to_string(names++), typeText(shape));
}

/// Operators that copy boxes of elements, along one dimension.
Value RandomNetwork::movement(Value x, const std::string &name) {
  Sizes shape = passes::shapeOf(x);
  auto rank = static_cast<int64_t>(shape.size()), dim = below(std::max<int64_t>(rank, 1));
  if (rank == 0)
    return {};
  std::string axis = std::to_string(dim);
  Sizes begin(rank, 0), size = shape, pads(2 * rank, 0);
  switch (below(8)) {
  case 0: {
    begin[dim] = below(shape[dim]);
    size[dim] = 1 + below(shape[dim] - begin[dim]);
    return network.value("Slice", {x}, "{begin = " + listText(begin) + ", size = " + listText(size) + "}", name);
  }
  case 1: {
    int64_t first = 1 + below(shape[dim]);
    Sizes sizes = first == shape[dim] ? Sizes{first} : Sizes{first, shape[dim] - first};
    Operation *split = network.op("SplitV", {x}, "{size_splits = " + listText(sizes) + ", split_dim = " + axis + "}");
    if (sizes.size() == 2 && below(2)) // both parts, the other way round
      return network.value("Concat", {split->getResult(1), split->getResult(0)}, "{axis = " + axis + "}", name);
    return split->getResult(0);
  }
  case 2: {
    Sizes other = shape;
    other[dim] = 1 + below(4);
    return network.value("Concat", {x, below(4) ? fresh(other) : x, x}, "{axis = " + axis + "}", name);
  }
  case 3: {
    pads[2 * dim] = below(3);
    pads[2 * dim + 1] = below(3);
    return network.value("Pad", {x}, "{paddings = " + listText(pads) + "}", name);
  }
  case 4: {
    pads[2 * dim] = below(shape[dim]);
    pads[2 * dim + 1] = below(shape[dim]);
    return network.value("MirrorPad", {x}, "{paddings = " + listText(pads) + "}", name);
  }
  case 5:
    return network.value("Roll", {x}, "{shift = " + listText({below(9) - 4}) + ", axis = " + listText({dim}) + "}", name);
  case 6: {
    Sizes strides(rank, 1);
    begin[dim] = shape[dim] - 1;
    size[dim] = 0;
    strides[dim] = -1 - below(2);
    return network.value("StridedSlice", {x},
                         "{begin = " + listText(begin) + ", end = " + listText(size) + ", strides = " + listText(strides) +
                             ", end_mask = " + std::to_string(int64_t{1} << dim) + "}",
                         name);
  }
  default: {
    Sizes times(rank, 1);
    times[dim] = 2;
    return network.value("Tile", {x}, "{multiples = " + listText(times) + "}", name);
  }
  }
}

Value RandomNetwork::step() {
  Value x = pick();
  Sizes shape = passes::shapeOf(x);
  auto rank = static_cast<int64_t>(shape.size());
  std::string name = "v" + std::to_string(names++);
  switch (below(12)) {
  case 0:
  case 1: { // columns of a new or used parameter
    if (rank < 2)
      return {};
    for (Value other : pool)
      if (Sizes sizes = passes::shapeOf(other); rank == 2 && sizes.size() == 2 && sizes[0] == shape[1] && below(2))
        return network.value("MatMul", {x, other}, "", name);
    for (auto param : network.network.getBody().getOps<net::ParamOp>())
      if (Sizes sizes = passes::shapeOf(param.getValue()); sizes.size() == 2 && sizes[0] == shape.back() && below(2))
        return network.value("MatMul", {x, param.getValue()}, "", name);
    bool transposed = below(2);
    int64_t columns = 2 + below(7);
    Value w = fresh(transposed ? Sizes{columns, shape.back()} : Sizes{shape.back(), columns});
    return network.value("MatMul", {x, w}, transposed ? "{transpose_b = true}" : "", name);
  }
  case 2: { // the same shape, another branch
    const char *ops[] = {"Add", "Sub", "Mul", "Maximum"};
    for (Value other : pool)
      if (other != x && passes::shapeOf(other) == shape)
        return network.value(ops[below(4)], {x, other}, "", name);
    return network.value("Add", {x, x}, "", name);
  }
  case 3: { // broadcast from the right
    Sizes small(shape.begin() + below(rank + 1), shape.end());
    for (int64_t &size : small)
      size = below(3) ? size : 1;
    return network.value("Mul", {x, fresh(small)}, "", name);
  }
  case 4:
    return rank >= 2 ? network.value("BiasAdd", {x, fresh({shape[1]})}, "", name) : Value();
  case 5:
    return rank >= 2 ? network.value("ReduceSum", {x}, "{axis = " + listText({below(rank)}) + "}", name) : Value();
  case 6:
    return rank >= 2
               ? network.value("ReduceMean", {x}, "{axis = " + listText({below(rank)}) + ", keep_dims = true}", name)
               : Value();
  case 7: {
    Sizes order;
    for (int64_t i = 0; i < rank; ++i)
      order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    return network.value("Transpose", {x}, "{perm = " + listText(order) + "}", name);
  }
  case 8: { // merge two neighbours
    if (rank < 3)
      return {};
    Sizes merged = shape;
    int64_t at = below(rank - 1);
    merged[at] *= merged[at + 1];
    merged.erase(merged.begin() + at + 1);
    return network.value("Reshape", {x}, "{shape = " + listText(merged) + "}", name);
  }
  case 9: { // split one in two
    for (int64_t dim = 0; dim < rank && rank < 4; ++dim)
      for (int64_t factor : {2, 3})
        if (shape[dim] % factor == 0 && shape[dim] > factor) {
          Sizes split = shape;
          split[dim] = factor;
          split.insert(split.begin() + dim + 1, shape[dim] / factor);
          return network.value("Reshape", {x}, "{shape = " + listText(split) + "}", name);
        }
    return {};
  }
  case 10:
    return movement(x, name);
  default: {
    const char *ops[] = {"ReLU", "Tanh", "Sigmoid", "Square", "Neg"};
    return network.value(ops[below(5)], {x}, "", name);
  }
  }
}

void RandomNetwork::configure(int64_t devices, double share) {
  for (Operation &op : network.network.getBody().front()) {
    if (!passes::hasRule(&op) || std::uniform_real_distribution<>(0, 1)(random) >= share)
      continue;
    passes::OperatorFacts facts = passes::factsOf(&op);
    std::vector<passes::Pieces> all = passes::candidates(facts, devices);
    net::setInStrategy(&op, passes::inStrategy(facts.rule, all[below(static_cast<int64_t>(all.size()))]));
  }
}

std::map<std::string, reference::Tensor> RandomNetwork::values() {
  std::map<std::string, reference::Tensor> given;
  for (Value input : network.network.getBody().getArguments())
    given[net::getValueName(input).str()] = randomTensor(input.getType(), Domain::Any, random);
  for (auto param : network.network.getBody().getOps<net::ParamOp>())
    given[param.getName().str()] = randomTensor(param.getValue().getType(), Domain::Any, random);
  given["learning_rate"] = reference::Tensor({}, 0.2);
  return given;
}

} // namespace msc::test
