// What every choice of strategies costs: the problem as a network of costs over the strategies of its operators. There is no
// other truth; whoever searches, explains or compares asks this one.
//
// The cost of a step is the sum of
// - every operator with its gradient under its own strategy, and the update of the parameters that it stores;
// - the sums of gradients of values that are read more than once;
// - every value on its way from who makes it to who reads it: each sharding in which somebody wants it is made once, and
//   gradients that are left alike are added before they are brought to where the value lies. Those of parameters share the
//   time of starting collectives where these run in buckets.
// Operators in repeats count as often as they run. What takes an input of the network in its first round gives no gradient there.
//
// What moves take is a lower bound until it is made exact (MovePrices): the least of a network of bounds is the least of all once
// everything that it pays is exact.
#pragma once

#include "passes/sharding/cost/GradientsWanted.h"
#include "passes/sharding/cost/Items.h"
#include "passes/sharding/cost/MovePrices.h"
#include "passes/sharding/search/CostNetwork.h"

#include <map>
#include <memory>
#include <span>
#include <unordered_map>

namespace msc::passes {

/// Every strategy that an operator may take.
struct OperatorOptions {
  std::vector<Pieces> pieces;
  std::vector<std::shared_ptr<const OperatorStep>> steps; ///< under each of them; empty: that of the operator under all
  std::vector<PlacedStep> placed; ///< empty: the operator does not run
  std::vector<std::vector<Price>> moves; ///< of each placed step
  std::vector<std::vector<Price>> movesAgain; ///< of each placed step: of PlacedStep::again
};

/// What the operators of a problem make of a training step.
struct ProblemSteps {
  std::vector<std::shared_ptr<const OperatorStep>> all;   ///< of each operator; null: nothing depends on it, and it does not run
  std::vector<std::shared_ptr<const OperatorStep>> first; ///< in the first round of the repeat around it; null: as in all others
};

/// In which rounds of a repeat something happens.
enum class Rounds { All, First, Later };

/// A value on its way into a tensor that operators read.
struct Passage {
  int32_t source = 0, tensor = 0;    ///< as it is made, and as it is read
  int64_t times = 1;                 ///< in a step
  Rounds made = Rounds::All, read = Rounds::All; ///< of the repeats around who makes it, and who reads it
};

class StepModel {
public:
  /// Operators whose strategy the user gave have that option alone.
  StepModel(const Problem &problem, const ProblemSteps &steps, dist::ReshardPlanner &planner);

  /// One variable per operator, in order; its options are those of options(). There may be variables behind them. What an assignment
  /// costs here is a lower bound until makeExact.
  const search::CostNetwork &network() const { return costs; }
  /// Makes exact all that the assignments pay. False: it was.
  bool makeExact(std::span<const search::Choice> choices);
  bool makeExact(const search::Choice &choice) { return makeExact({&choice, 1}); }
  void makeAllExact();
  /// So many operations of a search take about as long as that.
  int64_t operationsOfPricing() const { return isAllExact ? 0 : prices.inexact() * (int64_t(1) << 17); }
  /// Makes those exact that may cost less than `us`, and less than those before them. `near`: in network(), as it is or was before other
  /// prices were made exact; those of the best one are.
  void priceNear(const search::Nearest &near, double us);
  /// Makes all of them exact.
  void priceAll(const search::Nearest &near);
  /// What a step takes under an assignment, exactly.
  double us(const search::Choice &choice);
  /// As if that share of the time in which gradients of parameters are brought together were hidden behind the backward pass; 0 at
  /// first.
  void hideGradients(double share);
  /// Whether what gradients of parameters take holds the share of starting collectives that is guessed, as at first, or nothing of it;
  /// what an assignment does take of it are the starts of all that it pays, each bucket once.
  void shareStarts(bool shares);
  using Starts = std::map<int32_t, double>; ///< us of each bucket
  void addStarts(size_t op, int32_t option, Starts &starts) const;
  void addStarts(size_t flow, int32_t ofMaker, int32_t item, Starts &starts) const;
  /// The same strategies in all rounds.
  const OperatorOptions &options(size_t op, Rounds rounds = Rounds::All) const {
    return rounds == Rounds::First && first[op] ? *first[op] : *all[op];
  }
  bool hasOwnFirstRound(size_t op) const { return first[op] != nullptr; }
  /// Whether the backward pass computes the operator again, in that round: it is marked, and something that the backward pass runs
  /// reads what it makes.
  bool isComputedAgain(size_t op, Rounds rounds) const { return (rounds == Rounds::First && first[op] ? againInFirst : again)[op] != 0; }
  /// Whether that result of it is.
  bool isComputedAgain(size_t op, size_t result, Rounds rounds) const {
    return isComputedAgain(op, rounds) && !options(op, rounds).placed.front().results[result].isStatistic;
  }
  /// What is asked of a result where it is made: by the operator itself, and of what nobody reads by the results of the network.
  ItemShardings askedWhereMade(size_t op, size_t result, const PlacedResult &at, Rounds rounds) const;
  bool runs(size_t op) const { return steps.all[op] != nullptr; }
  /// Of an operator that runs, under one of its options.
  const OperatorStep &step(size_t op, const Pieces &pieces, Rounds rounds = Rounds::All) const;
  /// Of what is no parameter.
  const std::vector<Passage> &passages() const { return passes; }
  /// Bytes of the parameters that a rank stores, for all rounds, under each option of a variable; empty: it stores none.
  struct ParameterBytes {
    std::vector<double> forRun;    ///< themselves and their states
    std::vector<double> gradients; ///< as the update wants them
  };
  /// Of each variable of network().
  const std::vector<ParameterBytes> &parameterBytes() const { return keptParameters; }
  /// Whether the value that goes that way is.
  bool isComputedAgain(const Passage &passage) const;
  /// The variable that decides how a parameter is stored; -1: nobody reads it.
  int32_t keeperOf(int32_t tensor) const { return keepers[tensor]; }

  /// A value on its way from who makes it to all who read it: network().shared[i] without the variables that stand in for makers.
  struct Flow {
    Passage passage;
    int32_t maker = -1;             ///< operator, or variable of a Storage; -1: nobody chooses how it is there
    std::vector<int32_t> classes;   ///< of each option of the maker: which row of costs
    int32_t classOf(int32_t option) const { return classes[maker < 0 ? 0 : option]; }
  };
  const std::vector<Flow> &flows() const { return ways; }

  /// How a parameter is stored where several operators, or several rounds, decide it: a variable of network().
  struct Storage {
    int32_t tensor = 0, variable = 0;
    std::vector<double> us;           ///< of each option: its update
    size_t firstRule = 0, users = 0;  ///< a table of network() for each user, from this one on
  };
  const std::vector<Storage> &storages() const { return stored; }
  /// Of the variable and each user, as they stand in its flow: what the users' strategies allow.
  std::span<const search::Table> rules(const Storage &storage) const { return {costs.tables.data() + storage.firstRule, storage.users}; }

  /// What adding up gradients of a result takes: those that arrive this way.
  struct GradientSums {
    Passage passage;
    int32_t maker = 0;      ///< operator
    std::vector<double> us; ///< of each of its options
  };
  const std::vector<GradientSums> &gradientSums() const { return sums; }
  /// What an operator costs under each of its options, in all rounds.
  const std::vector<double> &ownCosts(size_t op) const { return costs.tables[firstOwn + op].costs; }
  /// The part of them that falls to the first round, and to all others. Empty: all rounds cost the same.
  std::vector<double> ownCosts(size_t op, Rounds rounds) const;
  /// Makes one term exact; network() follows with refresh(). False: it was.
  bool makeOwnExact(size_t op, int32_t option);
  bool makeExact(size_t flow, int32_t ofMaker, int32_t item);
  /// network() under the prices as they are. What became exact is all that changes them but for hideGradients and shareStarts.
  void refresh();

private:
  /// How a value is there: as its producer left it, where its gradient is wanted, and what has been paid for already.
  struct Source;
  class FlowCosts;
  /// A cost that is a number and some prices, each as often.
  struct Sum {
    double us = 0;
    std::vector<std::pair<Price, double>> prices;
    void add(Price price, double times);
  };

  /// An operator under one option.
  struct Own {
    Sum later, first; ///< where all rounds are alike, everything is in `later`
  };

  /// By the step, and what the user and the problem say of strategies: operators that are alike share their options.
  using Known = std::map<std::tuple<const OperatorStep *, std::vector<Pieces>, std::optional<Pieces>, std::vector<Pieces>>, std::shared_ptr<const OperatorOptions>>;
  std::shared_ptr<const OperatorOptions> optionsOf(size_t op, const OperatorStep *step, Known &known, dist::ReshardPlanner &planner);
  void findPassages();
  void findComputedAgain();
  void addToOwn(size_t at, int32_t option, Rounds in, double rounds, Sum &sum);
  void addOwnCosts();
  void addFlows();
  std::vector<Passage> passagesTo(int32_t tensor, const ValueFlow &flow) const;
  void addFlow(const Passage &passage);
  int64_t gradientsOf(size_t reader, int32_t tensor, Rounds rounds) const;
  void addSumsOfGradients();
  void findPrices();
  void refreshAll();
  void refreshOwn(size_t op);
  void refreshFlow(size_t flow);
  void addParameter(int32_t tensor);
  void addStorage(int32_t tensor);
  void addSums(int32_t user, int32_t tensor);
  /// What a flow costs; its variables are those of the passage that asked first.
  struct FlowTables {
    search::SharedCost cost; ///< without prices
    std::vector<std::vector<Price>> prices;
    bool isFree = false; ///< whatever anybody chooses
  };
  FlowTables tablesOf(int32_t maker, const std::vector<Source> &sources, const Passage &passage, bool addsGradients = false);
  std::vector<Source> sourcesOf(int32_t maker, const Passage &passage) const;
  std::vector<uint64_t> flowKeyOf(int32_t maker, const Passage &passage) const;
  void addShared(int32_t maker, FlowTables tables, const Passage &passage);
  void standIn(search::SharedCost &cost);
  double usOf(const Sum &sum) const;
  bool makeExact(Price price);
  bool makePaidExact(const search::Choice &choice);
  bool makeFlowExact(size_t flow, const search::Choice &choice);
  /// Numbers of terms of network(), each once.
  struct Terms {
    std::vector<int32_t> own, tables, shared;
  };
  Terms termsOf(const std::vector<search::Change> &changes);
  double usOf(const Terms &terms, const search::Choice &choice) const;
  bool makeExact(const Terms &terms, const search::Choice &choice);
  int32_t rowOf(size_t flow, const search::Choice &choice) const { return ways[flow].classOf(ways[flow].maker < 0 ? 0 : choice[ways[flow].maker]); }
  static double localBytes(const ProblemTensor &tensor, const Sharding &sharding);
  double storageUs(const ProblemTensor &parameter, const Sharding &sharding, bool hasGradient) const;
  void keepParameter(int32_t tensor, int32_t variable, size_t option, double bytes, bool hasGradient);
  /// What keeping a parameter adds to an option of the operator that alone reads it.
  struct Kept {
    struct Part {
      std::vector<double> us;
      std::vector<std::pair<Price, double>> prices;
      double bytes = 0;
      bool hasGradient = false;
    };
    Part later, first; ///< as Own
  };
  std::vector<Kept> keptBy(int32_t keeper, int32_t tensor);
  std::vector<uint64_t> keptKeyOf(int32_t keeper, int32_t tensor) const;
  double updateUs(int64_t elements, size_t bytes) const;

  const Problem &problem;
  ProblemSteps steps;
  MovePrices prices;
  bool isAllExact = false;
  std::vector<std::shared_ptr<const OperatorOptions>> all, first; ///< as in `steps`
  std::vector<char> again, againInFirst; ///< of each operator: it is computed again
  std::vector<std::vector<Own>> own; ///< of each operator, of each option
  std::vector<std::vector<std::vector<Price>>> sharedPrices; ///< of each shared cost, as its table
  struct Priced {
    std::vector<int32_t> own, flows; ///< ascending
  };
  std::vector<Priced> pricedIn; ///< of each context of prices
  std::vector<Flow> ways;                                    ///< of each shared cost
  std::map<std::vector<uint64_t>, FlowTables> knownFlows;    ///< while flows are added: operators that are alike hand over alike
  std::map<std::vector<uint64_t>, std::vector<Kept>> knownKept; ///< then, too
  std::vector<Passage> passes;
  std::vector<GradientSums> sums;
  std::vector<Storage> stored;
  size_t firstOwn = 0;                                       ///< table of the first operator
  std::vector<ParameterBytes> keptParameters;
  std::vector<int32_t> keepers; ///< of each tensor
  TensorUses uses;
  search::CostNetwork costs;
  std::vector<Terms> termsOfVariables; ///< of each variable of it, once they were asked for
};

} // namespace msc::passes
