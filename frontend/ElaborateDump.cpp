// Dumps: the graph of `#IR entry`, its parameters, and the blocks behind it.
#include "frontend/Elaborate.h"

#include "dialects/net/Suggest.h"
#include "frontend/ForeignNames.h"
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
  if (parameters.fields.empty()) {
    auto normal = builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr("normal")),
                                             builder.getNamedAttr("a", builder.getF64FloatAttr(0.01)),
                                             builder.getNamedAttr("b", builder.getF64FloatAttr(0))});
    Value value = addParam(key, *type, normal, true, "", locationOf(param.place, param.origin), param.place);
    return bind(param.name, value, param.place, frame.env) && value;
  }
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

/// The types of operands that a dump prints below a node; an edit that contradicts them is a mistake.
bool Elaborator::checkOperandTypes(const std::optional<ast::Signature> &signature, ArrayRef<ast::Arg> args,
                                   const Frame &frame) {
  if (!signature)
    return true;
  for (auto [written, arg] : zip(signature->operands, args)) {
    const Binding *binding = arg.value.kind == ast::Expr::Kind::Value ? frame.env.findValue(arg.value.text) : nullptr;
    RankedTensorType expected = tensorTypeFromDump(written.dump, context);
    if (!binding || !binding->value || !expected || expected == binding->value.getType())
      continue;
    InFlightDiagnostic diagnostic = error(written.place) << "'%" << arg.value.text << "' is " << binding->value.getType()
                                                         << ", not " << expected;
    auto type = cast<RankedTensorType>(binding->value.getType());
    net::addHelp(diagnostic, "write " + dumpTypeText(type, refKeyFromDump(written.dump)));
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Nodes that carry no operator
//===----------------------------------------------------------------------===//

/// The values of `%x`, of a tuple, or of `$(@g:%x)`, a value of another graph.
bool Elaborator::takeValues(const ast::Expr &expr, Frame &frame, SmallVectorImpl<Value> &values) {
  StringRef name = expr.text;
  if (expr.kind == ast::Expr::Kind::Outer) {
    name = name.rsplit(':').second;
    name.consume_front("%");
  } else if (expr.kind != ast::Expr::Kind::Value) {
    error(expr.place) << "expected a value such as %x";
    return false;
  }
  if (const Binding *binding = frame.env.findValue(name); binding && !binding->tuple.empty()) {
    values.append(binding->tuple.begin(), binding->tuple.end());
    return true;
  }
  FailureOr<Value> value = evaluator.findValue(name, expr.place, frame.env);
  if (succeeded(value))
    values.push_back(*value);
  return succeeded(value);
}

bool Elaborator::bindTuple(const ast::Assign &assign, ArrayRef<Value> values, Frame &frame) {
  const ast::Result &result = assign.results.front();
  if (!bind(result.name, {}, result.place, frame.env))
    return false;
  frame.env.values[result.name].tuple.assign(values.begin(), values.end());
  return true;
}

/// MindSpore's nodes that order or group values: `Load(x, U)` and `Depend(x, U)` read as x, `UpdateState` says nothing,
/// `MakeTuple` and `TupleGetItem` group values and take one. Nothing for every other operator.
std::optional<bool> Elaborator::runStructure(const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  bool passes = call.callee == "Load" || call.callee == "Depend";
  if (call.args.empty() || (!passes && !is_contained({"UpdateState", "MakeTuple", "TupleGetItem"}, StringRef(call.callee))))
    return std::nullopt;
  if (call.callee == "UpdateState") {
    poison(assign, frame.env);
    return true;
  }
  SmallVector<Value> values;
  for (const ast::Arg &arg : call.args) {
    if (!takeValues(arg.value, frame, values))
      return false;
    if (call.callee != "MakeTuple")
      break;
  }
  if (call.callee == "MakeTuple" || (passes && values.size() > 1))
    return bindTuple(assign, values, frame);
  if (call.callee == "TupleGetItem") {
    const ast::Expr *index = call.args.size() == 2 ? &call.args[1].value : nullptr;
    FailureOr<int64_t> element = failure();
    if (index)
      element = evaluator.evaluateInteger(*index, frame.env, "the element");
    if (failed(element) || *element < 0 || *element >= static_cast<int64_t>(values.size())) {
      if (!index || succeeded(element))
        error(call.place) << "'TupleGetItem' expects a tuple and one of its elements";
      return false;
    }
    values = {values[*element]};
  }
  return bindResults(assign, {NamedValue{"", values.front(), call.place}}, "'" + call.callee + "'", call.place, frame);
}

/// A call of another graph of the dump is expanded.
bool Elaborator::runGraph(const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  auto found = subgraphs.find(call.callee);
  if (found == subgraphs.end()) {
    InFlightDiagnostic diagnostic = error(call.place) << "the file does not hold the graph '" << call.callee << "'";
    net::addSuggestion(diagnostic, call.callee, map_range(subgraphs, [](const auto &g) { return g.getKey(); }));
    return false;
  }
  const ast::Subgraph &graph = *found->second;
  Frame inner{.depth = frame.depth + 1};
  inner.env.parent = &frame.env; // values of outer graphs are named $(@g:%x)
  if (tooDeep(inner, call.place))
    return false;
  if (graph.params.size() != call.args.size()) {
    InFlightDiagnostic diagnostic = error(call.place) << "graph '" << call.callee << "' takes " << graph.params.size()
                                                      << " values, but " << call.args.size() << " are given";
    diagnostic.attachNote(evaluator.location(graph.place)) << "it is defined here";
    return false;
  }
  for (auto [param, arg] : zip(graph.params, call.args)) {
    SmallVector<Value> values;
    const Binding *binding = frame.env.findValue(arg.value.text);
    bool isToken = arg.value.kind == ast::Expr::Kind::Word || (binding && !binding->value && binding->tuple.empty()); // U, %u
    if (!isToken && !takeValues(arg.value, frame, values))
      return false;
    if (!bind(param.name, values.size() == 1 ? values.front() : Value(), param.place, inner.env))
      return false;
    if (values.size() > 1)
      inner.env.values[param.name].tuple.assign(values.begin(), values.end());
  }
  std::vector<NamedValue> results;
  if (!runBody(graph.body, inner, results, ast::Return::Kind::Dump))
    return false;
  if (assign.results.size() == 1 && results.size() > 1)
    return bindTuple(assign, map_to_vector(results, [](const NamedValue &r) { return r.value; }), frame);
  return bindResults(assign, results, "graph '" + call.callee + "'", call.place, frame);
}

bool Elaborator::reportMissingOperators() {
  std::vector<std::string> names;
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == "net" && name.getInterface<net::Operator>())
      names.push_back(name.stripDialect().str());
  llvm::sort(names);
  for (auto &[name, uses] : missingOperators) {
    InFlightDiagnostic diagnostic = error(uses.first->place) << "unknown operator '" << name << "'";
    if (uses.second > 1)
      diagnostic << " in " << uses.second << " nodes";
    net::addHelp(diagnostic, helpForOperator(name, names));
  }
  return missingOperators.empty();
}

//===----------------------------------------------------------------------===//
// The whole dump
//===----------------------------------------------------------------------===//

bool Elaborator::elaborateDump(const ast::File &file) {
  if (!checkStage(file))
    return false;
  StringRef entry;
  bool isOurs = false; // our dumps say which stage they show
  SmallVector<const ast::DumpParam *> inputs, params, monads;
  const ast::Subgraph *graph = nullptr;
  const ast::Block *parameters = nullptr, *misspelt = nullptr;
  ast::Place entryPlace;
  for (const ast::Item &item : file.items) {
    if (const auto *header = std::get_if<ast::Header>(&item); header && StringRef(header->text).starts_with("#IR entry")) {
      entry = behindColon(header->text);
      entry.consume_front("@");
      entryPlace = header->place;
    } else if (header) {
      isOurs = isOurs || any_of(header->lines, [](StringRef line) { return line.starts_with("stage"); });
    } else if (const auto *param = std::get_if<ast::DumpParam>(&item)) {
      if (isMonad(param->type.dump))
        monads.push_back(param);
      else
        (refKeyFromDump(param->type.dump).empty() ? inputs : params).push_back(param);
    } else if (const auto *next = std::get_if<ast::Subgraph>(&item)) {
      subgraphs[next->name] = next;
      if (next->name != entry)
        continue;
      if (graph) {
        InFlightDiagnostic diagnostic = error(next->place) << "graph '" << entry << "' is defined twice";
        diagnostic.attachNote(evaluator.location(graph->place)) << "first defined here";
        return false;
      }
      graph = next;
    } else if (const auto *block = std::get_if<ast::Block>(&item); block && block->kind == "parameters") {
      parameters = block;
    } else if (block && nearest(block->kind, std::vector<StringRef>{"parameters"}) == "parameters") {
      misspelt = block;
    }
  }
  if (!parameters && misspelt) {
    InFlightDiagnostic diagnostic = error(misspelt->place) << "unknown block '" << misspelt->kind << "'";
    net::addHelp(diagnostic, "did you mean 'parameters'?");
    return false;
  }
  if (!graph) {
    error(entryPlace) << "the dump names the graph '" << entry << "', but does not hold it";
    return false;
  }
  static const ast::Block none;
  if (!params.empty() && !parameters) {
    Location place = evaluator.location(params.front()->place);
    InFlightDiagnostic diagnostic = isOurs ? emitError(place) : mlir::emitRemark(place); // MindSpore never says it
    diagnostic << (isOurs ? "the dump has no block 'parameters', which says how parameters begin"
                          : "the dump does not say how parameters begin: they are drawn from Normal(0.01)");
    net::addHelp(diagnostic, "add 'parameters {\"" + refKeyFromDump(params.front()->type.dump) +
                                 "\": {init: Normal(0.01)}, ...}' at the end of the dump");
    if (isOurs)
      return false;
    parameters = &none;
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
  sound = reportMissingOperators() && sound;
  return finishNetwork(results, location) && sound && shardings.pin(network, devices);
}

} // namespace msc::frontend
