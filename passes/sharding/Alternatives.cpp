#include "passes/sharding/Alternatives.h"

#include "dialects/net/Repeat.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/cost/BuildStep.h"

#include <cmath>
#include <tuple>

using namespace mlir;

namespace msc::passes {

static bool isCalled(Operation *op, StringRef name) {
  return llvm::is_contained(net::namesInRounds(op, net::getInstanceName(op)), name);
}

std::vector<Alternative> alternativesOf(net::NetworkOp network, StringRef name, const TrainingFacts &training) {
  int64_t devices = getDevices(network);
  std::vector<Members> members;
  Problem problem = problemOf(network, devices, /*joinAlike=*/true, members, training);
  for (auto [tensor, sharding] : llvm::zip(problem.tensors, getInputShardings(network)))
    tensor.dataset = sharding;
  std::optional<size_t> asked;
  for (auto [i, ops] : llvm::enumerate(members)) {
    ProblemOperator &entry = problem.operators[i];
    Operation *op = ops.front();
    if (llvm::any_of(ops, [&](Operation *member) { return isCalled(member, name); }))
      asked = i;
    else if (isByUser(op)) {
      entry.configured = std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(op), devices, /*mayBeEmpty=*/true));
      if (auto out = net::getOutStrategy(op))
        takeOutStrategy(entry, *out, devices);
    }
  }
  if (!asked)
    return {};
  dist::ReshardPlanner planner(problem.machine);
  StepModel model = modelOf(problem, members, planner);
  model.makeAllExact();
  std::vector<double> costs = search::costsOfOptions(model.network(), static_cast<int32_t>(*asked));
  std::optional<net::Strategy> chosen = net::getInStrategy(members[*asked].front());
  std::vector<Alternative> list;
  for (auto [pieces, us] : llvm::zip(model.options(*asked).pieces, costs)) {
    net::Strategy strategy = inStrategy(problem.operators[*asked].facts.rule, pieces);
    if (std::isfinite(us))
      list.push_back({net::strategyText(strategy), us, chosen && strategy == *chosen});
  }
  llvm::sort(list, [](const Alternative &a, const Alternative &b) { return std::tie(a.us, a.inStrategy) < std::tie(b.us, b.inStrategy); });
  return list;
}

} // namespace msc::passes
