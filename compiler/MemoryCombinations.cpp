#include "compiler/MemoryCombinations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace msc::compiler {

void MemoryCombinations::run(bool staysPlain) {
  for (size_t i = 0; i < mostTogether; ++i) {
    const std::optional<Combination> fastest = next(staysPlain);
    if (!fastest)
      return;
    MemoryCandidate candidate = trials.asItIs();
    for (const SingleChange *single : fastest->of)
      candidate = single->change(candidate);
    known.insert(fastest->repairs);
    trials.attempt(std::move(candidate));
  }
}

double MemoryCombinations::order(const Combination &combination) { return combination.us * std::pow(oneMore, combination.of.size()); }

std::optional<MemoryCombinations::Combination> MemoryCombinations::next(bool staysPlain) {
  for (const MemoryCandidate &candidate : trials.candidates())
    known.insert(candidate.repairs);
  double leastUs = std::numeric_limits<double>::infinity(); // of what fits
  for (const MemoryCandidate &candidate : trials.candidates())
    if (candidate.change.fits && (!staysPlain || isPlain(candidate.change)))
      leastUs = std::min(leastUs, candidate.change.us);
  std::optional<Combination> fastest;
  auto look = [&](const Combination &combination) {
    if (combination.us < surpriseUs * leastUs && (!fastest || order(combination) < order(*fastest)) && !known.contains(combination.repairs) && isWorthwhile(combination))
      fastest = combination;
  };
  each({{}, {}, static_cast<double>(trials.bytesNow()), trials.usNow()}, 0, staysPlain, look);
  return fastest;
}

/// What decides strategies is one kind.
static std::string_view chosenBy(const std::string &kind) { return kind == "strategies" ? "search" : std::string_view(kind); }

void MemoryCombinations::each(const Combination &on, size_t from, bool staysPlain, llvm::function_ref<void(const Combination &)> look) const {
  const std::vector<SingleChange> &singles = trials.singleChanges();
  for (size_t i = from; i < singles.size(); ++i) {
    const SingleChange &single = singles[i];
    auto isAlike = [&](const SingleChange *other) { return chosenBy(other->kind) == chosenBy(single.kind); };
    if (std::ranges::any_of(on.of, isAlike) || (staysPlain && (single.kind == "precision" || single.kind == "devices")))
      continue;
    Combination with = on;
    with.of.push_back(&single);
    with.repairs.insert(single.repair);
    expect(with);
    if (with.of.size() > 1)
      look(with);
    each(with, i + 1, staysPlain, look);
  }
}

/// From the most of it that was tried, with the shares of the rest.
void MemoryCombinations::expect(Combination &combination) const {
  const MemoryCandidate *most = nullptr;
  for (const MemoryCandidate &candidate : trials.candidates())
    if ((!most || candidate.repairs.size() > most->repairs.size()) && std::ranges::includes(combination.repairs, candidate.repairs))
      most = &candidate;
  combination.bytes = static_cast<double>(most ? most->change.bytes : trials.bytesNow());
  combination.us = most ? most->change.us : trials.usNow();
  for (const SingleChange *single : combination.of)
    if (!most || !most->repairs.contains(single->repair)) {
      combination.bytes *= single->bytes;
      combination.us *= single->us;
    }
}

/// By what is expected. On top of what fits already, something has to make it faster, other than more devices.
bool MemoryCombinations::isWorthwhile(const Combination &combination) const {
  if (combination.bytes > surpriseBytes * static_cast<double>(trials.limit()))
    return false;
  const bool grows = std::ranges::any_of(combination.of, [](const SingleChange *single) { return single->kind == "devices"; });
  return std::ranges::none_of(trials.candidates(), [&](const MemoryCandidate &candidate) {
    return candidate.change.fits && (grows || candidate.change.us <= combination.us) && std::ranges::includes(combination.repairs, candidate.repairs);
  });
}

} // namespace msc::compiler
