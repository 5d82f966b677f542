// The forward graph as plain data: what the solvers that choose strategies work on.
#pragma once

#include "dialects/dist/Reshard.h"
#include "passes/sharding/Strategy.h"

#include <functional>

namespace msc::passes {

/// A value of the forward graph.
struct ProblemTensor {
  std::string name;
  Shape shape;
  size_t elementBytes = 4;
  /// Inputs: the sharding in which the dataset delivers it. Results of operators and parameters have none.
  std::optional<Sharding> dataset;
};

/// An operator of the forward graph; numbers are indices into Problem::tensors.
struct ProblemOperator {
  std::string name; ///< instance name
  OperatorFacts facts;
  std::vector<int32_t> operands; ///< tensors
  std::vector<int32_t> results;
  std::optional<Pieces> configured; ///< what the user decided
  /// Modelled time of the operator alone on the largest shards, in us; absent: not priced.
  std::function<double(const std::vector<Shape> &operands, const std::vector<Shape> &results)> localUs;
};

/// A network of which every operator needs a strategy. Operators are in topological order.
struct Problem {
  int64_t devices = 1;
  std::vector<ProblemTensor> tensors;
  std::vector<ProblemOperator> operators;
  MachineModel machine = MachineModel::cpuLocal();
};

/// The strategy of one operator and where it came from.
struct Choice {
  Pieces pieces;
  std::string origin;
};
using Choices = std::vector<Choice>; ///< one per operator

/// The shardings of one operator under given pieces, in canonical form.
struct Placement {
  std::vector<Sharding> operands;
  std::vector<Sharding> partialResults; ///< as the operator leaves them
  std::vector<Sharding> results;        ///< completed
};
Placement placementOf(const OperatorFacts &facts, const Pieces &pieces, int64_t devices);

/// The sharding without its partial axes, in canonical form.
Sharding completed(const Sharding &sharding);

/// Every rank computes everything.
Choices standAlone(const Problem &problem);

/// Dataset inputs are cut, parameters are whole, the rest follows by rule.
Choices dataParallel(const Problem &problem);

/// Operators that nobody configured split dimension 0 of their first operand.
Choices semiAuto(const Problem &problem);

/// Rounds outward from the configured operators, then from the dataset inputs; every operator takes what its neighbour
/// hands over with the least movement.
Choices propagate(const Problem &problem);

} // namespace msc::passes
