// Dumps: the graph of `#IR entry`, its parameters, and the blocks behind it.
#include "frontend/Elaborate.h"

#include "dialects/net/Suggest.h"
#include "frontend/Types.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

/// The text behind the colon of a header or of a line below `#attrs`.
static StringRef behindColon(StringRef line) { return line.split(':').second.trim(); }

/// Dumps of what one rank runs cannot be compiled: they are local, and hold the backward pass.
bool Elaborator::checkStage(const ast::File &file) {
  for (const ast::Item &item : file.items) {
    const auto *header = std::get_if<ast::Header>(&item);
    if (!header)
      continue;
    for (StringRef line : header->lines) {
      if (!line.starts_with("stage") || behindColon(line) == "step_parallel_begin")
        continue;
      InFlightDiagnostic diagnostic = error(header->place)
                                      << "this dump (" << behindColon(line) << ") shows what one rank runs and cannot be compiled";
      net::addHelp(diagnostic, "compile the step_parallel_begin dump of the same folder");
      return false;
    }
  }
  return true;
}

/// "w" for `%para3_w`.
static StringRef withoutPara(StringRef name) {
  StringRef rest = name;
  unsigned number = 0;
  if (rest.consume_front("para") && !rest.consumeInteger(10, number) && rest.consume_front("_") && !rest.empty())
    return rest;
  return name;
}

bool Elaborator::declareDumpParam(const ast::DumpParam &param, const ast::Block &parameters, Frame &frame) {
  StringRef key = refKeyFromDump(param.type.dump);
  FailureOr<RankedTensorType> type = elaborateType(param.type, frame.env);
  if (failed(type))
    return false;
  const ast::Arg *entry = nullptr;
  for (const ast::Arg &field : parameters.fields)
    if (keyText(field.key) == key)
      entry = &field;
  if (!entry || entry->value.kind != ast::Expr::Kind::Map) {
    InFlightDiagnostic diagnostic = error(param.place) << "parameter '" << key << "' has no initial values";
    net::addHelp(diagnostic, "add 'parameters {\"" + key + "\": {init: Normal(0.01)}}' at the end of the dump");
    return false;
  }
  FailureOr<DictionaryAttr> initializer = failure();
  bool trained = true;
  std::string drawName;
  for (const ast::Arg &field : entry->value.items) {
    if (field.key == "init") {
      if (failed(initializer = elaborateInitializer(field.value, frame.env)))
        return false;
    } else if (field.key == "requires_grad") {
      FailureOr<bool> value = evaluator.evaluateBool(field.value, frame.env, "'requires_grad'");
      if (failed(value))
        return false;
      trained = *value;
    } else if (field.key == "draw_name" && field.value.kind == ast::Expr::Kind::String) {
      FailureOr<std::string> text = evaluator.decode(field.value.text, frame.env, field.value.place.begin);
      if (failed(text))
        return false;
      drawName = *text;
    } else {
      error(field.keyPlace) << "unknown key '" << field.key << "' of a parameter";
      return false;
    }
  }
  if (failed(initializer)) {
    error(entry->keyPlace) << "parameter '" << key << "' has no 'init'";
    return false;
  }
  Value value = addParam(key, *type, *initializer, trained, drawName, locationOf(param.place, param.origin), param.place);
  return bind(param.name, value, param.place, frame.env) && value;
}

/// MindSpore's tokens that order side effects; they carry no data.
static bool isMonad(StringRef type) { return type.starts_with("<UMonad") || type.starts_with("<IOMonad"); }

bool Elaborator::runDumpBody(const ast::Subgraph &graph, Frame &frame, std::vector<NamedValue> &results) {
  for (const ast::Result &param : graph.params) {
    const Binding *binding = frame.env.findValue(param.name);
    if (!binding)
      return succeeded(evaluator.findValue(param.name, param.place, frame.env)); // reports it
  }
  return runBody(graph.body, frame, results, ast::Return::Kind::Dump);
}

bool Elaborator::elaborateDump(const ast::File &file) {
  if (!checkStage(file))
    return false;
  StringRef entry;
  SmallVector<const ast::DumpParam *> inputs, params, monads;
  const ast::Subgraph *graph = nullptr;
  const ast::Block *parameters = nullptr;
  ast::Place entryPlace;
  for (const ast::Item &item : file.items) {
    if (const auto *header = std::get_if<ast::Header>(&item); header && StringRef(header->text).starts_with("#IR entry")) {
      entry = behindColon(header->text);
      entry.consume_front("@");
      entryPlace = header->place;
    } else if (const auto *param = std::get_if<ast::DumpParam>(&item)) {
      if (isMonad(param->type.dump))
        monads.push_back(param);
      else
        (refKeyFromDump(param->type.dump).empty() ? inputs : params).push_back(param);
    } else if (const auto *next = std::get_if<ast::Subgraph>(&item); next && next->name == entry) {
      if (graph) {
        InFlightDiagnostic diagnostic = error(next->place) << "graph '" << entry << "' is defined twice";
        diagnostic.attachNote(evaluator.location(graph->place)) << "first defined here";
        return false;
      }
      graph = next;
    } else if (const auto *block = std::get_if<ast::Block>(&item); block && block->kind == "parameters") {
      parameters = block;
    }
  }
  if (!graph) {
    error(entryPlace) << "the dump names the graph '" << entry << "', but does not hold it";
    return false;
  }
  if (!params.empty() && !parameters) {
    InFlightDiagnostic diagnostic = error(params.front()->place)
                                    << "the dump has no block 'parameters', which says how parameters begin";
    net::addHelp(diagnostic, "add 'parameters {\"" + refKeyFromDump(params.front()->type.dump) +
                                 "\": {init: Normal(0.01)}, ...}' at the end of the dump");
    return false;
  }
  Frame frame;
  frame.env.parent = &globals;
  std::vector<std::string> names;
  SmallVector<Type> types;
  for (const ast::DumpParam *input : inputs) {
    FailureOr<RankedTensorType> type = elaborateType(input->type, frame.env);
    if (failed(type))
      return false;
    names.push_back(withoutPara(input->name).str());
    types.push_back(*type);
  }
  Location location = locationOf(graph->place, graph->origin);
  startNetwork(entry, location, names, types);
  bool sound = true;
  for (auto [input, argument] : zip(inputs, network.getBody().front().getArguments())) {
    argument.setLoc(locationOf(input->place, input->origin));
    sound = bind(input->name, argument, input->place, frame.env) && sound;
  }
  for (const ast::DumpParam *monad : monads)
    frame.env.values.try_emplace(monad->name, Binding{Value(), monad->place.begin});
  for (const ast::DumpParam *param : params)
    sound = declareDumpParam(*param, *parameters, frame) && sound;
  std::vector<NamedValue> results;
  sound = sound && runDumpBody(*graph, frame, results);
  return finishNetwork(results, location) && sound && shardings.pin(network, devices);
}

} // namespace msc::frontend
