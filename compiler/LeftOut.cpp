#include "compiler/LeftOut.h"

#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetInterfaces.h"
#include "dialects/net/Suggest.h"
#include "frontend/LeftOut.h"

using namespace mlir;

namespace msc::compiler {

void LeftOut::take(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (auto strategy = dyn_cast_or_null<StringAttr>(op->removeAttr(frontend::leftOutStrategyName)))
      strategies[net::getInstanceName(op)].insert(strategy.getValue().str());
  });
}

bool LeftOut::isReplaced(Operation *op) const {
  auto found = strategies.find(net::getInstanceName(op));
  std::optional<net::Strategy> now = net::getInStrategy(op);
  return found != strategies.end() && now && !found->second.contains(net::strategyText(*now));
}

void LeftOut::report(net::NetworkOp network) const {
  SmallVector<Operation *> replaced;
  network.walk([&](net::Operator op) {
    if (isReplaced(op))
      replaced.push_back(op);
  });
  if (replaced.empty())
    return;
  Operation *first = replaced.front();
  const StringRef name = net::getInstanceName(first);
  InFlightDiagnostic diagnostic = emitRemark(first->getLoc());
  diagnostic << replaced.size() << (replaced.size() == 1 ? " strategy" : " strategies") << " of the dump "
             << (replaced.size() == 1 ? "is" : "are") << " replaced by --repropagate: that of '" << name << "' is "
             << net::strategyText(*net::getInStrategy(first)) << " instead of " << *strategies.find(name)->second.begin();
  net::addHelp(diagnostic, "delete the strategy_origin of a strategy to keep it");
}

} // namespace msc::compiler
