#include "compiler/Explain.h"

#include "compiler/AlikeRows.h"
#include "compiler/Report.h"
#include "compiler/Rounds.h"
#include "compiler/Tables.h"
#include "dialects/net/Repeat.h"
#include "runtime/ControlCharacters.h"
#include "runtime/Nearest.h"
#include "runtime/plan/PlanIndex.h"
#include "runtime/plan/StepText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace msc::compiler {

static std::string localShapes(const plan::Plan &plan, const plan::OperatorNote &note) {
  std::string text;
  for (const auto &value : note.operands())
    text += (text.empty() ? "" : ", ") + localShapeText(plan, value, 0);
  text += " -> ";
  for (int i = 0; i < note.results_size(); ++i)
    text += (i ? ", " : "") + localShapeText(plan, note.results(i), 0);
  return text;
}

/// Names that have a part, between dots, that is nearly called so.
static std::vector<std::string> namesNear(const std::string &part, const std::vector<std::string> &names) {
  std::vector<std::string> parts, found;
  for (const std::string &name : names)
    for (llvm::StringRef own : llvm::split(name, '.'))
      parts.push_back(own.str());
  std::string near = nearest(part, parts);
  for (const std::string &name : names)
    if (!near.empty() && llvm::is_contained(llvm::split(name, '.'), llvm::StringRef(near)))
      found.push_back(name);
  return found;
}

/// The first of the rounds whose name the network writes as 'hidden.{i}'; "" where `name` is not written so.
static std::string roundOf(llvm::StringRef name, const std::vector<std::string> &names) {
  const auto found = llvm::find_if(names, [&](llvm::StringRef other) { return net::isNameInRound(name, other); });
  return found == names.end() ? "" : *found;
}

/// Which operators may be meant: those whose names contain the text, then the one whose name is nearest.
static std::string operatorsHelp(const std::string &name, const std::vector<std::string> &names) {
  std::vector<std::string> found;
  for (const std::string &other : names)
    if (llvm::StringRef(other).contains_insensitive(name))
      found.push_back(other);
  if (const std::string round = roundOf(name, names); !round.empty())
    return "name one round: '" + round + "'";
  std::string near = nearest(name, names);
  if (found.empty() && near.empty())
    found = namesNear(name, names);
  if (found.size() == 1)
    near = found.front();
  if (!near.empty() && found.size() <= 1)
    return "did you mean '" + near + "'?";
  return found.empty() ? "its operators are " + namesText(names) : "operators with such names are " + namesText(found);
}

Status checkOperator(const std::string &network, const std::vector<NamedOperator> &operators, const std::string &name) {
  if (name.empty())
    return Status::ok();
  std::vector<std::string> places, names;
  for (const NamedOperator &op : operators)
    if (op.name == name)
      places.push_back(op.place);
  if (places.size() == 1)
    return Status::ok();
  if (!places.empty())
    return Error{ExitCode::Usage,
                 std::to_string(places.size()) + " operators of '" + network + "' are named '" + name + "': " + namesText(places),
                 "give each a name of its own: @ \"NAME\""};
  for (const NamedOperator &op : operators)
    names.push_back(op.name);
  return Error{ExitCode::Usage, "network '" + network + "' has no operator '" + name + "'", withoutControls(operatorsHelp(name, names))};
}

Status checkOperator(const plan::Plan &plan, const std::string &name) {
  std::vector<NamedOperator> operators;
  for (const plan::OperatorNote &note : plan.operators())
    operators.push_back({note.name(), placeOf(plan, note.location())});
  return checkOperator(plan.network(), operators, name);
}

/// How good the strategies are, in the model.
static std::string searchText(const passes::SearchFacts &search, bool isGivenInPart, const plan::Prediction &plan) {
  const std::string onMesh = search.isOnMesh ? " on the mesh" : "";
  if (search.isForPlan()) {
    const bool hasPlan = std::isfinite(search.firstRepricedUs);
    const auto us = timeTexts({search.repricedUs, search.us, search.leastUs, hasPlan ? search.firstRepricedUs : search.repricedUs});
    const std::string least = search.isOptimal ? "one that is best" + onMesh : "best one that was found";
    // What hides behind computation depends on the order of independent lines; the plan keeps that of the network.
    const bool isReordered = std::abs(plan.step_us() - plan.hidden_us() - search.repricedUs) > 1e-6 * search.repricedUs;
    const char *how = isReordered ? " with independent lines in one order" : "";
    return llvm::formatv(": fastest of {0} candidates, {1} by its plan{2} and {3} in the model of the search; ", search.candidates, us[0], how, us[1]).str() +
           (hasPlan ? llvm::formatv("the {0} in the model, {1}, takes {2} by its plan", least, us[2], us[3]).str()
                    : llvm::formatv("no plan of the {0} in the model, {1}, keeps within the limit", least, us[2]).str());
  }
  if (search.isOptimal)
    return llvm::formatv(": no strategies{1}{2} take less than these {0} in the model of the search", timeText(search.us), onMesh,
                         isGivenInPart ? " that keep what was given" : "");
  if (search.boundUs <= 0)
    return llvm::formatv(": {0} in the model of the search, others may take less", timeText(search.us));
  return llvm::formatv(": {0} in the model of the search, at most {1:F1} % above the least{2}", timeText(search.us), 100 * search.gap(), onMesh);
}

/// What a step takes by the plan, and what the model says that a search works with.
static std::string stepText(const plan::Plan &plan, const Findings &findings) {
  const double step = plan.prediction().step_us(), hidden = hiddenUs(plan, findings);
  const auto us = timeTexts({step, step - hidden, findings.modelled ? findings.modelled->us : step});
  const plan::Prediction &prediction = plan.prediction();
  std::string text = "\na step takes " + us[0] + " by the plan, one after the other: computing " + timeText(prediction.compute_us()) +
                     ", communicating " + timeText(prediction.communication_us());
  if (hidden != 0)
    text += "; " + us[1] + " where collectives run beside computation";
  if (!findings.modelled)
    return text;
  text += "; " + us[2] + " in the model of the search";
  const double apart = std::abs(findings.modelled->us - (step - plan.prediction().hidden_us()));
  const bool isShown = timeText(apart) != timeText(0);
  if (isShown && std::ranges::any_of(findings.nextBest, [&](const auto &entry) { return std::abs(entry.second.more) < apart; }))
    text += ", " + timeText(apart) + " from the plan: strategies that differ by less there may be the other way round as plans";
  return text;
}

/// Of the repeats around an operator.
static int64_t roundsOf(const Findings &findings, const std::string &op) {
  auto found = findings.rounds.find(op);
  return found == findings.rounds.end() ? 1 : found->second.rounds;
}

/// Where plans decided, the model may know of less.
static const char *lessText(const Findings &findings, bool isAnyLess) {
  return isAnyLess && findings.search && findings.search->isForPlan() ? "; -: less in the model, by whose best the plan is slower" : "";
}

/// What the other operators do where a strategy is told: modes that search nothing leave them alone, and data_parallel takes no strategy.
static std::string stayText(const plan::Plan &plan) {
  return plan.parallel_mode() == "auto_parallel"   ? ""
         : plan.parallel_mode() == "data_parallel" ? ", the others as they are; data_parallel takes none, semi_auto_parallel does"
                                                   : ", the others as they are";
}

/// Alternatives do not ask for memory, and where there are too many, they keep to a mesh.
static std::string whateverText(const Findings &findings) {
  return std::string(findings.memory ? ", whatever the limit on memory" : "") +
         (findings.areOthersOnMesh ? ", on a coarse mesh, as there are too many" : "");
}

/// What a step takes under every strategy of one operator, which has it in all its rounds.
static std::string alternativesText(const std::vector<passes::Alternative> &alternatives, const plan::Plan &plan,
                                    bool isSearchImplied, int64_t rounds, const std::string &remarks, size_t columns) {
  if (alternatives.empty())
    return "";
  auto chosen = std::find_if(alternatives.begin(), alternatives.end(), [](const auto &a) { return a.isChosen; });
  std::vector<std::vector<std::string>> rows = {{"IN_STRATEGY", "STEP", "MORE", "MEMORY"}};
  for (const passes::Alternative &alternative : alternatives) {
    const std::string atLeast = alternative.isExact ? "" : "at least ";
    bool isLess = chosen != alternatives.end() && alternative.us < chosen->us;
    bool isKnown = chosen != alternatives.end() && (alternative.isExact || !isLess);
    std::string more = alternative.isChosen ? "chosen"
                       : !isKnown           ? ""
                                            : atLeast + moreText(alternative.us - chosen->us);
    if (alternative.isInsteadOfUsers)
      more += more.empty() ? "(not yours)" : " (not yours)";
    rows.push_back({alternative.inStrategy, atLeast + timeCell(alternative.us), more,
                    alternative.bytes > 0 ? bytesText(static_cast<uint64_t>(alternative.bytes)) : ""});
  }
  const std::string &searchMode = plan.search_mode(), stay = stayText(plan);
  const std::string words = !stay.empty()                           ? stay
                            : searchMode == "sharding_propagation"  ? "; all that nobody configured follow anew, as if it were typed"
                            : searchMode == "recursive_programming" ? "; all that nobody configured choose anew, as if it were typed"
                            : isSearchImplied ? "; all that nobody configured choose anew, as if it were typed with --search-mode optimal --candidates 1"
                                              : "; all that nobody configured choose anew, as if it were typed, with --candidates 1";
  std::string anew;
  if (chosen != alternatives.end() && chosen->us - chosen->leastUs >= 0.1) { // which is shown
    const auto [leastUs, us] = timeTexts(chosen->leastUs, chosen->us);
    anew = llvm::formatv("  chosen: as it is compiled, {0}; with the others chosen anew {1} takes {2}\n", us, chosen->inStrategy, leastUs);
  }
  return wrapped(std::string("\nits strategies (time of a step in the model of the search, and what a rank needs by its measure") +
         words + (rounds > 1 ? llvm::formatv("; each in all {0} rounds of its repeat", rounds).str() : "") +
         remarks + (std::ranges::any_of(alternatives, &passes::Alternative::isInsteadOfUsers) ? "; not yours: instead of what you gave)\n" : ")\n"), columns) + table(rows, columns) + wrapped(anew, columns) +
         (std::ranges::all_of(alternatives, &passes::Alternative::isExact)
              ? ""
              : wrapped("  at least: a bound that was not worked out further, the step may take more; no MORE where it is below the chosen one\n", columns));
}

/// "((4, 2), (2, 1)) +1.2 us"; under a limit on memory "((4, 2), (2, 1)) +1.2 us, 17 MiB".
static std::string nextBestText(const Findings &findings, const std::string &op) {
  auto found = findings.nextBest.find(op);
  if (found == findings.nextBest.end())
    return "-";
  const NextBest &next = found->second;
  return next.inStrategy + " " + moreText(next.more) + (next.bytes > 0 ? ", " + bytesText(static_cast<uint64_t>(next.bytes)) : "") +
         (next.isInsteadOfUsers ? " (not yours)" : "");
}

/// Those that cost most first.
static std::string surprisesText(std::vector<passes::Surprise> surprises, const std::string &op) {
  constexpr size_t shown = 8;
  std::erase_if(surprises, [&](const passes::Surprise &surprise) { return !op.empty() && surprise.op != op; });
  std::vector<size_t> order(surprises.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::tie(surprises[b].us, a) < std::tie(surprises[a].us, b); });
  std::string text;
  double left = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const passes::Surprise &surprise = surprises[order[i]];
    if (i < shown)
      text += "  " + surprise.place + ": " + surprise.text + "\n      " + surprise.help + "\n";
    else
      left += surprise.us;
  }
  if (order.size() > shown)
    text += llvm::formatv("  {0} more, {1}\n", order.size() - shown, timeText(left));
  return text.empty() ? "" : "\nnobody asked for this (--strict refuses it)\n" + text;
}

static std::string operatorsText(const plan::Plan &plan, const Findings &findings, const std::string &op, size_t columns) {
  bool repeats = op.empty() && !findings.rounds.empty();
  std::vector<Row> rows = {{"NAME", "OPERATOR", "IN_STRATEGY", "DECIDED BY", "PLACE", "SHAPES"}};
  if (repeats)
    rows[0].insert(rows[0].begin() + 1, "ROUNDS");
  for (const plan::OperatorNote &note : plan.operators()) {
    auto found = findings.rounds.find(note.name());
    bool isInRepeat = repeats && found != findings.rounds.end();
    if ((!op.empty() && note.name() != op) || (isInRepeat && found->second.round > 0))
      continue;
    rows.push_back({note.name(), note.op(), note.in_strategy(), note.origin(), placeOf(plan, note.location()), localShapes(plan, note)});
    if (repeats)
      rows.back().insert(rows.back().begin() + 1, isInRepeat ? "x " + std::to_string(found->second.rounds) : "");
  }
  return table(foldAlikeRows(rows, {0, repeats ? size_t{4} : size_t{3}}), columns);
}

/// `total`: bytes of those that are shown.
static std::string collectivesText(const plan::Plan &plan, const Findings &findings, const std::string &op, size_t columns, uint64_t &total) {
  std::vector<CollectiveFacts> all = collectivesOf(plan, op);
  for (const CollectiveFacts &facts : all)
    total += facts.bytes;
  bool hasNext = !findings.nextBest.empty(), repeats = op.empty() && !findings.rounds.empty();
  std::vector<CollectiveInRounds> shown = inRounds(all, repeats ? findings : Findings());
  Row head = {"PHASE", "COLLECTIVE", "OPERATOR"};
  auto add = [](Row &row, bool isThere, std::string cell) {
    if (isThere)
      row.push_back(std::move(cell));
  };
  add(head, repeats, "ROUNDS");
  head.insert(head.end(), {"PLACE", "GROUPS", "BYTES", "TIME"});
  add(head, hasNext, "NEXT BEST");
  head.push_back("REASON");
  std::vector<Row> rows = {head};
  for (const auto &[facts, rounds, of] : shown) {
    Row row = {facts.phase, facts.kind, facts.cause};
    add(row, repeats, rounds.empty() ? "" : roundsText(rounds, of));
    const std::string bytes = bytesText(facts.bytes) + (facts.bytesOfAll == facts.bytes ? "" : " of " + bytesText(facts.bytesOfAll));
    row.insert(row.end(), {facts.location, groupsText(*facts.groups), bytes, timeCell(facts.predictedUs)});
    add(row, hasNext, nextBestText(findings, facts.cause));
    row.push_back((facts.tensors > 1 ? std::to_string(facts.tensors) + " tensors at once: " : "") + facts.reason);
    rows.push_back(row);
  }
  const bool isAnyLess = std::ranges::any_of(findings.nextBest, [](const auto &entry) { return entry.second.more < 0; });
  std::string text = "\ncollectives of one step (bytes received per rank, at most; predicted time on " + plan.machine() +
                     (repeats ? "; both of one round where ROUNDS says of which" : "") +
                     (hasNext ? std::string(findings.asksForOneOther ? "; one other strategy of the operator, --op lists all" : "; the operator's next best strategy") + (repeats ? ", in all of its rounds" : "") +
                                    ", and what a step takes more with it in the model of the search" + stayText(plan) + whateverText(findings) + lessText(findings, isAnyLess) + (findings.memory ? ", and what a rank needs then" : "") + "; not yours: instead of what you gave)\n"
                              : ")\n");
  return wrapped(text, columns) + (rows.size() == 1 ? "  none\n" : table(foldAlikeRows(rows, {2, head.size() - 1}), columns));
}

/// Whether it fits, and what was tried where it does not.
static std::string memoryText(const MemoryAnswer &answer, size_t columns) {
  if (answer.fits)
    return "it fits into " + bytesText(answer.limit) + "\n";
  std::string text = "it does not fit into " + bytesText(answer.limit);
  if (answer.bytes > answer.limit && bytesText(answer.bytes) == bytesText(answer.limit)) // rounded
    text += ", by " + bytesText(answer.bytes - answer.limit);
  text += "\n";
  if (answer.changes.empty())
    return text;
  std::vector<Row> rows = {{"FITS", "MEMORY", "TIME", "MORE", "CHANGE"}};
  for (const MemoryChange &change : answer.changes) {
    const std::string about = change.isEstimated ? "~" : "";
    rows.push_back({change.fits ? "yes" : "no", about + bytesText(change.bytes), about + timeCell(change.us),
                    about + moreText(change.us - answer.usWithoutLimit), change.repair});
  }
  const bool estimates = std::ranges::any_of(answer.changes, &MemoryChange::isEstimated);
  return wrapped(text + "\nwhat could be changed (memory per rank; predicted time for a batch, and how much more than without the limit" +
         (estimates ? "; ~: as the search says, no plan was made)\n" : ")\n"), columns) + table(rows, columns);
}

Result<std::string> explainText(const plan::Plan &plan, const Findings &findings, const std::string &op, size_t columns) {
  if (Status known = checkOperator(plan, op); !known)
    return known.error();
  std::string text = plan.network() + " on " + std::to_string(plan.devices()) +
                     (plan.devices() == 1 ? " device" : " devices") + ", " + plan.parallel_mode();
  if (plan.parallel_mode() == "auto_parallel")
    text += ", " + plan.search_mode();
  if (findings.search)
    text += searchText(*findings.search, llvm::any_of(plan.operators(), isGiven), plan.prediction());
  else if (findings.modelled && plan.search_mode() == "sharding_propagation" && llvm::any_of(plan.operators(), isGiven) && !llvm::all_of(plan.operators(), isGiven))
    text += ": what you gave, and what follows from it; --search-mode optimal looks for the fastest that keeps it";
  text = wrapped(text, columns) + "\n\noperators (local shapes of rank 0)\n" + operatorsText(plan, findings, op, columns);
  uint64_t total = 0;
  text += collectivesText(plan, findings, op, columns, total);
  text += wrapped(surprisesText(findings.surprises, op), columns);
  if (findings.isTooLargeForOthers)
    text += wrapped("\nthe network is too large to work out what all other strategies would cost: what is missing above or only bounded is not known\n", columns);
  if (!op.empty())
    return text + alternativesText(findings.alternatives, plan, findings.isSearchImplied, roundsOf(findings, op),
                                   whateverText(findings) + lessText(findings, !findings.alternatives.empty() && !findings.alternatives.front().isChosen), columns) + "\nin all " + bytesText(total) + " per rank and step, of " +
           bytesText(plan.prediction().communication_bytes()) + " in the whole network\n";
  for (const Saving &saving : findings.savings)
    if (saving.pass == "overlap" && saving.us != 0)
      text += llvm::formatv("\noverlap hides {0} behind computation, where collectives run beside it", timeText(saving.us));
    else if (saving.us != 0 || saving.bytes != 0)
      text += llvm::formatv("\n{0} saved {1} and {2}", saving.pass, bytesText(static_cast<uint64_t>(saving.bytes)), timeText(saving.us));
  text += wrapped(stepText(plan, findings), columns);
  text += "\n" + wrapped("in all " + bytesText(total) + " per rank and step; memory per rank " + bytesText(plan.arena_bytes()) +
                             ", of which parameters and states " + bytesText(plan.prediction().parameter_bytes()) + "\n", columns);
  return findings.memory ? text + memoryText(*findings.memory, columns) : text;
}

} // namespace msc::compiler
