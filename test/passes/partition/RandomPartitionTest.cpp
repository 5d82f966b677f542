// Random networks under random strategies: the partitioned training step, run on all ranks, gives the numbers of the
// same step on global tensors. Prints what it covered.
#include "dialects/net/NetOps.h"
#include "passes/optimize/Passes.h"
#include "passes/partition/MoveSteps.h"
#include "passes/sharding/Convert.h"
#include "test/passes/partition/RandomNetwork.h"
#include "test/passes/partition/RankInterpreter.h"
#include "test/passes/partition/TrainStep.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

using namespace mlir;
using namespace msc;
using namespace msc::test;

namespace {

/// What the networks of one run contained.
struct Coverage {
  int64_t networks = 0, uneven = 0, partialSums = 0, exchanges = 0; ///< the last: of operators that copy regions
  int64_t buckets = 0, linear = 0;
  /// Modelled time of moves as 18_execute shows it, with all moves of a value planned together, with buckets.
  double us = 0, optimizedUs = 0, fusedUs = 0;
  std::map<std::string, int64_t> operators, moves;
};

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

void count(TestNetwork &net, Coverage &coverage) {
  bool uneven = false;
  for (Operation &op : net.network.getBody().front()) {
    if (auto move = dyn_cast<dist::CollectiveOp>(op))
      ++coverage.moves[dist::stringifyCollectiveKind(move.getKind()).str()];
    else if (isa<dist::SliceOp>(op))
      ++coverage.moves["StridedSlice"];
    else if (passes::hasRule(&op))
      ++coverage.operators[op.getName().stripDialect().str()];
    for (Value result : op.getResults())
      uneven |= !dist::shardingOf(result).isEven(passes::shapeOf(result));
    if (isa<net::AddOp>(op) && dist::shardingOf(op.getOperand(0)).isPartial())
      ++coverage.partialSums;
  }
  ++coverage.networks;
  coverage.uneven += uneven;
}

void countScatters(TestNetwork &net, Coverage &coverage) {
  for (auto move : net.network.getBody().front().getOps<dist::CollectiveOp>())
    coverage.moves["ReduceScatter"] += move.getKind() == dist::CollectiveKind::ReduceScatter;
}

void countFused(TestNetwork &net, Coverage &coverage) {
  std::set<int64_t> buckets;
  for (auto move : net.network.getBody().front().getOps<dist::CollectiveOp>())
    if (std::optional<int64_t> fusion = dist::fusionOf(move))
      buckets.insert(*fusion);
  coverage.buckets += static_cast<int64_t>(buckets.size());
}

/// Operands that are partial where operators compute with them.
int64_t partialOperands(TestNetwork &net) {
  int64_t count = 0;
  for (Operation &op : net.network.getBody().front())
    if (passes::hasRule(&op))
      for (Value operand : op.getOperands())
        count += dist::shardingOf(operand).isPartial();
  return count;
}

/// Modelled time of all collectives and slices.
double movesUs(TestNetwork &net) {
  double us = 0;
  for (Operation &op : net.network.getBody().front())
    if (passes::isMoveStep(&op))
      us += dist::stepUs(&op, MachineModel::cpuLocal());
  return us;
}

/// Runs the step on all ranks and compares `checked`, the results and the new parameters with one device.
std::string checkRanks(TestNetwork &net, const reference::Tensors &given, const reference::Step &expected,
                       ArrayRef<Value> checked, Coverage &coverage) {
  RankInterpreter ranks(net.network);
  if (std::string wrong = ranks.run(given); !wrong.empty())
    return wrong;
  coverage.exchanges += ranks.exchanges;
  for (Value value : checked)
    if (!dist::shardingOf(value).isPartial())
      if (std::string wrong = compareShards(value, ranks.values[value], expected.values.at(value)); !wrong.empty())
        return "'" + net::getValueName(value).str() + "' " + wrong;
  // What a return or an update reads has been moved: compare it as it arrives.
  for (Operation &op : net.network.getBody().front())
    if (auto update = dyn_cast<net::UpdateOp>(op)) {
      std::string name = update.getParameter().getDefiningOp<net::ParamOp>().getName().str();
      Value value = update.getNewValue();
      if (std::string wrong = compareShards(value, ranks.values[value], expected.updated.at(name)); !wrong.empty())
        return "new '" + name + "' " + wrong;
    } else if (auto results = dyn_cast<net::ReturnOp>(op)) {
      for (auto [value, name] : llvm::zip(results.getValues(), results.getNames().getAsValueRange<StringAttr>()))
        if (std::string wrong = compareShards(value, ranks.values[value], expected.outputs.at(name.str()));
            !wrong.empty())
          return "result '" + name.str() + "' " + wrong;
    }
  return "";
}

/// Results of operators that others stand for are those of others then.
bool staysItself(Value value) {
  auto lower = value.getDefiningOp() ? dyn_cast<net::Lower>(value.getDefiningOp()) : net::Lower();
  return !lower || lower.loweringKind() != net::LoweringKind::Expanded;
}

/// One network; returns what is wrong.
std::string runOne(uint64_t seed, int64_t devices, const char *mode, Coverage &coverage) {
  NetContext context;
  loadDist(context);
  TestNetwork net(context);
  RandomNetwork made(net, seed);
  bool chooses = StringRef(mode) != "data_parallel";
  if (chooses)
    made.configure(devices, seed % 3 == 0 ? 1.0 : 0.3);
  passes::AssignStrategiesPassOptions options;
  options.devices = devices;
  options.parallelMode = mode;
  bool smallBatch = passes::shapeOf(net.network.getBody().getArgument(0))[0] < devices;
  if (smallBatch && !chooses)
    return "";
  options.datasetStrategy = smallBatch || seed % 5 == 0 ? "full_batch" : "data_parallel";
  if (!chooses)
    options.datasetStrategy = "data_parallel";
  if (!assignStrategies(net, options) || !addTraining(net))
    return "strategies or backward: " + joined(context.diagnostics);
  reference::Tensors given = made.values();
  auto expected = reference::Interpreter().run(net.network, given);
  if (failed(expected))
    return "reference: " + joined(context.diagnostics);
  SmallVector<Value> checked; // values stay the same objects in the partitioned network
  for (Operation &op : net.network.getBody().front())
    if (isa<net::UpdateOp, net::ReturnOp>(op) || net::getPhase(&op) == net::Phase::Forward)
      llvm::copy_if(op.getOperands(), std::back_inserter(checked), staysItself);
  if (!partitionAssigned(net))
    return "partition: " + joined(context.diagnostics);
  count(net, coverage);
  if (std::string wrong = checkRanks(net, given, *expected, checked, coverage); !wrong.empty())
    return wrong;
  coverage.us += movesUs(net);
  int64_t before = partialOperands(net);
  if (!keepPartials(net))
    return "terms of sums: " + joined(context.diagnostics);
  coverage.linear += partialOperands(net) - before;
  if (std::string wrong = checkRanks(net, given, *expected, checked, coverage); !wrong.empty())
    return "with linear operators on terms: " + wrong;
  if (!optimizeMoves(net))
    return "moves: " + joined(context.diagnostics);
  coverage.optimizedUs += movesUs(net);
  countScatters(net, coverage);
  if (std::string wrong = checkRanks(net, given, *expected, checked, coverage); !wrong.empty())
    return "with moves planned together: " + wrong;
  if (!fuseCollectives(net))
    return "fusion: " + joined(context.diagnostics);
  countFused(net, coverage);
  coverage.fusedUs += passes::communicationOf(net.network).us;
  if (std::string wrong = checkRanks(net, given, *expected, checked, coverage); !wrong.empty())
    return "with gradient collectives in buckets: " + wrong;
  return "";
}

TEST(RandomPartition, GivesTheNumbersOfOneDevice) {
  Coverage coverage;
  uint64_t networks = std::getenv("MSC_LONG") ? 20000 : 2000;
  const int64_t devices[] = {1, 2, 3, 4, 6, 8};
  const char *modes[] = {"auto_parallel", "auto_parallel", "semi_auto_parallel", "data_parallel"};
  for (uint64_t seed = 1; seed <= networks; ++seed) {
    std::string wrong = runOne(seed, devices[seed % 6], modes[(seed / 6) % 4], coverage);
    ASSERT_EQ(wrong, "") << "seed " << seed << ", " << devices[seed % 6] << " devices, " << modes[(seed / 6) % 4];
  }
  std::cout << coverage.networks << " networks, " << coverage.uneven << " with uneven pieces, " << coverage.partialSums
            << " additions of partial values, " << coverage.exchanges << " exchanges within operators; moves planned together take " << coverage.optimizedUs / coverage.us
            << " of the modelled time, " << coverage.buckets << " buckets of gradient collectives bring it to "
            << coverage.fusedUs / coverage.us << "; " << coverage.linear << " operands were left partial\n";
  for (const auto *table : {&coverage.operators, &coverage.moves})
    for (const auto &[name, times] : *table)
      std::cout << "  " << name << " " << times << "\n";
  EXPECT_GE(coverage.buckets, 50);
  EXPECT_GE(coverage.linear, 10);
  EXPECT_LT(coverage.fusedUs, coverage.optimizedUs);
  EXPECT_GT(coverage.uneven * 10, coverage.networks * 3);
  EXPECT_GE(coverage.partialSums, 20);
  EXPECT_GE(coverage.exchanges, 500);
  EXPECT_LT(coverage.optimizedUs, coverage.us);
  for (const char *move : {"AllReduce", "ReduceScatter", "AllGather", "AlltoAll", "CollectivePermute", "Exchange", "StridedSlice"})
    EXPECT_GE(coverage.moves[move], StringRef(move) == "CollectivePermute" ? 10 : 20) << move;
}

} // namespace
