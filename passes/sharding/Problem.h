// The forward graph as plain data: what the solvers that choose strategies work on.
#pragma once

#include "dialects/dist/Reshard.h"
#include "passes/sharding/Strategy.h"

#include <array>
#include <functional>

namespace msc::passes {

/// A value of the forward graph.
struct ProblemTensor {
  std::string name;
  Shape shape;
  size_t elementBytes = 4;
  /// Inputs: the sharding in which the dataset delivers it. Results of operators and parameters have none.
  std::optional<Sharding> dataset;
  bool isFloat = true;
  bool isParameter = false;
  bool isTrained = false; ///< a parameter that the optimizer updates
  int64_t rounds = 1;     ///< parameters: one for every round of the repeats around it
};

struct Placement;

/// What an operator moves between ranks itself.
struct OwnExchange {
  int64_t received = 0; ///< elements, of the busiest rank
  double us = 0;
  size_t elementBytes = 4;
  std::vector<int64_t> groupMatrix = {}; ///< the group of a rank, as in dist.collective
  std::vector<int32_t> groupAxes = {};   ///< none: nothing moves
};

/// An operator of the forward graph; numbers are indices into Problem::tensors.
struct ProblemOperator {
  std::string name; ///< instance name; within repeats that of all rounds, see dialects/net/Repeat.h
  OperatorFacts facts;
  std::vector<int32_t> operands; ///< tensors
  std::vector<int32_t> results;
  std::optional<Pieces> configured; ///< what the user decided
  /// What there is to choose from, where open factors are whole first; none: what the user decided, else all that is legal.
  std::vector<Pieces> among;
  std::vector<Pieces> wantedOut;    ///< of each result, pieces per dimension, where the user decided that too (out_strategy); else empty
  std::vector<int32_t> repeats; ///< around it, the outermost first: indices into Problem::repeats
  int64_t rounds = 1;           ///< how often a step runs it: the product of their rounds
  int64_t line = 0;             ///< operators run in this order, which no decision looks at
  /// Modelled time of the operator alone on the largest shards, in us; absent: not priced.
  std::function<double(const std::vector<Shape> &operands, const std::vector<Shape> &results)> localUs;
  /// Elements that change the rank within the operator; absent: none do, wherever it is cut.
  std::function<OwnExchange(const Placement &)> exchange;
};

/// A repeat of which the body stands once.
struct ProblemRepeat {
  std::string variable;
  int64_t firstRound = 0, lastRound = 0;
};

/// A value that a repeat hands on: into its first round, from round to round, or out of its last one.
struct ProblemHandover {
  int32_t from = 0, to = 0;   ///< tensors
  int64_t times = 1;          ///< how often in a step
  bool crossesBorder = false; ///< into the repeat or out of it
  int32_t repeat = -1;        ///< index into Problem::repeats; -1: not told
};

/// One operator of the update of a parameter: what it takes for each element of the rank's piece, and besides.
struct UpdateWork {
  double flops = 0, bytesRead = 0, bytesWritten = 0; ///< bytes of f32
  std::array<double, 3> fixed = {};                  ///< of the same three
};

/// A kernel of the update of a parameter. Tensors like the parameter that are kept between kernels have numbers.
struct UpdateKernel {
  bool waits = false;           ///< for the kernels in front of it of all parameters: a norm, or whether all gradients are finite
  bool readsGradient = false;
  std::vector<int32_t> reads, writes; ///< of those that are kept
};

/// A network of which every operator needs a strategy. Operators are in topological order.
struct Problem {
  int64_t devices = 1;
  /// Sizes of the axes of the meshes that the user wrote, or of the coarse one (CoarseMesh.h); none: a search looks at every factorisation of
  /// the devices.
  std::vector<std::vector<int64_t>> meshes;
  std::vector<ProblemTensor> tensors;
  std::vector<ProblemOperator> operators; ///< the body of a repeat stands once: one decision for all rounds
  std::vector<ProblemRepeat> repeats;
  std::vector<ProblemHandover> handovers;
  std::vector<int32_t> results; ///< tensors that the network returns or keeps for the next step
  int32_t loss = -1;            ///< the tensor that training minimizes; -1: nothing is trained
  int64_t optimizerStates = 0;  ///< tensors like the parameter that are kept for its update
  int64_t updateScalars = 1;    ///< that all updates share
  std::vector<UpdateWork> update; ///< of each trained parameter; none: it reads parameter, gradient and states, and writes all but the gradient
  std::vector<UpdateKernel> updateKernels; ///< of each trained parameter; none: one that reads the gradient
  /// Gradients of parameters are brought together in buckets: so many share the time of starting a collective; 1: none do.
  double gradientsPerStart = 1;
  /// What a search may spend (search::SolveLimits); behind it, the best that is known is taken, with a bound.
  int64_t searchOperations = int64_t(1) << 35;
  MachineModel machine = MachineModel::cpuLocal();
};

/// The strategy of one operator and where it came from.
struct Choice {
  Pieces pieces;
  std::string origin;
  int32_t asker = -1;          ///< the operator that it follows, which `origin` names; -1: none
  bool followsProducer = true; ///< of an operand, else a user of a result
};
using Choices = std::vector<Choice>; ///< one per operator

/// The shardings of one operator under given pieces, in canonical form.
struct Placement {
  std::vector<Sharding> operands;
  std::vector<Sharding> partialResults; ///< as the operator leaves them
  std::vector<Sharding> results;        ///< completed
};
Placement placementOf(const OperatorFacts &facts, const Pieces &pieces, int64_t devices);
/// The same with the results as the user wants them.
Placement placementOf(const ProblemOperator &op, const Pieces &pieces, int64_t devices);
/// How the user wants its results left, where that is not what its rule says under such pieces; else empty.
std::vector<Sharding> outOf(const ProblemOperator &op, const Pieces &pieces, int64_t devices);

/// Who makes and who reads every tensor.
struct TensorUses {
  /// Of the operators that run.
  TensorUses(const Problem &problem, const std::function<bool(size_t op)> &runs);

  std::vector<int32_t> producer;             ///< -1: none
  std::vector<std::vector<int32_t>> readers; ///< each once, ascending
};

/// A tensor from or to which repeats hand a value.
struct Handover {
  int32_t tensor = 0;
  int64_t times = 1;         ///< how often they do in a step; no limit where no repeat does
  bool crossesBorder = false; ///< of a repeat on the way
};

/// Where the values of tensors come from and go to, through what repeats carry.
class ValueFlow {
public:
  explicit ValueFlow(const Problem &problem);
  /// Tensors whose value `tensor` takes in some round, itself first; then from the first round to later ones.
  std::vector<Handover> sourcesOf(int32_t tensor) const { return reach(tensor, before); }
  /// Tensors that take the value of `tensor` in some round, itself first.
  std::vector<Handover> readersOf(int32_t tensor) const { return reach(tensor, behind); }

private:
  using Edges = std::vector<std::vector<Handover>>; ///< per tensor
  std::vector<Handover> reach(int32_t tensor, const Edges &edges) const;
  Edges before, behind;
};

/// The sharding without its partial axes, in canonical form.
Sharding completed(const Sharding &sharding);

/// The origin of a strategy that follows an operator or input.
inline std::string propagatedFrom(const std::string &name) { return "propagated from '" + name + "'"; }

/// The origin of a strategy that a search chose.
inline constexpr const char *searchedOrigin = "searched";

/// Every rank computes everything.
Choices standAlone(const Problem &problem, const std::string &origin = "stand_alone");

/// Dataset inputs are cut, parameters are whole, the rest follows by rule. What a repeat carries is cut if it is in some
/// round.
Choices dataParallel(const Problem &problem);

/// Operators that nobody configured split dimension 0 of their first operand.
Choices semiAuto(const Problem &problem);

/// Rounds outward from the configured operators, then from the dataset inputs; every operator takes what its neighbour
/// hands over with the least movement.
Choices propagate(const Problem &problem);

} // namespace msc::passes
