#include "passes/sharding/search/PaidOnce.h"
#include "passes/sharding/search/MinPlus.h"

#include <algorithm>

namespace msc::search {

PaidOnce::PaidOnce(const SharedForm &form, std::vector<size_t> readersGiven)
    : form(form), readers(std::move(readersGiven)) {
  const size_t items = form.prices[0].size();
  std::vector<int32_t> mayAsk(items);
  for (size_t reader : readers) {
    std::vector<char> asks(items);
    for (const std::vector<int32_t> &set : form.itemsOf[reader])
      for (int32_t item : set)
        asks[item] = 1;
    for (size_t item = 0; item < items; ++item)
      mayAsk[item] += asks[item];
  }
  for (int32_t count : mayAsk)
    share.push_back(count > 0 ? 1.0 / count : 0);
  askedBy.resize(items);
  sharedPrice.resize(readers.size());
  for (size_t i = 0; i < readers.size(); ++i)
    sharedPrice[i].resize(form.itemsOf[readers[i]].size());
  for (const std::vector<double> &prices : sharedPrice)
    nothing.resize(std::max(nothing.size(), prices.size()));
  least.resize(readers.size());
  restLeast.resize(readers.size() + 1);
  restOwn.resize(readers.size() + 1);
  candidates.resize(readers.size());
  current.resize(readers.size());
  findHubs();
}

void PaidOnce::setContext(int32_t producer, const std::vector<int32_t> &asked) {
  prices = form.prices[producer];
  given = 0;
  for (int32_t item : asked) {
    given += prices[item];
    prices[item] = 0;
  }
  for (size_t i = 0; i < readers.size(); ++i)
    for (size_t c = 0; c < sharedPrice[i].size(); ++c) {
      double sum = 0;
      for (int32_t item : form.itemsOf[readers[i]][c])
        if (prices[item] > 0) // infinity shared is infinity; no share of nothing
          sum += prices[item] * share[item];
      sharedPrice[i][c] = sum;
    }
  for (size_t h = 0; h < hubs.size(); ++h) {
    hubPrice[h] = 0;
    for (int32_t item : hubs[h])
      hubPrice[h] += prices[item];
  }
}

double PaidOnce::cheapest(const std::vector<const double *> &own, std::vector<int32_t> *classes, int64_t most, double below) {
  branches = 0;
  mostBranches = most;
  const double bound = bounds(own);
  if (!classes && given + bound >= below)
    return given + bound;
  best = current;
  bestCost = bound < infinity ? total(own) : infinity;
  if (bestCost - bound > 1e-13 * bestCost) { // else it is the minimum but for rounding
    if (hubExact) {
      chooseHub(own);
      if (classes)
        *classes = best;
      return given + bestCost;
    }
    bestCost = std::min(bestCost, below - given);
    for (size_t i = readers.size(); i-- > 0;)
      restOwn[i] = restOwn[i + 1] + leastSum(own[i], nothing.data(), sharedPrice[i].size());
    for (size_t start = 0; start < readers.size(); ++start) {
      descend(own, start);
      branches += static_cast<int64_t>(readers.size());
    }
    filter(own);
    branch(own, 0, 0, 0);
  }
  if (classes)
    *classes = best;
  return given + bestCost;
}

/// Sum of each reader's minimum when everyone pays his share of an item; `current` becomes these minima.
double PaidOnce::bounds(const std::vector<const double *> &own) {
  for (size_t i = readers.size(); i-- > 0;) {
    const std::vector<double> &shared = sharedPrice[i];
    least[i] = leastSum(own[i], shared.data(), shared.size());
    size_t at = 0;
    while (at + 1 < shared.size() && own[i][at] + shared[at] != least[i])
      ++at;
    current[i] = static_cast<int32_t>(at);
    restLeast[i] = restLeast[i + 1] + least[i];
  }
  return restLeast[0];
}

/// The price of the items of a set that nobody asks for yet.
double PaidOnce::marginal(size_t reader, int32_t c) const {
  double sum = 0;
  for (int32_t item : form.itemsOf[readers[reader]][c])
    if (askedBy[item] == 0)
      sum += prices[item];
  return sum;
}

void PaidOnce::ask(size_t reader, int32_t c, int by) {
  for (int32_t item : form.itemsOf[readers[reader]][c])
    askedBy[item] += by;
}

double PaidOnce::total(const std::vector<const double *> &own) {
  double sum = 0;
  for (size_t i = 0; i < readers.size(); ++i) {
    sum += own[i][current[i]] + marginal(i, current[i]);
    ask(i, current[i], 1);
  }
  for (size_t i = 0; i < readers.size(); ++i)
    ask(i, current[i], -1);
  return sum;
}

/// One after the other, from `start` on, takes what is cheapest beside what is asked for already.
void PaidOnce::descend(const std::vector<const double *> &own, size_t start) {
  double sum = 0;
  for (size_t step = 0; step < readers.size(); ++step) {
    const size_t i = (start + step) % readers.size();
    double lowest = infinity;
    int32_t at = 0;
    for (size_t c = 0; c < sharedPrice[i].size(); ++c)
      if (own[i][c] < lowest)
        if (double cost = own[i][c] + marginal(i, c); cost < lowest) {
          lowest = cost;
          at = static_cast<int32_t>(c);
        }
    current[i] = at;
    sum += lowest;
    ask(i, at, 1);
  }
  for (size_t i = 0; i < readers.size(); ++i)
    ask(i, current[i], -1);
  if (sum < bestCost) {
    bestCost = sum;
    best = current;
  }
}

/// Drops classes that cannot be in anything better than the best so far.
void PaidOnce::filter(const std::vector<const double *> &own) {
  for (size_t i = 0; i < readers.size(); ++i) {
    const double others = restLeast[0] - least[i];
    candidates[i].clear();
    for (size_t c = 0; c < sharedPrice[i].size(); ++c)
      if (own[i][c] + sharedPrice[i][c] + others < bestCost)
        candidates[i].push_back(static_cast<int32_t>(c));
  }
}

/// `paid`: own costs and full prices of the readers before `depth`; `shared`: the same with shared prices.
void PaidOnce::branch(const std::vector<const double *> &own, size_t depth, double paid, double shared) {
  if (depth == readers.size()) {
    if (paid < bestCost) {
      bestCost = paid;
      best = current;
    }
    return;
  }
  for (int32_t c : candidates[depth]) {
    if (++branches > mostBranches)
      return;
    const double nowShared = shared + own[depth][c] + sharedPrice[depth][c];
    if (nowShared + restLeast[depth + 1] >= bestCost)
      continue;
    const double nowPaid = paid + own[depth][c] + marginal(depth, c);
    if (nowPaid + restOwn[depth + 1] >= bestCost)
      continue;
    current[depth] = c;
    ask(depth, c, 1);
    branch(own, depth + 1, nowPaid, nowShared);
    ask(depth, c, -1);
  }
}

} // namespace msc::search
