// What the strategies that were not taken would cost: what `msc explain` tells of operators and of collectives.
#pragma once

#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/Search.h"
#include "passes/sharding/SearchFacts.h"
#include "passes/sharding/cost/BuildStep.h"
#include "passes/sharding/cost/RoundsModel.h"
#include "passes/sharding/cost/StepModel.h"
#include "passes/sharding/search/Workspace.h"

#include "llvm/ADT/StringMap.h"

#include <functional>
#include <map>
#include <memory>
#include <set>

namespace msc::passes {

/// How much of what could be otherwise is priced. Pricing takes longer the more devices there are.
enum class Freedom {
  None, ///< operators have the strategies that they have
  Few,  ///< each has two: what it has, or of the others that use most devices the one that computes least
  Open, ///< all that the user did not decide, and the operator that is asked about: as much as a search prices
  All,  ///< what the user decided, too
};

/// What the other operators do while one is asked about that is given another strategy.
enum class Others {
  Search,    ///< they take what is cheapest together with it
  Propagate, ///< they follow it and the user's strategies as in sharding_propagation
  Divide,    ///< they take what recursive_programming finds beside it
  Stay,      ///< they keep what they have: nothing is searched
};

/// The strategies of operators, priced by one model. Operators of the user keep theirs while another one is asked about. The
/// network has its strategies and is not unrolled yet; what is asked later does not look at it any more.
///
/// Prices are lower bounds at first, as everywhere in the model; a strategy is priced exactly when somebody asks for it. Whatever
/// another mode leads to, a search finds nothing dearer: its prices are bounds there, too. Of a network that is too large for a search to
/// prove anything, nothing more is priced from when that is seen.
class Alternatives {
public:
  /// `slower`: the model's own choice, where what was taken is faster as a plan.
  Alternatives(net::NetworkOp network, const TrainingFacts &training, Freedom freedom, llvm::StringRef asked = "",
               Others others = Others::Search, std::optional<ModelChoice> slower = std::nullopt);

  /// The operator with this instance name; within a repeat that of any of its rounds.
  std::optional<size_t> find(llvm::StringRef name) const;
  /// Its strategies and what a step takes under each, the cheapest first; those under which nothing is possible are left out.
  /// Exact are the one that it has and so many of the cheapest, if so many rounds of search are enough for them; where others
  /// follow by a mode that is no search as many as that prices.
  std::vector<Alternative> of(size_t op, size_t exact, size_t rounds);

  /// What a step takes under the strategies that operators have.
  double us();
  /// The collectives that this is made of.
  std::vector<PredictedCollective> collectives();

  /// What was asked for so far took more than is spent on it: others are not known.
  bool isTooLarge() const { return tooLarge; }
  /// Only strategies on a coarse mesh are priced (CoarseMesh.h).
  bool isOnCoarseMesh() const { return onCoarseMesh; }

  /// Operators of repeats by their instance names.
  const std::map<std::string, Round> &rounds() const { return inRounds; }

  const Problem &problem() const { return facts; }
  /// How many operators there are.
  size_t size() const { return names.size(); }
  /// Of an operator in the text.
  mlir::Location place(size_t op) const { return places[op]; }
  const StepModel &model() const { return *priced; }
  /// Who decided the strategy of an operator, and whether that was the user, in the network or in a dump.
  llvm::StringRef origin(size_t op) const { return origins[op]; }
  bool isByUser(size_t op) const { return origins[op] == "user" || origins[op] == "dump"; }
  /// Instance name in the first round.
  llvm::StringRef name(size_t op) const { return names[op]; }
  /// In all rounds that have the same strategies, as a file of strategies has them: "layers.{i}.up" where that means no other operator.
  std::vector<std::string> namesInFile(size_t op) const;
  /// Pieces that an operator has.
  const Pieces &chosen(size_t op) const { return taken[op]; }
  /// Which of model().options(op) they are; nothing if none.
  std::optional<size_t> chosenOption(size_t op) const { return optionOf(op, taken[op]); }
  std::optional<size_t> optionOf(size_t op, const Pieces &pieces) const;
  /// Nothing that a sharding of the user fixes is otherwise under an option.
  bool keepsFixed(size_t op, size_t option) const;
  /// The cheapest of the strategies of an operator that pass, exactly; nothing if none does, or isTooLarge(). Where others follow by another
  /// mode and a network is large: of those that a search likes best.
  std::optional<Alternative> cheapest(size_t op, llvm::function_ref<bool(const OperatorOptions &options, size_t option)> passes);
  /// A step takes no more with it than now, and less than in the model's own choice where that was found slower as a plan. Under a limit on
  /// memory a rank needs no more than that for it.
  bool isBetter(size_t op, const Alternative &other);
  /// 0: there is no limit.
  void keepWithin(double bytes) { mostBytes = bytes; }
  /// The model's own choice, of which the plan is slower, gives the operator pieces that pass, in all its rounds.
  bool wasWeighed(size_t op, llvm::function_ref<bool(const Pieces &pieces)> passes) const;
  /// What a rank needs in the assignment that was found for it, or that is compiled where it is the chosen one, as StepMemory says; 0: not
  /// known.
  double bytes(size_t op, const Alternative &of);
  /// "((2, 4), (4, 1))".
  std::string strategyText(size_t op, const Pieces &pieces) const;

private:
  struct Written {
    std::string name;                ///< "layers.{i}.up"
    std::vector<std::string> rounds; ///< "layers.0.up", ...
  };
  struct OptionPrice {
    double us = 0; ///< infinity: nothing is possible
    bool isExact = false;
    std::shared_ptr<const SearchResult> assignment; ///< that takes so long, where it is exact and possible
  };

  search::SolveLimits limits() const;
  void spend(const search::Solution &found);
  void keepPinned(net::NetworkOp network, const TrainingFacts &training);
  /// The problem of the copied network, in which only the user's strategies are given.
  Problem pinnedProblem(std::vector<Members> &members);
  Choices chosenOfAll() const;
  double usOf(const Choices &choices);
  StepModel decidedModel(const Choices &choices);
  void giveChoice(size_t op, mlir::Operation *first, Freedom freedom, bool asksForOne, bool isAsked);
  Pieces cheapestOfMost(size_t op) const;
  /// An operator of which some options are left, ascending.
  struct Left {
    size_t op = 0;
    std::vector<int32_t> options;
  };
  using AllLeft = std::vector<Left>;
  AllLeft leftBut(std::optional<size_t> op) const;
  search::RepeatedNetwork networkOf(const AllLeft &left) const;
  /// What a search found: a bound, or the least.
  struct Searched {
    double us = 0;
    bool isExact = false;
    search::RepeatedChoice choice; ///< empty where nothing is possible
  };
  std::optional<search::Solution> cheapestAlike(const AllLeft &left);
  template <typename Choice, typename Take> void forOptionsOf(size_t op, Choice &choice, Take take) const;
  std::set<size_t> optionsIn(const search::RepeatedChoice &choice, size_t op) const;
  Searched searchOnce(const AllLeft &left);
  Searched searchAmong(size_t op, std::vector<int32_t> options);
  bool searchFront(size_t op, llvm::function_ref<bool(size_t)> passes);
  std::vector<OptionPrice> &pricesOf(size_t op);
  bool hasQuickBounds();
  const search::Choice &chosenInModel();
  std::vector<double> costsBesideChosen(size_t op);
  void boundByLikely(size_t op);
  void updateBounds(size_t op);
  void raise(size_t op, size_t option);
  std::optional<size_t> front(size_t op, llvm::function_ref<bool(size_t option)> passes);
  std::optional<size_t> cheapestFollowed(size_t op, llvm::function_ref<bool(size_t option)> passes);
  std::optional<size_t> cheapestOption(size_t op, llvm::function_ref<bool(size_t option)> passes);
  Alternative alternative(size_t op, size_t option);
  OptionPrice priceOf(const Searched &found) const;
  /// Makes `following`. Knows the network as keepPinned left it.
  void followBy();
  /// What recursive bisection gives all where the user gives an operator these: typed, a strategy moves operators in the order in which they
  /// are gone through.
  Choices divided(size_t op, const Pieces &pieces);
  /// With so many strategies of an operator the others are decided anew, in order of bounds, before the cheapest of them is told.
  size_t mostFollowed() const;

  Problem facts;
  std::vector<Pieces> taken;
  std::vector<std::pair<size_t, std::vector<bool>>> allowed; ///< operators of which the user fixed a part, and of their options which keep to it
  std::vector<std::string> origins, names;
  std::vector<std::vector<Written>> written; ///< of each operator, as it stands in the network
  std::vector<mlir::Location> places;
  std::map<std::string, Round> inRounds;
  llvm::StringMap<size_t> named; ///< operators by their names in all rounds
  std::unique_ptr<dist::ReshardPlanner> planner;
  std::unique_ptr<StepModel> priced;
  std::unique_ptr<RoundsModel> apart; ///< rounds of repeats may differ
  search::Workspace workspace; ///< remembers the network that was searched last
  std::vector<std::vector<OptionPrice>> known; ///< of each option of each operator; empty: nobody asked yet
  std::vector<std::vector<double>> likely;     ///< where others follow, of those asked for: costsBesideChosen
  search::Choice inModel;             ///< chosenInModel(), from when it was asked for
  std::optional<bool> areBoundsQuick; ///< hasQuickBounds(), from when it was asked for
  std::vector<size_t> roundsOf; ///< of each operator
  Searched cheapestOfAll; ///< exact from when somebody asked for a price
  int64_t spent = 0;             ///< operations of searches
  bool tooLarge = false, onCoarseMesh = false;
  bool hasBounds = true;         ///< the options of the model are all that operators may take
  std::optional<double> stepUs;  ///< known from when us() was asked
  /// The network before anything was decided, for those that are priced with what follows from them: its copy, its problem, in which
  /// only the user's strategies are given, and the steps of its operators.
  mlir::OwningOpRef<mlir::ModuleOp> copy;
  net::NetworkOp undecided; ///< of the copy
  TrainingFacts training;
  std::vector<Members> copied;
  Problem pinned;
  std::unique_ptr<StepBuilder> builder;
  ProblemSteps steps;
  std::function<Choices(size_t op, const Pieces &pieces)> following; ///< what all take if the user gives an operator these; null: others are searched
  Others others;
  double slowerUs = search::infinity;
  std::vector<std::vector<Pieces>> slowerPieces; ///< of each operator in the model's own choice; empty: that was taken
  double mostBytes = 0;
};

} // namespace msc::passes
