// The arguments of a call of an operator: operands, numbers in their place, attributes without a name.
#include "frontend/OperatorBuilder.h"

#include "dialects/net/Suggest.h"
#include "frontend/MindSporeForms.h"
#include "frontend/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace msc::frontend {
using net::AttributeKind;
using net::AttributeSpec;

bool OperatorBuilder::takeOperand(const ast::Expr &expr) {
  SmallVector<Value> values;
  if (!parent.takeValues(expr, frame, values)) {
    state.operands.push_back({}); // so that the operands are counted
    return false;
  }
  state.operands.append(values.begin(), values.end());
  return true;
}

/// The only attribute that has to be given, or that there is, and takes such a value; empty if it may be another's.
StringRef OperatorBuilder::meantAttribute(Attribute value) {
  SmallVector<StringRef> meant;
  for (const AttributeSpec &spec : interface.attributeSpecs()) {
    auto word = dyn_cast<StringAttr>(value);
    bool isWord = spec.kind == AttributeKind::String && !(word && is_contained(spec.words, word.getValue()));
    if (!spec.positional && !isWord && !state.attributes.get(spec.name) && convertAttribute(spec.kind, value, builder))
      meant.push_back(spec.name);
  }
  return meant.size() == 1 ? meant.front() : "";
}

/// What else a number without a name may have meant, for whom other systems taught.
static std::string habitOf(StringRef attribute, std::optional<double> number) {
  if (attribute != "keep_prob" || !number || *number <= 0 || *number >= 1)
    return "";
  const double kept = std::round((1 - *number) * 1e6) / 1e6; // without what subtracting left
  if (kept <= 0 || kept >= 1)
    return "";
  return ", the probability to be kept, or keep_prob: " + net::numberText(kept) + " if it is that to be dropped";
}

static bool isNumber(const ast::Expr &expr) {
  if (expr.kind == ast::Expr::Kind::Negate)
    return isNumber(expr.items.front().value);
  return expr.kind == ast::Expr::Kind::Int || expr.kind == ast::Expr::Kind::Float;
}

/// The call with the bare numbers behind its operands as the one list that `spec` is: Reshape(%x, (-1, 4)). Empty where they are no such list, or
/// not all that is missing.
std::string OperatorBuilder::withNumbersInBrackets(const AttributeSpec &spec) {
  std::vector<std::string> arguments, numbers;
  const size_t most = interface.inputNames().size();
  if (any_of(interface.attributeSpecs(), [&](const AttributeSpec &other) { return other.required && other.name != spec.name; }))
    return "";
  for (const ast::Arg &arg : call.args) {
    if (!arg.key.empty() || (arg.value.kind != ast::Expr::Kind::Value && !isNumber(arg.value)))
      return "";
    if (arg.value.kind == ast::Expr::Kind::Value) {
      if (!numbers.empty())
        return "";
      arguments.push_back("%" + arg.value.text);
      continue;
    }
    FailureOr<Attribute> value = parent.evaluator.evaluate(arg.value, frame.env);
    if (failed(value) || !convertAttribute(spec.kind, *value, builder))
      return "";
    numbers.push_back(net::valueText(*value));
  }
  if (arguments.size() > most || arguments.size() + interface.optionalInputs() < most || llvm::count(numbers, "-1") > 1)
    return "";
  arguments.push_back("(" + join(numbers, ", ") + ")");
  return call.callee + "(" + join(arguments, ", ") + ")";
}

/// The call with its bare numbers as the attributes that it does not name, in their order: other systems have them between operands, or without
/// names. Empty where that makes no call.
std::string OperatorBuilder::withNamedNumbers() {
  std::vector<std::string> operands, attributes;
  SmallVector<const AttributeSpec *> unnamed;
  for (const ast::Attributes &list : call.attributes) // then it is another's number that is bare
    if (any_of(list.fields, [&](const ast::Arg &field) { return findSpec(field.key); }))
      return "";
  for (const AttributeSpec &spec : interface.attributeSpecs())
    if (none_of(call.args, [&](const ast::Arg &arg) { return arg.key == spec.name; }))
      unnamed.push_back(&spec);
  for (const ast::Arg &arg : call.args) {
    const ast::Expr &expr = arg.value;
    if (arg.key.empty() && expr.kind == ast::Expr::Kind::Value) {
      operands.push_back("%" + expr.text);
      continue;
    }
    if (!isNumber(expr) || (arg.key.empty() && unnamed.empty()))
      return "";
    if (arg.key.empty() && unnamed.front()->positional && unnamed.front()->kind == AttributeKind::IntTuple)
      return withNumbersInBrackets(*unnamed.front());
    FailureOr<Attribute> value = parent.evaluator.evaluate(expr, frame.env);
    if (failed(value) || (arg.key.empty() && !convertAttribute(unnamed.front()->kind, *value, builder)))
      return "";
    attributes.push_back((arg.key.empty() ? unnamed.front()->name.str() : arg.key) + ": " + net::valueText(*value));
    if (arg.key.empty())
      unnamed.erase(unnamed.begin());
  }
  const size_t most = interface.inputNames().size();
  if (operands.size() > most || operands.size() + interface.optionalInputs() < most)
    return "";
  operands.insert(operands.end(), attributes.begin(), attributes.end());
  return call.callee + "(" + join(operands, ", ") + ")";
}

/// A value that is no operand: a number in an operand's place, or the next positional attribute.
bool OperatorBuilder::takePositional(const ast::Arg &arg) {
  FailureOr<Attribute> value = parent.evaluator.evaluate(arg.value, frame.env);
  if (failed(value))
    return isArityKnown = false;
  std::optional<double> number = net::asNumber(*value);
  if (number && state.operands.size() < interface.inputNames().size()) {
    constants.push_back({state.operands.size(), *number});
    state.operands.push_back({});
    return true;
  }
  SmallVector<const AttributeSpec *> specs;
  for (const AttributeSpec &spec : interface.attributeSpecs())
    if (spec.positional)
      specs.push_back(&spec);
  if (positional >= specs.size()) {
    isArityKnown = false; // meant as an operand
    if (!namedNumbers.empty())
      return false; // said for all
    namedNumbers = withNamedNumbers();
    InFlightDiagnostic diagnostic = error(arg.value.place) << "'" << call.callee << "' does not take '"
                                                           << net::valueText(*value) << "' without a name";
    if (const bool isShare = findSpec("keep_prob") && number; isShare && (*number <= 0 || *number > 1)) {
      if (*number == 0)
        net::addHelp(diagnostic, "leave it out: Dropout that drops nothing changes nothing");
    } else if (!namedNumbers.empty())
      net::addHelp(diagnostic, "write " + namedNumbers + (findSpec("keep_prob") ? habitOf("keep_prob", number) : ""));
    else if (StringRef meant = meantAttribute(*value); !meant.empty())
      net::addHelp(diagnostic, "write " + meant + ": " + net::valueText(*value) + habitOf(meant, number));
    else if (arg.value.kind == ast::Expr::Kind::Word)
      net::addSuggestion(diagnostic, arg.value.text, frame.env.valueNames(), "%");
    if (arg.value.kind == ast::Expr::Kind::Call)
      addNestingHelp(diagnostic, *value);
    return false;
  }
  const AttributeSpec &spec = *specs[positional++];
  given.try_emplace(spec.name, arg.value.place);
  if (arg.value.kind != ast::Expr::Kind::Call || convertAttribute(spec.kind, *value, builder))
    return convert(spec, *value, arg.value);
  isArityKnown = false; // meant as an operand
  InFlightDiagnostic diagnostic = unfit(spec, *value, arg.value);
  addNestingHelp(diagnostic, *value);
  return false;
}

bool OperatorBuilder::takeArguments() {
  bool sound = true;
  for (const ast::Arg &arg : call.args) {
    bool fine = true;
    if (!arg.key.empty()) {
      fine = is_contained(ofAnyOperator, arg.key) ? takeAttribute(arg, {}) : takeOwnAttribute(arg.key, arg);
      isArityKnown = isArityKnown && arg.value.kind != ast::Expr::Kind::Value;
    } else if (arg.value.kind == ast::Expr::Kind::Value || arg.value.kind == ast::Expr::Kind::Outer) {
      fine = takeOperand(arg.value);
    } else if (arg.value.isList() && ((state.operands.empty() && !interface.inputNames().empty()) ||
                                      (!arg.value.items.empty() && arg.value.items.front().value.kind == ast::Expr::Kind::Value))) { // Concat((%a, %b))
      for (const ast::Arg &item : arg.value.items) {
        if (item.value.kind != ast::Expr::Kind::Value) {
          addListHelp(error(item.value.place) << "expected a value such as %x", call.callee);
          return isArityKnown = false;
        }
        fine = takeOperand(item.value) && fine;
      }
    } else {
      fine = takePositional(arg);
    }
    sound = sound && fine;
  }
  return sound;
}

bool OperatorBuilder::checkArity() {
  size_t expected = interface.inputNames().size(), found = state.operands.size();
  size_t least = expected - interface.optionalInputs();
  bool tooMany = found > expected && !name.hasTrait<OpTrait::VariadicOperands>();
  if (found >= least && !tooMany)
    return true;
  InFlightDiagnostic diagnostic = error(call.place);
  diagnostic << "'" << call.callee << "' takes " << (least < expected ? std::to_string(least) + " to " : "") << expected
             << (expected == 1 ? " operand" : " operands") << " (" << join(interface.inputNames(), ", ") << "), but " << found
             << (found == 1 ? " is given" : " are given");
  std::string repair = withNamedNumbers();
  if (repair.empty()) {
    std::vector<std::string> all;
    for (StringRef operand : interface.inputNames())
      all.push_back("%" + operand.str());
    for (const AttributeSpec &spec : interface.attributeSpecs())
      if (spec.required)
        all.push_back(spec.name.str() + ": ...");
    repair = call.callee + "(" + join(all, ", ") + ")";
  }
  net::addHelp(diagnostic, "write " + repair);
  return false;
}

/// Numbers become scalars of the element type of the tensors beside them.
bool OperatorBuilder::addConstants() {
  auto isTensor = [](Value value) { return static_cast<bool>(value); };
  if (!constants.empty() && none_of(state.operands, isTensor)) {
    error(call.place) << "'" << call.callee << "' needs at least one value among its operands";
    return false;
  }
  const bool isFirstTensor = !state.operands.empty() && isTensor(state.operands.front());
  for (auto [index, number] : constants) {
    auto [first, behind] = alikeOperands(call.callee, index, state.operands.size(), isFirstTensor);
    auto alike = ArrayRef(state.operands).slice(first, behind - first);
    auto tensor = find_if(alike, isTensor);
    Type element = tensor == alike.end() ? builder.getF32Type() : cast<RankedTensorType>((*tensor).getType()).getElementType();
    auto type = RankedTensorType::get({}, element);
    if (!net::holdsNumber(element, number)) {
      InFlightDiagnostic diagnostic = error(call.place);
      diagnostic << "'" << call.callee << "' mixes the number " << number << " with a tensor of " << elementTypeName(element)
                 << ", which cannot hold it";
      auto real = dyn_cast<FloatType>(element);
      net::addHelp(diagnostic, real ? "the largest number of " + elementTypeName(element) + " is " +
                                          net::numberText(APFloat::getLargest(real.getFloatSemantics()).convertToDouble())
                                    : "write a number that the type holds, or cast the tensor to another type with Cast");
      return false;
    }
    auto constant = builder.create<net::ConstantOp>(state.location, type, builder.getF64FloatAttr(number));
    state.operands[index] = constant;
  }
  return true;
}

} // namespace msc::frontend
