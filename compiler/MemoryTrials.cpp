#include "compiler/MemoryTrials.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace msc::compiler {

void override(CompileOptions &options, const std::string &name, const std::string &value) {
  std::erase_if(options.context, [&](const auto &option) { return option.first == name; });
  options.context.emplace_back(name, value);
}

bool isPlain(const MemoryChange &change) {
  return change.kind.find("precision") == std::string::npos && change.kind.find("devices") == std::string::npos;
}

static bool fits(const MemoryCandidate &candidate) { return candidate.change.fits; }

static void wantPlan(MemoryCandidate &candidate) {
  candidate.options.estimates = false;
  candidate.options.closesGap = true;
}

MemoryTrials::MemoryTrials(const CompileOptions &asked, const WithinLimit &now)
    : facts(now.outcome.facts), isOfLarge(isLarge(now.outcome.plan)), areEstimates(isHardToLimit(now.outcome.plan)), bytesOfPlan(now.outcome.plan.arena_bytes()), bytesAsItIs(bytesOfPlan),
      usAsItIs(now.outcome.plan.prediction().step_us()), start{.change = {}, .options = asked, .repairs = {}} {
  CompileOptions &options = start.options;
  options.isTrial = true;
  options.estimates = areEstimates;
  options.closesGap = !areEstimates;
  options.searchOperations = operationsOfTrial;
  options.explains = options.strict = false;
  options.searchBytes = 0;
  options.saveGraphsRanks.clear();
  override(options, "save_graphs", "0");
  if (const auto &search = now.outcome.findings.search; areEstimates && search && search->arenaBytes > 0) {
    bytesAsItIs = static_cast<uint64_t>(search->arenaBytes);
    usAsItIs = search->us;
  }
}

bool MemoryTrials::anyFits() const { return std::ranges::any_of(tried, fits); }

const MemoryCandidate *MemoryTrials::attempt(const MemoryCandidate &on, const ChangeOfMemory &change) {
  MemoryCandidate candidate = change(on);
  if (!isSound(candidate))
    return nullptr;
  const MemoryChange &made = candidate.change;
  if (made.kind == "recompute" && made.bytes >= bytesAsItIs)
    return nullptr;
  if (on.repairs.empty())
    singles.push_back({made.kind, made.repair, change, static_cast<double>(made.bytes) / static_cast<double>(bytesAsItIs), made.us / usAsItIs});
  tried.push_back(std::move(candidate));
  return &tried.back();
}

void MemoryTrials::attempt(MemoryCandidate candidate) {
  if (isSound(candidate))
    tried.push_back(std::move(candidate));
}

const MemoryCandidate *MemoryTrials::compileLast() {
  wantPlan(tried.back());
  if (isSound(tried.back()))
    return &tried.back();
  forgetLast(/*isSingle=*/tried.back().repairs.size() == 1);
  return nullptr;
}

void MemoryTrials::forgetLast(bool isSingle) {
  if (isSingle)
    singles.pop_back();
  tried.pop_back();
}

std::vector<MemoryChange> MemoryTrials::conclude() {
  sort();
  compileNamed();
  std::vector<MemoryChange> changes;
  std::set<std::string> listed; // what is tried on top of another change may have been tried alone
  for (MemoryCandidate &candidate : tried)
    if (const MemoryChange &change = candidate.change;
        (change.fits || change.bytes < (change.isEstimated ? bytesAsItIs : bytesOfPlan)) && listed.insert(change.repair).second)
      changes.push_back(std::move(candidate.change));
  return changes;
}

/// What comes of it, by plans or estimates.
bool MemoryTrials::isSound(MemoryCandidate &candidate) const {
  Result<WithinLimit> within = findWithin(candidate.options, isOfLarge);
  if (!within || !isSameNetwork(within->outcome.facts, candidate.parts))
    return false;
  candidate.change.bytes = within->outcome.plan.arena_bytes();
  candidate.change.us = within->outcome.plan.prediction().step_us() * static_cast<double>(candidate.parts);
  candidate.change.fits = within->fits;
  candidate.change.isEstimated = within->outcome.plan.programs_size() == 0;
  return true;
}

/// With a batch that is so many times smaller.
bool MemoryTrials::isSameNetwork(const NetworkFacts &other, uint64_t parts) const {
  if (parts == 1)
    return true;
  std::vector<std::vector<int64_t>> whole = other.inputs;
  for (std::vector<int64_t> &shape : whole)
    if (!shape.empty())
      shape.front() *= static_cast<int64_t>(parts);
  return whole == facts.inputs && other.parameters == facts.parameters;
}

void MemoryTrials::sort() {
  std::ranges::sort(tried, {}, [](const MemoryCandidate &candidate) {
    const MemoryChange &change = candidate.change;
    return std::tuple(!change.fits, change.us, change.bytes, change.repair);
  });
}

/// Estimates that a message is about to name give way to plans, until it names none. Where nothing is enough: the least of them.
void MemoryTrials::compileNamed() {
  bool isLeastCompiled = false;
  for (MemoryCandidate *next = nextNamed(); next; next = nextNamed()) {
    if (!next->change.fits && std::exchange(isLeastCompiled, true))
      return;
    wantPlan(*next);
    if (!isSound(*next))
      tried.erase(tried.begin() + (next - tried.data()));
    sort();
  }
}

MemoryCandidate *MemoryTrials::nextNamed() {
  auto isFitting = [](const MemoryCandidate &candidate) { return candidate.change.fits && isPlain(candidate.change); };
  auto least = std::ranges::min_element(tried, {}, [](const MemoryCandidate &candidate) { return candidate.change.bytes; });
  if (least == tried.end() || !tried.front().change.fits)
    return least != tried.end() && least->change.isEstimated ? &*least : nullptr;
  auto plain = std::ranges::find_if(tried, isFitting);
  for (auto named : {tried.begin(), plain})
    if (named != tried.end() && named->change.isEstimated)
      return &*named;
  return nextClose(tried.front().change.us, plain == tried.end() ? std::numeric_limits<double>::infinity() : plain->change.us);
}

/// The fastest of those that take less than what is named and may fit, as estimates are a little too high or too low.
MemoryCandidate *MemoryTrials::nextClose(double us, double usOfPlain) {
  auto isClose = [&](const MemoryCandidate &candidate) {
    const MemoryChange &change = candidate.change;
    return change.isEstimated && !change.fits && static_cast<double>(change.bytes) <= closeToLimit * static_cast<double>(limit()) &&
           change.us < (isPlain(change) ? usOfPlain : us);
  };
  auto close = std::ranges::find_if(tried, isClose);
  return close == tried.end() || closeOnes++ == mostClose ? nullptr : &*close;
}

} // namespace msc::compiler
