// Operators that move elements and change shapes.
#include "test/e2e/NetworkBuilder.h"

namespace msc::e2e {

Shape NetworkBuilder::otherShape(Shape shape) {
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

int NetworkBuilder::addReshape(int x) {
  Shape result = otherShape(shape(x)), written = result;
  if (!written.empty() && random.chance(30))
    written[static_cast<size_t>(random.below(static_cast<int64_t>(written.size())))] = -1;
  return node("Reshape", use(x) + ", " + tuple(written), result, values[x].low, values[x].high);
}

int NetworkBuilder::addView(int x) {
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

int NetworkBuilder::addSlice(int x) {
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

void NetworkBuilder::takeSome(Entries &entries, int64_t size, bool mayShrink) {
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

int NetworkBuilder::addStridedSlice(int x) {
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

int NetworkBuilder::parts(const std::string &op, const std::string &arguments, const std::vector<Shape> &shapes, int x) {
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

int NetworkBuilder::addParts(int x) {
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

int NetworkBuilder::addJoin(int x) {
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

std::string NetworkBuilder::paddings(Shape &shape, int64_t least, int64_t repeated) {
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

int NetworkBuilder::addAround(int x) {
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

int NetworkBuilder::addTriangle(int x) {
  if (shape(x).size() < 2)
    return addView(x);
  int64_t diagonal = random.between(-2, 2);
  return node(random.chance(50) ? "Triu" : "Tril", use(x) + (diagonal ? ", " + std::to_string(diagonal) : ""), shape(x),
              std::min(values[x].low, 0.0), std::max(values[x].high, 0.0));
}

int NetworkBuilder::addTranspose(int x) {
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

int NetworkBuilder::addBroadcast(int x) {
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

int NetworkBuilder::addRange(int x) {
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

} // namespace msc::e2e
