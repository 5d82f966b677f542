// What a search tells beside the strategies. Plain data, no IR.
#pragma once

#include "runtime/machine/MachineModel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::passes {

/// Collectives of one kind, group and phase that a step is expected to run.
struct PredictedCollective {
  MoveKind kind = MoveKind::AllReduce;
  bool isBackward = false;
  std::vector<int64_t> groupMatrix; ///< the group of a rank, as in dist.collective
  std::vector<int32_t> groupAxes;
  double bytes = 0; ///< received per rank, at most
  double us = 0;    ///< each started on its own
  int64_t count = 0;
};

/// What the price of a step is made of, but for the optimizer and for what is saved by starting the collectives of several
/// gradients together.
struct Prediction {
  std::vector<PredictedCollective> collectives;
  double computeUs = 0, sliceUs = 0;
  double sharedUs = 0; ///< what the price of a step holds besides: each move on its own, also where one value has several readers
};

/// How good the strategies are that a search found.
struct SearchFacts {
  bool isOptimal = false; ///< no strategies take less than `leastUs`
  double us = 0;      ///< modelled time of a step under the strategies taken
  double boundUs = 0; ///< no strategies take less; 0: nothing is known
  double leastBytes = 0; ///< of all strategies, where there is a limit
  int64_t candidates = 1; ///< assignments that were compiled as far as prices go; of several the fastest was taken
  double leastUs = 0;     ///< `us` of the first of them, which the search by itself would take
  double repricedUs = 0;  ///< of several: a step with all passes, what runs beside computation hidden where the machine overlaps
  double firstRepricedUs = 0; ///< the same of the first; infinity: no plan, or none within the limit that the one taken keeps
  double arenaBytes = 0;  ///< that a rank will need, by live ranges in the model; 0: not known
  bool isOnMesh = false; ///< only strategies on meshes were looked at: the user's, or the coarse one
  std::vector<PredictedCollective> collectives = {};

  /// What was taken is not the least in the model: its plan is faster.
  bool isForPlan() const { return us > leastUs; }
  /// Share by which what was taken may take longer than the best strategies, in the model of the search.
  double gap() const { return boundUs > 0 && us > boundUs ? (us - boundUs) / boundUs : 0; }
};

/// A strategy that an operator may take.
struct Alternative {
  std::string inStrategy; ///< "((2, 4), (4, 1))"
  /// Modelled time of a step: the operator takes this one, all that nobody configured follow or are searched anew. Of the chosen one: what
  /// is compiled.
  double us = 0;
  double leastUs = 0;     ///< the same; of the chosen one, too, with the others searched anew
  bool isExact = false;   ///< else it takes at least that
  double bytes = 0;       ///< that a rank needs then, as StepMemory says; 0: not known
  bool isChosen = false;
  bool isInsteadOfUsers = false; ///< the user gave another one, or a sharding that fixes a part of it otherwise
};

/// An operator of a repeat in one of its rounds.
struct Round {
  std::string body; ///< its instance name in the first round
  int64_t round = 0, rounds = 1;
};

/// Something that costs time or memory and that nobody asked for.
struct Surprise {
  enum class Kind {
    Replication, ///< several devices compute the same
    Gather,      ///< every device receives a whole parameter
    Imbalance,   ///< uneven pieces: the largest one is more than 10 % above the mean
  };
  Kind kind = Kind::Replication;
  std::string op;    ///< instance name
  std::string place; ///< "net.mir:6"
  std::string text;  ///< a sentence with the reason and figures
  std::string help;  ///< a repair
  double us = 0;     ///< of a step, by the machine model
};

} // namespace msc::passes
