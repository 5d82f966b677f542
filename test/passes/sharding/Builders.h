// Small forward graphs as plain data, with the rules of a few operators written by hand.
#pragma once

#include "passes/sharding/Problem.h"

#include <numeric>

namespace msc::test {

using namespace msc::passes;
using net::Factor;
using net::FactorKind;

inline OperatorFacts matMul(int64_t m, int64_t k, int64_t n) {
  OperatorFacts facts{.op = "MatMul", .operandNames = {"x", "w"}};
  facts.rule.add({.name = "m", .size = m});
  facts.rule.add({.name = "k", .size = k, .kind = FactorKind::Reduction});
  facts.rule.add({.name = "n", .size = n});
  facts.rule.operands = {{{0}, {1}}, {{1}, {2}}};
  facts.rule.results = {{{0}, {2}}};
  facts.operandShapes = {{m, k}, {k, n}};
  facts.resultShapes = {{m, n}};
  return facts;
}

/// All operands and the result have one shape.
inline OperatorFacts pointwise(const std::string &op, const Shape &shape, size_t operands) {
  OperatorFacts facts{.op = op};
  std::vector<net::DimFactors> dims;
  for (size_t i = 0; i < shape.size(); ++i)
    dims.push_back({facts.rule.add({.name = std::string(1, static_cast<char>('a' + i)), .size = shape[i]})});
  for (size_t i = 0; i < operands; ++i) {
    facts.operandNames.push_back(std::string(1, static_cast<char>('x' + i)));
    facts.operandShapes.push_back(shape);
    facts.rule.operands.push_back(dims);
  }
  facts.rule.results = {dims};
  facts.resultShapes = {shape};
  return facts;
}

/// Sums everything.
inline OperatorFacts loss(const Shape &shape, size_t operands) {
  OperatorFacts facts = pointwise("MSELoss", shape, operands);
  for (Factor &factor : facts.rule.factors)
    factor.kind = FactorKind::Reduction;
  facts.rule.results = {{}};
  facts.resultShapes = {{}};
  return facts;
}

/// Merges the first two dimensions, so that only the first can be cut, at multiples of the second.
inline OperatorFacts mergingReshape(int64_t a, int64_t b) {
  OperatorFacts facts{.op = "Reshape", .operandNames = {"x"}};
  facts.rule.add({.name = "a", .size = a * b, .kind = FactorKind::Blocked, .block = b});
  facts.rule.add({.name = "b", .size = b, .kind = FactorKind::Replicated, .reason = "it is merged into dimension 0"});
  facts.rule.operands = {{{0}, {1}}};
  facts.rule.results = {{{0}}};
  facts.operandShapes = {{a, b}};
  facts.resultShapes = {{a * b}};
  return facts;
}

/// Adds a tensor, returns its index.
inline int32_t tensor(Problem &problem, const std::string &name, const Shape &shape,
                      std::optional<Sharding> dataset = std::nullopt) {
  problem.tensors.push_back({name, shape, 4, std::move(dataset)});
  return static_cast<int32_t>(problem.tensors.size()) - 1;
}

/// Adds an operator with one result, returns the result.
inline int32_t add(Problem &problem, const std::string &name, OperatorFacts facts, std::vector<int32_t> operands,
                   std::optional<net::Strategy> strategy = std::nullopt) {
  int32_t result = tensor(problem, name, facts.resultShapes[0]);
  ProblemOperator op{.name = name, .facts = std::move(facts), .operands = std::move(operands), .results = {result}};
  if (strategy)
    op.configured = std::get<Pieces>(piecesOfStrategy(op.facts, *strategy, problem.devices));
  op.localUs = [](const std::vector<Shape> &in, const std::vector<Shape> &out) {
    double elements = 0;
    for (const auto *list : {&in, &out})
      for (const Shape &shape : *list)
        elements += static_cast<double>(elementCount(shape));
    return elements / 2000;
  };
  problem.operators.push_back(std::move(op));
  return result;
}

inline Sharding batchCut(int64_t devices, size_t rank) {
  Sharding sharding = Sharding::replicated(devices, rank);
  if (devices > 1)
    sharding.dims[0] = {0};
  return sharding;
}

} // namespace msc::test
