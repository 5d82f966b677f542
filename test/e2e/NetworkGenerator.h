// Random networks: 5 to 40 operators of all kinds, small odd shapes, tame numbers.
//
// Values carry bounds of what they may hold, so that logarithms, roots and quotients get operands away from zero and
// nothing grows. A network is data until it is printed, so that strategies can be added to a network that was read once
// without them.
#pragma once

#include "test/e2e/Random.h"

#include <map>
#include <string>
#include <vector>

namespace msc::e2e {

using Shape = std::vector<int64_t>;

/// One value of a generated network.
struct Value {
  std::string name;
  std::string type = "f32";
  Shape shape;
  double low = -1, high = 1; ///< likely bounds of the elements
  bool used = false;
  bool state = false; ///< a parameter that is not trained
};

/// One operator: `%name = op(arguments) {strategy}`; results behind the first are %name_1, ...
struct Node {
  std::string name, op, arguments;
  size_t results = 1;
  bool recompute = false; ///< computed again in the backward pass
};

struct Network {
  std::vector<Value> inputs, parameters;
  std::vector<Node> nodes;
  std::vector<std::string> outputs; ///< beside the loss
  std::string optimizer;            ///< "Momentum(learning_rate: 0.1, ...)", and what else the train block says of the update
  std::string type;                 ///< "f32" or "f64"

  /// The text of a .mir file. `strategies` maps values to the strategy of the operator that computes them, `context` is
  /// the inside of the context block.
  std::string text(const std::map<std::string, std::string> &strategies, const std::string &context) const;
};

/// The network of a seed.
Network generateNetwork(Random &random);

} // namespace msc::e2e
