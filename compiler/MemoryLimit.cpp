#include "compiler/MemoryLimit.h"

#include "compiler/MemoryChanges.h"
#include "compiler/Tables.h"
#include "passes/sharding/Search.h"

#include <algorithm>

namespace msc::compiler {

static int stepsOf(const plan::Plan &plan) {
  int steps = 0;
  for (const plan::Program &program : plan.programs())
    for (const plan::Variant &variant : program.variants())
      steps += variant.steps_size();
  return steps;
}

bool isLarge(const plan::Plan &plan) { return stepsOf(plan) > 1000; }
bool isHardToLimit(const plan::Plan &plan) { return stepsOf(plan) > 100; }

/// What is known of all that fits into `first` holds for less.
static void keepBound(passes::SearchFacts &facts, const passes::SearchFacts &first) {
  facts.boundUs = std::min(facts.boundUs, first.boundUs);
  facts.isOptimal = facts.isOptimal && facts.boundUs > 0 && facts.leastUs <= facts.boundUs * (1 + 1e-12);
}

/// By what the search finds; 0: not known.
static double expectedBytes(CompileOptions options) {
  options.isTrial = options.estimates = true;
  options.explains = options.strict = false;
  const Result<CompileOutcome> outcome = compileOnce(options);
  return outcome && outcome->findings.search ? outcome->findings.search->arenaBytes : 0;
}

Result<WithinLimit> findWithin(CompileOptions options, bool isLarge) {
  constexpr int attempts = 6;
  constexpr double nearly = 1.1, less = 0.97;
  const bool wantsPlan = !options.estimates;
  options.estimates |= isLarge;
  if (!wantsPlan)
    options.searchBytes = static_cast<int64_t>(options.memoryLimit); // which asks nothing else of what fits anyway
  auto isEstimate = [](const CompileOutcome &outcome) { return outcome.plan.programs_size() == 0; };
  auto compilePlan = [](CompileOptions plain) {
    plain.estimates = false;
    return compileOnce(plain);
  };
  options.said = std::make_shared<std::set<std::string>>();
  WithinLimit within;
  CompileOptions taken; // of its outcome
  std::optional<passes::SearchFacts> first; // under a limit
  int again = options.isTrial ? 0 : 2; // searches for what needs least
  for (int i = 0; i < attempts; ++i) {
    options.searched = std::make_shared<std::vector<passes::SearchResult>>();
    CompileOptions attempt = options;
    if (wantsPlan && options.estimates) {
      attempt.isTrial = true;
      attempt.explains = attempt.strict = false;
    }
    Result<CompileOutcome> outcome = compileOnce(attempt);
    if (outcome && wantsPlan && isEstimate(*outcome) && outcome->plan.arena_bytes() <= options.memoryLimit)
      outcome = compilePlan(options);
    if (!outcome)
      return outcome.error();
    const uint64_t needs = outcome->plan.arena_bytes();
    const std::optional<passes::SearchFacts> search = outcome->findings.search;
    // What the search says of what it found, in its own measure.
    double expected = search ? search->arenaBytes : 0;
    within.searched = search && (search->boundUs > 0 || search->leastBytes > 0) && options.searchBytes > 0; // recursion looks at no limit
    if (within.searched && !first)
      first = search;
    else if (within.searched)
      keepBound(*outcome->findings.search, *first);
    if (i == 0) {
      within.bytesWithoutLimit = needs;
      within.usWithoutLimit = outcome->plan.prediction().step_us();
      options.estimates |= compiler::isLarge(outcome->plan);
    }
    within.fits = needs <= options.memoryLimit;
    if (i == 0 || needs < within.outcome.plan.arena_bytes() || within.fits) {
      within.outcome = std::move(*outcome);
      taken = options;
    }
    const bool isLeast = within.searched && expected > static_cast<double>(options.searchBytes);
    if (i == 0 && options.estimates)
      expected = wantsPlan ? 0 : expected; // attempts to come are about what is expected
    else if (i == 0 && !within.fits && search && expected <= 0)
      expected = expectedBytes(attempt);
    const auto limit = static_cast<double>(options.memoryLimit);
    const bool mayFindLess = !options.estimates && static_cast<double>(needs) <= nearly * limit && again > 0;
    if (within.fits || !search || (isLeast && !mayFindLess) || (i > 0 && (!within.searched || expected <= 0)))
      break;
    if (isLeast) { // what needs least is not found for certain
      --again;
      options.searchBytes = static_cast<int64_t>(static_cast<double>(options.searchBytes) * less);
      continue;
    }
    const double share = expected > 0 ? expected / static_cast<double>(needs) : 1; // what is simulated, of what there is
    const double may = limit * (i == 0 ? std::max(1.0, share) : 0.999 * share);
    options.searchBytes = std::max<int64_t>(1, static_cast<int64_t>(may));
  }
  if (wantsPlan && isEstimate(within.outcome)) {
    Result<CompileOutcome> outcome = compilePlan(taken);
    if (!outcome)
      return outcome.error();
    within.outcome = std::move(*outcome);
    within.fits = within.outcome.plan.arena_bytes() <= options.memoryLimit;
    if (within.searched && within.outcome.findings.search)
      keepBound(*within.outcome.findings.search, *first);
  }
  if (std::optional<passes::SearchFacts> &search = within.outcome.findings.search; search && !within.fits) { // nothing is known of what fits
    search->isOptimal = false;
    search->boundUs = 0;
  }
  return within;
}

/// Why there is no plan.
static std::string refusalOf(const WithinLimit &within, uint64_t limit, const std::string &machine) {
  const uint64_t bytes = within.outcome.plan.arena_bytes();
  const std::string most = bytesText(limit);
  std::string needs = bytesText(bytes);
  if (needs == most) // rounded
    needs += ", " + bytesText(bytes - limit) + " too much";
  return std::string(within.searched ? "no strategies that were found fit" : "the plan does not fit") + " into " +
         (machine.empty() ? most + " per rank: it needs " + needs : "a device of '" + machine + "', " + most + ": a rank needs " + needs);
}

Result<CompileOutcome> compileWithin(const CompileOptions &options, const std::string &machine) {
  Result<WithinLimit> within = findWithin(options);
  if (!within)
    return within.error();
  CompileOutcome &outcome = within->outcome;
  MemoryAnswer &answer = outcome.findings.memory.emplace();
  answer = {options.memoryLimit, within->fits, outcome.plan.arena_bytes(), within->bytesWithoutLimit, within->usWithoutLimit, {}};
  if (within->fits)
    return std::move(outcome);
  answer.changes = changesThatFit(options, *within);
  Error refusal{ExitCode::NoResource, refusalOf(*within, options.memoryLimit, machine), helpOf(answer, !machine.empty())};
  if (!options.explains)
    return refusal;
  outcome.refusal = std::move(refusal);
  return std::move(outcome);
}

} // namespace msc::compiler
