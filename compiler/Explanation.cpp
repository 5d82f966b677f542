#include "compiler/Explanation.h"

#include "compiler/Phases.h"
#include "compiler/PlanWriter.h"
#include "dialects/net/Suggest.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace msc::compiler {

/// Of the strategies of the operator that is asked about so many are exact, if so many rounds are enough: an explanation is not what
/// anybody wants to wait for. Of the others it is said what they cost at least.
static constexpr size_t pricedExactly = 8, roundsOfPricing = 24;

/// An explanation is not what anybody wants to wait for.
passes::Freedom Explanation::freedom(const net::Config &config) const {
  constexpr int64_t fewDevices = 128, manyDevices = 256, fewWithoutSearch = 32;
  if (!mayReplicate && !options.explains)
    return passes::Freedom::None;
  if (options.op.empty() && config.context.parallelMode != "auto_parallel" && config.devices > fewWithoutSearch)
    return passes::Freedom::Few; // nobody waits for what a mode that takes milliseconds does not look at
  if (config.devices <= fewDevices)
    return passes::Freedom::All;
  return options.op.empty() && config.devices > manyDevices ? passes::Freedom::Few : passes::Freedom::Open;
}

static passes::Others othersUnder(const net::ContextConfig &context) {
  return context.parallelMode != "auto_parallel"         ? passes::Others::Stay
         : context.searchMode == "sharding_propagation"  ? passes::Others::Propagate
         : context.searchMode == "recursive_programming" ? passes::Others::Divide
                                                         : passes::Others::Search;
}

void Explanation::afterStrategies(net::NetworkOp network, const net::Config &config) {
  passes::ModelChoice byModel{0, passes::takeModelChoice(network)};
  const std::string &mode = config.context.parallelMode;
  if (!(options.explains || options.strict) || config.devices == 1 || mode == "stand_alone" || mode == "hybrid_parallel")
    return;
  mayReplicate = mode != "data_parallel";
  std::optional<passes::ModelChoice> slower;
  if (!byModel.pieces.empty() && findings.search)
    slower = {findings.search->leastUs, std::move(byModel.pieces)};
  findings.asksForOneOther = freedom(config) == passes::Freedom::Few;
  alternatives.emplace(network, trainingFactsOf(config, options), freedom(config), options.op, othersUnder(config.context), std::move(slower));
  findings.areOthersOnMesh = alternatives->isOnCoarseMesh();
  alternatives->keepWithin(static_cast<double>(options.searchBytes > 0 ? options.searchBytes : options.memoryLimit));
  findings.rounds = alternatives->rounds();
  if (options.explains)
    findings.modelled = ModelledStep{alternatives->us(), alternatives->collectives()};
  if (std::optional<size_t> op = alternatives->find(options.op); op && options.explains)
    findings.alternatives = alternatives->of(*op, pricedExactly, roundsOfPricing);
  if (mayReplicate)
    surprises = passes::replications(*alternatives);
  llvm::append_range(surprises, passes::imbalances(*alternatives, mayReplicate));
}

void Explanation::afterOptimization(net::NetworkOp network) {
  if (alternatives && mayReplicate)
    llvm::append_range(surprises, passes::wholeGathers(network, *alternatives));
}

/// There is one file of strategies.
static std::string besideFile(std::string help, const std::string &file) {
  const std::string own = " into own.json and pass --strategy-load own.json";
  if (!file.empty() && llvm::StringRef(help).ends_with(own))
    help.replace(help.size() - own.size(), own.size(), ", beside what '" + file + "' holds, into new.json and pass --strategy-load new.json");
  return help;
}

bool Explanation::report() {
  std::vector<size_t> order(surprises.size());
  std::iota(order.begin(), order.end(), 0);
  auto placeOf = [&](size_t index) { return std::pair(fileAndLine(surprises[index].place), index); };
  llvm::sort(order, [&](size_t a, size_t b) { return placeOf(a) < placeOf(b); });
  for (size_t index : order) {
    passes::SurpriseAt &found = surprises[index];
    auto [file, line] = fileAndLine(found.place);
    found.surprise.place = file + ":" + std::to_string(line);
    std::string &help = found.surprise.help = besideFile(found.surprise.help, options.strategyFile);
    if (findings.isSearchImplied && llvm::StringRef(help).starts_with("write in_strategy: ") && !llvm::StringRef(help).contains("--strategy-load"))
      help += "; say search_mode: optimal as well, or the others follow it";
    findings.surprises.push_back(found.surprise);
    if (options.strict) {
      InFlightDiagnostic diagnostic = emitError(found.place, found.surprise.text);
      net::addHelp(diagnostic, found.surprise.help);
    }
  }
  return !options.strict || surprises.empty();
}

/// The strategy of an operator that would be next.
std::optional<NextBest> Explanation::nextBestOf(size_t op) {
  std::optional<size_t> chosen = alternatives->chosenOption(op);
  auto other = alternatives->cheapest(op, [&](const passes::OperatorOptions &, size_t option) { return option != chosen; });
  if (!other)
    return std::nullopt;
  return NextBest{other->inStrategy, other->us, other->us - alternatives->us(), options.memoryLimit > 0 ? alternatives->bytes(op, *other) : 0,
                  other->isInsteadOfUsers};
}

/// Of every operator that causes a collective; one operator of the search has the names of all its rounds.
void Explanation::afterPlan(const plan::Plan &plan) {
  if (!alternatives || !options.explains)
    return;
  std::map<size_t, std::optional<NextBest>> known;
  for (const CollectiveFacts &facts : collectivesOf(plan, options.op)) {
    std::optional<size_t> op = alternatives->find(facts.cause);
    if (!op)
      continue;
    auto [found, isNew] = known.try_emplace(*op);
    if (isNew)
      found->second = nextBestOf(*op);
    if (found->second)
      findings.nextBest[facts.cause] = *found->second;
  }
  findings.isTooLargeForOthers = alternatives->isTooLarge();
}

} // namespace msc::compiler
