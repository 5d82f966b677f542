// The sharding rule of an operator: which dimensions of its operands and results belong together.
//
// A rule names *factors*, like the letters of an einsum: MatMul is `(m k, k n) -> m n, reduce k`. Cutting a factor cuts
// every dimension that carries it. Strategies are derived from the rule, never listed by hand.
// Shapes are global; the rule does not know the number of devices.
#pragma once

#include "runtime/plan/Sharding.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::net {

/// What cutting a factor does to the operator.
enum class FactorKind {
  PassThrough, ///< cutting it cuts the result alike
  Reduction,   ///< cutting it leaves a partial result that has to be completed with `reduce`
  Replicated,  ///< cannot be cut: every rank needs it whole; `reason` says why
  Exchanged,   ///< dimensions between which elements change the place, and which may differ in size: cutting it cuts all of
               ///< them, and elements move between ranks within the operator
  Blocked,     ///< can be cut only at multiples of `block` elements: pieces * block has to divide `size`
};

/// One letter of a rule: dimensions that are cut together.
struct Factor {
  std::string name;                                ///< a letter or word, unique within the rule
  int64_t size = 1;                                ///< global size, >= 0; Blocked: in elements of the merged group,
                                                   ///< which may be more than a dimension that carries it has;
                                                   ///< Exchanged or `halo`: of the smallest dimension that carries it
  FactorKind kind = FactorKind::PassThrough;
  msc::ReduceKind reduce = msc::ReduceKind::Sum;   ///< Reduction only
  int64_t block = 1;                               ///< Blocked, and Reduction of what some tensors carry: cuts lie at its multiples
  bool halo = false;                               ///< PassThrough, Reduction: dimensions that carry it may differ in size, and
                                                   ///< ranks exchange what lies beyond their pieces (HaloInterface)
  std::string reason;                              ///< Replicated, and where there is a block: why
};

/// The factors of one dimension, most major first. Usually one; none for a dimension of size 1 that is broadcast.
using DimFactors = std::vector<int32_t>;

/// What an operator says about itself: the factors of every dimension of its operands and results.
struct ShardingRule {
  /// In the order of MindSpore's device matrix for this operator.
  std::vector<Factor> factors;
  std::vector<std::vector<DimFactors>> operands; ///< [operand][dimension]
  std::vector<std::vector<DimFactors>> results;  ///< [result][dimension]

  /// Adds a factor, returns its index.
  int32_t add(Factor factor);
  /// "(m k, k n) -> (m n), reduce k": the golden table and `msc ops` print this.
  std::string str() const;
};

/// The axis assignment of one operator: for each factor of its rule the axes of `matrix` that cut it, most major first.
/// Axes that cut no factor repeat the operator.
struct Assignment {
  std::vector<int64_t> matrix;                 ///< device matrix; the product is the number of devices
  std::vector<std::vector<int32_t>> factors;   ///< [factor] -> axes
  bool operator==(const Assignment &) const = default;
};

/// Pieces per dimension per operand: MindSpore's in_strategy.
using Strategy = std::vector<std::vector<int64_t>>;

/// "((2, 4), (4, 1))".
std::string strategyText(const Strategy &strategy);

/// Sharding of an operand (or result) whose dimensions carry the given factors. A result is partial over the axes of
/// the Reduction factors that none of its dimensions carries.
msc::Sharding operandSharding(const ShardingRule &rule, const Assignment &assignment, size_t operand);
msc::Sharding resultSharding(const ShardingRule &rule, const Assignment &assignment, size_t result);

} // namespace msc::net
