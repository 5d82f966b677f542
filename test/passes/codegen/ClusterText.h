// Writes clusters as MLIR text with little ceremony.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace msc::test {

/// "tensor<3x4xf32>".
std::string tensorType(const std::vector<int64_t> &shape, const std::string &element);

/// One function. Values are named without the percent sign; maps are lists of loop letters: "ab", "ba", "a0" (a constant
/// 0), "" (scalar). Loops are named a, b, c, ... in order.
class ClusterText {
public:
  explicit ClusterText(std::string name) : name(std::move(name)) {}

  ClusterText &argument(const std::string &value, const std::vector<int64_t> &shape, const std::string &element,
                        int inPlace = -1);
  /// Adds a linalg.generic. `iterators` has one letter per loop: p or r. `maps` has one entry per input and one for the
  /// result. The body calls its inputs %x0, %x1, ... and the accumulator %acc and yields %y (type `element`). `initial`
  /// fills the accumulator; empty: tensor.empty.
  ClusterText &generic(const std::string &result, const std::vector<int64_t> &shape, const std::string &element,
                       const std::string &iterators, const std::vector<std::string> &inputs,
                       const std::vector<std::string> &maps, const std::string &body, const std::string &initial = "");
  ClusterText &returns(const std::vector<std::string> &values);
  std::string str() const;

private:
  std::string type(const std::string &value) const { return types.at(value); }

  std::string name, header, code, footer;
  std::map<std::string, std::string> types;
  int counter = 0;
};

} // namespace msc::test
