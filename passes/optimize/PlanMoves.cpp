// The pass `msc-plan-moves`.
#include "passes/optimize/Passes.h"

#include "passes/partition/MoveSteps.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"

#include "llvm/ADT/SmallVector.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PLANMOVESPASS
#include "passes/optimize/Passes.h.inc"

namespace {

/// A value in one sharding.
struct Version {
  Sharding sharding;
  Value value;
};

/// A sharding in which somebody reads the value; `last` is the step that makes it now. Results of the network may lie
/// anywhere: who fetches them gathers them.
struct Demand {
  Operation *last;
  Sharding sharding;
  bool anywhere;
};

/// How one demand is met: from which version, by which steps.
struct Route {
  size_t source; ///< index into the versions that are there when the demand comes up
  std::vector<dist::ReshardStep> steps;
};

/// All moves of one value that no move made.
class ValueMoves {
public:
  ValueMoves(Value root, dist::ReshardPlanner &planner)
      : root(root), shape(shapeOf(root)), bytes(elementBytesOf(root)), planner(planner) {
    collect(root);
    llvm::sort(demands, [](const Demand &a, const Demand &b) {
      return a.anywhere != b.anywhere ? b.anywhere : a.last->isBeforeInBlock(b.last);
    });
  }

  /// True if the moves were replaced by faster ones.
  bool improve() {
    if (demands.empty())
      return false;
    std::vector<Sharding> there{dist::shardingOf(root)};
    double us = 0;
    for (const Demand &demand : demands)
      us += route(demand, there);
    if (us >= currentUs() * (1 - 1e-9))
      return false;
    rewrite();
    return true;
  }

private:
  Value root;
  Shape shape;
  size_t bytes;
  dist::ReshardPlanner &planner;
  SmallVector<Operation *> moves; // producers before users
  std::vector<Demand> demands;    // in program order, results of the network last
  std::vector<Route> routes;      // of each demand

  void collect(Value value) {
    for (Operation *user : value.getUsers()) {
      if (!isMoveStep(user))
        continue;
      moves.push_back(user);
      Value moved = user->getResult(0);
      auto isReader = [](Operation *reader) { return !isMoveStep(reader); };
      if (llvm::any_of(moved.getUsers(), isReader))
        demands.push_back({user, dist::shardingOf(moved), llvm::all_of(moved.getUsers(), [&](Operation *reader) {
                             return isa<net::ReturnOp>(reader) || !isReader(reader);
                           })});
      collect(moved);
    }
  }

  double currentUs() const {
    double us = 0;
    for (Operation *move : moves)
      us += dist::stepUs(move, planner.machine());
    return us;
  }

  /// The cheapest way from what is there; what it makes on the way is there for later demands.
  double route(const Demand &demand, std::vector<Sharding> &there) {
    if (demand.anywhere)
      for (auto [i, sharding] : llvm::enumerate(there))
        if (!sharding.isPartial()) {
          routes.push_back({i, {}});
          return 0;
        }
    size_t source = 0;
    double best = planner.us(there[0], demand.sharding, shape, bytes);
    for (size_t i = 1; i < there.size(); ++i)
      if (reaches(there[i], demand.sharding))
        if (double us = planner.us(there[i], demand.sharding, shape, bytes); us < best) {
          source = i;
          best = us;
        }
    routes.push_back({source, planner.plan(there[source], demand.sharding, shape, bytes)});
    for (const dist::ReshardStep &step : routes.back().steps)
      there.push_back(step.after);
    return best;
  }

  /// What is completed cannot become partial again.
  static bool reaches(const Sharding &from, const Sharding &to) { return !to.isPartial() || from.partial == to.partial; }

  void rewrite() {
    std::vector<Version> versions{{dist::shardingOf(root), root}};
    for (auto [demand, route] : llvm::zip(demands, routes)) {
      OpBuilder builder(demand.last);
      MoveLabel label = labelOf(demand.last), completing = label;
      if (std::string why = completionReason(demand.last); !why.empty())
        completing.reason = why + "; " + label.reason;
      Value value = versions[route.source].value;
      for (const dist::ReshardStep &step : route.steps) {
        bool completes = step.kind == MoveKind::AllReduce || step.kind == MoveKind::ReduceScatter;
        value = createSteps(builder, value, step, completes ? completing : label);
        versions.push_back({step.after, value});
      }
      demand.last->getResult(0).replaceUsesWithIf(value, [](OpOperand &use) { return !isMoveStep(use.getOwner()); });
    }
    for (Operation *move : llvm::reverse(moves))
      move->erase();
  }

  /// Why the value was completed in front of this redistribution; empty for a completion itself.
  std::string completionReason(Operation *move) const {
    if (labelOf(move).move == "completion")
      return "";
    for (Operation *at = move; at && isMoveStep(at); at = at->getOperand(0).getDefiningOp())
      if (MoveLabel label = labelOf(at); label.move == "completion")
        return label.reason;
    return "";
  }
};

struct PlanMoves : impl::PlanMovesPassBase<PlanMoves> {
  void runOnOperation() override {
    dist::ReshardPlanner planner(dist::machineOf(getOperation()));
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      SmallVector<Value> roots(network.getBody().getArguments());
      for (Operation &op : network.getBody().front())
        if (!isMoveStep(&op))
          roots.append(op.result_begin(), op.result_end());
      for (Value root : roots)
        if (isa<RankedTensorType>(root.getType()) && ValueMoves(root, planner).improve())
          ++valuesPlanned;
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace msc::passes
