// The pass `msc-reuse-statistics`.
#include "passes/optimize/Passes.h"

#include "passes/partition/Passes.h"
#include "passes/partition/Statistics.h"
#include "passes/sharding/Convert.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_REUSESTATISTICSPASS
#include "passes/optimize/Passes.h.inc"

namespace {

/// Numbers values by how they are computed: values with one number are equal, whether one of them is kept or not.
class Reuse {
public:
  explicit Reuse(net::NetworkOp network) : network(network) {}

  int64_t run() {
    int64_t reused = 0;
    for (Operation &op : llvm::make_early_inc_range(network.getBody().front())) {
      if (op.getNumResults() == 0 || !isPure(&op)) {
        number(op.getResults(), nextNumber);
        nextNumber += op.getNumResults();
        continue;
      }
      auto [known, isNew] = seen.try_emplace(keyOf(&op), Entry{&op, nextNumber});
      if (isNew)
        nextNumber += op.getNumResults();
      number(op.getResults(), known->second.first);
      bool areStatistics = llvm::all_of(op.getResults(), [&](Value result) { return isSmall(&op, result); });
      if (areStatistics)
        small.insert(op.getResults().begin(), op.getResults().end());
      if (isNew || !areStatistics || isa<net::ConstantOp>(op) || hasName(&op))
        continue;
      op.replaceAllUsesWith(known->second.op->getResults());
      op.erase();
      ++reused;
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(network.getBody().front())))
      if (isPure(&op) && op.getNumResults() > 0 && op.use_empty() && reused > 0)
        op.erase(); // what only led to statistics that are there already
    return reused;
  }

private:
  struct Entry {
    Operation *op;
    int64_t first; ///< number of its first result
  };
  using Key = std::vector<const void *>;

  net::NetworkOp network;
  DenseMap<Value, int64_t> numbers;
  DenseSet<Value> small;
  std::map<Key, Entry> seen;
  int64_t nextNumber = 1;

  void number(ValueRange values, int64_t first) {
    for (auto [i, value] : llvm::enumerate(values))
      numbers[value] = first + static_cast<int64_t>(i);
  }

  /// Inputs have no number yet.
  int64_t numberOf(Value value) {
    auto [at, isNew] = numbers.try_emplace(value, nextNumber);
    nextNumber += isNew;
    return at->second;
  }

  /// What the operator computes: its name, attributes that say what (not why, where or for whom), types and operands.
  Key keyOf(Operation *op) {
    Key key{op->getName().getAsOpaquePointer()};
    for (StringAttr name : op->getName().getAttributeNames())
      if (Attribute value = op->getAttr(name); value && name != "move" && name != "reason")
        key.insert(key.end(), {name.getAsOpaquePointer(), value.getAsOpaquePointer()});
    for (Type type : op->getResultTypes())
      key.push_back(type.getAsOpaquePointer());
    for (Value operand : op->getOperands())
      key.push_back(reinterpret_cast<const void *>(numberOf(operand)));
    return key;
  }

  /// Results that users named stay what they are.
  static bool hasName(Operation *op) {
    return llvm::any_of(op->getResults(), [](Value result) { return !net::getValueName(result).empty(); });
  }

  bool isSmall(Operation *op, Value result) const {
    std::vector<ComputedFrom> operands;
    for (Value operand : op->getOperands())
      operands.push_back({elementCount(shapeOf(operand)), small.contains(operand)});
    return isStatistic(elementCount(shapeOf(result)), operands);
  }
};

struct ReuseStatistics : impl::ReuseStatisticsPassBase<ReuseStatistics> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      statisticsReused += Reuse(network).run();
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace msc::passes
