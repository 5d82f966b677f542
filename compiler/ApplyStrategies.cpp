#include "compiler/ApplyStrategies.h"

#include "dialects/net/Repeat.h"
#include "passes/sharding/Convert.h"
#include "runtime/Nearest.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace msc::compiler {

static bool isNested(net::RepeatOp repeat) {
  return repeat->getParentOfType<net::RepeatOp>() ||
         repeat.getBody().walk([](net::RepeatOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static bool isEqual(const KeptStrategy &a, const KeptStrategy &b) { return a.in == b.in && a.out == b.out; }

static void split(net::RepeatOp repeat, const KeptStrategies &kept) {
  SmallVector<std::vector<std::string>> names; // of each operator in each round
  repeat.getBody().walk([&](net::Operator op) { names.push_back(net::namesInRounds(op, net::getInstanceName(op))); });
  const int64_t start = repeat.firstRound();
  SmallVector<int64_t> borders;
  SmallVector<const KeptStrategy *> now(names.size());
  for (int64_t round = 0; round < repeat.rounds(); ++round) {
    SmallVector<const KeptStrategy *> here(names.size());
    bool differs = false;
    for (auto [list, strategy, before] : llvm::zip(names, here, now)) {
      auto found = kept.find(list[round]);
      strategy = found == kept.end() ? nullptr : &found->second;
      differs |= strategy && before && !isEqual(*strategy, *before);
    }
    if (differs)
      borders.push_back(start + round);
    for (auto [strategy, current] : llvm::zip(here, now))
      if (differs || strategy)
        current = strategy;
  }
  for (int64_t border : llvm::reverse(borders)) {
    IRMapping mapping;
    net::splitBefore(repeat, border, mapping);
  }
}

void splitRounds(ModuleOp module, const KeptStrategies &kept) {
  module.walk([&](net::RepeatOp repeat) {
    if (!isNested(repeat))
      split(repeat, kept);
  });
}

namespace {

class Applying {
public:
  Applying(const KeptStrategies &kept, const std::string &path) : kept(kept), path(path) {}

  Status run(ModuleOp module) {
    splitRounds(module, kept);
    Status status = Status::ok();
    module.walk([&](net::Operator op) {
      if (status && passes::hasRule(op))
        status = apply(op);
    });
    if (!status)
      return status;
    for (const auto &[name, strategy] : kept)
      if (!known.contains(name))
        return unknown(name);
    if (differing > 0)
      emitRemark(first->getLoc()) << differing << (differing == 1 ? " strategy" : " strategies") << " of '" << path << "' "
                                  << (differing == 1 ? "is" : "are") << " not taken: the network has others";
    return Status::ok();
  }

private:
  const KeptStrategies &kept;
  const std::string &path;
  llvm::StringSet<> known; ///< names of operators
  int64_t differing = 0;
  Operation *first = nullptr; ///< that differs

  Status apply(Operation *op) {
    const KeptStrategy *strategy = nullptr;
    std::string from;
    for (std::string &name : net::namesInRounds(op, net::getInstanceName(op))) {
      known.insert(name);
      auto found = kept.find(name);
      if (found == kept.end())
        continue;
      if (strategy && !isEqual(*strategy, found->second))
        return Error{ExitCode::Failed,
                     "'" + from + "' and '" + name + "' have different strategies in '" + path +
                         "', but all rounds of repeats within repeats take one",
                     "give both the same, or write the rounds one after the other"};
      strategy = &found->second;
      from = std::move(name);
    }
    if (strategy)
      take(op, *strategy);
    return Status::ok();
  }

  void take(Operation *op, const KeptStrategy &strategy) {
    if (std::optional<net::Strategy> own = net::getInStrategy(op)) {
      if (*own != strategy.in) {
        ++differing;
        first = first ? first : op;
      }
      return;
    }
    net::setInStrategy(op, strategy.in);
    if (!strategy.out.empty())
      net::setOutStrategy(op, strategy.out);
  }

  Error unknown(const std::string &name) const {
    std::vector<std::string> names;
    for (const auto &entry : known)
      names.push_back(entry.getKey().str());
    std::string near = nearest(name, names);
    return {ExitCode::BadFile, "'" + path + "' has a strategy for '" + name + "', but the network has no such operator",
            near.empty() ? "save the strategies of this network" : "did you mean '" + near + "'?"};
  }
};

} // namespace

Status applyStrategies(ModuleOp module, const KeptStrategies &kept, const std::string &path) {
  return Applying(kept, path).run(module);
}

} // namespace msc::compiler
