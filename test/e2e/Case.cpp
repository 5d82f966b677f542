#include "test/e2e/Case.h"

#include "passes/sharding/Convert.h"
#include "test/e2e/Reading.h"

#include <algorithm>

namespace msc::e2e {

/// A random divisor of `number`.
static int64_t divisorOf(int64_t number, Random &random) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d)
    if (number % d == 0)
      divisors.push_back(d);
  return random.pick(divisors);
}

/// Chooses strategies operator by operator.
class StrategyChooser {
public:
  StrategyChooser(int64_t devices, Random &random) : devices(devices), random(random) {}

  /// A legal strategy of an operator by its rule, more often one that uses all devices; empty if there is none.
  std::string choose(mlir::Operation *op) {
    passes::OperatorFacts facts = passes::factsOf(op);
    std::vector<passes::Pieces> legal = passes::candidates(facts, devices);
    if (legal.empty())
      return "";
    if (random.chance(70))
      keepIf(legal, [&, most = mostDevices(legal)](const auto &pieces) { return passes::devicesUsed(pieces) == most; });
    // The pieces of the producer in another order of devices are what only a permutation of ranks can bring together.
    if (auto found = resultPieces.find(op->getOperand(0)); found != resultPieces.end() && random.chance(50))
      keepIf(legal, [&](const auto &pieces) { return passes::inStrategy(facts.rule, pieces)[0] == found->second; });
    passes::Pieces chosen = random.pick(legal);
    resultPieces[op->getResult(0)] = passes::outStrategy(facts.rule, chosen)[0];
    std::string text = net::strategyText(passes::inStrategy(facts.rule, chosen));
    return random.chance(15) ? text + ", out_strategy: " + outStrategy(facts) : text;
  }

private:
  /// Any pieces of the results that the devices can hold.
  std::string outStrategy(const passes::OperatorFacts &facts) {
    net::Strategy strategy;
    for (const passes::Shape &shape : facts.resultShapes) {
      int64_t left = devices;
      std::vector<int64_t> &pieces = strategy.emplace_back();
      for (int64_t size : shape) {
        int64_t count = divisorOf(left, random);
        pieces.push_back(count <= std::max<int64_t>(size, 1) ? count : 1);
        left /= pieces.back();
      }
    }
    return net::strategyText(strategy);
  }

  static int64_t mostDevices(const std::vector<passes::Pieces> &list) {
    int64_t most = 0;
    for (const passes::Pieces &pieces : list)
      most = std::max(most, passes::devicesUsed(pieces));
    return most;
  }

  /// Narrows a list, unless nothing would be left.
  template <typename F> static void keepIf(std::vector<passes::Pieces> &list, F keep) {
    if (std::any_of(list.begin(), list.end(), keep))
      std::erase_if(list, [&](const passes::Pieces &pieces) { return !keep(pieces); });
  }

  int64_t devices;
  Random &random;
  llvm::DenseMap<mlir::Value, std::vector<int64_t>> resultPieces;
};

/// Strategies of a random part of the operators.
static std::map<std::string, std::string> randomStrategies(net::NetworkOp network, int64_t devices, Random &random) {
  std::map<std::string, std::string> strategies;
  StrategyChooser chooser(devices, random);
  int64_t percent = random.pick<int64_t>({0, 20, 50, 50, 90});
  for (mlir::Operation &op : network.getBody().front())
    if (op.getNumResults() > 0 && op.getNumOperands() > 0 && passes::hasRule(&op) && random.chance(percent))
      if (std::string text = chooser.choose(&op); !text.empty())
        strategies[net::getValueName(op.getResult(0)).str()] = text;
  return strategies;
}

/// Pieces per dimension per input.
static std::string datasetPieces(const Network &network, int64_t devices, Random &random) {
  net::Strategy strategy;
  for (const Value &input : network.inputs) {
    int64_t left = devices;
    std::vector<int64_t> pieces;
    for (int64_t size : input.shape) {
      int64_t count = random.chance(50) ? divisorOf(left, random) : 1;
      pieces.push_back(count <= size ? count : 1);
      left /= pieces.back();
    }
    strategy.push_back(pieces);
  }
  return net::strategyText(strategy);
}

/// Whether every rank gets a sample: fewer samples than devices are an error.
static bool takesDataParallel(const Network &network, int64_t devices) {
  return std::all_of(network.inputs.begin(), network.inputs.end(),
                     [&](const Value &input) { return !input.shape.empty() && input.shape[0] >= devices; });
}

static std::string contextText(const Case &test, const Network &network, Random &random) {
  std::string text = "parallel_mode: " + test.mode;
  if (test.mode == "auto_parallel" && random.chance(70))
    text += ", search_mode: " + random.pick<std::string>({"sharding_propagation", "optimal"});
  if (test.mode != "auto_parallel" && test.mode != "semi_auto_parallel")
    return text;
  if (takesDataParallel(network, test.devices) && random.chance(60))
    return text + ", dataset_strategy: data_parallel";
  return text + ", dataset_strategy: " +
         (random.chance(50) ? datasetPieces(network, test.devices, random) : std::string("full_batch"));
}

Result<Case> makeCase(uint64_t seed) {
  Random random(seed);
  Case test;
  test.seed = seed;
  test.devices = random.pick<int64_t>({1, 2, 2, 3, 3, 4, 4, 6, 6, 6, 8, 8, 8});
  test.mode = random.pick<std::string>({"auto_parallel", "auto_parallel", "auto_parallel", "auto_parallel",
                                        "semi_auto_parallel", "semi_auto_parallel", "semi_auto_parallel",
                                        "data_parallel", "data_parallel", "stand_alone"});
  Network network = generateNetwork(random);
  while (std::ranges::all_of(network.parameters, [](const Value &parameter) { return parameter.state; })) // nothing to train
    network = generateNetwork(random);
  test.type = network.type;
  if (test.mode == "data_parallel" && !takesDataParallel(network, test.devices))
    test.mode = random.chance(50) ? "auto_parallel" : "semi_auto_parallel";
  Reading reading(network.text({}, "parallel_mode: stand_alone"), test.devices);
  if (!reading.module)
    return Error{ExitCode::Internal, "the generator wrote no network:\n" + reading.said + network.text({}, ""), ""};
  std::map<std::string, std::string> strategies;
  if (test.devices > 1 && (test.mode == "auto_parallel" || test.mode == "semi_auto_parallel"))
    strategies = randomStrategies(reading.network(), test.devices, random);
  test.strategies = strategies.size();
  test.text = network.text(strategies, contextText(test, network, random));
  for (const Node &node : network.nodes)
    if (node.name != "loss" && random.chance(10))
      test.keep.push_back("%" + node.name);
  return test;
}

} // namespace msc::e2e
