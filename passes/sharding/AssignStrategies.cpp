#include "dialects/net/FixedPieces.h"
#include "dialects/net/Repeat.h"
#include "dialects/net/Suggest.h"
#include "passes/sharding/CoarseMesh.h"
#include "passes/sharding/Communication.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/DatasetStrategy.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/Passes.h"
#include "passes/sharding/Search.h"
#include "passes/sharding/SearchParts.h"
#include "passes/sharding/Storage.h"
#include "passes/sharding/cost/BuildStep.h"
#include "passes/sharding/cost/Prediction.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_ASSIGNSTRATEGIESPASS
#include "passes/sharding/Passes.h.inc"

namespace {

struct AssignStrategies : impl::AssignStrategiesPassBase<AssignStrategies> {
  using AssignStrategiesPassBase::AssignStrategiesPassBase;

  TrainingFacts training;
  Planning planning;
  int64_t candidates = 1; ///< 0: as many as take little time
  FoundWithin within;     ///< null: nobody asks for it
  SearchWatch watch;      ///< null: nobody

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (devices == 0) {
      auto attr = module->getAttrOfType<IntegerAttr>("net.devices");
      devices = attr ? attr.getInt() : 1;
    }
    if (parallelMode.empty())
      parallelMode = "auto_parallel";
    for (auto network : module.getOps<net::NetworkOp>())
      if (failed(assign(network)))
        return signalPassFailure();
  }

private:
  std::optional<SearchFacts> found; ///< what the search says of the network
  std::vector<int64_t> coarse;      ///< the mesh that the search keeps to, as there are too many
  std::vector<RoundsTaken> apart;   ///< repeats to which it gives different strategies from round to round
  std::vector<SearchResult> near;   ///< what it found, and what may turn out faster
  PlannedBytes planned;             ///< while strategies are searched for under a limit on memory

  /// Every rank computes everything; in hybrid_parallel mode with tensors of its own.
  bool isAlone() const { return devices == 1 || parallelMode == "stand_alone" || parallelMode == "hybrid_parallel"; }

  bool ignoresStrategies() const { return isAlone() || parallelMode == "data_parallel"; }

  /// `given`: what a search found, if it was asked before.
  LogicalResult assign(net::NetworkOp network, const SearchResult *given = nullptr) {
    // A dump pins all operators, each on its own.
    if (failed(checkCommunication(network, devices, parallelMode)))
      return failure();
    bool isDump = network.walk([](net::Operator op) {
                           return isByUser(op) ? WalkResult::advance() : WalkResult::interrupt();
                         }).wasInterrupted();
    std::vector<Members> members;
    // Rounds that were joined do not say how they follow each other, which a limit on memory has to know.
    Problem problem = readProblem(network, /*joinAlike=*/!isDump && memoryBytes == 0, members);
    std::vector<net::Strategy> ignored(problem.operators.size());
    if (failed(readInputs(network, problem)) || failed(readStrategies(network, problem, members, ignored)))
      return failure();
    found.reset();
    near.clear();
    Choices choices;
    if (given) {
      dist::ReshardPlanner planner(problem.machine);
      choices = noted(problem, nullptr, *given, planner);
    } else {
      OwningOpRef<ModuleOp> before = planning.step && searches() && !isDump ? network->getParentOfType<ModuleOp>().clone() : OwningOpRef<ModuleOp>();
      if (!isDump)
        noteCoarse(network.getLoc(), devices, coarse);
      if (before && memoryBytes > 0)
        planned = {[&](const SearchResult &result) { return asPlanned(planning.bytes, network, *before, result, search::infinity); }, planning.mostBytes,
                   plannableOperators / std::max<int64_t>(1, operatorsOf(problem))};
      choices = choose(problem, members, before ? candidates : 1, within);
      planned = {};
      if (near.size() > 1)
        choices = fastest(network, *before, problem, members);
    }
    if (!apart.empty() && failed(splitRepeats(network, problem, members, ignored, choices)))
      return failure();
    std::optional<SearchFacts> searched = found; // what is derived from pins searches, too
    noteIgnored(problem, members, choices, ignored);
    llvm::DenseMap<Operation *, std::string> pinned;
    if (isDump)
      pinned = originsOfPins(network, problem, members, choices);
    for (auto [ops, entry, choice] : llvm::zip(members, problem.operators, choices))
      for (auto [round, op] : llvm::enumerate(ops)) {
        bool keepsOrigin = entry.configured && !net::getStrategyOrigin(op).empty();
        net::setInStrategy(op, inStrategy(entry.facts.rule, choice.pieces));
        if (!keepsOrigin)
          net::setStrategyOrigin(op, devices == 1 ? "one device" : withinSharding(originOf(problem, members, choice, entry, round), op));
        else if (!isByUser(op))
          net::setStrategyOrigin(op, pinned.lookup(op));
      }
    setDevices(network, devices);
    if (searched)
      setSearchFacts(network, *searched);
    return storeParameters(network, problem, members, choices);
  }

  /// Gives rounds that take different strategies repeats of their own; all that is told is of the new network.
  LogicalResult splitRepeats(net::NetworkOp network, Problem &problem, std::vector<Members> &members, std::vector<net::Strategy> &ignored,
                             Choices &choices) {
    SmallVector<net::RepeatOp> repeats;
    network.walk<WalkOrder::PreOrder>([&](net::RepeatOp repeat) { repeats.push_back(repeat); });
    llvm::DenseMap<Operation *, Choice> taken;
    for (auto [ops, choice] : llvm::zip(members, choices))
      taken[ops.front()] = choice;
    for (const RoundsTaken &rounds : apart) {
      net::RepeatOp repeat = repeats[rounds.repeat];
      for (const RoundsTaken::Run &run : llvm::reverse(llvm::drop_begin(rounds.runs))) {
        IRMapping mapping;
        net::splitBefore(repeat, repeat.endRound() - run.rounds, mapping);
        for (auto [op, pieces] : llvm::zip(rounds.operators, run.pieces)) {
          Operation *first = members[op].front();
          Choice own = taken.at(first); // a copy: the map may grow
          Choice &choice = taken[mapping.lookup(first)] = std::move(own);
          choice.pieces = pieces;
        }
      }
    }
    apart.clear();
    members.clear();
    problem = readProblem(network, /*joinAlike=*/true, members);
    ignored.assign(problem.operators.size(), {});
    choices.clear();
    for (const Members &ops : members)
      choices.push_back(taken.at(ops.front()));
    if (failed(readInputs(network, problem)) || failed(readStrategies(network, problem, members, ignored)))
      return failure();
    Problem decided = problem;
    for (auto [op, choice] : llvm::zip(decided.operators, choices))
      op.among = {choice.pieces};
    dist::ReshardPlanner planner(problem.machine);
    found->collectives = predictionOf(problem, modelOf(decided, members, planner), choices, planner).collectives;
    return success();
  }

  /// The operation that the operator `op` follows in this round, or null. Rounds of a dump have operations of their own:
  /// an operator follows its neighbour in the same round, or the last round of another repeat where that produces its
  /// operand, or the first one where that uses its result.
  static Operation *askerOf(const Problem &problem, ArrayRef<Members> members, const Choice &choice,
                            const ProblemOperator &op, size_t round) {
    if (choice.asker < 0)
      return nullptr;
    const Members &askers = members[choice.asker];
    bool isSameRepeat = problem.operators[choice.asker].repeats == op.repeats && round < askers.size();
    return isSameRepeat ? askers[round] : choice.followsProducer ? askers.back() : askers.front();
  }

  static std::string originOf(const Problem &problem, ArrayRef<Members> members, const Choice &choice,
                              const ProblemOperator &op, size_t round) {
    if (choice.asker < 0 || members[choice.asker].size() == 1)
      return choice.origin;
    return propagatedFrom(net::getInstanceName(askerOf(problem, members, choice, op, round)).str());
  }

  /// A search that was bound by a sharding says by which.
  static std::string withinSharding(std::string origin, Operation *op) {
    const std::string place = net::getFixedPlace(op);
    return origin == searchedOrigin && !place.empty() ? origin + " within sharding (" + place + ")" : origin;
  }

  /// What an operation would have if nothing but some pins were given.
  struct Derived {
    Pieces pieces;
    std::string origin;
    Operation *asker = nullptr; ///< whom it follows
  };

  /// A copy of the module in which no other operators have strategies.
  static OwningOpRef<ModuleOp> withOnly(net::NetworkOp network, const llvm::DenseSet<Operation *> &pins) {
    auto module = network->getParentOfType<ModuleOp>();
    OwningOpRef<ModuleOp> copy = module.clone();
    SmallVector<Operation *> copied;
    copy->walk([&](net::Operator op) { copied.push_back(op); });
    size_t at = 0;
    module.walk([&](net::Operator op) {
      if (Operation *other = copied[at++]; !pins.contains(op))
        clearChoice(other);
    });
    return copy;
  }

  /// What of the strategy was fixed by the user stays so.
  static void clearChoice(Operation *op) {
    const std::vector<int64_t> fixed = net::getFixedPieces(op);
    const std::string place = net::getFixedPlace(op);
    net::clearStrategy(op);
    net::setFixedPieces(op, fixed, place);
  }

  /// What follows from the strategies of `pins`, which have been checked.
  llvm::DenseMap<Operation *, Derived> derive(net::NetworkOp network, const llvm::DenseSet<Operation *> &pins,
                                              bool joinAlike) {
    std::vector<Members> members;
    Problem problem = readProblem(network, joinAlike, members);
    llvm::DenseMap<Operation *, Derived> derived;
    if (failed(readInputs(network, problem)))
      return derived;
    for (auto [ops, entry] : llvm::zip(members, problem.operators))
      if (pins.contains(ops.front())) {
        entry.configured = std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(ops.front()), devices));
        (void)readOutStrategy(ops.front(), entry); // has been checked
      } else {
        (void)readFixedPieces(ops.front(), entry, problem.meshes); // has been checked
      }
    const bool prices = planning.step && searches() && joinAlike;
    Choices choices = choose(problem, members, prices ? candidates : 1);
    if (prices && near.size() > 1)
      choices = fastest(network, *withOnly(network, pins), problem, members);
    for (auto [ops, entry, choice] : llvm::zip(members, problem.operators, choices))
      for (auto [round, op] : llvm::enumerate(ops))
        derived[op] = {choice.pieces, withinSharding(originOf(problem, members, choice, entry, round), op),
                       askerOf(problem, members, choice, entry, round)};
    return derived;
  }

  /// Where the strategies that a dump pins come from: what does not follow from pins that are settled was edited. Whether
  /// an operator follows one that is not settled itself is seen once that one is.
  llvm::DenseMap<Operation *, std::string> originsOfPins(net::NetworkOp network, const Problem &problem,
                                                         ArrayRef<Members> members, const Choices &choices) {
    llvm::DenseMap<Operation *, Pieces> chosen;
    SmallVector<Operation *> open;
    llvm::DenseSet<Operation *> settled;
    for (auto [ops, entry, choice] : llvm::zip(members, problem.operators, choices))
      for (Operation *op : ops) {
        chosen[op] = choice.pieces;
        if (entry.configured && isByUser(op))
          settled.insert(op);
        else if (entry.configured)
          open.push_back(op);
      }
    llvm::DenseMap<Operation *, std::string> origins;
    for (bool joinAlike = true; !open.empty(); joinAlike = false) {
      auto derived = derive(network, settled, joinAlike);
      llvm::DenseMap<Operation *, bool> follows; // from settled pins alone
      auto isSound = [&](Operation *op) {
        SmallVector<Operation *> chain;
        for (; op && !settled.contains(op) && !follows.count(op); op = derived[op].asker)
          chain.push_back(op);
        bool sound = !op || settled.contains(op) || follows[op];
        for (Operation *link : llvm::reverse(chain))
          follows[link] = sound = sound && derived[link].pieces == chosen[link];
        return sound;
      };
      SmallVector<Operation *> seen;
      for (Operation *op : open) {
        const Derived &wants = derived[op];
        if (!isSound(wants.asker))
          continue;
        origins[op] = wants.pieces == chosen[op] ? wants.origin : "dump";
        seen.push_back(op);
      }
      if (seen.empty()) // behind an operator without a strategy, which follows them
        for (Operation *op : seen = open)
          origins[op] = "dump";
      settled.insert(seen.begin(), seen.end());
      llvm::erase_if(open, [&](Operation *op) { return settled.contains(op); });
    }
    return origins;
  }

  Problem readProblem(net::NetworkOp network, bool joinAlike, std::vector<Members> &members) {
    Problem problem = problemOf(network, devices, joinAlike, members, {minimize, optimizerStates, inBuckets, training.train});
    if (coarse = searches() ? coarseMesh(problem) : std::vector<int64_t>(); !coarse.empty())
      problem.meshes = {coarse};
    if (searchOperations > 0)
      problem.searchOperations = searchOperations;
    return problem;
  }

  bool searches() const {
    return !ignoresStrategies() && parallelMode != "semi_auto_parallel" && searchMode != "sharding_propagation" &&
           searchMode != "recursive_programming";
  }

  /// What later passes say of an assignment; `before`: nothing is decided in it.
  template <typename Of>
  Of asPlanned(const std::function<Of(ModuleOp)> &plan, net::NetworkOp network, ModuleOp before, const SearchResult &result, Of otherwise) {
    OwningOpRef<ModuleOp> copy = before.clone();
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    auto same = llvm::find_if(copy->getOps<net::NetworkOp>(), [&](net::NetworkOp other) { return other.getSymName() == network.getSymName(); });
    return succeeded(assign(*same, &result)) ? plan(*copy) : otherwise;
  }

  /// Of what the search found, by the time of a step with all passes; of what fits, if any does and the search was for that.
  Choices fastest(net::NetworkOp network, ModuleOp before, const Problem &problem, ArrayRef<Members> members) {
    const std::vector<SearchResult> results = std::move(near);
    std::vector<PlannedStep> steps;
    for (const SearchResult &result : results)
      steps.push_back(asPlanned(planning.step, network, before, result, {search::infinity, search::infinity}));
    auto key = [&](const PlannedStep &step) { return std::pair(memoryBytes > 0 && step.bytes > planning.mostBytes, step.us); };
    const size_t taken = std::ranges::min_element(steps, {}, key) - steps.begin();
    dist::ReshardPlanner planner(problem.machine);
    Choices choices = noted(problem, nullptr, results[taken], planner);
    found->candidates = static_cast<int64_t>(results.size());
    found->leastUs = results.front().us;
    found->repricedUs = steps[taken].us;
    found->firstRepricedUs = key(steps.front()).first && !key(steps[taken]).first ? search::infinity : steps.front().us; // it does not fit
    if (taken != 0)
      noteModelChoice(results.front(), members);
    if (apart.empty()) {
      Problem decided = problem;
      for (auto [op, choice] : llvm::zip(decided.operators, choices))
        op.among = {choice.pieces};
      found->collectives = predictionOf(problem, modelOf(decided, members, planner), choices, planner).collectives;
    }
    return choices;
  }

  /// What was not taken although it is best in the model.
  static void noteModelChoice(const SearchResult &best, ArrayRef<Members> members) {
    std::vector<std::vector<Pieces>> pieces;
    for (const Choice &choice : best.choices)
      pieces.push_back({choice.pieces});
    for (const RoundsTaken &rounds : best.rounds)
      for (auto [i, op] : llvm::enumerate(rounds.operators)) {
        pieces[op].clear();
        for (const RoundsTaken::Run &run : rounds.runs)
          pieces[op].push_back(run.pieces[i]);
      }
    for (auto [ops, own] : llvm::zip(members, pieces))
      for (Operation *op : ops)
        setModelChoice(op, own);
  }

  /// `most`: how many assignments are looked for, as `candidates`.
  Choices choose(const Problem &problem, ArrayRef<Members> members, int64_t most = 1, FoundWithin within = nullptr) {
    if (isAlone())
      return standAlone(problem, devices > 1 ? std::string(parallelMode) : "stand_alone");
    if (parallelMode == "data_parallel")
      return dataParallel(problem);
    if (parallelMode == "semi_auto_parallel")
      return semiAuto(problem);
    return searchMode == "sharding_propagation" ? propagate(problem) : search(problem, members, most, std::move(within));
  }

  /// Recursion may find what lies on no coarse mesh, which the model of the search does not know.
  template <typename Tell>
  auto withModelOf(const SearchResult &result, const Problem &problem, const StepModel &model, ArrayRef<Members> members,
                   dist::ReshardPlanner &planner, Tell tell) const {
    if (coarse.empty())
      return tell(model);
    const Problem decided = decidedBy(problem, result);
    return tell(modelOf(decided, members, planner));
  }

  Choices search(const Problem &problem, ArrayRef<Members> members, int64_t most, FoundWithin within) {
    dist::ReshardPlanner planner(problem.machine);
    if (searchMode == "recursive_programming") {
      StepBuilder builder(getOperation()->getContext(), problem.machine);
      const ProblemSteps steps = stepsOf(problem, members, builder);
      SearchResult result = foundRecursively(problem, steps, planner);
      const Problem decided = decidedBy(problem, result);
      StepModel model(decided, steps, planner);
      tellMemory(problem, model, result, planner);
      return noted(problem, &model, std::move(result), planner);
    }
    StepModel model = modelOf(problem, members, planner);
    const auto limits = closesGap ? search::BudgetLimits() : search::BudgetLimits::multipliersAlone();
    if (most == 0)
      most = std::min(fewCandidates, (problem.machine.overlaps ? overlappingOperators : priceableOperators) / std::max<int64_t>(1, operatorsOf(problem)));
    std::vector<SearchResult> results;
    if (memoryBytes > 0) {
      if (!within)
        within = std::make_shared<std::vector<SearchResult>>();
      if (within->empty())
        *within = searchWithin(problem, model, static_cast<double>(memoryBytes), planner, limits, watch, planned);
      results = *within;
      results.resize(std::clamp<size_t>(most, 1, results.size()));
    } else {
      results.push_back(searchOptimal(problem, model, watch));
      if (most > 1)
        std::ranges::move(searchNear(problem, model, results.front(), problem.loss >= 0 && problem.machine.overlaps, most - 1, watch),
                          std::back_inserter(results));
      if (!coarse.empty())
        addRecursive(withoutMesh(problem), members, planner, most, results);
      else if (!results.front().isOptimal && problem.meshes.empty())
        addRecursive(problem, members, planner, most, results);
      for (SearchResult &result : results)
        withModelOf(result, problem, model, members, planner, [&](const StepModel &of) { tellMemory(problem, of, result, planner); });
    }
    SearchResult result = results.front();
    if (most > 1)
      near = std::move(results);
    return withModelOf(result, problem, model, members, planner,
                       [&](const StepModel &of) { return noted(problem, &of, std::move(result), planner); });
  }

  /// With the strategies of a result alone.
  static Problem decidedBy(Problem problem, const SearchResult &result) {
    for (auto [op, choice] : llvm::zip(problem.operators, result.choices))
      op.among = {choice.pieces};
    for (const RoundsTaken &rounds : result.rounds)
      for (auto [i, op] : llvm::enumerate(rounds.operators))
        for (const RoundsTaken::Run &run : rounds.runs)
          if (std::vector<Pieces> &among = problem.operators[op].among; !llvm::is_contained(among, run.pieces[i]))
            among.push_back(run.pieces[i]);
    return problem;
  }

  static Problem withoutMesh(Problem problem) {
    problem.meshes.clear();
    return problem;
  }

  static SearchResult foundRecursively(const Problem &problem, const ProblemSteps &steps, dist::ReshardPlanner &planner) {
    return searchRecursively(problem, [&](const Problem &part) { return StepModel(part, steps, planner); });
  }

  /// Where nothing is proven, it may be the cheapest in the model, or as a plan. It knows no meshes and no limit of memory.
  void addRecursive(const Problem &problem, ArrayRef<Members> members, dist::ReshardPlanner &planner, int64_t most, std::vector<SearchResult> &results) {
    StepBuilder builder(getOperation()->getContext(), problem.machine);
    SearchResult other = foundRecursively(problem, stepsOf(problem, members, builder), planner);
    other.boundUs = coarse.empty() ? results.front().boundUs : 0; // that holds on the mesh alone
    if (!(other.us < search::infinity) || llvm::any_of(results, [&](const SearchResult &known) { return isSame(known, other); }))
      return;
    const bool isCheapest = other.us < results.front().us;
    if (!isCheapest && most <= 1)
      return;
    if (isCheapest && !coarse.empty())
      for (SearchResult &onMesh : results) { // what is proven of them is not of all
        onMesh.isOptimal = false;
        onMesh.boundUs = 0;
      }
    if (std::ssize(results) >= std::max<int64_t>(1, most))
      results.pop_back();
    results.insert(isCheapest ? results.begin() : results.end(), std::move(other));
  }

  void tellMemory(const Problem &problem, const StepModel &model, SearchResult &result, dist::ReshardPlanner &planner) const {
    if (tellsMemory)
      result.arenaBytes = static_cast<double>(StepLives(eventsOf(problem, model, result, planner)).memory().arena());
  }

  /// Compiling them takes about a millisecond for each forward operator; the search itself is faster. What runs beside computation is not in its
  /// prices.
  static constexpr int64_t fewCandidates = 4, priceableOperators = 400, overlappingOperators = 1600, plannableOperators = 300;

  static int64_t operatorsOf(const Problem &problem) {
    int64_t count = 0;
    for (const ProblemOperator &op : problem.operators)
      count += op.rounds;
    return count;
  }

  /// `model` null: its collectives are told later.
  Choices noted(const Problem &problem, const StepModel *model, SearchResult result, dist::ReshardPlanner &planner) {
    found = SearchFacts{.isOptimal = result.isOptimal, .us = result.us, .boundUs = result.boundUs,
                        .leastBytes = result.leastBytes, .leastUs = result.us, .arenaBytes = result.arenaBytes, .isOnMesh = !problem.meshes.empty()};
    apart = std::move(result.rounds);
    if (apart.empty() && model)
      found->collectives = predictionOf(problem, *model, result.choices, planner).collectives;
    return std::move(result.choices);
  }

  LogicalResult readInputs(net::NetworkOp network, Problem &problem) {
    auto inputs = network.getBody().getArguments();
    std::vector<InputFacts> facts;
    for (BlockArgument input : inputs)
      facts.push_back({net::getValueName(input).str(), shapeOf(input)});
    // The modes without strategies decide how inputs arrive.
    StringRef strategy = datasetStrategy;
    if (isAlone()) {
      strategy = "full_batch";
    } else if (parallelMode == "data_parallel") {
      strategy = "data_parallel";
    }
    auto shardings = datasetShardings(facts, strategy.str(), devices, datasetRepeatDimRight);
    if (auto *error = std::get_if<StrategyError>(&shardings)) {
      Location input = error->operand < 0 ? network.getLoc() : inputs[error->operand].getLoc();
      auto place = getOperation()->getAttrOfType<LocationAttr>(datasetPlaceAttributeName);
      bool known = place && !isa<UnknownLoc>(place);
      InFlightDiagnostic diagnostic = emitError(known ? Location(place) : input, error->text);
      if (known && error->operand >= 0)
        diagnostic.attachNote(input) << "the input is here";
      diagnostic.attachNote() << "help: " << error->help;
      return failure();
    }
    const auto &list = std::get<std::vector<Sharding>>(shardings);
    for (size_t i = 0; i < list.size(); ++i)
      problem.tensors[i].dataset = list[i];
    setInputShardings(network, list);
    return success();
  }

  /// `ignored` receives the strategies of operators that the mode gives others.
  LogicalResult readStrategies(net::NetworkOp network, Problem &problem, ArrayRef<Members> members,
                               std::vector<net::Strategy> &ignored) {
    bool sound = true;
    for (auto [ops, entry, aside] : llvm::zip(members, problem.operators, ignored)) {
      Operation *op = ops.front(); // all have the same strategy
      auto strategy = net::getInStrategy(op);
      if (!strategy) {
        sound &= succeeded(readFixedPieces(op, entry, problem.meshes));
        continue;
      }
      // A dump says both.
      sound &= succeeded(readFixedPieces(op, entry, problem.meshes));
      entry.among.clear();
      if (ignoresStrategies()) {
        if (devices == 1)
          warnOfUnsound(op, entry, *strategy);
        aside = *strategy;
        llvm::for_each(ops, net::clearStrategy);
        continue;
      }
      auto checked = piecesOfStrategy(entry.facts, *strategy, devices);
      if (auto *error = std::get_if<StrategyError>(&checked)) {
        report(op, *error);
        sound = false;
        continue;
      }
      entry.configured = std::get<Pieces>(checked);
      sound &= succeeded(readOutStrategy(op, entry));
    }
    return success(sound);
  }

  /// Some factors are fixed, the others are chosen.
  LogicalResult readFixedPieces(Operation *op, ProblemOperator &entry, const std::vector<std::vector<int64_t>> &meshes) const {
    const std::vector<int64_t> fixed = net::getFixedPieces(op);
    if (fixed.empty() || ignoresStrategies())
      return success();
    auto checked = piecesOfStrategy(entry.facts, inStrategy(entry.facts.rule, wholeWhereOpen(fixed)), devices);
    if (auto *error = std::get_if<StrategyError>(&checked)) {
      std::string numbers;
      for (int64_t pieces : fixed)
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(pieces);
      report(op, {"fixed_pieces (" + numbers + "): " + error->text, error->help, error->operand});
      return failure();
    }
    entry.among = candidatesWith(entry.facts, devices, fixed, meshes);
    return success();
  }

  /// One note, unless the mode decides as the strategies say: its own dumps compile in silence.
  void noteIgnored(const Problem &problem, ArrayRef<Members> members, const Choices &choices,
                   ArrayRef<net::Strategy> ignored) const {
    int64_t count = 0;
    Operation *first = nullptr;
    for (auto [ops, entry, choice, strategy] : llvm::zip(members, problem.operators, choices, ignored)) {
      if (strategy.empty() || strategy == inStrategy(entry.facts.rule, choice.pieces))
        continue;
      first = first ? first : ops.front();
      count += entry.rounds;
    }
    if (count > 0)
      emitRemark(first->getLoc()) << count << (count == 1 ? " strategy is" : " strategies are") << " ignored "
                                  << (devices == 1 ? "on one device" : "in " + parallelMode + " mode");
  }

  /// What one device has no use for may fit no number of devices.
  static void warnOfUnsound(Operation *op, const ProblemOperator &entry, const net::Strategy &strategy) {
    int64_t wanted = 1; // a multiple of what is used, since every factor that is cut stands in the strategy
    for (const std::vector<int64_t> &tuple : strategy)
      for (int64_t pieces : tuple)
        if (__builtin_mul_overflow(wanted, pieces, &wanted))
          return;
    auto checked = piecesOfStrategy(entry.facts, strategy, wanted);
    if (auto *error = std::get_if<StrategyError>(&checked))
      report(op, *error, emitWarning(op->getLoc(), error->text));
  }

  static void report(Operation *op, const StrategyError &error) { report(op, error, emitError(op->getLoc(), error.text)); }

  static void report(Operation *op, const StrategyError &error, InFlightDiagnostic diagnostic) {
    if (error.operand >= 0)
      diagnostic.attachNote(op->getOperand(error.operand).getLoc())
          << "'" << operandName(op, error.operand) << "' declared here";
    if (!error.help.empty())
      diagnostic.attachNote() << "help: " << error.help;
  }

  /// How the results are left, where that is not what the rule says.
  LogicalResult readOutStrategy(Operation *op, ProblemOperator &entry) {
    auto wanted = net::getOutStrategy(op);
    if (!wanted)
      return success();
    for (auto [i, pieces] : llvm::enumerate(*wanted)) {
      int64_t product = 1;
      for (auto [dim, count] : llvm::enumerate(pieces)) {
        product *= count;
        int64_t size = entry.facts.resultShapes[i][dim];
        if (count > std::max<int64_t>(size, 1)) {
          report(op, {"out_strategy " + net::strategyText(*wanted) + " cuts dimension " + std::to_string(dim) + " of result " +
                          std::to_string(i) + " into " + std::to_string(count) + " pieces, but it has " + std::to_string(size) +
                          (size == 1 ? " element" : " elements"),
                      "take at most " + std::to_string(size), -1});
          return failure();
        }
      }
      if (devices % product != 0) {
        report(op, {"out_strategy " + net::strategyText(*wanted) + " makes " + std::to_string(product) + " pieces of result " +
                        std::to_string(i) + ", which does not divide " + std::to_string(devices) + " devices",
                    "take numbers whose product divides the number of devices", -1});
        return failure();
      }
    }
    entry.wantedOut = *wanted;
    return success();
  }

  /// As Storage.h says, or whole where the mode says so.
  LogicalResult storeParameters(net::NetworkOp network, const Problem &problem, ArrayRef<Members> members,
                                const Choices &choices) {
    llvm::DenseMap<Operation *, size_t> index;
    for (auto [i, ops] : llvm::enumerate(members))
      for (Operation *op : ops)
        index[op] = i;
    SmallVector<net::ParamOp> params;
    network.walk([&](net::ParamOp param) { params.push_back(param); });
    for (net::ParamOp param : params) {
      std::vector<ParameterUse> uses;
      for (OpOperand &use : param.getValue().getUses())
        if (auto at = index.find(use.getOwner()); at != index.end()) {
          const ProblemOperator &user = problem.operators[at->second];
          uses.push_back({at->second, use.getOperandNumber(),
                          placementOf(user.facts, choices[at->second].pieces, devices).operands[use.getOperandNumber()]});
        }
      Shape shape = shapeOf(param.getValue());
      if (ignoresStrategies() || uses.empty()) {
        setStoredSharding(param, Sharding::replicated(devices, shape.size()));
        continue;
      }
      llvm::sort(uses);
      const ParameterUse &keeper = *std::ranges::min_element(uses, [&](const ParameterUse &a, const ParameterUse &b) {
        return isStoredRather(a.wants, b.wants, shape);
      });
      if (strict && failed(checkUses(param, problem, members, uses, keeper)))
        return failure();
      setStoredSharding(param, keeper.wants);
    }
    return success();
  }

  struct ParameterUse {
    size_t op = 0;
    unsigned operand = 0;
    Sharding wants;
    bool operator<(const ParameterUse &other) const { return std::tie(op, operand) < std::tie(other.op, other.operand); }
  };

  /// What operators without a strategy of the user want whole is in Surprises.h.
  LogicalResult checkUses(net::ParamOp param, const Problem &problem, ArrayRef<Members> members, ArrayRef<ParameterUse> uses,
                          const ParameterUse &keeper) const {
    for (const ParameterUse &use : uses) {
      if (use.wants == keeper.wants || (!problem.operators[use.op].configured && use.wants.isReplicated()))
        continue;
      const auto &[first, second] = std::minmax(keeper, use);
      InFlightDiagnostic diagnostic = emitError(param.getLoc());
      diagnostic << "parameter '" << param.getName() << "' is used under two shardings: '" << problem.operators[first.op].name
                 << "' wants " << first.wants.str() << ", '" << problem.operators[second.op].name << "' wants " << second.wants.str();
      for (size_t place : {first.op, second.op})
        diagnostic.attachNote(members[place].front()->getLoc()) << "'" << problem.operators[place].name << "' uses it here";
      net::addHelp(diagnostic, "give both the same pieces, or leave out --strict: then one of them reshards it");
      return diagnostic;
    }
    return success();
  }
};

} // namespace

std::unique_ptr<Pass> createAssignStrategiesPass(const AssignStrategiesPassOptions &options, TrainingFacts training, Planning planning, int64_t candidates,
                                                       FoundWithin within, SearchWatch watch) {
  auto pass = std::make_unique<AssignStrategies>(options);
  pass->training = std::move(training);
  pass->planning = std::move(planning);
  pass->candidates = candidates;
  pass->within = std::move(within);
  pass->watch = std::move(watch);
  return pass;
}

} // namespace msc::passes
