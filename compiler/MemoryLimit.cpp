#include "compiler/MemoryLimit.h"

#include "compiler/MemoryChanges.h"
#include "compiler/Tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msc::compiler {

Result<std::optional<EstimateWithin>> estimateWithin(const CompileOptions &asked, double bytes) {
  CompileOptions options = asked;
  auto estimate = [&](int64_t kept) {
    options.keptBytes = kept;
    return estimateOnce(options);
  };
  Result<Estimate> free = estimate(0);
  if (!free)
    return free.error();
  if (!free->search || free->search->arenaBytes <= 0 || free->search->bytes <= 0)
    return std::optional<EstimateWithin>();
  if (free->search->arenaBytes <= bytes)
    return std::optional(EstimateWithin{std::move(*free), true, 0});
  // What is kept, the additive measure of the search, between the least that is possible and what does not fit.
  Result<Estimate> least = estimate(1);
  if (!least)
    return least.error();
  const double leastKept = least->search ? least->search->leastBytes : 0;
  if (leastKept <= 0) // strategies are all given
    return std::optional(EstimateWithin{std::move(*free), false, 0});
  EstimateWithin within{std::move(*least), false, static_cast<int64_t>(std::ceil(leastKept))};
  within.fits = within.estimate.search->arenaBytes <= bytes;
  constexpr int halvings = 6;
  double low = leastKept, high = free->search->bytes;
  for (int i = 0; i < halvings && high > 1.01 * low; ++i) {
    const double middle = (low + high) / 2;
    Result<Estimate> tried = estimate(static_cast<int64_t>(middle));
    if (!tried)
      return tried.error();
    const bool fits = tried->search->arenaBytes <= bytes;
    if (fits || (!within.fits && tried->search->arenaBytes < within.estimate.search->arenaBytes))
      within = {std::move(*tried), fits, static_cast<int64_t>(middle)};
    (fits ? low : high) = middle;
  }
  return std::optional(std::move(within));
}

Result<WithinLimit> findWithin(CompileOptions options) {
  WithinLimit within;
  bool isFirst = true;
  auto compiles = [&]() -> Result<uint64_t> {
    Result<CompileOutcome> outcome = compileOnce(options);
    if (!outcome)
      return outcome.error();
    const uint64_t needs = outcome->plan.arena_bytes();
    within.fits = needs <= options.memoryLimit;
    if (std::exchange(isFirst, false) || needs < within.outcome.plan.arena_bytes() || within.fits)
      within.outcome = std::move(*outcome);
    return needs;
  };
  Result<uint64_t> needs = compiles();
  if (!needs)
    return needs.error();
  within.bytesWithoutLimit = *needs;
  within.usWithoutLimit = within.outcome.plan.prediction().step_us();
  const auto limit = static_cast<double>(options.memoryLimit);
  double may = limit; // that the search may say
  constexpr int plans = 4;
  for (int i = 0; i < plans && !within.fits && within.outcome.findings.search; ++i) {
    Result<std::optional<EstimateWithin>> found = estimateWithin(options, may);
    if (!found)
      return found.error();
    if (!*found)
      break;
    const EstimateWithin &guess = **found;
    const int64_t before = options.keptBytes;
    if (guess.keptBytes == 0 && guess.fits) { // it says less than the plan did
      may = std::min(0.99 * may, guess.estimate.search->arenaBytes * limit / static_cast<double>(*needs));
      continue;
    }
    options.keptBytes = guess.keptBytes;
    if (options.keptBytes == 0 || options.keptBytes == before)
      break;
    needs = compiles();
    if (!needs)
      return needs.error();
    within.searched = true;
    if (!guess.fits)
      break;
    may = std::min(0.99 * may, guess.estimate.search->arenaBytes * limit / static_cast<double>(*needs));
  }
  return within;
}

/// Why there is no plan.
static std::string refusalOf(const WithinLimit &within, uint64_t limit, const std::string &machine) {
  const std::string needs = bytesText(within.outcome.plan.arena_bytes());
  return std::string(within.searched ? "no strategies that were found fit" : "the plan does not fit") + " into " +
         (machine.empty() ? bytesText(limit) + " per rank: it needs " + needs
                          : "a device of '" + machine + "', " + bytesText(limit) + ": a rank needs " + needs);
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
