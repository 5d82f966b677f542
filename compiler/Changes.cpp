#include "compiler/Changes.h"

#include "dialects/net/Config.h"
#include "dialects/net/NetOps.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace msc::compiler {

void watch(frontend::ParseOptions &options, const NetworkChanges &changes, NetworkFacts &facts, const llvm::SourceMgr &sources) {
  options.onConst = [&facts](StringRef name, int64_t value) { facts.consts[name.str()] = value; };
  options.onCell = [&](const frontend::CellCall &call) {
    FileLineColLoc at = frontend::findFileLocation(call.place);
    if (!at || call.isRecomputed || at.getFilename().getValue().starts_with(frontend::libraryPrefix))
      return false;
    std::string line = ":" + std::to_string(at.getLine());
    std::string place = at.getFilename().str() + line + ":" + std::to_string(at.getColumn());
    if (llvm::none_of(facts.calls, [&](const NetworkFacts::Call &known) { return known.place == place; }))
      facts.calls.push_back({place, frontend::displayedPath(sources, at.getFilename().getValue()) + line, call.instance.str()});
    return llvm::is_contained(changes.recompute, place);
  };
  options.onStrategy = [&](Location place, StringRef name) {
    FileLineColLoc at = frontend::findFileLocation(place);
    if (!at || at.getFilename().getValue().starts_with(frontend::libraryPrefix))
      return false;
    std::string line = frontend::displayedPath(sources, at.getFilename().getValue()) + ":" + std::to_string(at.getLine());
    if (llvm::none_of(facts.strategies, [&](const NetworkFacts::Given &known) { return known.line == line; }))
      facts.strategies.push_back({line, name.str()});
    return changes.freesStrategies;
  };
}

/// A train block.
static void change(net::ConfigOp block, const NetworkChanges &changes) {
  Builder builder(block.getContext());
  NamedAttrList fields(block.getFields());
  if (changes.accumulateSteps != 0)
    fields.set("accumulate_steps", builder.getI64IntegerAttr(static_cast<int64_t>(changes.accumulateSteps)));
  for (auto [key, word] : {std::pair("amp_level", &changes.ampLevel), std::pair("amp_dtype", &changes.ampType)})
    if (!word->empty())
      fields.set(key, builder.getStringAttr(*word));
  block.setFieldsAttr(fields.getDictionary(block.getContext()));
}

void applyChanges(ModuleOp module, const NetworkChanges &changes) {
  for (auto block : llvm::make_early_inc_range(module.getOps<net::ConfigOp>())) {
    const bool isTraining = block.getKind() == "train" || block.getKind() == "checkpoint";
    if (changes.inference && isTraining)
      block.erase();
    else if (block.getKind() == "train")
      change(block, changes);
  }
}

void noteFacts(ModuleOp module, const net::Config &config, NetworkFacts &facts) {
  facts.trains = config.train.has_value();
  if (config.train) {
    facts.accumulateSteps = config.train->gradients.accumulateSteps;
    facts.ampLevel = config.train->ampLevel;
  }
  facts.parallelMode = config.context.parallelMode;
  facts.searchMode = config.context.searchMode;
  facts.devices = config.devices;
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape().vec(); };
  for (auto network : module.getOps<net::NetworkOp>()) {
    for (BlockArgument input : network.getBody().getArguments())
      facts.inputs.push_back(shapeOf(input));
    network.walk([&](net::ParamOp param) { facts.parameters.push_back(shapeOf(param.getValue())); });
  }
}

} // namespace msc::compiler
