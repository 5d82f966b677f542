#include "passes/sharding/Surprises.h"

#include "runtime/machine/TimeText.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace msc::passes {

static constexpr StringLiteral followsPrefix = "propagated from '";

/// The name in "propagated from 'matmul'"; empty for other origins.
static StringRef followedName(StringRef origin) {
  return origin.consume_front(followsPrefix) && origin.consume_back("'") ? origin : StringRef();
}

/// What computing an operator and its gradient takes in a step under one of its options.
static double computeUs(const Alternatives &alternatives, size_t op, size_t option) {
  const OperatorOptions &options = alternatives.model().options(op);
  return options.placed.empty() ? 0 : options.placed[option].computeUs * static_cast<double>(alternatives.problem().operators[op].rounds);
}

static double computeUs(const Alternatives &alternatives, size_t op, StringRef strategy) {
  const std::vector<Pieces> &pieces = alternatives.model().options(op).pieces;
  auto found = llvm::find_if(pieces, [&](const Pieces &other) { return alternatives.strategyText(op, other) == strategy; });
  return computeUs(alternatives, op, static_cast<size_t>(found - pieces.begin()));
}

// Advice -------------------------------------------------------------------------------------------------------------

/// A file for --strategy-load with an operator in all its rounds.
static std::string strategyFile(const std::vector<std::string> &names, std::string lists) {
  std::replace(lists.begin(), lists.end(), '(', '[');
  std::replace(lists.begin(), lists.end(), ')', ']');
  std::string items;
  for (const std::string &name : names)
    items += (items.empty() ? "\"" : ", \"") + name + R"(": {"parallel_strategy": )" + lists + "}";
  return R"({"parallel_strategy_item": {)" + items + "}}";
}

/// Where the text has the operator.
static FileLineColLoc placeOf(const Alternatives &alternatives, size_t op) {
  return alternatives.place(op)->findInstanceOf<FileLineColLoc>();
}

/// Whether another operator that passes stands in the same text.
static bool isTextOf(const Alternatives &alternatives, size_t op, llvm::function_ref<bool(StringRef kind)> passes) {
  const FileLineColLoc place = placeOf(alternatives, op);
  for (size_t other = 0; place && other < alternatives.size(); ++other)
    if (other != op && placeOf(alternatives, other) == place && passes(alternatives.problem().operators[other].facts.op))
      return true;
  return false;
}

/// Rounds that differ from these, or other calls of the cell: what is written there holds for them, too.
static bool isTextOfOthers(const Alternatives &alternatives, size_t op) {
  return isTextOf(alternatives, op, [&](StringRef kind) { return kind == alternatives.problem().operators[op].facts.op; });
}

/// What mixed precision casts stands where the operator does that reads or makes it.
static bool isInserted(const Alternatives &alternatives, size_t op) {
  constexpr StringRef cast = "Cast";
  return alternatives.problem().operators[op].facts.op == cast && isTextOf(alternatives, op, [&](StringRef kind) { return kind != cast; });
}

/// Where the text has no place for it, how to give the operator that strategy.
static std::string fileText(const Alternatives &alternatives, size_t op, const std::string &strategy) {
  const FileLineColLoc place = placeOf(alternatives, op);
  const bool isInLibrary = place && place.getFilename().getValue().starts_with("<msc>/"), isMade = isInserted(alternatives, op);
  if (!isInLibrary && !isMade && !isTextOfOthers(alternatives, op))
    return "";
  return std::string(isInLibrary ? "; it stands in the library: put "
                     : isMade    ? "; it does not stand in the text: put "
                                 : "; typed, it holds for other rounds or calls, too: instead put ") +
         strategyFile(alternatives.namesInFile(op), strategy) + " into own.json and pass --strategy-load own.json";
}

/// "write in_strategy: ((2, 4)), with which a step takes 50.3 us, now 76.9 us".
static std::string adviceText(Alternatives &alternatives, const Alternative &better) {
  const auto [then, now] = timeTexts(better.us, alternatives.us());
  return "write in_strategy: " + better.inStrategy + ", with which a step takes " + then + ", now " + now;
}

std::string adviceText(Alternatives &alternatives, size_t op, const std::optional<Alternative> &other, const std::string &which) {
  const std::string mine = alternatives.strategyText(op, alternatives.chosen(op));
  if (other && alternatives.isBetter(op, *other))
    return adviceText(alternatives, *other) + ", or in_strategy: " + mine + " if it is meant" +
           fileText(alternatives, op, other->inStrategy);
  std::string text = "write in_strategy: " + mine + " if it is meant";
  if (other && other->us > alternatives.us()) {
    const auto [now, then] = timeTexts(alternatives.us(), other->us);
    text += ": a step takes " + now + " now, at least " + then + " " + which;
  }
  return text + fileText(alternatives, op, mine);
}

// Replication --------------------------------------------------------------------------------------------------------

/// The user gave the strategy, or edited it in a dump, or gave it to the operator that this one follows with as many pieces.
static bool isAskedFor(const Alternatives &alternatives, size_t op) {
  int64_t pieces = devicesUsed(alternatives.chosen(op));
  for (size_t steps = 0; steps < alternatives.size(); ++steps) {
    if (alternatives.isByUser(op))
      return true;
    std::optional<size_t> followed = alternatives.find(followedName(alternatives.origin(op)));
    if (!followed || devicesUsed(alternatives.chosen(*followed)) > pieces)
      return false;
    op = *followed;
  }
  return false;
}

/// Without those that cost least, as long as they cost less than `us` together.
static std::vector<SurpriseAt> withoutTrifles(const std::vector<SurpriseAt> &all, double us) {
  std::vector<size_t> ascending(all.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  llvm::sort(ascending, [&](size_t a, size_t b) { return std::pair(all[a].surprise.us, a) < std::pair(all[b].surprise.us, b); });
  std::vector<bool> counts(all.size(), true);
  double sum = 0;
  for (size_t i : ascending)
    if ((sum += all[i].surprise.us) < us)
      counts[i] = false;
  std::vector<SurpriseAt> left;
  for (auto [one, does] : llvm::zip(all, counts))
    if (does)
      left.push_back(one);
  return left;
}

std::vector<SurpriseAt> replications(Alternatives &alternatives) {
  std::vector<SurpriseAt> found;
  int64_t devices = alternatives.problem().devices;
  for (size_t op = 0; op < alternatives.size(); ++op) {
    int64_t used = devicesUsed(alternatives.chosen(op)), most = 0;
    std::optional<size_t> chosen = alternatives.chosenOption(op);
    if (used == devices || !chosen || isAskedFor(alternatives, op))
      continue;
    const std::vector<Pieces> &options = alternatives.model().options(op).pieces;
    for (size_t option = 0; option < options.size(); ++option)
      if (alternatives.keepsFixed(op, option))
        most = std::max(most, devicesUsed(options[option]));
    double us = computeUs(alternatives, op, *chosen);
    if (most <= used || us == 0)
      continue;
    if (alternatives.wasWeighed(op, [&](const Pieces &pieces) { return devicesUsed(pieces) == most; }))
      continue;
    std::optional<Alternative> better = alternatives.cheapest(op, [&](const OperatorOptions &options, size_t i) {
      return devicesUsed(options.pieces[i]) == most && alternatives.keepsFixed(op, i);
    });
    if (!better && !alternatives.isTooLarge())
      continue;
    const ProblemOperator &entry = alternatives.problem().operators[op];
    double betterUs = better ? computeUs(alternatives, op, better->inStrategy) : 0;
    const auto times = timeTexts({us, better ? betterUs : us});
    std::string text = ("'" + alternatives.name(op) + "' is computed " + Twine(devices / used) + " times" +
                        (entry.rounds > 1 ? " in each of " + std::to_string(entry.rounds) + " rounds" : "") + ", and nobody asked for it: " +
                        alternatives.strategyText(op, alternatives.chosen(op)) + ", " + alternatives.origin(op) + ", has " + Twine(used) +
                        (used == 1 ? " piece" : " pieces") + " on " + Twine(devices) + " devices; that takes " + times[0] +
                        " of a step" + (better ? ", under " + better->inStrategy + " it is " + times[1] : "")).str();
    found.push_back({alternatives.place(op),
                     {Surprise::Kind::Replication, alternatives.name(op).str(), "", text,
                      adviceText(alternatives, op, better, "with " + std::to_string(most) + " pieces"), std::max(us - betterUs, 0.0)}});
  }
  return withoutTrifles(found, alternatives.us() * trifle);
}

// Imbalance ----------------------------------------------------------------------------------------------------------

/// The next size that the pieces divide.
static int64_t evenSize(int64_t size, int64_t pieces) { return (size + pieces - 1) / pieces * pieces; }

/// Work of the largest piece as a multiple of the mean.
static double factorOf(int64_t size, int64_t pieces) {
  return static_cast<double>(evenSize(size, pieces)) / static_cast<double>(size);
}

/// Those that are cut into uneven pieces, the most uneven one first.
static std::vector<size_t> unevenFactors(const OperatorFacts &facts, const Pieces &pieces) {
  std::vector<size_t> factors;
  for (size_t f = 0; f < pieces.size(); ++f)
    if (facts.rule.factors[f].size % pieces[f] != 0)
      factors.push_back(f);
  llvm::stable_sort(factors, [&](size_t a, size_t b) {
    return factorOf(facts.rule.factors[a].size, pieces[a]) > factorOf(facts.rule.factors[b].size, pieces[b]);
  });
  return factors;
}

static double imbalanceOf(const OperatorFacts &facts, const Pieces &pieces) {
  double product = 1;
  for (size_t f = 0; f < pieces.size(); ++f)
    if (facts.rule.factors[f].size > 0)
      product *= factorOf(facts.rule.factors[f].size, pieces[f]);
  return product;
}

/// "dimension 0 of 'x'": the first one that carries the factor.
static std::string dimensionOf(const OperatorFacts &facts, size_t factor) {
  for (size_t i = 0; i < facts.rule.operands.size(); ++i)
    for (size_t dim = 0; dim < facts.rule.operands[i].size(); ++dim)
      if (llvm::is_contained(facts.rule.operands[i][dim], static_cast<int32_t>(factor)))
        return "dimension " + std::to_string(dim) + " of '" + facts.operandNames[i] + "'";
  return "factor " + facts.rule.factors[factor].name;
}

namespace {

/// Operators of which the same sizes are cut into the same uneven pieces.
struct Uneven {
  size_t op = 0; ///< the one that loses most
  double us = -1, lostInAll = 0;
  int64_t operators = 0;
};

} // namespace

std::vector<SurpriseAt> imbalances(Alternatives &alternatives, bool searches) {
  std::map<std::vector<std::pair<int64_t, int64_t>>, Uneven> groups; // sizes and pieces
  for (size_t op = 0; op < alternatives.size(); ++op) {
    const OperatorFacts &facts = alternatives.problem().operators[op].facts;
    const Pieces &pieces = alternatives.chosen(op);
    double ratio = imbalanceOf(facts, pieces);
    auto isEven = [&](const Pieces &pieces) { return imbalanceOf(facts, pieces) <= 1 + toleratedImbalance; };
    if (isEven(pieces) || alternatives.wasWeighed(op, isEven))
      continue;
    std::vector<std::pair<int64_t, int64_t>> uneven;
    for (size_t f = 0; f < pieces.size(); ++f)
      if (int64_t size = facts.rule.factors[f].size; size > 0 && size % pieces[f] != 0)
        uneven.emplace_back(size, pieces[f]);
    std::optional<size_t> option = alternatives.chosenOption(op);
    double lost = option ? computeUs(alternatives, op, *option) * (1 - 1 / ratio) : 0;
    Uneven &group = groups[uneven];
    if (lost > group.us) {
      group.op = op;
      group.us = lost;
    }
    group.lostInAll += lost;
    group.operators += alternatives.problem().operators[op].rounds;
  }
  std::vector<SurpriseAt> found;
  for (const auto &[uneven, group] : groups) {
    const ProblemOperator &entry = alternatives.problem().operators[group.op];
    const Pieces &pieces = alternatives.chosen(group.op);
    const std::vector<size_t> factors = unevenFactors(entry.facts, pieces);
    const size_t worst = factors.front();
    const int64_t size = entry.facts.rule.factors[worst].size, count = pieces[worst];
    std::string text = "the largest piece of '" + alternatives.name(group.op).str() + "' is " +
                       llvm::formatv("{0:F1}", 100 * (imbalanceOf(entry.facts, pieces) - 1)).str() + " % above the mean: " +
                       dimensionOf(entry.facts, worst) + " has " + std::to_string(size) + (size == 1 ? " element" : " elements") + " in " +
                       std::to_string(count) + " pieces";
    if (group.operators > 1)
      text += ", as in " + std::to_string(group.operators) + " operators in all";
    text += "; that takes " + timeText(group.lostInAll) + " of a step";
    std::optional<Alternative> better;
    if (searches)
      better = alternatives.cheapest(group.op, [&](const OperatorOptions &options, size_t i) {
        return imbalanceOf(entry.facts, options.pieces[i]) <= 1 + toleratedImbalance && alternatives.keepsFixed(group.op, i);
      });
    if (better && (!alternatives.isBetter(group.op, *better) || (alternatives.isByUser(group.op) && isTextOfOthers(alternatives, group.op))))
      better.reset();
    std::string help = better ? adviceText(alternatives, *better) + ", or take " : "take ";
    auto even = [&](size_t f) { return std::to_string(evenSize(entry.facts.rule.factors[f].size, pieces[f])); };
    help += even(worst) + " elements";
    if (factors.size() > 1)
      help += " in " + dimensionOf(entry.facts, worst) + " and " + even(factors[1]) + " in " + dimensionOf(entry.facts, factors[1]);
    if (better)
      help += fileText(alternatives, group.op, better->inStrategy);
    found.push_back({alternatives.place(group.op),
                     {Surprise::Kind::Imbalance, alternatives.name(group.op).str(), "", text, help, group.lostInAll}});
  }
  return found;
}

} // namespace msc::passes
