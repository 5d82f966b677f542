// Two or three readers of one value without branching.
#include "passes/sharding/search/MinPlus.h"
#include "passes/sharding/search/PaidOnce.h"

#include <algorithm>
#include <map>

namespace msc::search {

/// Whether items can be given one of two kinds so that no set has two of a kind.
static bool hasTwoKinds(const std::vector<std::vector<int32_t>> &sets, size_t items) {
  std::vector<std::vector<int32_t>> together(items);
  for (const std::vector<int32_t> &set : sets) {
    if (set.size() > 2)
      return false;
    if (set.size() == 2) {
      together[set[0]].push_back(set[1]);
      together[set[1]].push_back(set[0]);
    }
  }
  std::vector<int> kind(items, -1);
  std::vector<int32_t> open;
  for (size_t start = 0; start < items; ++start) {
    if (kind[start] >= 0)
      continue;
    kind[start] = 0;
    open.push_back(static_cast<int32_t>(start));
    while (!open.empty()) {
      const int32_t item = open.back();
      open.pop_back();
      for (int32_t other : together[item]) {
        if (kind[other] == kind[item])
          return false;
        if (kind[other] < 0) {
          kind[other] = 1 - kind[item];
          open.push_back(other);
        }
      }
    }
  }
  return true;
}

void PaidOnce::findHubs() {
  std::map<std::vector<int32_t>, int32_t> numbers;
  for (size_t reader : readers)
    for (const std::vector<int32_t> &set : form.itemsOf[reader])
      if (numbers.try_emplace(set, static_cast<int32_t>(hubs.size())).second)
        hubs.push_back(set);
  hubExact = readers.size() <= 3 && hasTwoKinds(hubs, form.prices[0].size());
  hubPrice.resize(hubs.size());
  if (!hubExact)
    return;
  for (size_t reader : readers) {
    std::vector<int32_t> &classes = hubClass.emplace_back(hubs.size(), -1);
    for (size_t c = 0; c < form.itemsOf[reader].size(); ++c)
      classes[numbers[form.itemsOf[reader][c]]] = static_cast<int32_t>(c);
  }
}

void PaidOnce::hubCosts(size_t i, const double *own, size_t rows, size_t from, size_t rowCount, std::vector<double> &costs) {
  const std::vector<std::vector<int32_t>> &sets = form.itemsOf[readers[i]];
  constexpr size_t tile = 64; // rows of which all that is between fits into a cache
  constexpr size_t together = 8; // hubs that are written at once: a line of the cache
  double free[tile], ofHubs[together * tile];
  withItem.resize(prices.size() * tile);
  for (size_t first = from; first < from + rowCount; first += tile) {
    const size_t width = std::min(tile, from + rowCount - first);
    std::fill_n(free, width, infinity);
    isAsked.assign(prices.size(), 0);
    for (size_t c = 0; c < sets.size(); ++c) {
      const double *row = own + c * rows + first;
      double sum = 0;
      for (int32_t item : sets[c])
        sum += prices[item];
      lowerTo(free, row, sum, width);
      for (size_t j = 0; j < sets[c].size(); ++j) { // the item is in the hub, the other one is not
        double *least = withItem.data() + sets[c][j] * tile;
        if (!isAsked[sets[c][j]])
          std::fill_n(least, width, infinity);
        isAsked[sets[c][j]] = 1;
        lowerTo(least, row, sets[c].size() == 2 ? prices[sets[c][1 - j]] : 0, width);
      }
    }
    for (size_t h = 0; h < hubs.size(); h += together) {
      const size_t count = std::min(together, hubs.size() - h);
      for (size_t k = 0; k < count; ++k) {
        double *ofHub = ofHubs + k * tile;
        std::copy_n(free, width, ofHub);
        for (int32_t item : hubs[h + k])
          if (isAsked[item])
            lowerTo(ofHub, withItem.data() + item * tile, 0, width);
        if (const int32_t c = hubClass[i][h + k]; c >= 0 && hubs[h + k].size() == 2)
          lowerTo(ofHub, own + c * rows + first, 0, width);
      }
      for (size_t row = 0; row < width; ++row)
        for (size_t k = 0; k < count; ++k)
          costs[(first + row) * hubs.size() + h + k] = ofHubs[k * tile + row];
    }
  }
}

/// The best answer by its hub.
void PaidOnce::chooseHub(const std::vector<const double *> &own) {
  std::vector<double> sum = hubPrice, costs(hubs.size());
  for (size_t i = 0; i < readers.size(); ++i) {
    hubCosts(i, own[i], 1, 0, 1, costs);
    addRow(sum.data(), costs.data(), sum.size());
  }
  const size_t hub = std::min_element(sum.begin(), sum.end()) - sum.begin();
  for (int32_t item : hubs[hub])
    ++askedBy[item];
  for (size_t i = 0; i < readers.size(); ++i) {
    double least = infinity;
    for (size_t c = 0; c < sharedPrice[i].size(); ++c)
      if (double cost = own[i][c] + marginal(i, static_cast<int32_t>(c)); cost < least) {
        least = cost;
        current[i] = static_cast<int32_t>(c);
      }
  }
  for (int32_t item : hubs[hub])
    --askedBy[item];
  if (double cost = total(own); cost < bestCost) {
    bestCost = cost;
    best = current;
  }
}

} // namespace msc::search
