// One operator, its sharding rule and its strategy. Plain data, no IR.
#pragma once

#include "dialects/net/ShardingRule.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace msc::passes {

using Shape = std::vector<int64_t>;

/// Number of pieces per factor of a rule.
using Pieces = std::vector<int64_t>;

/// What is wrong with a strategy, and one repair.
struct StrategyError {
  std::string text;
  std::string help;
  int32_t operand = -1; ///< index of the operand that the text names first; -1: none
};

/// An operator as far as strategies are concerned.
struct OperatorFacts {
  std::string op; ///< "MatMul"
  net::ShardingRule rule;
  std::vector<std::string> operandNames; ///< what messages call the operands
  std::vector<Shape> operandShapes;      ///< global
  std::vector<Shape> resultShapes;       ///< global
};

/// Empty if cutting this factor into `pieces` is legal on every dimension that carries it, else the reason, e.g. "it is
/// the softmax axis". Here and below, `mayBeEmpty` allows more pieces than a dimension has elements: data parallelism
/// leaves ranks without rows where the batch is small.
std::string whyNotCut(const OperatorFacts &facts, size_t factor, int64_t pieces, bool mayBeEmpty = false);

/// The same for all factors together: where several factors make up one dimension, the boundaries of all pieces have to
/// coincide.
bool piecesPass(const OperatorFacts &facts, const Pieces &pieces, bool mayBeEmpty = false);

/// Pieces of the factors for a strategy that a user gave, or what is wrong with it.
std::variant<Pieces, StrategyError> piecesOfStrategy(const OperatorFacts &facts, const net::Strategy &strategy,
                                                     int64_t devices, bool mayBeEmpty = false);

/// Pieces per dimension per operand (or result).
net::Strategy inStrategy(const net::ShardingRule &rule, const Pieces &pieces);
net::Strategy outStrategy(const net::ShardingRule &rule, const Pieces &pieces);

/// Axes for the pieces: the device matrix holds the pieces of all factors in rule order (1 where a factor is whole)
/// and, if devices are left over, a repeat axis on the right (or left).
net::Assignment assignmentOf(const net::ShardingRule &rule, const Pieces &pieces, int64_t devices,
                             bool repeatOnLeft = false);

/// assignmentOf for a legal strategy.
net::Assignment assignmentFromStrategy(const OperatorFacts &facts, const net::Strategy &strategy, int64_t devices,
                                       bool repeatOnLeft = false);

/// True if some operand carries the factor, so that an in_strategy can say into how many pieces it is cut.
bool isNamed(const OperatorFacts &facts, size_t factor);

/// All legal pieces: their product divides `devices` and no dimension is cut into more pieces than it has elements.
/// In lexicographic order; the first is the one that cuts nothing.
std::vector<Pieces> candidates(const OperatorFacts &facts, int64_t devices);

/// Those of them with these pieces, 0 where a factor is open, on one of the meshes, if there are any; never none: if nothing else
/// is left, open factors are whole.
std::vector<Pieces> candidatesWith(const OperatorFacts &facts, int64_t devices, const Pieces &fixed,
                                   const std::vector<std::vector<int64_t>> &meshes);
/// `fixed` with open factors whole.
Pieces wholeWhereOpen(Pieces fixed);

/// Are the numbers of pieces products of different axes of the mesh?
bool isOnMesh(const Pieces &pieces, const std::vector<int64_t> &mesh);

/// Product of all pieces: the number of devices that do different work.
int64_t devicesUsed(const Pieces &pieces);

} // namespace msc::passes
