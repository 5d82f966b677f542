// The search under a limit on memory, against brute force: the cheapest assignments one after the other until a simulated step fits.
#include "passes/sharding/DatasetStrategy.h"
#include "passes/sharding/SearchParts.h"
#include "passes/sharding/cost/BuildStep.h"
#include "passes/sharding/cost/MemoryMoment.h"
#include "test/Campaign.h"
#include "test/frontend/Reading.h"
#include "test/passes/sharding/Machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;

namespace {

std::string sizes(int64_t rows, int64_t columns) { return "f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]"; }

/// Two or three products with something between them, in a row or in a repeat.
std::string networkOf(std::mt19937_64 &draw, bool repeats) {
  auto size = [&] { return int64_t(1) << (4 + draw() % 8); };
  const int64_t batch = size(), in = size(), hidden = repeats ? in : size(), out = size();
  std::string text = "network n(%x: " + sizes(batch, in) + ", %label: " + sizes(batch, out) + ") {\n" +
                     "  param %w9: " + sizes(hidden, out) + " = Normal(0.02)\n";
  const std::string middle = draw() % 2 ? "ReLU(%m)" : "Sigmoid(%m)";
  if (repeats)
    text += "  %y = repeat i in 0.." + std::to_string(2 + draw() % 3) + " with %t = %x {\n    param %w: " + sizes(in, in) +
            " = Normal(0.02)\n    %m = MatMul(%t, %w) @ \"mm.{i}\"\n    %r = " + middle + " @ \"act.{i}\"\n" +
            (draw() % 2 ? "    %s = Add(%r, %t) @ \"sum.{i}\"\n    yield %s\n  }\n" : "    yield %r\n  }\n");
  else
    text += "  param %w0: " + sizes(in, hidden) + " = Normal(0.02)\n  %m = MatMul(%x, %w0)\n  %y = " + middle + "\n";
  return text + "  %o = MatMul(%y, %w9)\n  %loss = MSELoss(%o, %label)\n  return loss: %loss\n}\n" +
         "train {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}\n";
}

/// Products with operators beside them that read what these read: values with several readers, sums of gradients, kernels that join.
std::string branchesOf(std::mt19937_64 &draw) {
  auto size = [&] { return int64_t(1) << (4 + draw() % 6); };
  const int64_t batch = size(), in = size();
  int64_t columns = in;
  std::string parameters, lines, x = "%x";
  for (int64_t block = 0; block < static_cast<int64_t>(1 + draw() % 2); ++block) {
    const std::string number = std::to_string(block);
    const int64_t out = size();
    parameters += "  param %w" + number + ": " + sizes(columns, out) + " = Normal(0.02)\n";
    lines += "  %a" + number + " = MatMul(" + x + ", %w" + number + ")\n";
    x = "%a" + number;
    for (int64_t i = 0; i < static_cast<int64_t>(1 + draw() % 2); ++i) {
      const std::string y = "%t" + number + "_" + std::to_string(i);
      lines += "  " + y + " = " + std::array{"Tanh", "Sigmoid", "ReLU"}[draw() % 3] + "(" + x + ")\n";
      x = y;
    }
    if (draw() % 5 != 0) {
      lines += "  %s" + number + " = " + (draw() % 2 ? "Add(" : "Mul(") + x + ", %a" + number + ")\n";
      x = "%s" + number;
    }
    columns = out;
  }
  return "network n(%x: " + sizes(batch, in) + ", %label: " + sizes(batch, columns) + ") {\n" + parameters + lines + "  %loss = MSELoss(" + x +
         ", %label)\n  return loss: %loss\n}\ntrain {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}\n";
}

/// Products of one input in two shapes, of sizes that need not divide, with operators that sum over rows.
std::string viewsOf(std::mt19937_64 &draw) {
  const int64_t rows = std::array{12, 36, 64, 100}[draw() % 4], columns = std::array{64, 256, 720}[draw() % 3];
  std::string parameters, lines, total;
  for (int64_t times : {2, 4}) {
    const std::string number = std::to_string(times);
    const int64_t out = std::array{10, 32, 128}[draw() % 3];
    parameters += "  param %w" + number + ": " + sizes(columns / times, out) + " = Normal(0.02)\n";
    lines += "  %r" + number + " = Reshape(%x, (" + std::to_string(rows * times) + ", " + std::to_string(columns / times) + "))\n" +
             "  %a" + number + " = MatMul(%r" + number + ", %w" + number + ")\n  %s" + number + " = " +
             std::array{"Softmax", "Tanh"}[draw() % 2] + "(%a" + number + ")\n  %m" + number + " = ReduceMean(%s" + number + ")\n";
  }
  return "network n(%x: " + sizes(rows, columns) + ") {\n" + parameters + lines +
         "  %loss = Add(%m2, %m4)\n  return loss: %loss\n}\ntrain {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}\n";
}

/// A product behind another shape of what a product made.
std::string reshapedOf(std::mt19937_64 &draw) {
  const int64_t rows = std::array{16, 64, 256}[draw() % 3], columns = std::array{32, 128, 512}[draw() % 3], out = std::array{16, 64}[draw() % 2];
  return "network n(%x: " + sizes(rows, columns) + ", %label: " + sizes(2 * rows, out) + ") {\n  param %w0: " + sizes(columns, columns) +
         " = Normal(0.02)\n  param %w1: " + sizes(columns / 2, out) + " = Normal(0.02)\n  %m = MatMul(%x, %w0)\n  %t = Tanh(%m)\n  %r = Reshape(%t, (" +
         std::to_string(2 * rows) + ", " + std::to_string(columns / 2) + "))\n  %a = MatMul(%r, %w1)\n  %loss = MSELoss(%a, %label)\n" +
         "  return loss: %loss\n}\ntrain {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}\n";
}

/// One of all of these, some operators of which are computed again.
std::string againOf(std::mt19937_64 &draw) {
  const uint64_t kind = draw() % 4;
  std::istringstream text(kind == 0 ? networkOf(draw, true) : kind == 1 ? branchesOf(draw) : kind == 2 ? viewsOf(draw) : reshapedOf(draw));
  std::string marked;
  for (std::string line; std::getline(text, line);) {
    const bool isOperator = line.find(" = ") != std::string::npos && line.ends_with(')') && line.find("param") == std::string::npos;
    marked += line + (isOperator && !line.starts_with("  %loss") && draw() % 2 ? " {recompute: true}\n" : "\n");
  }
  return marked;
}

/// Products, and behind all of them what sums over their rows, which may run with them; nothing is trained.
std::string sumsOf(std::mt19937_64 &draw) {
  const int64_t rows = std::array{64, 256, 1024}[draw() % 3], columns = std::array{4, 16, 48}[draw() % 3];
  std::string parameters, products, sums, total;
  for (uint64_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    parameters += "  param %w" + number + ": " + sizes(columns, std::array{120, 512, 768}[draw() % 3]) + " = Normal(0.02)\n  param %v" + number + ": " +
                  sizes(1, 8) + " = Normal(0.5)\n";
    products += "  %h" + number + " = MatMul(%x, %w" + number + ")\n";
    sums += "  %a" + number + " = ReduceSum(%h" + number + ", axis: [1], keep_dims: true)\n  %g" + number + " = MatMul(%a" + number + ", %v" + number + ")\n";
    if (i > 0)
      sums += "  %s" + number + " = Add(" + total + ", %g" + number + ")\n";
    total = (i > 0 ? "%s" : "%g") + number;
  }
  return "network n(%x: " + sizes(rows, columns) + ") {\n" + parameters + products + sums + "  return sum: " + total + "\n}\n";
}

/// One of these in bf16: operators compute in f32 between casts.
std::string narrowOf(std::mt19937_64 &draw) {
  const uint64_t kind = draw() % 4;
  std::string text = kind == 0 ? networkOf(draw, draw() % 2 != 0) : kind == 1 ? branchesOf(draw) : kind == 2 ? viewsOf(draw) : sumsOf(draw);
  for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos; at += 5)
    text.replace(at, 3, "bf16");
  return text;
}

/// A network with its model.
struct Prepared {
  Prepared(const std::string &text, int64_t devices)
      : reading(text, {.devices = devices, .layerLibrary = LIBRARY_FOLDER, .keepRepeats = true}), planner(quick()) {
    EXPECT_TRUE(reading.module) << reading.said;
    reading.context.getOrLoadDialect<dist::DistDialect>()->setMachine(quick());
    net::NetworkOp network = *reading.module->getOps<net::NetworkOp>().begin();
    auto config = net::readConfig(*reading.module);
    problem = problemOf(network, devices, /*joinAlike=*/false, members,
                        {.minimize = "loss", .inBuckets = devices % 4 == 0, .train = config->train});
    std::vector<InputFacts> inputs;
    for (size_t i = 0; i < network.getBody().getNumArguments(); ++i)
      inputs.push_back({problem.tensors[i].name, problem.tensors[i].shape});
    auto shardings = datasetShardings(inputs, "data_parallel", devices, false);
    for (size_t i = 0; i < inputs.size(); ++i)
      problem.tensors[i].dataset = std::get<std::vector<Sharding>>(shardings)[i];
    model.emplace(modelOf(problem, members, planner));
  }

  double arena(const SearchResult &result, std::optional<double> limit = {}) {
    return static_cast<double>(StepLives(eventsOf(problem, *model, result, planner)).memory(limit).arena());
  }

  Reading reading;
  dist::ReshardPlanner planner;
  std::vector<Members> members;
  Problem problem;
  std::optional<StepModel> model;
};

/// All assignments that are cheap, ascending, with what they need; of repeats with rounds one after the other.
std::vector<SearchResult> cheapest(Prepared &network, size_t count) {
  network.model->makeAllExact();
  RoundsModel rounds(network.problem, *network.model);
  std::vector<SearchResult> results;
  const search::RepeatedNetwork costs = rounds.network();
  const search::Unrolled unrolled = search::unroll(costs);
  for (const search::Solution &solution : search::bestAssignments(unrolled.network, count)) {
    const search::RepeatedChoice choice = search::rolled(costs, unrolled, solution.choice);
    SearchResult result = resultOf(network.problem, *network.model, rounds, {choice, {.choice = choice.choice, .cost = solution.cost}});
    result.arenaBytes = network.arena(result);
    results.push_back(std::move(result));
  }
  return results;
}

struct Family {
  const char *name;
  std::string (*draw)(std::mt19937_64 &);
};
class SearchWithin : public testing::TestWithParam<Family> {};
INSTANTIATE_TEST_SUITE_P(Networks, SearchWithin,
                         testing::Values(Family{"Flat", [](std::mt19937_64 &draw) { return networkOf(draw, false); }},
                                         Family{"Repeated", [](std::mt19937_64 &draw) { return networkOf(draw, true); }},
                                         Family{"Branches", branchesOf}, Family{"Views", viewsOf}, Family{"Again", againOf},
                                         Family{"Narrow", narrowOf}),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(SearchWithin, FindsWhatBruteForceFinds) {
  int64_t limits = 0, found = 0, best = 0, close = 0, certified = 0;
  for (uint64_t seed = 1; seed <= campaignCases(5, 40); ++seed) {
    std::mt19937_64 draw(seed);
    const int64_t devices = std::array{2, 4, 8, 6}[draw() % 4];
    const std::string text = GetParam().draw(draw);
    Prepared brute(text, devices);
    const std::vector<SearchResult> all = cheapest(brute, 3000);
    const auto [least, most] = std::ranges::minmax(all, {}, &SearchResult::arenaBytes);
    for (double share : {0.0, 0.1, 0.3, 0.6, 0.9}) {
      const double limit = std::floor(least.arenaBytes + share * (all.front().arenaBytes - least.arenaBytes));
      if (limit >= all.front().arenaBytes)
        continue;
      const auto expected = std::ranges::find_if(all, [&](const SearchResult &result) { return result.arenaBytes <= limit; });
      Prepared asked(text, devices);
      const SearchResult result = searchWithin(asked.problem, *asked.model, limit, asked.planner).front();
      const std::string at = "seed " + std::to_string(seed) + ", limit " + std::to_string(limit) + " of " + std::to_string(all.front().arenaBytes) + "\n" + text;
      ++limits;
      ASSERT_EQ(result.arenaBytes, asked.arena(result, limit)) << at;
      ASSERT_LE(result.leastBytes, limit) << "said that nothing fits\n" << at;
      ASSERT_LE(result.boundUs, expected->us * (1 + 1e-9)) << "not a bound\n" << at;
      if (result.arenaBytes > limit)
        continue;
      ++found;
      best += result.us <= expected->us * (1 + 1e-9);
      close += result.us <= expected->us * 1.01;
      certified += result.us <= result.boundUs * 1.01;
    }
  }
  std::printf("%ld limits: a plan for %ld, the fastest for %ld, within 1 %% for %ld, proven within 1 %% for %ld\n", limits, found, best, close, certified);
  EXPECT_EQ(found, limits);
  EXPECT_GE(static_cast<double>(close), 0.99 * static_cast<double>(limits));
  EXPECT_GE(static_cast<double>(certified), 0.9 * static_cast<double>(limits));
}

} // namespace
