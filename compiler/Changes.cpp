#include "compiler/Changes.h"

#include "dialects/net/Config.h"
#include "dialects/net/NetOps.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace msc::compiler {

/// Of a file of the user.
static FileLineColLoc userPlace(Location place) {
  FileLineColLoc at = frontend::findFileLocation(place);
  return at && !at.getFilename().getValue().starts_with(frontend::libraryPrefix) ? at : FileLineColLoc();
}

/// "net.mir:34", as messages name the file.
static std::string lineOf(FileLineColLoc at, const llvm::SourceMgr &sources) {
  return frontend::displayedPath(sources, at.getFilename().getValue()) + ":" + std::to_string(at.getLine());
}

/// Once for a line: all rounds and calls have it.
static void note(std::vector<NetworkFacts::Given> &given, const std::string &line, StringRef name) {
  if (llvm::none_of(given, [&](const NetworkFacts::Given &known) { return known.line == line; }))
    given.push_back({line, name.str()});
}

static bool isUnread(net::ParamOp param) { return param.getValue().use_empty() && userPlace(param.getLoc()); }

void watch(frontend::ParseOptions &options, const NetworkChanges &changes, NetworkFacts &facts, const llvm::SourceMgr &sources) {
  options.onConst = [&facts](StringRef name, int64_t value) { facts.consts[name.str()] = value; };
  options.onCell = [&](const frontend::CellCall &call) {
    FileLineColLoc at = userPlace(call.place);
    if (!at || call.isRecomputed)
      return false;
    std::string place = at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" + std::to_string(at.getColumn());
    if (llvm::none_of(facts.calls, [&](const NetworkFacts::Call &known) { return known.place == place; }))
      facts.calls.push_back({place, lineOf(at, sources), call.instance.str()});
    return llvm::is_contained(changes.recompute, place);
  };
  options.onStrategy = [&](Location place, StringRef name) {
    FileLineColLoc at = userPlace(place);
    if (!at)
      return false;
    note(facts.strategies, lineOf(at, sources), name);
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
  if (changes.dropsUnread)
    module.walk([](net::ParamOp param) {
      if (isUnread(param))
        param.erase();
    });
}

void noteFacts(ModuleOp module, const net::Config &config, NetworkFacts &facts, const llvm::SourceMgr &sources) {
  facts.trains = config.train.has_value();
  if (config.train) {
    facts.accumulateSteps = config.train->gradients.accumulateSteps;
    facts.steps = config.train->steps;
    facts.ampLevel = config.train->ampLevel;
  }
  facts.parallelMode = config.context.parallelMode;
  facts.searchMode = config.context.searchMode;
  facts.devices = config.devices;
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape().vec(); };
  for (auto network : module.getOps<net::NetworkOp>()) {
    for (BlockArgument input : network.getBody().getArguments())
      facts.inputs.push_back(shapeOf(input));
    network.walk([&](net::ParamOp param) {
      if (isUnread(param))
        note(facts.unread, lineOf(userPlace(param.getLoc()), sources), param.getName());
      else
        facts.parameters.push_back(shapeOf(param.getValue()));
    });
  }
}

} // namespace msc::compiler
