#include "passes/sharding/search/Sweep.h"

#include <algorithm>

namespace msc::search {

namespace {

/// A table or a shared cost, as variables see it.
struct Term {
  int32_t number = 0;
  bool isShared = false;
};

class Sweeper {
public:
  explicit Sweeper(const CostNetwork &network)
      : network(network), choice(network.options.size(), -1), isInChain(network.options.size()),
        isDone(network.options.size()) {
    groupTerms();
    size_t items = 0;
    for (const SharedCost &shared : network.shared)
      items = std::max(items, shared.costs[0].size());
    asked.resize(items);
  }

  Choice assigned() {
    for (size_t v = 0; v < choice.size(); ++v)
      assign(static_cast<int32_t>(v));
    return choice;
  }

  Solution run(const SweepLimits &limits, Choice start) {
    choice = std::move(start);
    Solution solution;
    solution.optimal = false;
    solution.bound = -infinity;
    // Chains in both directions, so that each variable is in chains with different neighbours.
    bool changed = true;
    for (int sweep = 0; sweep < limits.sweeps && (changed || sweep < 2); ++sweep)
      changed = sweepChains(sweep % 2 == 0);
    solution.operations = operations;
    solution.choice = std::move(choice);
    solution.cost = costOf(network, solution.choice);
    return solution;
  }

private:
  void groupTerms() {
    first.assign(choice.size() + 1, 0);
    auto forEach = [&](auto visit) {
      for (size_t i = 0; i < network.tables.size(); ++i)
        for (int32_t variable : network.tables[i].scope)
          visit(variable, Term{static_cast<int32_t>(i), false});
      for (size_t i = 0; i < network.shared.size(); ++i) {
        visit(network.shared[i].producer, Term{static_cast<int32_t>(i), true});
        for (const SharedCost::Reader &reader : network.shared[i].readers)
          visit(reader.variable, Term{static_cast<int32_t>(i), true});
      }
    };
    forEach([&](int32_t variable, Term) { ++first[variable + 1]; });
    for (size_t v = 0; v < choice.size(); ++v)
      first[v + 1] += first[v];
    terms.resize(first.back());
    std::vector<int32_t> next(first.begin(), first.end() - 1);
    forEach([&](int32_t variable, Term term) { terms[next[variable]++] = term; });
  }

  template <typename Visit> void forEachOther(const Term &term, int32_t variable, Visit visit) const {
    if (!term.isShared) {
      for (int32_t other : network.tables[term.number].scope)
        if (other != variable)
          visit(other);
      return;
    }
    const SharedCost &shared = network.shared[term.number];
    if (shared.producer != variable)
      visit(shared.producer);
    for (const SharedCost::Reader &reader : shared.readers)
      if (reader.variable != variable)
        visit(reader.variable);
  }

  static int32_t lowest(const std::vector<double> &costs) {
    return static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }

  // The first assignment.

  void assign(int32_t variable) {
    unary.assign(network.options[variable], 0);
    for (int32_t t = first[variable]; t < first[variable + 1]; ++t)
      terms[t].isShared ? lookAhead(network.shared[terms[t].number], variable)
                        : lookAhead(network.tables[terms[t].number], variable);
    choice[variable] = lowest(unary);
  }

  /// The least of the entries that the variables decided so far leave.
  void lookAhead(const Table &table, int32_t variable) {
    std::vector<double> least(unary.size(), infinity);
    std::vector<int32_t> at(table.scope.size());
    for (double cost : table.costs) {
      int32_t own = 0;
      bool isOpen = true;
      for (size_t a = 0; a < at.size(); ++a) {
        const int32_t other = table.scope[a];
        if (other == variable)
          own = at[a];
        else
          isOpen = isOpen && (choice[other] < 0 || choice[other] == at[a]);
      }
      if (isOpen)
        least[own] = std::min(least[own], cost);
      for (size_t a = at.size(); a-- > 0 && ++at[a] == network.options[table.scope[a]];)
        at[a] = 0;
    }
    operations += static_cast<int64_t>(table.costs.size());
    for (size_t option = 0; option < unary.size(); ++option)
      unary[option] += least[option];
  }

  void lookAhead(const SharedCost &shared, int32_t variable) {
    if (shared.producer == variable) {
      // Each reader on its own.
      std::vector<double> ofClass(shared.costs.size());
      for (size_t c = 0; c < ofClass.size(); ++c)
        for (const SharedCost::Reader &reader : shared.readers) {
          double least = infinity;
          for (size_t option = 0; option < reader.items.size(); ++option)
            if (choice[reader.variable] < 0 || choice[reader.variable] == static_cast<int32_t>(option)) {
              double sum = 0;
              for (int32_t item : reader.items[option])
                sum += shared.costs[c][item];
              least = std::min(least, sum);
            }
          ofClass[c] += least * shared.times;
        }
      for (size_t option = 0; option < unary.size(); ++option)
        unary[option] += ofClass[shared.producerClass[option]];
    } else if (choice[shared.producer] >= 0) {
      addReader(shared, variable, -1, unary);
    }
  }

  // Costs beside what is chosen.

  void ask(const SharedCost &shared, int32_t but, int32_t butToo) {
    std::fill(asked.begin(), asked.begin() + shared.costs[0].size(), 0);
    for (const SharedCost::Reader &reader : shared.readers)
      if (reader.variable != but && reader.variable != butToo && choice[reader.variable] >= 0)
        for (int32_t item : reader.items[choice[reader.variable]])
          asked[item] = 1;
  }

  const SharedCost::Reader &readerOf(const SharedCost &shared, int32_t variable) const {
    return *std::find_if(shared.readers.begin(), shared.readers.end(),
                         [&](const SharedCost::Reader &reader) { return reader.variable == variable; });
  }

  double priceOfNew(const std::vector<int32_t> &items, const std::vector<double> &prices) const {
    double sum = 0;
    for (int32_t item : items)
      sum += asked[item] ? 0 : prices[item];
    return sum;
  }

  void addReader(const SharedCost &shared, int32_t variable, int32_t but, std::vector<double> &costs) {
    ask(shared, variable, but);
    const std::vector<double> &prices = shared.costs[shared.producerClass[choice[shared.producer]]];
    const SharedCost::Reader &reader = readerOf(shared, variable);
    for (size_t option = 0; option < costs.size(); ++option)
      costs[option] += priceOfNew(reader.items[option], prices) * shared.times;
  }

  void addProducer(const SharedCost &shared, int32_t but, std::vector<double> &costs) {
    ask(shared, but, -1);
    std::vector<double> &ofClass = scratch;
    ofClass.assign(shared.costs.size(), 0);
    for (size_t c = 0; c < ofClass.size(); ++c)
      for (size_t item = 0; item < shared.costs[c].size(); ++item)
        if (asked[item])
          ofClass[c] += shared.costs[c][item];
    for (size_t option = 0; option < costs.size(); ++option)
      costs[option] += ofClass[shared.producerClass[option]] * shared.times;
  }

  void addUnary(const Term &term, int32_t variable) {
    if (term.isShared) {
      const SharedCost &shared = network.shared[term.number];
      shared.producer == variable ? addProducer(shared, -1, unary) : addReader(shared, variable, -1, unary);
      return;
    }
    const Table &table = network.tables[term.number];
    size_t index = 0, stride = 0;
    for (int32_t other : table.scope) {
      index = index * network.options[other] + (other == variable ? 0 : choice[other]);
      stride = other == variable ? 1 : stride * network.options[other];
    }
    for (size_t option = 0; option < unary.size(); ++option)
      unary[option] += table.costs[index + option * stride];
  }

  /// link[option of before][option of variable]
  void addLink(const Term &term, int32_t before, int32_t variable) {
    const size_t width = network.options[variable], height = network.options[before];
    if (!term.isShared) {
      const Table &table = network.tables[term.number];
      size_t index = 0, step = 0, stepBefore = 0;
      for (int32_t other : table.scope) {
        const bool isFree = other == variable || other == before;
        index = index * network.options[other] + (isFree ? 0 : choice[other]);
        step = other == variable ? 1 : step * network.options[other];
        stepBefore = other == before ? 1 : stepBefore * network.options[other];
      }
      for (size_t i = 0; i < height; ++i)
        for (size_t j = 0; j < width; ++j)
          link[i * width + j] += table.costs[index + i * stepBefore + j * step];
      return;
    }
    const SharedCost &shared = network.shared[term.number];
    if (shared.producer != before && shared.producer != variable)
      return addReaders(shared, before, variable);
    const bool makes = shared.producer == before;
    const int32_t reader = makes ? variable : before;
    std::vector<double> alone(network.options[shared.producer]);
    addProducer(shared, reader, alone);
    const SharedCost::Reader &reads = readerOf(shared, reader);
    for (size_t i = 0; i < height; ++i)
      for (size_t j = 0; j < width; ++j) {
        const size_t made = makes ? i : j, wanted = makes ? j : i;
        const std::vector<double> &prices = shared.costs[shared.producerClass[made]];
        link[i * width + j] += alone[made] + priceOfNew(reads.items[wanted], prices) * shared.times;
      }
  }

  /// Two readers of a value whose producer is not in the chain.
  void addReaders(const SharedCost &shared, int32_t before, int32_t variable) {
    const size_t width = network.options[variable], height = network.options[before];
    const SharedCost::Reader &a = readerOf(shared, before), &b = readerOf(shared, variable);
    const std::vector<double> &prices = shared.costs[shared.producerClass[choice[shared.producer]]];
    ask(shared, before, variable);
    for (size_t i = 0; i < height; ++i) {
      const double alone = priceOfNew(a.items[i], prices);
      std::vector<int32_t> added;
      for (int32_t item : a.items[i])
        if (!asked[item]) {
          asked[item] = 1;
          added.push_back(item);
        }
      for (size_t j = 0; j < width; ++j)
        link[i * width + j] += (alone + priceOfNew(b.items[j], prices)) * shared.times;
      for (int32_t item : added)
        asked[item] = 0;
    }
  }

  // Chains.

  bool sweepChains(bool isForward) {
    std::fill(isDone.begin(), isDone.end(), 0);
    bool changed = false;
    const int32_t count = static_cast<int32_t>(choice.size());
    for (int32_t i = 0; i < count; ++i)
      if (int32_t start = isForward ? i : count - 1 - i; !isDone[start]) {
        findChain(start, isForward);
        changed |= improveChain();
        for (int32_t variable : chain)
          isInChain[variable] = 0;
      }
    return changed;
  }

  void findChain(int32_t start, bool isForward) {
    constexpr size_t longest = 4096;
    chain.clear();
    for (int32_t variable = start; variable >= 0 && chain.size() < longest;) {
      chain.push_back(variable);
      isInChain[variable] = isDone[variable] = 1;
      int32_t next = -1;
      for (int32_t t = first[variable]; t < first[variable + 1]; ++t)
        forEachOther(terms[t], variable, [&](int32_t other) {
          if (isDone[other] || (isForward ? other < variable : other > variable))
            return;
          if ((next < 0 || (isForward ? other < next : other > next)) && mayFollow(other, variable))
            next = other;
        });
      variable = next;
    }
  }

  /// Whether no term of `variable` has another variable of the chain but its last one.
  bool mayFollow(int32_t variable, int32_t last) const {
    bool isFree = true;
    for (int32_t t = first[variable]; t < first[variable + 1] && isFree; ++t)
      forEachOther(terms[t], variable, [&](int32_t other) { isFree = isFree && (!isInChain[other] || other == last); });
    return isFree;
  }

  /// Dynamic programming along the chain.
  bool improveChain() {
    reached.resize(std::max(reached.size(), chain.size()));
    from.resize(std::max(from.size(), chain.size()));
    double now = 0; // what the present options cost
    for (size_t i = 0; i < chain.size(); ++i) {
      const int32_t variable = chain[i], before = i > 0 ? chain[i - 1] : -1,
                    behind = i + 1 < chain.size() ? chain[i + 1] : -1;
      const size_t width = network.options[variable], height = before < 0 ? 0 : network.options[before];
      unary.assign(width, 0);
      link.assign(width * height, 0);
      for (int32_t t = first[variable]; t < first[variable + 1]; ++t) {
        bool hasBefore = false, hasBehind = false;
        forEachOther(terms[t], variable, [&](int32_t other) {
          hasBefore |= other == before;
          hasBehind |= other == behind;
        });
        if (hasBefore)
          addLink(terms[t], before, variable);
        else if (!hasBehind)
          addUnary(terms[t], variable);
      }
      now += unary[choice[variable]];
      if (before >= 0)
        now += link[choice[before] * width + choice[variable]];
      operations += static_cast<int64_t>(width * (height + 1));
      reached[i] = unary;
      from[i].assign(width, 0);
      for (size_t j = 0; j < width && before >= 0; ++j) {
        double least = infinity;
        for (size_t k = 0; k < height; ++k)
          if (double cost = reached[i - 1][k] + link[k * width + j]; cost < least) {
            least = cost;
            from[i][j] = static_cast<int32_t>(k);
          }
        reached[i][j] += least;
      }
    }
    int32_t option = lowest(reached[chain.size() - 1]);
    const double best = reached[chain.size() - 1][option];
    if (!(best < (now < infinity ? now - 1e-9 * std::abs(now) : infinity)))
      return false;
    for (size_t i = chain.size(); i-- > 0;) {
      choice[chain[i]] = option;
      option = from[i][option];
    }
    return true;
  }

  const CostNetwork &network;
  Choice choice; ///< -1: not yet decided
  std::vector<int32_t> first;
  std::vector<Term> terms; ///< of variable v: those from first[v] on
  std::vector<char> isInChain, isDone;
  std::vector<int32_t> chain;
  std::vector<std::vector<double>> reached; ///< of each variable of the chain: cost up to each option
  std::vector<Choice> from;
  std::vector<double> unary, link, scratch;
  std::vector<char> asked;
  int64_t operations = 0;
};

} // namespace

Solution sweep(const CostNetwork &network, const SweepLimits &limits) {
  Sweeper sweeper(network);
  return sweeper.run(limits, sweeper.assigned());
}

Solution sweepFrom(const CostNetwork &network, Choice start, const SweepLimits &limits) {
  return Sweeper(network).run(limits, std::move(start));
}

} // namespace msc::search
