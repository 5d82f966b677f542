// Networks, bodies, parameters, cells, repeat and if.
#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Suggest.h"
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
/// Calls that an error is traced back through, together with its other notes.
static constexpr size_t maximumNotes = 6;
/// Rounds of one repeat, and statements of a network with its cells and repeats expanded: more is a mistake.
static constexpr int64_t maximumRounds = 100000;
static constexpr int64_t maximumStatements = 1000000;
static constexpr int64_t maximumElements = int64_t{1} << 48;

//===----------------------------------------------------------------------===//
// Types, initializers, parameters
//===----------------------------------------------------------------------===//

bool Elaborator::checkElement(Type element, const ast::Place &place) {
  if (!isSupportedElement(element))
    error(place) << "no operator computes with " << elementTypeName(element) << " in this version: expected "
                 << join(elementTypeNames(), ", ");
  return isSupportedElement(element);
}

FailureOr<RankedTensorType> Elaborator::elaborateType(const ast::Type &type, const Environment &env) {
  if (!type.dump.empty()) {
    if (RankedTensorType tensor = tensorTypeFromDump(type.dump, context))
      return checkElement(tensor.getElementType(), type.place) ? tensor : FailureOr<RankedTensorType>(failure());
    return error(type.place) << "expected a tensor type, found '" << type.dump << "'";
  }
  Type element = elementTypeFromName(type.element, context);
  if (!element) {
    InFlightDiagnostic diagnostic = error(type.place) << "unknown element type '" << type.element << "'";
    net::addSuggestionOrList(diagnostic, type.element, elementTypeNames());
    return diagnostic;
  }
  if (!checkElement(element, type.place))
    return failure();
  constexpr size_t mostDimensions = 64;
  if (type.dims.size() > mostDimensions)
    return error(type.place) << "a tensor of " << type.dims.size() << " dimensions: at most " << mostDimensions
                             << " are supported";
  SmallVector<int64_t> shape;
  std::optional<int64_t> elements = 1;
  for (auto [index, dim] : enumerate(type.dims)) {
    FailureOr<int64_t> size = evaluator.evaluateInteger(dim, env, "dimension " + std::to_string(index));
    if (evaluator.namesOnly)
      continue;
    if (failed(size))
      return failure();
    if (*size < 1)
      return error(dim.place) << "dimension " << index << " cannot have size " << *size;
    elements = elements ? checkedMul(*elements, *size) : std::nullopt;
    shape.push_back(*size);
  }
  if (!elements || *elements > maximumElements)
    return error(type.place) << "this tensor has more than 2^48 elements";
  return RankedTensorType::get(shape, element);
}

namespace {
/// What a user may write behind `=` of a parameter. Arguments are `a` and `b` of the initializer, in this order.
struct InitializerForm {
  StringRef name, kind;
  std::vector<std::pair<StringRef, std::optional<double>>> arguments; ///< name and default; none: required
};
} // namespace

static ArrayRef<InitializerForm> initializerForms() {
  static const InitializerForm forms[] = {
      {"Normal", "normal", {{"sigma", 0.01}, {"mean", 0.0}}},
      {"TruncatedNormal", "truncated_normal", {{"sigma", 0.01}, {"mean", 0.0}}},
      {"Uniform", "uniform", {{"scale", 0.07}}},
      {"Constant", "constant", {{"value", std::nullopt}}},
      {"Zeros", "zeros", {}},
      {"Zero", "zeros", {}},
      {"Ones", "ones", {}},
      {"One", "ones", {}},
      {"HeNormal", "he_normal", {}},
      {"HeUniform", "he_uniform", {}},
      {"XavierUniform", "xavier_uniform", {}}};
  return forms;
}

FailureOr<DictionaryAttr> Elaborator::elaborateInitializer(const ast::Expr &expr, const Environment &env) {
  ArrayRef<InitializerForm> forms = initializerForms();
  auto form = find_if(forms, [&](const InitializerForm &f) { return f.name == expr.text; });
  if (expr.kind != ast::Expr::Kind::Call || form == forms.end()) {
    InFlightDiagnostic diagnostic = error(expr.place) << "unknown initializer '" << expr.text << "'";
    net::addSuggestionOrList(diagnostic, expr.text, map_range(forms, [](const InitializerForm &f) { return f.name; }));
    return diagnostic;
  }
  double values[2] = {0, 0};
  SmallBitVector given(form->arguments.size());
  for (auto [index, arg] : enumerate(expr.items)) {
    size_t slot = index;
    if (!arg.key.empty())
      slot = find_if(form->arguments, [&, key = StringRef(arg.key)](const auto &a) { return a.first == key; }) -
             form->arguments.begin();
    if (slot >= form->arguments.size())
      return error(arg.key.empty() ? arg.value.place : arg.keyPlace)
             << "'" << form->name << "' "
             << (arg.key.empty() ? "takes " + std::to_string(form->arguments.size()) +
                                       (form->arguments.size() == 1 ? " number, but " : " numbers, but ") +
                                       std::to_string(expr.items.size()) + " are given"
                                 : "has no argument '" + arg.key + "'");
    FailureOr<Attribute> value = evaluator.evaluate(arg.value, env);
    if (failed(value))
      return failure();
    std::optional<double> number = net::asNumber(*value);
    if (!number)
      return error(arg.value.place) << "'" << form->name << "' expects a number, found '" << net::valueText(*value) << "'";
    values[slot] = *number;
    given.set(slot);
  }
  for (auto [slot, argument] : enumerate(form->arguments)) {
    if (given[slot])
      continue;
    if (!argument.second)
      return error(expr.place) << "'" << form->name << "' needs '" << argument.first << "'";
    values[slot] = *argument.second;
  }
  if (StringRef first = form->arguments.empty() ? "" : form->arguments.front().first;
      values[0] < 0 && (first == "sigma" || first == "scale"))
    return error(expr.place) << "'" << first << "' of '" << form->name << "' is a width and not negative, found "
                             << net::numberText(values[0]);
  if (form->kind == "uniform") { // plans hold the bounds
    values[1] = values[0];
    values[0] = -values[0];
  }
  return builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr(form->kind)),
                                    builder.getNamedAttr("a", builder.getF64FloatAttr(values[0])),
                                    builder.getNamedAttr("b", builder.getF64FloatAttr(values[1]))});
}

/// True of what is drawn at random: fractions, of which whole numbers keep nothing.
static bool drawsFractions(DictionaryAttr initializer) {
  StringRef kind = initializer.getAs<StringAttr>("kind").getValue();
  return kind != "zeros" && kind != "ones" && kind != "constant";
}

/// Takes the numbers and variables of repeats that a name begins with.
static StringRef takeNumber(StringRef &name) {
  StringRef rest = name;
  for (size_t length = 1; length > 0; rest = rest.drop_front(length)) {
    length = rest.find_first_not_of("-0123456789");
    if (length == StringRef::npos)
      length = rest.size();
    else if (length == 0 && rest.starts_with("{"))
      length = rest.find('}') + 1; // none: 0
  }
  StringRef number = name.drop_back(rest.size());
  name = rest;
  return number;
}

/// The name without its numbers and rounds: only names of one kind can be the same in some round.
static std::string kindOfName(StringRef name) {
  std::string kind;
  while (!name.empty())
    if (takeNumber(name).empty()) {
      kind += name.front();
      name = name.drop_front();
    } else {
      kind += '#';
    }
  return kind;
}

/// Of two names of one kind: false if a number tells them apart in all rounds.
static bool mayBeSame(StringRef a, StringRef b) {
  while (!a.empty() && !b.empty()) {
    StringRef left = takeNumber(a), right = takeNumber(b);
    if (left != right && !left.contains('{') && !right.contains('{'))
      return false;
    a = a.drop_front(left.empty());
    b = b.drop_front(right.empty());
  }
  return true;
}

/// False after reporting that a parameter has this name already; `repeat` is one whose rounds all give it this name.
bool Elaborator::claimName(StringRef name, Location place, net::RepeatOp repeat) {
  if (rounds.empty()) { // else it is claimed for all rounds where the repeat ends
    NamesOfKind &kind = namesOfKinds[kindOfName(name)];
    llvm::erase_if(kind.folded, [&](net::ParamOp folded) {
      if (!mayBeSame(name, folded.getName()))
        return false;
      for (const std::string &other : net::namesInRounds(folded, folded.getName()))
        paramNames.try_emplace(other, folded.getLoc());
      return true;
    });
    kind.written.push_back(name.str());
  }
  auto [entry, added] = paramNames.try_emplace(name, place);
  if (added)
    return true;
  InFlightDiagnostic diagnostic = emitError(place) << "parameter '" << name << "' is declared twice";
  diagnostic.attachNote(entry->second) << "first declared here";
  if (!repeat)
    return false;
  diagnostic.attachNote(repeat.getLoc()) << "each round of this repeat declares it";
  std::string example = ("layer.{" + repeat.getVariable() + "}").str();
  net::addHelp(diagnostic, "write the round into the name of a cell around it, as in @ \"" + example + "\"");
  return false;
}

/// Claims the names of a parameter in all rounds of the repeats around it; they are written out only where another name
/// may be one of them.
bool Elaborator::claimNames(net::ParamOp param) {
  auto repeat = param->getParentOfType<net::RepeatOp>();
  if (!repeat)
    return claimName(param.getName(), param.getLoc());
  net::RepeatOp unnamed; // whose round the name does not say
  for (auto around = repeat; around; around = around->getParentOfType<net::RepeatOp>())
    if (!param.getName().contains(("{" + around.getVariable() + "}").str()))
      unnamed = around;
  NamesOfKind &kind = namesOfKinds[kindOfName(param.getName())];
  bool isNested = static_cast<bool>(repeat->getParentOfType<net::RepeatOp>());
  auto isSame = [&](StringRef other) { return mayBeSame(param.getName(), other); };
  if (!unnamed && !isNested && none_of(kind.written, isSame) &&
      none_of(kind.folded, [&](net::ParamOp other) { return isSame(other.getName()); })) {
    kind.folded.push_back(param);
    return true;
  }
  for (const std::string &name : net::namesInRounds(param, param.getName()))
    if (!claimName(name, param.getLoc(), unnamed))
      return false;
  return true;
}

bool Elaborator::claimNamesBehind(Operation *before, Block *block) {
  bool sound = true;
  for (Operation &op : make_range(before ? std::next(before->getIterator()) : block->begin(), block->end()))
    op.walk([&](net::ParamOp param) { sound = claimNames(param) && sound; });
  return sound;
}

Value Elaborator::addParam(StringRef name, RankedTensorType type, DictionaryAttr initializer, bool trained,
                           StringRef drawName, Location location, const ast::Place &place) {
  if (!claimName(nameInThisRound(name), evaluator.location(place)))
    return {};
  OpBuilder::InsertionGuard guard(builder);
  if (lastParam)
    builder.setInsertionPointAfter(lastParam);
  else
    builder.setInsertionPointToStart(builder.getInsertionBlock());
  OperationState state(location, net::ParamOp::getOperationName());
  state.addTypes(type);
  state.addAttribute("name", builder.getStringAttr(name));
  state.addAttribute("initializer", initializer);
  state.addAttribute("trained", builder.getBoolAttr(trained));
  state.addAttribute("draw_name", builder.getStringAttr(drawName));
  lastParam = builder.create(state);
  return lastParam->getResult(0);
}

bool Elaborator::runParam(const ast::Param &param, Frame &frame) {
  FailureOr<RankedTensorType> type = elaborateType(param.type, frame.env);
  FailureOr<DictionaryAttr> initializer = failure();
  if (param.initializer) {
    initializer = elaborateInitializer(*param.initializer, frame.env);
    if (succeeded(type) && succeeded(initializer) && !isa<FloatType>(type->getElementType()) &&
        drawsFractions(*initializer)) {
      InFlightDiagnostic diagnostic = error(param.initializer->place)
                                      << "'" << param.initializer->text << "' draws fractions, but parameter '"
                                      << param.name << "' holds whole numbers";
      net::addHelp(diagnostic, "write Zeros(), Ones() or Constant(3), or make it a parameter of floats");
      initializer = failure();
    }
  } else if (succeeded(type)) {
    InFlightDiagnostic diagnostic = error(param.place) << "parameter '" << param.name << "' has no initial values";
    net::addHelp(diagnostic, "write '= Normal(0.01)' or '= Zeros()' behind the type");
  }
  bool trained = true, sound = succeeded(type) && succeeded(initializer);
  const ast::Arg *sharding = nullptr;
  for (const ast::Attributes &list : param.attributes)
    for (const ast::Arg &field : list.fields) {
      if (field.key == "requires_grad") {
        FailureOr<bool> value = evaluator.evaluateBool(field.value, frame.env, "'requires_grad'");
        sound = sound && succeeded(value);
        trained = succeeded(value) && *value;
        continue;
      }
      if (field.key == "sharding") {
        sharding = &field;
        continue;
      }
      sound = false;
      InFlightDiagnostic diagnostic = error(field.keyPlace) << "unknown attribute '" << field.key << "' of a parameter";
      net::addSuggestionOrList(diagnostic, field.key, ArrayRef<StringRef>{"requires_grad", "sharding"});
    }
  std::string drawName;
  if (param.drawName) {
    FailureOr<std::string> decoded = evaluator.decodeName(*param.drawName, frame.env, param.place.begin);
    sound = sound && succeeded(decoded);
    drawName = succeeded(decoded) ? *decoded : "";
  }
  Value value;
  if (sound && !evaluator.namesOnly)
    value = addParam(frame.prefix + param.name + frame.suffix, *type, *initializer, trained, drawName,
                     locationOf(param.place, param.origin), param.place);
  if (value && (!sharding || shardings.take(*sharding, value, frame.env)))
    return bind(param.name, value, param.place, frame.env);
  frame.env.values.try_emplace(param.name, Binding{Value(), param.place.begin}); // users stay silent
  return false;
}

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
  if (!reportedDepth)
    error(place) << "cells and bodies nest more than " << maximumDepth << " levels deep";
  return reportedDepth = true;
}

bool Elaborator::runBody(const ast::Body &body, Frame &frame, std::vector<NamedValue> &results,
                         ast::Return::Kind end) {
  bool sound = true;
  bool isRead = true; // no statement is broken
  for (const ast::Statement &statement : body.statements) {
    if (++statementCount > maximumStatements) {
      if (statementCount == maximumStatements + 1)
        error(body.close) << "the network has more than " << maximumStatements << " statements after expansion";
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

bool Elaborator::bindResults(const ast::Assign &assign, ArrayRef<NamedValue> results, StringRef what, ast::Place place,
                             Frame &frame) {
  if (assign.results.size() != results.size()) {
    error(place) << what << " gives " << results.size() << (results.size() == 1 ? " result" : " results") << ", but "
                 << assign.results.size() << (assign.results.size() == 1 ? " name stands" : " names stand")
                 << " on the left";
    return false;
  }
  bool sound = true;
  for (auto [result, given] : zip(assign.results, results)) {
    if (result.type && given.value) {
      FailureOr<RankedTensorType> type = elaborateType(*result.type, frame.env);
      if (failed(type))
        return false;
      if (*type != given.value.getType()) {
        error(result.type->place) << "'%" << result.name << "' is " << given.value.getType() << ", not " << *type;
        return false;
      }
    }
    sound = bind(result.name, given.value, result.place, frame.env) && sound;
  }
  return sound;
}

//===----------------------------------------------------------------------===//
// Cells, repeat, if
//===----------------------------------------------------------------------===//

/// Within a cell its own name means the operator of that name: a cell may wrap one.
const ast::Graph *Elaborator::findCell(StringRef name) const {
  if (!openCells.empty() && openCells.back() == name && RegisteredOperationName::lookup(("net." + name).str(), context))
    return nullptr;
  auto found = cells.find(name);
  return found == cells.end() ? nullptr : found->second;
}

/// A compile-time argument as its formal wants it; null after reporting.
static Attribute convertFormal(Attribute value, const ast::Formal &formal, Builder &builder) {
  value = unwrapTuple(value);
  if (formal.kind == "float" && net::asNumber(value))
    return builder.getF64FloatAttr(*net::asNumber(value));
  bool fits = formal.kind == "int"    ? net::asInteger(value).has_value()
              : formal.kind == "bool" ? isa<BoolAttr>(value)
                                      : formal.kind == "string" && isa<StringAttr>(value);
  return fits ? value : Attribute();
}

bool Elaborator::bindFormals(const ast::Graph &cell, const ast::Call &call, Frame &caller, Frame &callee) {
  bool sound = true;
  std::vector<const ast::Arg *> given(cell.formals.size(), nullptr);
  for (auto [index, arg] : enumerate(call.args)) {
    size_t slot = index;
    if (!arg.key.empty())
      slot = find_if(cell.formals, [&, key = StringRef(arg.key)](const ast::Formal &f) { return f.name == key; }) -
             cell.formals.begin();
    if (slot >= given.size() || given[slot]) {
      InFlightDiagnostic diagnostic = error(arg.key.empty() ? arg.value.place : arg.keyPlace);
      if (slot < given.size())
        diagnostic << "'" << cell.formals[slot].name << "' is given twice";
      else if (arg.key.empty())
        diagnostic << "'" << cell.name << "' takes " << given.size() << (given.size() == 1 ? " argument" : " arguments")
                   << ", but more are given";
      else
        diagnostic << "'" << cell.name << "' has no argument '" << arg.key << "'";
      if (slot >= given.size() && !arg.key.empty())
        net::addSuggestion(diagnostic, arg.key, map_range(cell.formals, [](const auto &f) { return StringRef(f.name); }));
      diagnostic.attachNote(evaluator.location(cell.place)) << "'" << cell.name << "' is defined here";
      sound = false;
      continue;
    }
    given[slot] = &arg;
  }
  for (auto [formal, arg] : zip(cell.formals, given)) {
    const ast::Expr *expr = arg ? &arg->value : formal.defaultValue ? &*formal.defaultValue : nullptr;
    if (!expr && sound) {
      InFlightDiagnostic diagnostic = error(call.place) << "'" << cell.name << "' needs '" << formal.name << "'";
      diagnostic.attachNote(evaluator.location(formal.place)) << "it is declared here";
    }
    if (!expr) { // without a message where it may be what another argument was meant to be
      poison(formal, callee.env);
      sound = false;
      continue;
    }
    if (formal.isValue) {
      FailureOr<Value> value = failure();
      if (expr->kind == ast::Expr::Kind::Value)
        value = evaluator.findValue(expr->text, expr->place, caller.env);
      else
        error(expr->place) << "'" << formal.name << "' of '" << cell.name << "' expects a value such as %x";
      if (failed(value) || !bind(formal.name, *value, formal.place, callee.env)) {
        poison(formal, callee.env);
        sound = false;
        continue;
      }
      if (!formal.type || !*value)
        continue;
      FailureOr<RankedTensorType> type = elaborateType(*formal.type, callee.env);
      if (failed(type))
        return false;
      if (*type != value->getType()) {
        InFlightDiagnostic diagnostic = error(expr->place) << "'%" << formal.name << "' of '" << cell.name
                                                           << "' has to be " << *type << ", found " << value->getType();
        diagnostic.attachNote(evaluator.location(formal.place)) << "it is declared here";
        sound = false;
      }
      continue;
    }
    FailureOr<Attribute> value = evaluator.evaluate(*expr, arg ? caller.env : callee.env);
    Attribute &converted = callee.env.constants[formal.name];
    if (succeeded(value) && !(converted = convertFormal(*value, formal, builder)))
      error(expr->place) << "'" << formal.name << "' of '" << cell.name << "' has to be of kind " << formal.kind
                         << ", found '" << net::valueText(*value) << "'";
    sound = sound && converted;
  }
  return sound;
}

bool Elaborator::runCell(const ast::Graph &cell, const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  Frame callee;
  callee.env.parent = &globals;
  callee.depth = frame.depth + 1;
  std::string instance = assign.results.front().name + frame.suffix;
  if (call.instance) {
    FailureOr<std::string> decoded = evaluator.decodeName(*call.instance, frame.env, call.instancePlace.begin);
    if (failed(decoded))
      return false;
    instance = *decoded;
    if (std::string name = nameInThisRound(instance); !isValueName(name)) { // it becomes part of other names
      error(call.instancePlace) << "the instance name '" << name
                                << "' of a cell may hold letters, digits, '_' and dots between them";
      return false;
    }
  }
  callee.prefix = frame.prefix + instance + ".";
  callee.scopePath = frame.scopePath + "/" + instance;
  std::vector<NamedValue> results;
  if (!bindFormals(cell, call, frame, callee))
    return false;
  { // what goes wrong in there says how it got there
    ScopedDiagnosticHandler calls(context, [&](Diagnostic &diagnostic) {
      Location here = evaluator.location(call.place);
      size_t notes = std::distance(diagnostic.getNotes().begin(), diagnostic.getNotes().end());
      bool isKnown = diagnostic.getLocation() == here ||
                     any_of(diagnostic.getNotes(), [&](Diagnostic &note) { return note.getLocation() == here; });
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && notes < maximumNotes && !isKnown)
        diagnostic.attachNote(here) << "in this call of '" << cell.name << "'";
      return failure(); // on to the handler that prints
    });
    openCells.push_back(cell.name);
    bool sound = runBody(cell.body, callee, results, ast::Return::Kind::Return);
    openCells.pop_back();
    if (!sound)
      return false;
  }
  return takeCellAttributes(call, results, frame) &&
         bindResults(assign, results, "cell '" + cell.name + "'", call.place, frame);
}

/// `{sharding: ...}` behind a call of a cell speaks of its first result.
bool Elaborator::takeCellAttributes(const ast::Call &call, ArrayRef<NamedValue> results, const Frame &frame) {
  for (const ast::Attributes &list : call.attributes)
    for (const ast::Arg &field : list.fields) {
      if (field.key != "sharding") {
        InFlightDiagnostic diagnostic = error(field.keyPlace) << "unknown attribute '" << keyText(field.key)
                                                              << "' of a cell's result";
        net::addSuggestion(diagnostic, field.key, ArrayRef<StringRef>{"sharding"});
        return false;
      }
      if (results.empty() || !shardings.take(field, results.front().value, frame.env))
        return false;
    }
  return true;
}

/// A name within the bodies of repeats as the rounds that are being expanded have it.
std::string Elaborator::nameInThisRound(StringRef name) const {
  std::string text = name.str();
  for (const auto &[variable, round] : reverse(rounds))
    text = net::nameInRound(text, variable, round, variable == rounds.front().first);
  return text;
}

/// A variable for a repeat that no repeat around it has.
std::string Elaborator::freshVariable(StringRef name) const {
  std::string fresh = name.str();
  for (int next = 2; any_of(rounds, [&](const auto &round) { return round.first == fresh; }); ++next)
    fresh = (name + "_" + Twine(next)).str();
  return fresh;
}

/// Expands a body once, as the round `*variable.round`, into the region of a new repeat; null after reporting.
net::RepeatOp Elaborator::expandRound(const ast::Repeat &repeat, int64_t round, ArrayRef<NamedValue> carried,
                                      Frame &frame, RoundVariable &variable, std::vector<NamedValue> &next) {
  std::string fresh = freshVariable(repeat.variable);
  variable = {repeat.variable, "{" + fresh + "}"};
  SmallVector<Value> initial = map_to_vector(carried, [](const NamedValue &value) { return value.value; });
  OperationState state(evaluator.location(repeat.place), net::RepeatOp::getOperationName());
  state.addOperands(initial);
  state.addTypes(TypeRange(ValueRange(initial)));
  state.addAttribute("variable", builder.getStringAttr(fresh));
  state.addAttribute("from", builder.getI64IntegerAttr(round));
  state.addAttribute("to", builder.getI64IntegerAttr(round + 1));
  state.addRegion();
  auto op = cast<net::RepeatOp>(builder.create(state));
  Block &body = op.getBody().emplaceBlock();
  for (auto [value, source] : zip(initial, repeat.carried))
    body.addArgument(value.getType(), evaluator.location(source.place));

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  Frame inner{.prefix = frame.prefix, .scopePath = frame.scopePath,
              .suffix = frame.suffix + "." + variable.placeholder, .depth = frame.depth + 1};
  inner.env.parent = &frame.env;
  inner.env.round = &variable;
  inner.env.constants[repeat.variable] = builder.getI64IntegerAttr(round);
  for (auto [source, argument] : zip(repeat.carried, body.getArguments()))
    if (!bind(source.name, argument, source.place, inner.env))
      return nullptr;
  Operation *outerParam = std::exchange(lastParam, nullptr);
  llvm::StringMap<Location> outerNames = std::exchange(paramNames, {});
  rounds.emplace_back(fresh, round);
  bool wasInRepeat = std::exchange(evaluator.isInRepeat, true);
  bool sound = runBody(repeat.body, inner, next, ast::Return::Kind::Yield);
  evaluator.isInRepeat = wasInRepeat;
  rounds.pop_back();
  paramNames = std::move(outerNames);
  lastParam = outerParam;
  if (!sound)
    return nullptr;
  if (next.size() != carried.size()) {
    error(repeat.place) << "repeat carries " << carried.size() << (carried.size() == 1 ? " value" : " values")
                        << ", but its body yields " << next.size();
    return nullptr;
  }
  OperationState yield(evaluator.location(repeat.place), net::YieldOp::getOperationName());
  yield.addOperands(map_to_vector(next, [](const NamedValue &value) { return value.value; }));
  builder.create(yield);
  return op;
}

/// The rounds of a repeat that is one round of the source: into the body around it; gives what they yield.
SmallVector<Value> Elaborator::inlineRepeat(net::RepeatOp repeat) {
  SmallVector<Value> results(repeat.yielded());
  for (auto [argument, initial] : zip(repeat.getBody().getArguments(), repeat.getInitial()))
    for (Value &result : results)
      if (result == argument)
        result = initial;
  net::unroll(repeat);
  return results;
}

/// True if both are the same but for the rounds: operators, names, attributes, places.
static bool areAlike(net::RepeatOp a, net::RepeatOp b) {
  return a.getVariable() == b.getVariable() && a.endRound() == b.firstRound() &&
         ValueRange(a.getResults()) == b.getInitial() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::None);
}

/// Rounds that are alike stay folded in one `net.repeat`: all, where nothing but names depends on the variable; otherwise
/// each is expanded and compared with the one before. A round that changes the type of a carried value stands alone.
bool Elaborator::runRepeat(const ast::Repeat &repeat, const ast::Assign &assign, Frame &frame) {
  FailureOr<int64_t> from = evaluator.evaluateInteger(repeat.from, frame.env, "the first round");
  FailureOr<int64_t> to = evaluator.evaluateInteger(repeat.to, frame.env, "the last round");
  if (failed(from) || failed(to))
    return false;
  if (*to < *from) {
    error(repeat.place) << "repeat ends at " << *to << ", before it begins at " << *from;
    return false;
  }
  std::optional<int64_t> count = checkedSub(*to, *from);
  if (!count || *count > maximumRounds) {
    error(repeat.place) << "repeat has more than " << maximumRounds << " rounds";
    return false;
  }
  std::vector<NamedValue> carried;
  for (const ast::Carried &value : repeat.carried) {
    FailureOr<Value> initial = evaluator.findValue(value.initial, value.initialPlace, frame.env);
    if (failed(initial))
      return false;
    carried.push_back({value.name, *initial, value.place});
  }
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  net::RepeatOp last; // rounds that are alike, right before this one
  auto carry = [&](ValueRange values) {
    for (auto [value, next] : zip(carried, values))
      value.value = next;
  };
  auto finishLast = [&] {
    if (last && last.rounds() == 1)
      carry(inlineRepeat(last));
    last = nullptr;
  };
  for (int64_t round = *from; round < *to;) {
    RoundVariable variable;
    std::vector<NamedValue> next;
    int64_t counted = statementCount;
    size_t pinned = shardings.count();
    net::RepeatOp op = expandRound(repeat, round, carried, frame, variable, next);
    if (!op)
      return false;
    bool isPinned = shardings.count() > pinned;
    bool mayFold = TypeRange(op.yielded()) == op.getResultTypes() && !(isPinned && variable.isUsed) &&
                   !shardings.speakOfAny(op.getBody().getArguments());
    if (!mayFold) {
      finishLast();
      for (auto [argument, initial] : zip(op.getBody().getArguments(), op.getInitial()))
        if (!shardings.move(argument, initial))
          return false;
      carry(inlineRepeat(op));
      ++round;
      continue;
    }
    if (!variable.isUsed) {
      op.setTo(*to);
      statementCount += (statementCount - counted) * (*to - round - 1);
      if (statementCount > maximumStatements) {
        error(repeat.body.close) << "the network has more than " << maximumStatements << " statements after expansion";
        return false;
      }
    }
    if (last && areAlike(last, op)) {
      last.setTo(op.endRound());
      op.erase();
    } else {
      finishLast();
      last = op;
    }
    carry(last.getResults());
    round = last.endRound();
  }
  finishLast();
  lastParam = block->empty() ? nullptr : &block->back();
  return (!rounds.empty() || claimNamesBehind(before, block)) &&
         bindResults(assign, carried, "repeat", repeat.place, frame);
}

bool Elaborator::runIf(const ast::If &branches, const ast::Assign &assign, Frame &frame) {
  for (const ast::Branch &branch : branches.branches) {
    if (branch.condition) {
      FailureOr<bool> holds = evaluator.evaluateBool(*branch.condition, frame.env, "the condition");
      if (failed(holds))
        return false;
      if (!*holds)
        continue;
    }
    Frame inner{.prefix = frame.prefix, .scopePath = frame.scopePath, .suffix = frame.suffix, .depth = frame.depth + 1};
    inner.env.parent = &frame.env;
    std::vector<NamedValue> results;
    return runBody(branch.body, inner, results, ast::Return::Kind::Yield) &&
           bindResults(assign, results, "this if", branches.place, frame);
  }
  return false;
}

} // namespace msc::frontend
