#include "frontend/Evaluate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Repeat.h"
#include "dialects/net/Suggest.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace msc::frontend {
using ast::Arg;
using ast::Expr;

//===----------------------------------------------------------------------===//
// Names and places
//===----------------------------------------------------------------------===//

const Binding *Environment::findValue(StringRef name) const {
  for (const Environment *env = this; env; env = env->parent)
    if (auto found = env->values.find(name); found != env->values.end())
      return &found->second;
  return nullptr;
}

bool Environment::missesFirst(StringRef name) const {
  for (const Environment *env = parent; env; env = env->parent)
    if (env->unknown.contains(name))
      return false;
  return unknown.insert(name).second;
}

std::optional<Attribute> Environment::findConstant(StringRef name) const {
  for (const Environment *env = this; env; env = env->parent)
    if (auto found = env->constants.find(name); found != env->constants.end()) {
      if (env->round && env->round->name == name)
        env->round->isUsed = true;
      return found->second;
    }
  return std::nullopt;
}

const RoundVariable *Environment::findRound(StringRef name) const {
  for (const Environment *env = this; env; env = env->parent)
    if (env->constants.count(name))
      return env->round && env->round->name == name ? env->round : nullptr;
  return nullptr;
}

template <typename Map> static std::vector<std::string> sortedKeys(const Environment *env, Map Environment::*map) {
  std::vector<std::string> names;
  for (; env; env = env->parent)
    for (const auto &entry : env->*map)
      names.push_back(entry.getKey().str());
  llvm::sort(names);
  return names;
}

std::vector<std::string> Environment::valueNames() const { return sortedKeys(this, &Environment::values); }
std::vector<std::string> Environment::constantNames() const { return sortedKeys(this, &Environment::constants); }

Location toLocation(MLIRContext *context, const SourceMgr &sources, SMLoc place) {
  unsigned buffer = place.isValid() ? sources.FindBufferContainingLoc(place) : 0;
  if (!buffer)
    return UnknownLoc::get(context);
  auto [line, column] = sources.getLineAndColumn(place, buffer);
  return FileLineColLoc::get(context, sources.getMemoryBuffer(buffer)->getBufferIdentifier(), line, column);
}

std::string keyText(StringRef key) {
  if (key.size() >= 2 && key.starts_with("\""))
    return key.drop_front().drop_back().str();
  return key.str();
}

Attribute unwrapTuple(Attribute attribute) {
  for (auto tuple = dyn_cast_or_null<ArrayAttr>(attribute); tuple && tuple.size() == 1;
       tuple = dyn_cast<ArrayAttr>(attribute))
    attribute = tuple[0];
  return attribute;
}

FailureOr<Value> Evaluator::findValue(StringRef name, const ast::Place &place, const Environment &env) {
  if (const Binding *binding = env.findValue(name)) {
    if (!binding->value && !namesOnly)
      return failure();
    return binding->value;
  }
  std::string text = ("%" + name).str();
  if (reportedNames.contains(text) && !namesOnly)
    return failure();
  if (!env.missesFirst(text))
    return failure();
  if (namesOnly)
    reportedNames.insert(text);
  InFlightDiagnostic diagnostic = error(place) << "undefined value '%" << name << "'";
  net::addSuggestion(diagnostic, name, env.valueNames(), "%");
  return failure();
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// Strings may be filled into each other; this keeps them from growing without bounds.
static constexpr size_t maximumString = 1 << 16;

FailureOr<std::string> Evaluator::decode(StringRef raw, const Environment &env, SMLoc place) {
  return decode(raw, env, place, /*isName=*/false);
}

FailureOr<std::string> Evaluator::decodeName(StringRef raw, const Environment &env, SMLoc place) {
  return decode(raw, env, place, isInRepeat);
}

FailureOr<std::string> Evaluator::decode(StringRef raw, const Environment &env, SMLoc place, bool isName) {
  std::string text;
  bool sound = true;
  auto add = [&](char c) { text.append(isName && c == '{' ? 2 : 1, c); };
  for (size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '\\' && i + 1 < raw.size()) {
      c = raw[++i];
      add(c == 'n' ? '\n' : c == 't' ? '\t' : c);
      continue;
    }
    StringRef name = c == '{' ? raw.substr(i + 1).take_until([](char b) { return b == '}'; }) : StringRef();
    if (!isIdent(name) || i + 1 + name.size() == raw.size()) {
      add(c);
      continue;
    }
    if (const RoundVariable *round = isName ? env.findRound(name) : nullptr) {
      text += round->placeholder;
      i += name.size() + 1;
      continue;
    }
    std::optional<Attribute> value = env.findConstant(name);
    if (!value && name == "rank") { // msrun fills it in
      add(c);
      continue;
    }
    if (!value) {
      InFlightDiagnostic diagnostic = error({place, place}) << "unknown name '" << name << "' in a string";
      net::addHelp(diagnostic, "write '\\{' for a brace that stands for itself");
    }
    if (!value || !*value) {
      sound = false;
      continue;
    }
    auto inner = dyn_cast<StringAttr>(*value);
    std::string filled = inner ? inner.getValue().str() : net::valueText(*value);
    text += isName ? net::escapedName(filled) : filled;
    i += name.size() + 1;
    if (text.size() > maximumString) {
      InFlightDiagnostic diagnostic = error({place, place}) << "this string is longer than " << maximumString << " bytes";
      net::addHelp(diagnostic, "write a shorter one");
      return diagnostic;
    }
  }
  if (!sound)
    return failure();
  return text;
}

FailureOr<Attribute> Evaluator::evaluate(const Expr &expr, const Environment &env) {
  StringRef text = expr.text;
  switch (expr.kind) {
  case Expr::Kind::Int: {
    int64_t value = 0;
    if (text.getAsInteger(10, value))
      return error(expr.place) << "the number " << text.take_front(40) << " does not fit into 64 bits";
    return Attribute(builder.getI64IntegerAttr(value));
  }
  case Expr::Kind::Float: {
    double value = 0;
    if (text.getAsDouble(value, /*AllowInexact=*/true) || !std::isfinite(value))
      return error(expr.place) << "the number " << text.take_front(40) << " is too large";
    return Attribute(builder.getF64FloatAttr(value));
  }
  case Expr::Kind::String: {
    FailureOr<std::string> decoded = decode(text, env, expr.place.begin);
    if (failed(decoded))
      return failure();
    return Attribute(builder.getStringAttr(*decoded));
  }
  case Expr::Kind::Word:
    if (std::optional<Attribute> value = env.findConstant(text)) {
      if (!*value)
        return failure();
      return *value;
    }
    if (text == "true" || text == "false" || text == "True" || text == "False") // the latter as Python has them
      return Attribute(builder.getBoolAttr(StringRef(text).equals_insensitive("true")));
    return Attribute(builder.getStringAttr(text));
  case Expr::Kind::Value:
    return Attribute(builder.getDictionaryAttr(builder.getNamedAttr("value", builder.getStringAttr(text))));
  case Expr::Kind::Outer:
  case Expr::Kind::Graph:
    return error(expr.place) << "a graph's name cannot stand here";
  case Expr::Kind::Map: {
    FailureOr<DictionaryAttr> fields = evaluateFields(expr.items, env);
    if (failed(fields))
      return failure();
    return Attribute(*fields);
  }
  case Expr::Kind::Tuple:
  case Expr::Kind::List: {
    SmallVector<Attribute> elements;
    bool sound = true;
    for (const Arg &item : expr.items) {
      if (!item.key.empty())
        return error(item.keyPlace) << "an element of a tuple has no name, found '" << item.key << "'";
      FailureOr<Attribute> element = evaluate(item.value, env);
      sound = sound && succeeded(element);
      elements.push_back(succeeded(element) ? *element : Attribute());
    }
    if (!sound)
      return failure();
    return Attribute(builder.getArrayAttr(elements));
  }
  case Expr::Kind::Call: return evaluateCall(expr, env);
  case Expr::Kind::Negate: {
    FailureOr<Attribute> value = evaluate(expr.items.front().value, env);
    if (failed(value))
      return failure();
    if (auto integer = net::asInteger(*value); integer && *integer != INT64_MIN)
      return Attribute(builder.getI64IntegerAttr(-*integer));
    if (auto number = net::asNumber(*value))
      return Attribute(builder.getF64FloatAttr(-*number));
    return notANumber(expr.items.front().value, *value, env);
  }
  case Expr::Kind::Chain: return evaluateChain(expr, env);
  }
  return failure();
}

FailureOr<DictionaryAttr> Evaluator::evaluateFields(const std::vector<Arg> &fields, const Environment &env) {
  NamedAttrList list;
  llvm::StringMap<SMLoc> seen;
  bool sound = true;
  for (const Arg &field : fields) {
    std::string key = keyText(field.key);
    if (key.empty())
      return error(field.value.place) << "expected 'name: value'";
    auto [entry, added] = seen.try_emplace(key, field.keyPlace.begin);
    if (!added) {
      InFlightDiagnostic diagnostic = error(field.keyPlace) << "'" << key << "' is given twice";
      diagnostic.attachNote(toLocation(builder.getContext(), sources, entry->second)) << "first given here";
      return diagnostic;
    }
    FailureOr<Attribute> value = evaluate(field.value, env);
    sound = sound && succeeded(value);
    if (succeeded(value))
      list.append(key, *value);
  }
  if (!sound)
    return failure();
  return list.getDictionary(builder.getContext());
}

FailureOr<Attribute> Evaluator::evaluateCall(const Expr &expr, const Environment &env) {
  if (expr.text == "dim" || expr.text == "rank")
    return evaluateShape(expr, env);
  if (expr.text == "sqrt")
    return evaluateRoot(expr, env);
  if (expr.text == "fail")
    return evaluateFail(expr, env);
  Type type = readsTypedNumbers && expr.items.size() == 1 ? elementTypeFromName(expr.text, builder.getContext()) : Type();
  if (type) {
    FailureOr<Attribute> value = evaluate(expr.items.front().value, env);
    std::optional<int64_t> integer = succeeded(value) ? net::asInteger(*value) : std::nullopt;
    return type.isInteger(1) && integer ? Attribute(builder.getBoolAttr(*integer != 0)) : value;
  }
  SmallVector<Attribute> positional;
  std::vector<Arg> named;
  for (const Arg &arg : expr.items) {
    if (!arg.key.empty()) {
      named.push_back(arg);
      continue;
    }
    FailureOr<Attribute> value = evaluate(arg.value, env);
    if (failed(value))
      return failure();
    positional.push_back(*value);
  }
  FailureOr<DictionaryAttr> fields = evaluateFields(named, env);
  if (failed(fields))
    return failure();
  return Attribute(builder.getDictionaryAttr({builder.getNamedAttr("callee", builder.getStringAttr(expr.text)),
                                              builder.getNamedAttr("args", builder.getArrayAttr(positional)),
                                              builder.getNamedAttr("named", *fields)}));
}

FailureOr<Attribute> Evaluator::evaluateRoot(const Expr &expr, const Environment &env) {
  if (expr.items.size() != 1 || !expr.items.front().key.empty())
    return error(expr.place) << "expected sqrt(x)";
  const Expr &operand = expr.items.front().value;
  FailureOr<Attribute> value = evaluate(operand, env);
  if (failed(value))
    return failure();
  std::optional<double> number = net::asNumber(*value);
  if (!number)
    return notANumber(operand, *value, env);
  if (namesOnly)
    return failure();
  if (*number < 0)
    return error(operand.place) << "the root of " << *number << " is not a number";
  return Attribute(builder.getF64FloatAttr(std::sqrt(*number)));
}

/// `fail("...")`: how a cell refuses an argument.
FailureOr<Attribute> Evaluator::evaluateFail(const Expr &expr, const Environment &env) {
  if (expr.items.size() != 1 || expr.items.front().value.kind != Expr::Kind::String)
    return error(expr.place) << "expected fail(\"what is wrong\")";
  FailureOr<std::string> text = decode(expr.items.front().value.text, env, expr.place.begin);
  if (failed(text) || namesOnly)
    return failure();
  return error(expr.place) << *text;
}

FailureOr<Attribute> Evaluator::evaluateShape(const Expr &expr, const Environment &env) {
  bool isDim = expr.text == "dim";
  if (expr.items.size() != (isDim ? 2 : 1) || expr.items.front().value.kind != Expr::Kind::Value)
    return error(expr.place) << "expected " << (isDim ? "dim(%x, k)" : "rank(%x)");
  const Expr &operand = expr.items.front().value;
  FailureOr<Value> value = findValue(operand.text, operand.place, env);
  if (failed(value) || !*value)
    return failure();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value->getType()).getShape();
  int64_t rank = static_cast<int64_t>(shape.size());
  if (!isDim)
    return Attribute(builder.getI64IntegerAttr(rank));
  FailureOr<int64_t> index = evaluateInteger(expr.items[1].value, env, "a dimension");
  if (failed(index))
    return failure();
  if (*index < -rank || *index >= rank)
    return error(expr.items[1].value.place) << "'%" << operand.text << "' has " << rank << " dimensions, dimension "
                                            << *index << " does not exist";
  return Attribute(builder.getI64IntegerAttr(shape[*index < 0 ? *index + rank : *index]));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

LogicalResult Evaluator::notANumber(const Expr &expr, Attribute value, const Environment &env) {
  if (expr.kind != Expr::Kind::Word || !isa<StringAttr>(value)) {
    emitError(location(expr.place)) << "expected a number, found '" << net::valueText(value) << "'";
    return failure();
  }
  if (env.findConstant(expr.text)) { // it is a word itself, perhaps the name of what stands below it
    InFlightDiagnostic diagnostic = error(expr.place) << "expected a number, found '" << net::valueText(value) << "'";
    net::addHelp(diagnostic, "'" + expr.text + "' stands for that word; a const knows the numbers that stand above it");
    return failure();
  }
  bool isDifference = isDigit(expr.text.front());
  bool isReported = !namesOnly && reportedNames.contains(expr.text);
  if (namesMissing || (!isDifference && (isReported || !env.missesFirst(expr.text))))
    return failure();
  InFlightDiagnostic diagnostic = error(expr.place);
  if (isDifference) {
    diagnostic << "'" << expr.text << "' is one word, not a difference";
    net::addHelp(diagnostic, "put blanks around '-'");
    return failure();
  }
  if (namesOnly)
    reportedNames.insert(expr.text);
  diagnostic << "unknown name '" << expr.text << "'";
  net::addSuggestion(diagnostic, expr.text, env.constantNames());
  return failure();
}

FailureOr<int64_t> Evaluator::evaluateInteger(const Expr &expr, const Environment &env, StringRef what) {
  FailureOr<Attribute> value = evaluate(expr, env);
  if (failed(value))
    return failure();
  if (std::optional<int64_t> integer = net::asInteger(*value))
    return *integer;
  if (expr.kind == Expr::Kind::Word && !isa<FloatAttr>(*value))
    return notANumber(expr, *value, env);
  if (expr.kind == Expr::Kind::Word) {
    auto found = defined.find(expr.text);
    const bool isDefined = found != defined.end() && found->second == net::valueText(*value);
    if (isDefined && !reportedNames.insert("-D " + expr.text).second) // one mistake
      return failure();
    InFlightDiagnostic diagnostic = error(expr.place) << "expected a whole number, found '" << net::valueText(*value) << "'";
    if (isDefined)
      net::addHelp(diagnostic, "it is that of -D " + expr.text + "=" + found->second);
    return failure();
  }
  return error(expr.place) << what << " has to be a whole number, found '" << net::valueText(*value) << "'";
}

FailureOr<bool> Evaluator::evaluateBool(const Expr &expr, const Environment &env, StringRef what) {
  FailureOr<Attribute> value = evaluate(expr, env);
  if (failed(value))
    return failure();
  if (auto boolean = dyn_cast<BoolAttr>(unwrapTuple(*value)))
    return boolean.getValue();
  return error(expr.place) << what << " has to be true or false, found '" << net::valueText(*value) << "'";
}

FailureOr<Attribute> Evaluator::logic(const Expr &expr, const Environment &env) {
  bool isOr = expr.items[1].key == "||";
  for (const Arg &link : expr.items) {
    FailureOr<bool> value = evaluateBool(link.value, env, isOr ? "each side of '||'" : "each side of '&&'");
    if (failed(value))
      return failure();
    if (*value == isOr)
      return Attribute(builder.getBoolAttr(isOr));
  }
  return Attribute(builder.getBoolAttr(!isOr));
}

void Evaluator::checkNames(const Expr &chain, const Environment &env) {
  StringRef op = chain.items[1].key;
  bool takesWords = op == "==" || op == "!=" || op == "&&" || op == "||";
  for (const Arg &link : chain.items) {
    FailureOr<Attribute> value = evaluate(link.value, env);
    if (succeeded(value) && !takesWords && !net::asNumber(unwrapTuple(*value)))
      (void)notANumber(link.value, *value, env);
  }
}

FailureOr<Attribute> Evaluator::evaluateChain(const Expr &expr, const Environment &env) {
  if (namesOnly) {
    checkNames(expr, env);
    return failure();
  }
  if (expr.items[1].key == "||" || expr.items[1].key == "&&")
    return logic(expr, env);
  FailureOr<Attribute> result = evaluate(expr.items.front().value, env);
  if (failed(result))
    return failure();
  for (const Arg &link : drop_begin(expr.items)) {
    FailureOr<Attribute> right = evaluate(link.value, env);
    if (failed(right))
      return failure();
    result = combine(*result, link, *right, expr.items.front().value, env);
    if (failed(result))
      return failure();
  }
  return result;
}

FailureOr<Attribute> Evaluator::combine(Attribute left, const Arg &link, Attribute right, const Expr &leftExpr,
                                        const Environment &env) {
  left = unwrapTuple(left);
  right = unwrapTuple(right);
  if ((link.key == "==" || link.key == "!=") && left.getTypeID() == right.getTypeID() &&
      isa<StringAttr, BoolAttr>(left))
    return Attribute(builder.getBoolAttr((left == right) == (link.key == "==")));
  std::optional<int64_t> a = net::asInteger(left), b = net::asInteger(right);
  if (a && b)
    return combineIntegers(*a, link, *b);
  std::optional<double> x = net::asNumber(left), y = net::asNumber(right);
  if (x && y)
    return combineFloats(*x, link, *y);
  return x ? notANumber(link.value, right, env) : notANumber(leftExpr, left, env);
}

FailureOr<Attribute> Evaluator::combineIntegers(int64_t a, const Arg &link, int64_t b) {
  StringRef op = link.key;
  if ((op == "/" || op == "%") && b == 0)
    return error(link.keyPlace) << "division of " << a << " by 0";
  std::optional<int64_t> result;
  if (op == "+")
    result = checkedAdd(a, b);
  else if (op == "-")
    result = checkedSub(a, b);
  else if (op == "*")
    result = checkedMul(a, b);
  else if (op == "/" || op == "%") { // rounds down, so that both fit together for negative numbers too
    if (a == INT64_MIN && b == -1)
      return error(link.keyPlace) << "the result of '" << op << "' does not fit into 64 bits";
    int64_t quotient = a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
    result = op == "/" ? quotient : a - quotient * b;
  } else {
    bool holds = op == "==" ? a == b : op == "!=" ? a != b : op == "<" ? a < b : op == ">" ? a > b
               : op == "<=" ? a <= b : a >= b;
    return Attribute(builder.getBoolAttr(holds));
  }
  if (!result)
    return error(link.keyPlace) << "the result of '" << op << "' does not fit into 64 bits";
  return Attribute(builder.getI64IntegerAttr(*result));
}

FailureOr<Attribute> Evaluator::combineFloats(double a, const Arg &link, double b) {
  StringRef op = link.key;
  if (op == "==" || op == "!=" || op == "<" || op == ">" || op == "<=" || op == ">=") {
    bool holds = op == "==" ? a == b : op == "!=" ? a != b : op == "<" ? a < b : op == ">" ? a > b
               : op == "<=" ? a <= b : a >= b;
    return Attribute(builder.getBoolAttr(holds));
  }
  double result = op == "+" ? a + b : op == "-" ? a - b : op == "*" ? a * b : op == "/" ? a / b : std::fmod(a, b);
  if (!std::isfinite(result))
    return error(link.keyPlace) << "the result of '" << op << "' is not finite";
  return Attribute(builder.getF64FloatAttr(result));
}

} // namespace msc::frontend
