#include "compiler/WhyNot.h"

#include "compiler/ApplyStrategies.h"
#include "compiler/JsonText.h"
#include "compiler/PlanDiff.h"
#include "compiler/Tables.h"
#include "dialects/net/Network.h"
#include "dialects/net/Repeat.h"
#include "dialects/net/Suggest.h"
#include "passes/sharding/Convert.h"

#include <nlohmann/json.hpp>

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace mlir;

namespace msc::compiler {

using Json = nlohmann::ordered_json;

/// Of numbers that fit: larger ones would be others when they are read.
static bool isTuple(const Json &json) {
  auto fits = [](const Json &number) {
    return number.is_number_integer() && (!number.is_number_unsigned() || std::in_range<int64_t>(number.get<uint64_t>()));
  };
  return json.is_array() && std::ranges::all_of(json, fits);
}

/// The plan's mode decides the others without a proof.
static bool isHeuristic(const plan::Plan &plan) {
  return plan.search_mode() == "sharding_propagation" || plan.search_mode() == "recursive_programming";
}

Result<CompileOptions> forced(CompileOptions options, const plan::Plan &now, const std::string &strategy) {
  Json json = strategyJson(strategy);
  if (!json.is_array() || json.empty() || !std::ranges::all_of(json, isTuple))
    return Error{ExitCode::Usage, "--why-not expects a strategy, found '" + strategy + "'",
                 "write pieces per dimension per operand, e.g. '((2, 4), (4, 1))'"};
  options.forcedStrategy = json.get<net::Strategy>();
  for (const plan::OperatorNote &note : now.operators())
    if (Json has = strategyJson(note.in_strategy()); has.is_array())
      options.roundsLike[note.name()].in = has.get<net::Strategy>();
  const bool isExact = !isHeuristic(now);
  std::erase_if(options.context, [](const auto &option) { return option.first == "search_mode"; });
  options.context.emplace_back("search_mode", isExact ? "optimal" : now.search_mode());
  options.repropagate |= !isExact; // what a dump says of the others followed from what it had
  return options;
}

LogicalResult applyForced(ModuleOp module, const CompileOptions &options, int64_t devices) {
  if (options.forcedStrategy.empty())
    return success();
  splitRounds(module, options.roundsLike);
  WalkResult walked = module.walk([&](net::Operator op) {
    if (!llvm::is_contained(net::namesInRounds(op, net::getInstanceName(op)), options.op))
      return WalkResult::advance();
    if (passes::hasRule(op)) {
      auto pieces = passes::piecesOfStrategy(passes::factsOf(op), options.forcedStrategy, devices);
      if (auto *error = std::get_if<passes::StrategyError>(&pieces)) {
        InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(module.getContext(), "--why-not", 0, 0)) << error->text;
        if (!error->help.empty())
          net::addHelp(diagnostic, error->help);
        return WalkResult::interrupt();
      }
    }
    net::clearStrategy(op);
    net::setInStrategy(op, options.forcedStrategy);
    net::setStrategyOrigin(op, "user");
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

static const plan::OperatorNote &noteOf(const CompileOutcome &outcome, const std::string &op) {
  return *std::ranges::find(outcome.plan.operators(), op, &plan::OperatorNote::name);
}

/// Of the model: what the strategy that the operator has takes if all else is searched again, too.
static const passes::Alternative *chosenOf(const CompileOutcome &outcome) {
  auto found = std::ranges::find_if(outcome.findings.alternatives, &passes::Alternative::isChosen);
  return found == outcome.findings.alternatives.end() ? nullptr : &*found;
}

/// In the model the least that was found, whichever plan is faster; or of the strategies that were followed.
static double modelUs(const CompileOutcome &outcome) {
  return outcome.findings.search ? outcome.findings.search->leastUs : outcome.findings.modelled->us;
}

/// The same with the strategy that the operator has. Under a limit on memory all that was found keeps within it; alternatives do not ask for it.
static double insteadUs(const CompileOutcome &now, const passes::Alternative &chosen) {
  return now.findings.memory ? modelUs(now) : chosen.leastUs;
}

static int64_t candidatesOf(const CompileOutcome &outcome) { return outcome.findings.search ? outcome.findings.search->candidates : 1; }

static double planUs(const CompileOutcome &outcome) { return outcome.plan.prediction().step_us() - outcome.plan.prediction().hidden_us(); }

/// What both plans take, where it is not what the model says of them, and how they were chosen. `moreUs`: what it says that `then` takes more.
static std::string plansText(const CompileOutcome &now, const CompileOutcome &then, double moreUs) {
  const bool isOther = moreUs * (planUs(then) - planUs(now)) < 0;
  const int64_t ofNow = candidatesOf(now), ofThen = candidatesOf(then);
  constexpr double apart = 0.01; // of a step, in which model and plans differ
  std::string remarks;
  if (isOther || std::abs(planUs(then) - planUs(now) - moreUs) > apart * planUs(now)) {
    const auto [thenText, nowText] = timeTexts(planUs(then), planUs(now));
    remarks = "; as plans " + thenText + " and " + nowText + (isOther ? ", the other way round" : "");
  }
  if (ofNow > 1 || ofThen > 1)
    remarks += llvm::formatv("\nA is the fastest plan of {0} candidate{1}, B of {2}", ofNow, ofNow == 1 ? "" : "s", ofThen);
  return remarks;
}

std::string alreadyText(const CompileOutcome &now, const CompileOptions &forced) {
  const plan::OperatorNote &note = noteOf(now, forced.op);
  const std::string text = llvm::formatv("'{0}' has {1} already, {2}\n", forced.op, note.in_strategy(), note.origin());
  return note.in_strategy() == net::strategyText(forced.forcedStrategy) ? text : "";
}

Result<std::string> whyNotText(const CompileOutcome &now, const CompileOutcome &then, const std::string &op, size_t columns) {
  const std::string &strategy = noteOf(then, op).in_strategy();
  Result<PlanDiff> diff = diffOf({"now", &now.plan}, {op + " " + strategy, &then.plan});
  if (!diff)
    return diff.error();
  const plan::OperatorNote &note = noteOf(now, op);
  std::string text = llvm::formatv("'{0}' has {1}{2}, {3}\n", op, note.in_strategy(), note.in_strategy() == strategy ? " already" : "",
                                   note.origin());
  const passes::Alternative *chosen = chosenOf(now);
  const double thenUs = modelUs(then), nowUs = chosen ? insteadUs(now, *chosen) : thenUs;
  const auto [thenText, nowText] = timeTexts(thenUs, nowUs);
  if (!then.findings.search)
    text += llvm::formatv("typed, with the others following it, {0} takes {1} in the model", strategy, thenText);
  else if (isHeuristic(then.plan) || !then.findings.search->isOptimal)
    text += llvm::formatv("typed, with the others chosen anew, {0} takes {1} in the model", strategy, thenText);
  else
    text += llvm::formatv("with {0} no strategies of the others{1} take less than {2} in the model", strategy,
                          then.findings.search->isOnMesh ? " on the mesh" : "", thenText);
  if (chosen)
    text += llvm::formatv(", with {0} {1}", note.in_strategy(), nowText);
  return text + plansText(now, then, thenUs - nowUs) + "\n\n" + diffText(*diff, columns);
}

Result<std::string> whyNotJson(const CompileOutcome &now, const CompileOutcome &then, const std::string &op) {
  const std::string &strategy = noteOf(then, op).in_strategy();
  Result<PlanDiff> diff = diffOf({"now", &now.plan}, {op + " " + strategy, &then.plan});
  if (!diff)
    return diff.error();
  Json json = Json::parse(diffJson(*diff));
  const passes::Alternative *chosen = chosenOf(now);
  json["why_not"] = {{"op", op},
                     {"in_strategy", strategyJson(strategy)},
                     {"search_us", modelUs(then)},
                     {"instead_of", strategyJson(noteOf(now, op).in_strategy())},
                     {"instead_of_search_us", chosen ? Json(insteadUs(now, *chosen)) : Json()}};
  return jsonText(json);
}

} // namespace msc::compiler
