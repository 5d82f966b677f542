#include "passes/sharding/search/Splices.h"

#include <algorithm>
#include <cmath>

namespace msc::search {

static constexpr auto isDearer = [](const auto &a, const auto &b) { return a.cost > b.cost; };

Splices::Splices(const RepeatedNetwork &network, size_t section, std::span<const RepeatedChoice> from, const std::vector<Budget> &budgets,
                 double below)
    : section(section), own(network.sections[section].variables), rounds(network.sections[section].rounds), below(below) {
  for (const RepeatedChoice &choice : from) {
    const RepeatedChoice beside = choiceOf(choice, {{rounds, from.front().runs[section].front().options}});
    auto isSame = [&](const RepeatedChoice &other) { return other.choice == beside.choice && other.runs == beside.runs; };
    if (std::ranges::none_of(besides, isSame))
      besides.push_back(beside);
    for (const Run &run : choice.runs[section])
      if (std::ranges::find(kinds, run.options) == kinds.end())
        kinds.push_back(run.options);
  }
  if (rounds < 3)
    return;
  addAmounts(network, budgets);
  addCosts(network);
  for (size_t beside = 0; beside < besides.size(); ++beside)
    for (size_t first = 0; first < kinds.size(); ++first)
      for (size_t middle = 0; middle < kinds.size(); ++middle)
        for (size_t last = 0; last < kinds.size(); ++last)
          if (Splice splice{beside, {first, middle, last}, {1, 2}}; first != middle && middle != last && findEnds(splice))
            splices.push_back(splice);
  std::ranges::make_heap(splices, isDearer);
}

RepeatedChoice Splices::choiceOf(RepeatedChoice choice, std::vector<Run> runs) const {
  for (size_t i = 0; i < own.size(); ++i)
    choice.choice[own[i]] = runs.front().options[i];
  choice.runs[section] = std::move(runs);
  return choice;
}

void Splices::addAmounts(const RepeatedNetwork &network, const std::vector<Budget> &budgets) {
  const std::vector<std::vector<int32_t>> inRounds = variablesInRounds(network);
  for (const Budget &budget : budgets) {
    auto amount = [&](int32_t variable, int32_t option) { return budget.amounts[variable].empty() ? 0 : budget.amounts[variable][option]; };
    room.push_back(budget.limit);
    std::vector<std::vector<double>> &ofKinds = before.emplace_back();
    for (const Choice &options : kinds) {
      std::vector<double> &sums = ofKinds.emplace_back(1);
      for (int64_t round = 0; round < rounds; ++round) {
        double sum = sums.back();
        for (size_t i = 0; i < own.size(); ++i)
          sum += amount(inRounds[own[i]][round], options[i]);
        sums.push_back(sum);
      }
    }
    std::vector<double> &others = this->beside.emplace_back();
    for (const RepeatedChoice &choice : besides) {
      const Choice options = unrolledChoice(network, inRounds, choice);
      double sum = 0;
      for (size_t variable = 0; variable < inRounds.size(); ++variable)
        if (std::ranges::find(own, static_cast<int32_t>(variable)) == own.end())
          for (int32_t inRound : inRounds[variable])
            sum += amount(inRound, options[inRound]);
      others.push_back(sum);
    }
  }
}

void Splices::addCosts(const RepeatedNetwork &network) {
  for (size_t beside = 0; beside < besides.size(); ++beside) {
    auto &ofKinds = pairs.emplace_back(kinds.size(), std::vector<Pair>(kinds.size()));
    for (size_t first = 0; first < kinds.size(); ++first)
      for (size_t last = 0; last < kinds.size(); ++last)
        ofKinds[first][last] = {search::costOf(network, choiceOf(besides[beside], {{rounds - 1, kinds[first]}, {1, kinds[last]}})),
                                search::costOf(network, choiceOf(besides[beside], {{1, kinds[first]}, {rounds - 1, kinds[last]}}))};
  }
}

/// Costs meet in successive rounds alone: of two stretches, one round more of the first always adds the same.
double Splices::costOf(const Splice &splice) const {
  const auto [first, middle, last] = splice.kinds;
  const auto &ofKinds = pairs[splice.beside];
  auto cost = [&](size_t a, size_t b, int64_t end) {
    const Pair &pair = ofKinds[a][b];
    return pair.once + (pair.mostly - pair.once) * static_cast<double>(end - 1) / static_cast<double>(rounds - 2);
  };
  return cost(first, middle, splice.ends[0]) + cost(middle, last, splice.ends[1]) - ofKinds[middle][middle].once;
}

double Splices::amountOf(size_t budget, size_t kind, int64_t from, int64_t to) const {
  return before[budget][kind][to] - before[budget][kind][from];
}

bool Splices::fits(const Splice &splice) const {
  for (size_t i = 0; i < room.size(); ++i)
    if (beside[i][splice.beside] + amountOf(i, splice.kinds[0], 0, splice.ends[0]) + amountOf(i, splice.kinds[1], splice.ends[0], splice.ends[1]) +
            amountOf(i, splice.kinds[2], splice.ends[1], rounds) + splice.more > room[i])
      return false;
  return true;
}

/// So that all of them together are not too many.
int64_t Splices::endStep() const {
  constexpr double mostEnds = 1 << 26, fewPlaces = 16;
  const double count = static_cast<double>(besides.size()) * std::pow(static_cast<double>(kinds.size()), 3);
  const double places = std::max(fewPlaces, std::sqrt(2 * mostEnds / count));
  return static_cast<int64_t>(std::ceil(static_cast<double>(rounds) / places));
}

/// The cheapest ends of its stretches that fit.
bool Splices::findEnds(Splice &splice) const {
  const int64_t step = endStep();
  Splice tried = splice;
  double cheapest = below;
  for (int64_t first = 1; first < rounds - 1; first += step)
    for (int64_t second = first + 1; second < rounds; second += step) {
      tried.ends[0] = first;
      tried.ends[1] = second;
      tried.cost = costOf(tried);
      if (tried.cost < cheapest && fits(tried)) {
        splice = tried;
        cheapest = tried.cost;
      }
    }
  return cheapest < below;
}

std::optional<RepeatedChoice> Splices::cheapest() {
  while (!splices.empty() && splices.front().more < leastMore)
    shorten(leastMore);
  if (splices.empty())
    return {};
  const Splice &splice = splices.front();
  const auto [first, middle, last] = splice.kinds;
  return choiceOf(besides[splice.beside],
                  {{splice.ends[0], kinds[first]}, {splice.ends[1] - splice.ends[0], kinds[middle]}, {rounds - splice.ends[1], kinds[last]}});
}

void Splices::refuse(double more) {
  leastMore = std::min(leastMore == 0 ? more : leastMore, more);
  shorten(more);
}

/// The cheapest one finds other ends.
void Splices::shorten(double more) {
  std::ranges::pop_heap(splices, isDearer);
  Splice splice = splices.back();
  splices.pop_back();
  splice.more = std::max(splice.more, more);
  if (!findEnds(splice))
    return;
  splices.push_back(splice);
  std::ranges::push_heap(splices, isDearer);
}

} // namespace msc::search
