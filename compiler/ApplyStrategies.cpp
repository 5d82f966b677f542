#include "compiler/ApplyStrategies.h"

#include "dialects/net/Repeat.h"
#include "passes/sharding/Convert.h"
#include "runtime/Nearest.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace msc::compiler {

namespace {

class Applying {
public:
  Applying(const KeptStrategies &kept, const std::string &path) : kept(kept), path(path) {}

  Status run(ModuleOp module) {
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
      if (strategy && (strategy->in != found->second.in || strategy->out != found->second.out))
        return Error{ExitCode::Failed,
                     "'" + from + "' and '" + name + "' have different strategies in '" + path + "', but all rounds of a repeat take one",
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
