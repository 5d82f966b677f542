// Networks and bodies.
#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Suggest.h"
#include "frontend/ForeignNames.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

/// Bodies within bodies and cells within cells.
static constexpr int maximumDepth = 200;

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

net::NetworkOp Elaborator::startNetwork(StringRef name, Location location, ArrayRef<std::string> inputs,
                                        ArrayRef<Type> types) {
  builder.setInsertionPointToStart(module->getBody());
  SmallVector<StringRef> names(inputs.begin(), inputs.end());
  OperationState state(location, net::NetworkOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("input_names", builder.getStrArrayAttr(names));
  state.addRegion();
  network = cast<net::NetworkOp>(builder.create(state));
  Block &block = network.getBody().emplaceBlock();
  for (Type type : types)
    block.addArgument(type, location);
  builder.setInsertionPointToEnd(&block);
  return network;
}

bool Elaborator::finishNetwork(ArrayRef<NamedValue> results, Location location) {
  SmallVector<Value> values;
  SmallVector<Attribute> names;
  bool sound = true;
  llvm::StringMap<ast::Place> seen;
  for (const NamedValue &result : results) {
    sound = sound && result.value;
    values.push_back(result.value);
    names.push_back(builder.getStringAttr(result.name));
    auto [entry, added] = seen.try_emplace(result.name, result.place);
    if (added)
      continue;
    InFlightDiagnostic diagnostic = error(result.place) << "result '" << result.name << "' is named twice";
    diagnostic.attachNote(evaluator.location(entry->second)) << "first named here";
    sound = false;
  }
  OperationState state(location, net::ReturnOp::getOperationName());
  if (sound)
    state.addOperands(values);
  else
    names.clear();
  state.addAttribute("names", builder.getArrayAttr(names));
  builder.create(state);
  return sound;
}

bool Elaborator::elaborateNetwork(const ast::Graph &item) {
  Frame frame;
  frame.env.parent = &globals;
  std::vector<std::string> names;
  SmallVector<Type> types;
  bool sound = true;
  for (const ast::Formal &formal : item.formals) {
    if (!formal.isValue || !formal.type) {
      error(formal.place) << "an input of a network needs a type, such as '%" << formal.name << ": f32[16, 32]'";
      sound = false;
      continue;
    }
    FailureOr<RankedTensorType> type = elaborateType(*formal.type, frame.env);
    sound = sound && succeeded(type);
    names.push_back(formal.name);
    types.push_back(succeeded(type) ? *type : RankedTensorType());
  }
  if (!sound)
    return false;
  startNetwork(item.name, locationOf(item.place, item.origin), names, types);
  for (auto [formal, argument] : zip(item.formals, network.getBody().front().getArguments())) {
    argument.setLoc(evaluator.location(formal.place));
    sound = bind(formal.name, argument, formal.place, frame.env) && sound;
  }
  std::vector<NamedValue> results;
  sound = runBody(item.body, frame, results, ast::Return::Kind::Return) && sound;
  return finishNetwork(results, evaluator.location(item.place)) && sound && shardings.pin(network, devices);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

bool Elaborator::bind(StringRef name, Value value, const ast::Place &place, Environment &env) {
  auto [entry, added] = env.values.try_emplace(name, Binding{value, place.begin});
  if (added && value && options.onBinding)
    options.onBinding(place.begin, value);
  if (added)
    return true;
  InFlightDiagnostic diagnostic = error(place) << "redefinition of '%" << name << "'";
  diagnostic.attachNote(toLocation(context, sources, entry->second.place)) << "first defined here";
  return false;
}

void Elaborator::poison(const ast::Assign &assign, Environment &env) {
  for (const ast::Result &result : assign.results)
    env.values.try_emplace(result.name, Binding{Value(), result.place.begin});
}

/// Users of an argument of which nothing is known stay silent.
void Elaborator::poison(const ast::Formal &formal, Environment &env) {
  if (formal.isValue)
    env.values.try_emplace(formal.name, Binding{Value(), formal.place.begin});
  else
    env.constants[formal.name] = {};
}

/// What the parser reported: users of its names stay silent. False if it ends the body.
bool Elaborator::runBroken(const ast::Statement &statement, Environment &env) {
  if (const auto *constant = std::get_if<ast::Const>(&statement.node))
    env.constants.try_emplace(constant->name, Attribute());
  else if (const auto *param = std::get_if<ast::Param>(&statement.node))
    env.values.try_emplace(param->name, Binding{Value(), param->place.begin});
  else if (const auto *assign = std::get_if<ast::Assign>(&statement.node))
    poison(*assign, env);
  return !std::holds_alternative<ast::Return>(statement.node);
}

bool Elaborator::tooDeep(const Frame &frame, const ast::Place &place) {
  if (frame.depth < maximumDepth)
    return false;
  if (!reportedDepth) {
    InFlightDiagnostic diagnostic = error(place) << "cells and bodies nest more than " << maximumDepth << " levels deep";
    net::addHelp(diagnostic, "a cell that calls itself ends where an 'if' or a repeat of no rounds does without the call");
  }
  return reportedDepth = true;
}

bool Elaborator::runBody(const ast::Body &body, Frame &frame, std::vector<NamedValue> &results,
                         ast::Return::Kind end) {
  bool sound = true;
  bool isRead = true; // no statement is broken
  for (const ast::Statement &statement : body.statements) {
    if (++statementCount > maximumStatements) {
      if (statementCount == maximumStatements + 1) {
        InFlightDiagnostic diagnostic = error(body.close) << "the network has more than " << maximumStatements << " statements after expansion";
        net::addHelp(diagnostic, "take fewer rounds of its repeats");
      }
      return false;
    }
    if (statement.broken) {
      sound = isRead = false;
      if (!runBroken(statement, frame.env))
        return false;
    } else if (const auto *constant = std::get_if<ast::Const>(&statement.node)) {
      sound = defineConst(*constant, frame.env, /*isTopLevel=*/false) && sound;
    } else if (const auto *param = std::get_if<ast::Param>(&statement.node)) {
      sound = runParam(*param, frame) && sound;
    } else if (const auto *assign = std::get_if<ast::Assign>(&statement.node)) {
      bool fine = runAssign(*assign, frame);
      if (reportedDepth) // the rest would be as deep
        return false;
      if (!fine)
        poison(*assign, frame.env);
      sound = sound && fine;
    } else {
      const auto &last = std::get<ast::Return>(statement.node);
      if (&statement != &body.statements.back()) {
        error(last.place) << "nothing may stand behind '"
                          << (last.kind == ast::Return::Kind::Yield ? "yield" : "return") << "'";
        return false;
      }
      return runReturn(last, frame, results, end) && sound;
    }
  }
  if (evaluator.namesOnly ? isRead : sound)
    error(body.close) << "this body does not end in '" << (end == ast::Return::Kind::Yield ? "yield" : "return") << "'";
  return false;
}

bool Elaborator::runReturn(const ast::Return &statement, Frame &frame, std::vector<NamedValue> &results,
                           ast::Return::Kind end) {
  if (statement.kind != end) {
    StringRef expected = end == ast::Return::Kind::Yield ? "yield" : end == ast::Return::Kind::Dump ? "Return(...)" : "return";
    error(statement.place) << "this body has to end in '" << expected << "'";
    return false;
  }
  bool sound = true;
  for (const ast::Arg &arg : statement.args) {
    if (arg.value.kind != ast::Expr::Kind::Value) {
      InFlightDiagnostic diagnostic = error(arg.value.place) << "expected a value such as %y";
      if (arg.value.kind == ast::Expr::Kind::Word)
        net::addSuggestion(diagnostic, arg.value.text, frame.env.valueNames(), "%");
      return false;
    }
    if (const Binding *binding = frame.env.findValue(arg.value.text); binding && !binding->tuple.empty()) {
      for (Value element : binding->tuple)
        results.push_back({"output" + (results.empty() ? "" : "_" + std::to_string(results.size())), element, arg.value.place});
      continue;
    }
    FailureOr<Value> value = evaluator.findValue(arg.value.text, arg.value.place, frame.env);
    sound = sound && succeeded(value);
    std::string name = arg.key;
    if (name.empty()) // MindSpore's results have no names
      name = isIdent(arg.value.text) ? arg.value.text : succeeded(value) && *value ? net::getValueName(*value).str() : "";
    if (!isIdent(name))
      name = "output" + (results.empty() ? "" : "_" + std::to_string(results.size()));
    results.push_back({name, succeeded(value) ? *value : Value(), arg.key.empty() ? arg.value.place : arg.keyPlace});
  }
  return sound && checkOperandTypes(statement.signature, statement.args, frame);
}

bool Elaborator::runAssign(const ast::Assign &assign, Frame &frame) {
  if (const auto *repeat = std::get_if<ast::Repeat>(&assign.rhs)) {
    if (evaluator.namesOnly)
      return checkRepeat(*repeat, assign, frame);
    return !tooDeep(frame, repeat->place) && runRepeat(*repeat, assign, frame);
  }
  if (const auto *branches = std::get_if<ast::If>(&assign.rhs)) {
    if (evaluator.namesOnly)
      return checkIf(*branches, assign, frame);
    return !tooDeep(frame, branches->place) && runIf(*branches, assign, frame);
  }
  const auto &call = std::get<ast::Call>(assign.rhs);
  if (const ast::Graph *cell = call.graph ? nullptr : findCell(call.callee)) {
    if (evaluator.namesOnly)
      return checkCall(*cell, call, assign, frame);
    return !tooDeep(frame, call.place) && runCell(*cell, call, assign, frame);
  }
  return runOperator(call, assign, frame);
}

bool Elaborator::unknownOperator(const ast::Call &call) {
  if (evaluator.namesMissing)
    return false;
  if (isDump) { // each is reported once, with the number of its nodes
    ++missingOperators.try_emplace(call.callee, &call, 0).first->second.second;
    return false;
  }
  InFlightDiagnostic diagnostic = error(call.place) << "unknown operator '" << call.callee << "'";
  if (std::string file = findInLibrary(call.callee); !file.empty()) {
    net::addHelp(diagnostic, "add 'import \"" + file + "\"' at the top of the file");
    return false;
  }
  std::vector<std::string> names;
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == "net" && name.getInterface<net::Operator>())
      names.push_back(name.stripDialect().str());
  for (const auto &cell : cells)
    names.push_back(cell.getKey().str());
  llvm::sort(names);
  net::addHelp(diagnostic, helpForOperator(call.callee, names));
  return false;
}

bool Elaborator::bindResults(const ast::Assign &assign, ArrayRef<NamedValue> results, StringRef what, ast::Place place,
                             Frame &frame, ArrayRef<StringRef> names) {
  if (assign.results.size() != results.size()) {
    InFlightDiagnostic diagnostic = error(place);
    diagnostic << what << " gives " << results.size() << (results.size() == 1 ? " result" : " results") << ", but "
                 << assign.results.size() << (assign.results.size() == 1 ? " name stands" : " names stand")
                 << " on the left";
    if (names.size() == results.size() && assign.results.size() < names.size()) {
      std::vector<std::string> all;
      for (auto [i, name] : enumerate(names))
        all.push_back("%" + (i < assign.results.size() ? assign.results[i].name : name.str()));
      net::addHelp(diagnostic, "write " + join(all, ", ") + " = " + what.trim('\'') + "(...)");
    }
    return false;
  }
  bool sound = true;
  for (auto [result, given] : zip(assign.results, results)) {
    if (result.type && given.value) {
      FailureOr<RankedTensorType> type = elaborateType(*result.type, frame.env);
      if (failed(type))
        return false;
      if (*type != given.value.getType()) {
        InFlightDiagnostic diagnostic = error(result.type->place) << "'%" << result.name << "' is " << given.value.getType() << ", not " << *type;
        net::addHelp(diagnostic, "leave out the type of '%" + result.name + "'");
        return false;
      }
    }
    sound = bind(result.name, given.value, result.place, frame.env) && sound;
  }
  return sound;
}

} // namespace msc::frontend
