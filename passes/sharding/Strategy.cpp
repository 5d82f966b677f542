#include "passes/sharding/Strategy.h"

#include "dialects/net/Pieces.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace msc::passes {

using net::DimFactors;
using net::Factor;
using net::FactorKind;
using net::ShardingRule;
using net::Strategy;

namespace {

std::string number(int64_t value) {
  return std::to_string(value);
}

/// "dimension 1 of 'x'", and which operand that is where one value is several.
std::string dimensionText(const OperatorFacts &facts, size_t operand, size_t dim) {
  const std::string text = "dimension " + number(static_cast<int64_t>(dim)) + " of '" + facts.operandNames[operand] + "'";
  const bool isOne = std::ranges::count(facts.operandNames, facts.operandNames[operand]) == 1;
  return isOne ? text : text + " (operand " + number(static_cast<int64_t>(operand)) + ")";
}

std::string plural(size_t count, const char *word) {
  return number(static_cast<int64_t>(count)) + " " + word + (count == 1 ? "" : "s");
}

/// "1, 2, 4 or 8".
std::string divisorsText(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0)
      divisors.push_back(d);
  std::string text;
  for (size_t i = 0; i < divisors.size(); ++i)
    text += (i == 0 ? "" : i + 1 == divisors.size() ? " or " : ", ") + number(divisors[i]);
  return text;
}

/// Calls visit(dims, shape) for all operands and results.
template <typename Visit> void forEachTensor(const OperatorFacts &facts, Visit visit) {
  for (size_t i = 0; i < facts.rule.operands.size(); ++i)
    visit(facts.rule.operands[i], facts.operandShapes[i]);
  for (size_t i = 0; i < facts.rule.results.size(); ++i)
    visit(facts.rule.results[i], facts.resultShapes[i]);
}

/// Where a dimension is made of several factors: do the cuts of the factors fall on the boundaries of an even cut of
/// the dimension? All factors in front of the last cut one must be cut into single elements.
bool mergedDimensionPasses(const ShardingRule &rule, const DimFactors &dim, const Pieces &pieces) {
  size_t last = dim.size();
  while (last > 0 && pieces[dim[last - 1]] == 1)
    --last;
  if (last == 0)
    return true;
  int64_t outer = 1, total = 1, parts = 1;
  for (size_t i = 0; i < dim.size(); ++i) {
    const Factor &factor = rule.factors[dim[i]];
    if (i + 1 < last && pieces[dim[i]] != factor.size)
      return false;
    outer *= i + 1 < last ? factor.size : 1;
    total *= factor.size;
    parts *= pieces[dim[i]];
  }
  int64_t size = rule.factors[dim[last - 1]].size, cut = pieces[dim[last - 1]],
          inner = total / outer / std::max<int64_t>(size, 1);
  for (int64_t p = 0; p < parts; ++p)
    if ((p / cut * size + pieceOf(size, p % cut, cut).begin) * inner != pieceOf(total, p, parts).begin)
      return false;
  return true;
}

/// Spreads the pieces of one dimension over its factors, most major first.
bool spread(const ShardingRule &rule, const DimFactors &dim, int64_t count, Pieces &pieces) {
  for (size_t i = 0; i < dim.size(); ++i) {
    int64_t size = rule.factors[dim[i]].size;
    bool takesAll = i + 1 == dim.size() || count <= size;
    if (!takesAll && (size == 0 || count % size != 0))
      return false;
    pieces[dim[i]] = takesAll ? count : size;
    count = takesAll ? 1 : count / size;
  }
  return count == 1;
}

std::optional<StrategyError> checkForm(const OperatorFacts &facts, const Strategy &strategy, bool mayBeEmpty) {
  size_t operands = facts.rule.operands.size();
  if (strategy.size() != operands)
    return StrategyError{"in_strategy has " + plural(strategy.size(), "tuple") + ", '" + facts.op + "' has " +
                             plural(operands, "operand"),
                         "write one tuple per operand, e.g. " +
                             net::strategyText(inStrategy(facts.rule, Pieces(facts.rule.factors.size(), 1)))};
  for (size_t i = 0; i < operands; ++i) {
    auto operand = static_cast<int32_t>(i);
    if (size_t rank = facts.operandShapes[i].size(); strategy[i].size() != rank)
      return StrategyError{"tuple " + number(operand) + " of in_strategy has " + plural(strategy[i].size(), "value") +
                               ", '" + facts.operandNames[i] + "' has " + plural(rank, "dimension"),
                           "write one value per dimension, 1 for a dimension that stays whole", operand};
    for (size_t dim = 0; dim < strategy[i].size(); ++dim) {
      int64_t value = strategy[i][dim], size = facts.operandShapes[i][dim];
      if (value < 1)
        return StrategyError{"in_strategy cuts " + dimensionText(facts, i, dim) + " into " + number(value) + " pieces",
                             "every value is at least 1; 1 leaves the dimension whole", operand};
      if (value > 1 && value > size && !mayBeEmpty)
        return StrategyError{"in_strategy cuts " + dimensionText(facts, i, dim) + " into " + number(value) +
                                 " pieces, its size is " + number(size),
                             "use at most " + number(std::max<int64_t>(size, 1)), operand};
    }
  }
  return std::nullopt;
}

/// Where a factor got its pieces first.
struct FirstUse {
  int64_t pieces = 0; // 0: nowhere yet
  size_t operand = 0;
  size_t dim = 0;
};

/// The most pieces below `pieces` into which the factor can be cut; 1: there are none. They divide `pieces`, so that they fit the devices if those did.
int64_t fewerPieces(const OperatorFacts &facts, int32_t factor, int64_t pieces) {
  const Factor &f = facts.rule.factors[factor];
  if (f.kind == FactorKind::Replicated || pieces > net::mostDevices)
    return 1;
  for (int64_t parts = 2; parts <= pieces / 2; ++parts)
    if (const int64_t fewer = pieces / parts; pieces % parts == 0 && fewer <= f.size && whyNotCut(facts, factor, fewer).empty())
      return fewer;
  return 1;
}

/// How to repair a cut that the operator does not take. One that is whole costs the movement of what arrives cut: the rest of
/// the rank's part of the operand, with the other dimensions cut as the strategy says.
std::string repairOf(const OperatorFacts &facts, const Strategy &strategy, size_t operand, size_t dim, int32_t factor) {
  const Shape &shape = facts.operandShapes[operand];
  const Factor &f = facts.rule.factors[factor];
  if (f.halo)
    return "use at most " + number(std::max<int64_t>(f.size, 1));
  int64_t elements = shape[dim] - shape[dim] / strategy[operand][dim];
  for (size_t other = 0; other < shape.size(); ++other)
    if (other != dim)
      elements *= (shape[other] + strategy[operand][other] - 1) / strategy[operand][other];
  const bool isAlone = facts.rule.operands[operand][dim].size() == 1;
  const int64_t fewer = isAlone ? fewerPieces(facts, factor, strategy[operand][dim]) : 1;
  return "write " + (fewer > 1 ? number(fewer) + " there, or 1" : "1 there") + "; where '" + facts.operandNames[operand] + "' arrives cut, every rank then receives up to " + number(elements) +
         " elements";
}

std::optional<StrategyError> takePieces(const OperatorFacts &facts, const Strategy &strategy, bool mayBeEmpty,
                                        Pieces &pieces) {
  std::vector<FirstUse> first(facts.rule.factors.size());
  for (size_t i = 0; i < strategy.size(); ++i)
    for (size_t dim = 0; dim < strategy[i].size(); ++dim) {
      auto operand = static_cast<int32_t>(i);
      const DimFactors &factors = facts.rule.operands[i][dim];
      Pieces here(facts.rule.factors.size(), 1);
      if (!spread(facts.rule, factors, strategy[i][dim], here))
        return StrategyError{"in_strategy cannot cut " + dimensionText(facts, i, dim) + " into " +
                                 number(strategy[i][dim]) +
                                 " pieces: the piece boundaries of operand and result differ",
                             "leave the dimension whole or use another number of pieces", operand};
      for (int32_t f : factors) {
        if (std::string reason = whyNotCut(facts, f, here[f], mayBeEmpty); !reason.empty())
          return StrategyError{"in_strategy cuts " + dimensionText(facts, i, dim) + " into " + number(here[f]) +
                                   ", but " + reason,
                               repairOf(facts, strategy, i, dim, f), operand};
        if (first[f].pieces != 0 && first[f].pieces != here[f])
          return StrategyError{"in_strategy cuts dimensions of '" + facts.op +
                                   "' that belong together into different numbers of pieces (" +
                                   dimensionText(facts, first[f].operand, first[f].dim) + " is cut into " +
                                   number(first[f].pieces) + ", " + dimensionText(facts, i, dim) + " into " +
                                   number(here[f]) + ")",
                               "write the same number in both places", operand};
        if (first[f].pieces == 0)
          first[f] = {here[f], i, dim};
        pieces[f] = here[f];
      }
    }
  return std::nullopt;
}

} // namespace

std::string whyNotCut(const OperatorFacts &facts, size_t factor, int64_t pieces, bool mayBeEmpty) {
  const Factor &f = facts.rule.factors[factor];
  if (pieces == 1)
    return "";
  if (f.kind == FactorKind::Replicated)
    return "'" + facts.op + "' needs it whole" + (f.reason.empty() ? "" : ": " + f.reason);
  if (f.block > 1 && !net::piecesFit(f, pieces))
    return "the boundaries of " + number(pieces) + " pieces do not fall on multiples of " + number(f.block) + " elements" +
           (f.reason.empty() ? ", so they do not coincide on both sides of '" + facts.op + "'" : ": " + f.reason);
  std::string reason;
  if (mayBeEmpty)
    return reason;
  forEachTensor(facts, [&](const std::vector<DimFactors> &dims, const Shape &shape) {
    for (size_t dim = 0; dim < dims.size(); ++dim)
      if (std::find(dims[dim].begin(), dims[dim].end(), static_cast<int32_t>(factor)) != dims[dim].end() &&
          pieces > shape[dim] && reason.empty())
        reason = "a dimension of size " + number(shape[dim]) + " that belongs to it has fewer elements";
  });
  return reason;
}

bool piecesPass(const OperatorFacts &facts, const Pieces &pieces, bool mayBeEmpty) {
  bool pass = true;
  for (size_t f = 0; f < pieces.size(); ++f)
    pass = pass && whyNotCut(facts, f, pieces[f], mayBeEmpty).empty();
  forEachTensor(facts, [&](const std::vector<DimFactors> &dims, const Shape &) {
    for (const DimFactors &dim : dims)
      pass = pass && (dim.size() < 2 || mergedDimensionPasses(facts.rule, dim, pieces));
  });
  return pass;
}

std::variant<Pieces, StrategyError> piecesOfStrategy(const OperatorFacts &facts, const Strategy &strategy,
                                                     int64_t devices, bool mayBeEmpty) {
  if (auto error = checkForm(facts, strategy, mayBeEmpty))
    return *error;
  Pieces pieces(facts.rule.factors.size(), 1);
  if (auto error = takePieces(facts, strategy, mayBeEmpty, pieces))
    return *error;
  if (!piecesPass(facts, pieces, mayBeEmpty))
    return StrategyError{"in_strategy " + net::strategyText(strategy) + " cuts '" + facts.op +
                             "' where the piece boundaries of operand and result differ",
                         "leave the merged dimensions whole"};
  if (int64_t used = devicesUsed(pieces); used > devices || devices % used != 0)
    return StrategyError{"in_strategy " + net::strategyText(strategy) + " needs " + number(used) +
                             " devices, which does not divide " + number(devices),
                         "the product of the pieces must be " + divisorsText(devices) +
                             (used > devices ? ", or pass --devices " + number(used) : "")};
  return pieces;
}

static Strategy strategyOf(const std::vector<std::vector<DimFactors>> &tensors, const Pieces &pieces) {
  Strategy strategy;
  for (const auto &dims : tensors) {
    auto &tuple = strategy.emplace_back();
    for (const DimFactors &dim : dims) {
      tuple.push_back(1);
      for (int32_t f : dim)
        tuple.back() *= pieces[f];
    }
  }
  return strategy;
}

Strategy inStrategy(const ShardingRule &rule, const Pieces &pieces) {
  return strategyOf(rule.operands, pieces);
}
Strategy outStrategy(const ShardingRule &rule, const Pieces &pieces) {
  return strategyOf(rule.results, pieces);
}

net::Assignment assignmentOf(const ShardingRule &rule, const Pieces &pieces, int64_t devices, bool repeatOnLeft) {
  net::Assignment assignment;
  int64_t idle = devices / devicesUsed(pieces);
  bool left = repeatOnLeft && idle > 1;
  if (left)
    assignment.matrix.push_back(idle);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    assignment.factors.push_back({static_cast<int32_t>(assignment.matrix.size())});
    assignment.matrix.push_back(pieces[f]);
  }
  if (!left && idle > 1)
    assignment.matrix.push_back(idle);
  return assignment;
}

net::Assignment assignmentFromStrategy(const OperatorFacts &facts, const Strategy &strategy, int64_t devices,
                                       bool repeatOnLeft) {
  auto pieces = piecesOfStrategy(facts, strategy, devices);
  assert(std::holds_alternative<Pieces>(pieces) && "the strategy was not checked");
  return assignmentOf(facts.rule, std::get<Pieces>(pieces), devices, repeatOnLeft);
}

bool isNamed(const OperatorFacts &facts, size_t factor) {
  for (const auto &dims : facts.rule.operands)
    for (const DimFactors &dim : dims)
      if (std::find(dim.begin(), dim.end(), static_cast<int32_t>(factor)) != dim.end())
        return true;
  return false;
}

std::vector<Pieces> candidates(const OperatorFacts &facts, int64_t devices) {
  size_t count = facts.rule.factors.size();
  std::vector<bool> named;
  for (size_t f = 0; f < count; ++f)
    named.push_back(isNamed(facts, f));
  std::vector<int64_t> divisors;
  for (int64_t p = 1; p <= devices; ++p)
    if (devices % p == 0)
      divisors.push_back(p);
  std::vector<Pieces> result;
  Pieces now(count, 1);
  std::function<void(size_t, int64_t)> choose = [&](size_t f, int64_t left) {
    if (f == count) {
      if (piecesPass(facts, now))
        result.push_back(now);
      return;
    }
    for (int64_t p : divisors) {
      if (left % p != 0 || (p > 1 && (!named[f] || !whyNotCut(facts, f, p).empty())))
        continue;
      now[f] = p;
      choose(f + 1, left / p);
    }
    now[f] = 1;
  };
  choose(0, devices);
  return result;
}

Pieces wholeWhereOpen(Pieces fixed) {
  std::replace(fixed.begin(), fixed.end(), int64_t(0), int64_t(1));
  return fixed;
}

std::vector<Pieces> candidatesWith(const OperatorFacts &facts, int64_t devices, const Pieces &fixed,
                                   const std::vector<std::vector<int64_t>> &meshes) {
  std::vector<Pieces> list = candidates(facts, devices);
  std::erase_if(list, [&](const Pieces &pieces) {
    for (size_t f = 0; f < fixed.size(); ++f)
      if (fixed[f] != 0 && pieces[f] != fixed[f])
        return true;
    return !meshes.empty() && std::none_of(meshes.begin(), meshes.end(), [&](const auto &mesh) { return isOnMesh(pieces, mesh); });
  });
  if (list.empty())
    list.push_back(wholeWhereOpen(fixed));
  return list;
}

bool isOnMesh(const Pieces &pieces, const std::vector<int64_t> &mesh) {
  Pieces open = pieces; // what axes have to make up yet
  std::function<bool(size_t)> cut = [&](size_t axis) {
    if (axis == mesh.size())
      return elementCount(open) == 1;
    for (int64_t &count : open)
      if (mesh[axis] > 1 && count % mesh[axis] == 0) {
        count /= mesh[axis];
        bool found = cut(axis + 1);
        count *= mesh[axis];
        if (found)
          return true;
      }
    return cut(axis + 1);
  };
  return cut(0);
}

int64_t devicesUsed(const Pieces &pieces) {
  return elementCount(pieces);
}

} // namespace msc::passes
