// What generateNetwork builds a network with.
#pragma once

#include "test/e2e/NetworkGenerator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace msc::e2e {

inline int64_t countOf(const Shape &shape) { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); }
/// "(2, 3)"; one element is "(2)", which reads as a tuple where one is expected.
std::string tuple(const Shape &shape);

constexpr int64_t mostElements = 1500;
constexpr double mostMagnitude = 8;

/// Builds one network node by node. Values are named by index; a reference to one does not survive a new one.
class NetworkBuilder {
public:
  explicit NetworkBuilder(Random &random);
  Network build();

private:
  //===-- values ----------------------------------------------------------===//

  Shape randomShape(int64_t rank);
  void addInput(const std::string &name, const Shape &shape);
  int add(Value value);
  /// A new trained parameter with elements in [-bound, bound].
  int parameter(const Shape &shape, double bound = 1);
  /// A parameter that is not trained.
  int state(const Shape &shape);
  std::string use(int index);
  const Shape &shape(int index) const { return values[index].shape; }
  double magnitude(int index) const { return std::max(std::abs(values[index].low), std::abs(values[index].high)); }
  /// A node with bounds for its result; floats that have grown are squashed.
  int node(const std::string &op, const std::string &arguments, const Shape &shape, double low, double high,
           const std::string &type = "");
  int squash(int value);
  /// Any float value, most often a recent one that nobody has used.
  int anyValue();
  /// A value of exactly the wanted shape that nobody has to know twice: from the pool, else a parameter.
  int valueOfShape(const Shape &wanted, int other);
  /// A value whose elements are at least 0.1, through Tanh and Exp if need be.
  int positive(int value);

  //===-- operators -------------------------------------------------------===//

  void grow();
  int addUnary(int x);
  /// The less common functions of one element.
  int addFunction(int x);
  /// The less common functions of two elements; the second operand of quotients is away from 0.
  int addQuotient(int x);
  /// Conditions joined, negated, counted; then a value that depends on one.
  int addLogical(int x);
  /// Where extrema stand, and places named by whole numbers.
  int addChoice(int x);
  /// Whole numbers 0 to most of the given shape, computed from a value of it. `lowest` may be -1: numbers of nothing.
  int indices(const Shape &wanted, int64_t lowest, int64_t most);
  int addLookup(int x);
  /// The largest or smallest rows of the same number; every number occurs.
  int extremumOfRows(int x, const Shape &ids);
  /// Slices by indices of several numbers, updates at such places, and look-ups in batches.
  int addIndexed(int x);
  /// Other names of products and sums, and constants.
  int addNamesake(int x);
  int addScan(int x);
  /// A value as (batch, sequence, width) attends to itself, or to a parameter.
  int addAttention(int x);
  /// What repeats to (batch, heads, queries, keys): numbers to be added, or which keys a query attends to.
  int mask(Shape wanted);
  /// What stands around attention: a gate, and positions.
  int addGated(int x);
  /// A partner for a pointwise operator: of the same shape, or smaller and broadcast.
  int partner(int x);
  int addBinary(int x);
  int addMatMul(int x);
  /// Two products by the same matrix: contributions to its gradient are added.
  int addTied(int x);
  /// A product of the signs of two values in whole numbers.
  int wholeProduct(int x, int y, const std::string &transposed, const Shape &result, double bound);
  int addBiasAdd(int x);
  int addCondition(int x);
  int addSelect(int x);
  int addReduction(int x);
  /// Splits, merges and new dimensions of size 1.
  Shape otherShape(Shape shape);
  int addReshape(int x);
  /// Dimensions of size 1 made and left out, or all but the first merged.
  int addView(int x);
  int addSlice(int x);
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
  void takeSome(Entries &entries, int64_t size, bool mayShrink);
  int addStridedSlice(int x);
  /// An operator with a result per shape; the pool gets all but the last, which is returned.
  int parts(const std::string &op, const std::string &arguments, const std::vector<Shape> &shapes, int x);
  int addParts(int x);
  int addJoin(int x);
  /// "((1, 2), (0, 0))" for each dimension, and the shape with these added.
  std::string paddings(Shape &shape, int64_t least, int64_t repeated);
  /// Elements around a value, copies of it, or its elements in another order.
  int addAround(int x);
  int addTriangle(int x);
  int addTranspose(int x);
  int addBroadcast(int x);
  int addCast(int x);
  int addNormalised(int x);
  int addGroupNorm(int x);
  /// The value itself if it has four dimensions, else its elements as images; -1 if they cannot be.
  int image(int x);
  /// Windows over `shape` as attributes; `kernel` gets their sizes and `result` how many there are, in both directions.
  std::string windows(const Shape &shape, const char *stride, bool dilated, Shape &kernel, Shape &result);
  /// A divisor of the channels, often 1 or all of them.
  int64_t groupOf(int64_t channels);
  int addConvolution(int value);
  int addTransposed(int x);
  /// Elements kept at random, or times a random number by their signs.
  int addDropout(int x);
  int addBatchNorm(int x);
  int addPool(int value);
  /// Numbers in order, as floats up to 1.
  int addRange(int x);
  /// Cross entropy between a value and classes, or probabilities, that are computed from another; of each row.
  int crossEntropy(int x, const std::string &reduction, const Shape &result);
  /// A loss of terms: one per element, their sum or their mean.
  int termLoss(int x, const std::string &reduction, Shape result);
  int addTermLoss(int x);
  int addElementLoss(int x);

  //===-- the end ---------------------------------------------------------===//

  /// A scalar that depends on a value.
  int toScalar(int value);
  void finish();
  void rename(int loss);
  void dropUnusedInputs();
  /// What becomes of gradients before the optimizer takes them.
  std::string treatment();
  std::string optimizer();

  Random &random;
  Network network;
  std::vector<Value> values;
  std::vector<int> pool; ///< float values that operators may take
};

} // namespace msc::e2e
