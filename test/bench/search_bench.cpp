// The strategy search on synthetic networks: exact, folded, with a budget, and the heuristic beside it. Milliseconds of
// processor time.
#include "passes/sharding/search/Budget.h"
#include "passes/sharding/search/Sweep.h"
#include "test/passes/sharding/search/Networks.h"
#include "test/passes/sharding/search/Transformer.h"

#include <cstdio>
#include <ctime>

using namespace msc::search;
using namespace msc::search::test;

namespace {

/// The least of a few runs.
template <typename Work> double milliseconds(Work work) {
  double best = infinity;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, double(std::clock() - start) * 1000 / CLOCKS_PER_SEC);
    if (best > 1000)
      break;
  }
  return best;
}

const char *proof(const Solution &solution) {
  return solution.optimal ? "proven" : "NOT PROVEN";
}

/// Layers folded; returns the time.
double folded(int64_t layers, int32_t log2Devices) {
  SyntheticTransformer network(layers, log2Devices);
  RepeatedSolution solution;
  const double time = milliseconds([&] { solution = solveExactly(network.repeated); });
  std::printf("transformer, %6lld layers, %3d devices, folded:   %8.2f ms, cost %.9g, %s, %zu runs\n",
              (long long)layers, 1 << log2Devices, time, solution.summary.cost, proof(solution.summary),
              solution.choice.runs[0].size());
  return time;
}

void unrolled(int64_t layers, int32_t log2Devices) {
  CostNetwork network = unroll(SyntheticTransformer(layers, log2Devices).repeated).network;
  Solution exact, found;
  double time = milliseconds([&] { exact = solveExactly(network); });
  std::printf(
      "transformer, %6lld layers, %3d devices, unrolled: %8.2f ms, cost %.9g, %s, %lld of %lld buckets repeated, "
      "largest table %lld\n",
      (long long)layers, 1 << log2Devices, time, exact.cost, proof(exact), (long long)exact.repeated,
      (long long)exact.eliminations, (long long)exact.largestTable);
  time = milliseconds([&] { found = sweep(network); });
  std::printf("transformer, %6lld layers, %3d devices, sweep:    %8.2f ms, %.3g %% dearer\n", (long long)layers,
              1 << log2Devices, time, 100 * (found.cost / exact.cost - 1));
}

void transformers(int32_t log2Devices) {
  const double two = folded(2, log2Devices);
  folded(24, log2Devices);
  const double many = folded(96, log2Devices), most = folded(10000, log2Devices);
  std::printf("  time(96) / time(2) = %.2f, time(10000) / time(96) = %.2f\n", many / two, most / many);
  unrolled(24, log2Devices);
}

void moreThanOne(int64_t layers, int32_t log2Devices) {
  RepeatedNetwork repeated = SyntheticTransformer(layers, log2Devices).repeated;
  CostNetwork network = unroll(repeated).network;
  std::vector<Solution> best;
  double time = milliseconds([&] { best = bestAssignments(network, 20); });
  std::printf("20 best of %lld layers on %d devices: %.1f ms, the last %.3g %% dearer\n", (long long)layers,
              1 << log2Devices, time, 100 * (best.back().cost / best[0].cost - 1));
  time = milliseconds([&] { costsOfOptions(network, 3); });
  std::printf("all options of one operator: %.1f ms\n", time);

  // Every option keeps its share of 1 unit per operator, more where it is cut less.
  Budget budget;
  for (int32_t options : repeated.network.options) {
    budget.amounts.emplace_back();
    for (int32_t option = 0; option < options; ++option)
      budget.amounts.back().push_back(1.0 + 7.0 * ((option * 7919) % options) / options);
  }
  BudgetLimits limits;
  RepeatedBudgetSolution free = solveWithin(repeated, Budget{budget.amounts, infinity});
  for (double share : {0.9, 0.6, 0.3}) {
    budget.limit = free.summary.least + share * (free.summary.amount - free.summary.least);
    RepeatedBudgetSolution solution;
    time = milliseconds([&] { solution = solveWithin(repeated, budget, limits); });
    std::printf("budget of %.0f %% between least and free: %8.1f ms, %.3g %% dearer, certified gap %.3g %%\n",
                100 * share, time, 100 * (solution.summary.solution.cost / free.summary.solution.cost - 1),
                100 * solution.summary.gap());
  }
}

/// A chain with residual connections over 8, 64 and 512 operators, one within the other: treewidth 4. All costs differ; a
/// value has 16 shardings for 64 strategies.
CostNetwork differentOperators(int32_t count) {
  Random random(5);
  CostNetwork network;
  const int32_t options = 64, classes = 16;
  network.options.assign(count, options);
  auto made = [&](int32_t variable, int32_t option) { return (option * (1 + 2 * (variable % 20)) / 4) % classes; };
  for (int32_t variable = 1; variable < count; ++variable) {
    for (int32_t span : {1, 8, 64, 512}) {
      if (variable % span || variable < span)
        continue;
      Table table{{variable - span, variable}, {}};
      std::vector<double> ofClasses(classes * classes);
      for (double &cost : ofClasses)
        cost = random.price();
      const int32_t wanted = 1 + 2 * random.below(20);
      for (int32_t row = 0; row < options; ++row)
        for (int32_t column = 0; column < options; ++column)
          table.costs.push_back(ofClasses[made(variable - span, row) * classes + column * wanted / 4 % classes]);
      network.tables.push_back(std::move(table));
    }
    network.tables.push_back({{variable}, {}});
    for (int32_t option = 0; option < options; ++option)
      network.tables.back().costs.push_back(random.price());
  }
  return network;
}

void large() {
  CostNetwork network = differentOperators(10000);
  Solution exact, found;
  double time = milliseconds([&] { exact = solveExactly(network); });
  std::printf("10000 different operators x 64 options, treewidth 4: %.0f ms, %s, largest table %lld, %.2g "
              "operations\n",
              time, proof(exact), (long long)exact.largestTable, double(exact.operations));
  time = milliseconds([&] { found = sweep(network); });
  std::printf("  sweep: %.0f ms, %.3g %% dearer\n", time, 100 * (found.cost / exact.cost - 1));
}

/// A halving: 5 ways to cut each operator; chains with residual connections.
void million() {
  Random random(6);
  CostNetwork network;
  const int32_t count = 1000000, options = 5;
  network.options.assign(count, options);
  std::vector<std::vector<double>> kinds;
  for (int32_t kind = 0; kind < 50; ++kind) {
    kinds.emplace_back();
    for (int32_t i = 0; i < options * options; ++i)
      kinds.back().push_back(random.price());
  }
  for (int32_t variable = 1; variable < count; ++variable) {
    network.tables.push_back({{variable - 1, variable}, kinds[random.below(50)]});
    if (variable >= 7 && variable % 7 == 0)
      network.tables.push_back({{variable - 7, variable}, kinds[random.below(50)]});
  }
  Solution found, exact;
  double time = milliseconds([&] { found = sweep(network); });
  std::printf("1000000 operators x 5 options (one halving), sweep: %.0f ms\n", time);
  time = milliseconds([&] { exact = solveExactly(network); });
  std::printf("  exact: %.0f ms, %s; the sweep is %.3g %% dearer\n", time, proof(exact),
              100 * (found.cost / exact.cost - 1));
}

} // namespace

int main() {
  transformers(3);
  moreThanOne(24, 3);
  transformers(6);
  large();
  million();
}
