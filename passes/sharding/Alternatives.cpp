#include "passes/sharding/Alternatives.h"

#include "dialects/net/Repeat.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/cost/BuildStep.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <tuple>

using namespace mlir;

namespace msc::passes {

Alternatives::Alternatives(net::NetworkOp network, const TrainingFacts &training, Freedom freedom, StringRef asked) {
  int64_t devices = getDevices(network);
  facts = problemOf(network, devices, /*joinAlike=*/true, operations, training);
  for (auto [tensor, sharding] : llvm::zip(facts.tensors, getInputShardings(network)))
    tensor.dataset = sharding;
  for (auto [i, ops] : llvm::enumerate(operations)) {
    const ProblemOperator &entry = facts.operators[i];
    Operation *op = ops.front();
    named.try_emplace(entry.name, i); // for all rounds
    std::vector<std::string> all;
    bool isAlike = llvm::all_of(ops, [&](Operation *member) { return net::getInStrategy(member) == net::getInStrategy(op); });
    for (Operation *member : ops)
      llvm::append_range(all, net::namesInRounds(member, net::getInstanceName(member)));
    for (auto [round, name] : llvm::enumerate(all)) {
      named.try_emplace(name, i);
      if (all.size() > 1 && isAlike)
        inRounds[name] = {all.front(), static_cast<int64_t>(round), static_cast<int64_t>(all.size())};
    }
    auto inFirst = [&](StringRef text) {
      std::vector<std::string> rounds = net::namesInRounds(op, text);
      return rounds.empty() ? text.str() : rounds.front();
    };
    names.push_back(inFirst(entry.name));
    origins.push_back(passes::isByUser(op) ? "user" : inFirst(net::getStrategyOrigin(op)));
    taken.push_back(std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(op), devices, /*mayBeEmpty=*/true)));
  }
  std::optional<size_t> free = find(asked);
  for (size_t op = 0; op < operations.size(); ++op)
    giveChoice(op, freedom, free == op);
  planner = std::make_unique<dist::ReshardPlanner>(facts.machine);
  priced = std::make_unique<StepModel>(modelOf(facts, operations, *planner));
  known.resize(operations.size());
}

void Alternatives::giveChoice(size_t op, Freedom freedom, bool isAsked) {
  ProblemOperator &entry = facts.operators[op];
  if (passes::isByUser(operations[op].front())) {
    entry.configured = taken[op];
    if (auto out = net::getOutStrategy(operations[op].front()))
      takeOutStrategy(entry, *out, facts.devices);
    if (freedom != Freedom::All && !isAsked)
      return;
  }
  if (freedom == Freedom::Few || freedom == Freedom::None)
    entry.among = {taken[op]};
  else if (entry.configured)
    entry.among = candidates(entry.facts, facts.devices);
  if (freedom == Freedom::Few)
    entry.among.push_back(cheapestOfMost(op));
  if (!entry.among.empty() && !llvm::is_contained(entry.among, taken[op]))
    entry.among.push_back(taken[op]);
  if (entry.among.size() == 2 && entry.among[0] == entry.among[1])
    entry.among.pop_back();
}

/// Of the strategies that use most devices the one under which the operator itself takes least.
Pieces Alternatives::cheapestOfMost(size_t op) const {
  const ProblemOperator &entry = facts.operators[op];
  std::tuple<int64_t, double, Pieces> best{0, 0, taken[op]};
  for (const Pieces &pieces : candidates(entry.facts, facts.devices)) {
    Placement at = placementOf(entry.facts, pieces, facts.devices);
    std::vector<Shape> operands, results;
    for (auto [shape, sharding] : llvm::zip(entry.facts.operandShapes, at.operands))
      operands.push_back(sharding.capacity(shape));
    for (auto [shape, sharding] : llvm::zip(entry.facts.resultShapes, at.results))
      results.push_back(sharding.capacity(shape));
    best = std::min(best, {-devicesUsed(pieces), entry.localUs ? entry.localUs(operands, results) : 0, pieces});
  }
  return std::get<Pieces>(best);
}

std::optional<size_t> Alternatives::find(StringRef name) const {
  auto found = named.find(name);
  return found == named.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> Alternatives::chosenOption(size_t op) const {
  const std::vector<Pieces> &pieces = priced->options(op).pieces;
  auto found = llvm::find(pieces, taken[op]);
  return found == pieces.end() ? std::nullopt : std::optional<size_t>(found - pieces.begin());
}

std::string Alternatives::strategyText(size_t op, const Pieces &pieces) const {
  return net::strategyText(inStrategy(facts.operators[op].facts.rule, pieces));
}

const Alternative *Alternatives::cheapest(size_t op, llvm::function_ref<bool(const OperatorOptions &, size_t)> passes) {
  const OperatorOptions &options = priced->options(op);
  llvm::StringSet<> good;
  for (size_t option = 0; option < options.pieces.size(); ++option)
    if (passes(options, option))
      good.insert(strategyText(op, options.pieces[option]));
  for (const Alternative &alternative : of(op))
    if (good.contains(alternative.inStrategy))
      return &alternative;
  return nullptr;
}

/// The network with one option of a variable left.
static void tie(search::CostNetwork &network, int32_t variable, int32_t option) {
  for (search::Table &table : network.tables) {
    auto at = llvm::find(table.scope, variable);
    if (at == table.scope.end())
      continue;
    size_t inner = 1;
    for (int32_t other : llvm::make_range(at + 1, table.scope.end()))
      inner *= network.options[other];
    size_t block = inner * network.options[variable], outer = table.costs.size() / block;
    for (size_t i = 0; i < outer; ++i)
      std::copy_n(table.costs.begin() + i * block + option * inner, inner, table.costs.begin() + i * inner);
    table.costs.resize(outer * inner);
  }
  for (search::SharedCost &shared : network.shared) {
    if (shared.producer == variable)
      shared.producerClass = {shared.producerClass[option]};
    for (search::SharedCost::Reader &reader : shared.readers)
      if (reader.variable == variable)
        reader.items = {std::vector<int32_t>(reader.items[option])};
  }
  network.options[variable] = 1;
}

/// Operators of the user have what the user gave, but for `op`.
search::CostNetwork Alternatives::networkFor(size_t op) const {
  search::CostNetwork network = priced->network();
  for (size_t other = 0; other < operations.size(); ++other)
    if (other != op && facts.operators[other].configured)
      tie(network, static_cast<int32_t>(other), static_cast<int32_t>(*chosenOption(other)));
  return network;
}

double Alternatives::us() {
  while (true) {
    search::CostNetwork network = priced->network();
    for (size_t op = 0; op < operations.size(); ++op)
      if (std::optional<size_t> option = chosenOption(op))
        tie(network, static_cast<int32_t>(op), static_cast<int32_t>(*option));
    search::Solution found = search::solveExactly(network);
    for (size_t op = 0; op < operations.size(); ++op)
      if (std::optional<size_t> option = chosenOption(op))
        found.choice[op] = static_cast<int32_t>(*option);
    if (!priced->makeExact(found.choice))
      return found.cost;
  }
}

/// The cheapest assignment for each option of an operator; what it pays is priced exactly.
std::vector<search::Solution> Alternatives::solutionsOf(size_t op) {
  while (true) {
    std::vector<search::Solution> solutions = search::assignmentsOfOptions(networkFor(op), static_cast<int32_t>(op));
    std::vector<search::Choice> choices;
    for (search::Solution &solution : solutions)
      if (!solution.choice.empty()) {
        for (size_t other = 0; other < operations.size(); ++other)
          if (other != op && facts.operators[other].configured)
            solution.choice[other] = static_cast<int32_t>(*chosenOption(other));
        choices.push_back(solution.choice);
      }
    if (!priced->makeExact(choices))
      return solutions;
  }
}

const std::vector<Alternative> &Alternatives::of(size_t op) {
  if (known[op])
    return *known[op];
  std::vector<Alternative> &list = known[op].emplace();
  for (const auto &[pieces, solution] : llvm::zip(priced->options(op).pieces, solutionsOf(op)))
    if (double us = solution.cost; std::isfinite(us))
      list.push_back({strategyText(op, pieces), us, pieces == taken[op]});
  llvm::sort(list, [](const Alternative &a, const Alternative &b) { return std::tie(a.us, a.inStrategy) < std::tie(b.us, b.inStrategy); });
  return list;
}

} // namespace msc::passes
