// One call of an operator: operands, attributes, result types.
#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/Suggest.h"
#include "dialects/net/ops/support/Infer.h"
#include "frontend/AttributeValues.h"
#include "frontend/LeftOut.h"
#include "frontend/MindSporeForms.h"
#include "frontend/PrintValues.h"
#include "frontend/Types.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {
using net::AttributeKind;
using net::AttributeSpec;

/// Attributes that all operators have.
static constexpr StringRef ofAnyOperator[] = {"in_strategy", "out_strategy", "recompute", "sharding"};

/// Builds one operator. Every step returns false after reporting.
class OperatorBuilder {
public:
  OperatorBuilder(Elaborator &parent, const ast::Call &call, const ast::Assign &assign, Frame &frame,
                  RegisteredOperationName name)
      : parent(parent), call(call), assign(assign), frame(frame), name(name),
        interface(*name.getInterface<net::Operator>()), builder(parent.builder),
        state(parent.locationOf(call.place, call.origin), name) {}

  bool build();

private:
  bool takeArguments();
  bool takeOperand(const ast::Expr &expr);
  bool takePositional(const ast::Arg &arg);
  bool takeAttributeLists();
  bool takeAttribute(const ast::Arg &field, const ast::Attributes &list);
  bool takeOwnAttribute(StringRef key, const ast::Arg &field);
  bool isNew(StringRef key, const ast::Arg &field);
  bool takeStrategy(StringRef key, const ast::Arg &field);
  bool convert(const AttributeSpec &spec, Attribute value, const ast::Expr &expr);
  bool addConstants();
  bool checkArity();
  bool checkRequired();
  bool fillRankSize();
  StringRef meantAttribute(Attribute value);
  std::string withNamedNumbers();
  bool takeFixedPieces(Operation *op);
  bool isLeftOut() const;
  bool finish(Operation *op);
  bool checkStrategy(Operation *op, const net::Strategy &strategy, ValueRange values, StringRef key, StringRef what);
  bool refuseFlatStrategies(Operation *op);
  bool checkSignature();
  std::vector<StringRef> specNames() const;
  const AttributeSpec *findSpec(StringRef key) const;
  InFlightDiagnostic error(const ast::Place &place) { return parent.error(place); }
  InFlightDiagnostic unfit(const AttributeSpec &spec, Attribute value, const ast::Expr &expr) {
    return std::move(error(expr.place) << "'" << spec.name << "' of '" << call.callee << "' expects " << kindText(spec.kind) << ", found '"
                                       << net::valueText(value) << "'");
  }

  struct GivenStrategy {
    net::Strategy pieces;
    ast::Place place;
  };

  Elaborator &parent;
  const ast::Call &call;
  const ast::Assign &assign;
  Frame &frame;
  RegisteredOperationName name;
  net::Operator::Concept &interface;
  OpBuilder &builder;
  OperationState state;
  /// Operands that were written as numbers: (index, value).
  SmallVector<std::pair<size_t, double>> constants;
  llvm::StringMap<ast::Place> given;
  std::optional<GivenStrategy> inStrategy, outStrategy;
  struct FlatStrategy {
    GivenStrategy given; ///< one tuple
    bool isIn = true; ///< of operands
    std::string text; ///< as it was written
  };
  std::vector<FlatStrategy> flatStrategies; ///< that lack the parentheses of the list
  const ast::Arg *sharding = nullptr;  ///< of the first result
  std::string origin = "user", source; ///< who decided the strategies
  std::string instance;
  SmallVector<int64_t> alike; ///< see net::getAlike
  SmallVector<int64_t> fixed; ///< see net::getFixedPieces
  std::string fixedPlace;     ///< see net::getFixedPlace
  bool recompute = false;
  size_t positional = 0; ///< next positional attribute
  std::string namedNumbers; ///< a repair that names all numbers, once one of them was refused
  bool isArityKnown = true; ///< false: an argument that nobody knows yet may be an operand or an attribute
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

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
    const bool isNumber = expr.kind == ast::Expr::Kind::Int || expr.kind == ast::Expr::Kind::Float;
    if (!isNumber || (arg.key.empty() && unnamed.empty()))
      return "";
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
    if (!namedNumbers.empty())
      net::addHelp(diagnostic, "write " + namedNumbers);
    else if (StringRef meant = meantAttribute(*value); !meant.empty())
      net::addHelp(diagnostic, "write " + meant + ": " + net::valueText(*value));
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

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeSpec *OperatorBuilder::findSpec(StringRef key) const {
  auto found = find_if(interface.attributeSpecs(), [&](const AttributeSpec &spec) { return spec.name == key; });
  return found == interface.attributeSpecs().end() ? nullptr : found;
}

std::vector<StringRef> OperatorBuilder::specNames() const {
  std::vector<StringRef> names;
  for (const AttributeSpec &spec : interface.attributeSpecs())
    names.push_back(spec.name);
  return names;
}

bool OperatorBuilder::convert(const AttributeSpec &spec, Attribute value, const ast::Expr &expr) {
  Attribute converted = convertAttribute(spec.kind, value, builder);
  if (!converted)
    return unfit(spec, value, expr), false;
  auto word = dyn_cast<StringAttr>(converted);
  if (word && !spec.words.empty()) {
    const StringRef known = knownWord(spec, word.getValue());
    if (known.empty()) {
      InFlightDiagnostic diagnostic = error(expr.place) << "unknown " << spec.name << " '" << word.getValue() << "' of '"
                                                        << call.callee << "': expected " << join(spec.words, ", ");
      net::addSuggestion(diagnostic, word.getValue(), spec.words);
      return false;
    }
    converted = builder.getStringAttr(known);
  }
  state.addAttribute(spec.name, converted);
  return true;
}

bool OperatorBuilder::isNew(StringRef key, const ast::Arg &field) {
  auto [entry, added] = given.try_emplace(key, field.keyPlace);
  if (!added) {
    InFlightDiagnostic diagnostic = error(field.keyPlace) << "'" << key << "' is given twice";
    diagnostic.attachNote(parent.evaluator.location(entry->second)) << "first given here";
  }
  return added;
}

bool OperatorBuilder::takeOwnAttribute(StringRef key, const ast::Arg &field) {
  const AttributeSpec *spec = findSpec(key);
  if (!spec) {
    InFlightDiagnostic diagnostic = error(field.keyPlace) << "unknown attribute '" << key << "' of '" << call.callee << "'";
    addAttributeHelp(diagnostic, key, specNames(), ofAnyOperator);
    return false;
  }
  if (!isNew(key, field))
    return false;
  FailureOr<Attribute> value = parent.evaluator.evaluate(field.value, frame.env);
  return succeeded(value) && convert(*spec, *value, field.value);
}

/// `((2, 4), (4, 1))`: one tuple per operand or result.
static std::optional<net::Strategy> readStrategy(Attribute value) {
  auto tuples = dyn_cast<ArrayAttr>(value);
  if (!tuples)
    return std::nullopt;
  net::Strategy strategy;
  for (Attribute tuple : tuples) {
    auto numbers = dyn_cast<ArrayAttr>(tuple);
    if (!numbers)
      return std::nullopt;
    auto &pieces = strategy.emplace_back();
    for (Attribute number : numbers) {
      std::optional<int64_t> count = net::asInteger(number);
      if (!count)
        return std::nullopt;
      pieces.push_back(*count);
    }
  }
  return strategy;
}

namespace {
/// A number of pieces that is no integer, and where it stands.
struct FractionalPieces {
  Attribute count;
  size_t tuple, dim;
};
} // namespace

/// The first one of a strategy whose tuples are flat.
static std::optional<FractionalPieces> findFraction(Attribute value) {
  if (auto tuples = dyn_cast<ArrayAttr>(value))
    for (auto [tuple, element] : enumerate(tuples))
      if (auto numbers = dyn_cast<ArrayAttr>(element))
        for (auto [dim, number] : enumerate(numbers))
          if (isa<FloatAttr>(number))
            return FractionalPieces{number, tuple, dim};
  return std::nullopt;
}

bool OperatorBuilder::takeStrategy(StringRef key, const ast::Arg &field) {
  FailureOr<Attribute> value = parent.evaluator.evaluate(field.value, frame.env);
  if (failed(value))
    return false;
  if (auto word = dyn_cast<StringAttr>(*value); word && word.getValue() == "None")
    return true;
  std::optional<net::Strategy> strategy = readStrategy(*value);
  if (!strategy) {
    StringRef what = key == "in_strategy" ? "operand" : "result";
    if (std::optional<FractionalPieces> wrong = findFraction(*value)) {
      error(field.value.place) << "'" << key << "' expects whole numbers of pieces, found '" << net::valueText(wrong->count)
                               << "' for dimension " << wrong->dim << " of " << what << " " << wrong->tuple;
      return false;
    }
    if (auto flat = dyn_cast<ArrayAttr>(*value); flat && !flat.empty() && all_of(flat, [](Attribute a) { return isa<IntegerAttr>(a); })) {
      net::Strategy tuple(1);
      for (Attribute pieces : flat)
        tuple[0].push_back(cast<IntegerAttr>(pieces).getInt());
      flatStrategies.push_back({{tuple, field.value.place}, key == "in_strategy", net::valueText(*value)}); // the repair needs the operator
      return true;
    }
    error(field.value.place) << "'" << key << "' expects one tuple of pieces per " << what << ", found '" << net::valueText(*value) << "'";
    return false;
  }
  std::optional<GivenStrategy> &slot = key == "in_strategy" ? inStrategy : outStrategy;
  if (slot && slot->pieces != *strategy) { // a dump says it twice; the user edits one of them
    InFlightDiagnostic diagnostic = mlir::emitRemark(parent.evaluator.location(field.value.place));
    diagnostic << "the two strategies of this line differ: " << net::strategyText(*strategy) << " is taken";
    diagnostic.attachNote(parent.evaluator.location(slot->place)) << "not " << net::strategyText(slot->pieces);
  }
  slot = GivenStrategy{*strategy, field.value.place};
  return true;
}

bool OperatorBuilder::takeAttribute(const ast::Arg &field, const ast::Attributes &list) {
  std::string key = keyText(field.key);
  if (key == "in_strategy" || key == "out_strategy")
    return takeStrategy(key, field);
  if (!parent.isDump && is_contained(ofAnyOperator, key) && !isNew(key, field))
    return false;
  const bool isFixedPlace = key == "fixed_by" && parent.isDump;
  if (key == "instance name" || key == "strategy_origin" || key == "strategy_source" || isFixedPlace) {
    FailureOr<Attribute> value = parent.evaluator.evaluate(field.value, frame.env);
    if (failed(value))
      return false;
    auto word = dyn_cast<StringAttr>(*value);
    std::string text = word ? word.getValue().str() : net::valueText(*value);
    if (key == "strategy_origin" && !isOrigin(text)) {
      InFlightDiagnostic diagnostic = parent.error(field.value.place) << "unknown 'strategy_origin' '" << text << "'";
      net::addSuggestionOrList(diagnostic, text, originWords());
      return false;
    }
    (isFixedPlace ? fixedPlace : key == "instance name" ? instance : key == "strategy_origin" ? origin : source) = parent.nameHere(text);
    return true;
  }
  if (key == "sharding") {
    sharding = &field;
    return true;
  }
  if ((key == "alike" || key == "fixed_pieces") && parent.isDump) {
    FailureOr<Attribute> value = parent.evaluator.evaluate(field.value, frame.env);
    auto ordinals = failed(value) ? DenseI64ArrayAttr()
                                  : cast_or_null<DenseI64ArrayAttr>(convertAttribute(AttributeKind::IntTuple, *value, builder));
    if (succeeded(value) && !ordinals)
      error(field.value.place) << "'" << key << "' expects " << kindText(AttributeKind::IntTuple) << ", found '" << net::valueText(*value) << "'";
    if (ordinals)
      (key == "alike" ? alike : fixed).assign(ordinals.asArrayRef().begin(), ordinals.asArrayRef().end());
    return static_cast<bool>(ordinals);
  }
  if (key == "recompute") {
    FailureOr<bool> wanted = parent.evaluator.evaluateBool(field.value, frame.env, "'recompute'");
    recompute = succeeded(wanted) && *wanted;
    return succeeded(wanted);
  }
  if (parent.isDump && !findSpec(key) && (list.label == "cnode_attrs" || list.label == "cnode_primal_attrs" || isDumpNoise(key)))
    return true;
  return takeOwnAttribute(key, field);
}

bool OperatorBuilder::takeAttributeLists() {
  bool sound = true;
  for (const ast::Attributes &list : call.attributes)
    for (const ast::Arg &field : list.fields)
      sound = takeAttribute(field, list) && sound;
  return sound;
}

/// `rank_size` of a communication operator is the number of devices, and need not be written.
bool OperatorBuilder::fillRankSize() {
  if (!findSpec("rank_size"))
    return true;
  if (auto written = dyn_cast_or_null<IntegerAttr>(state.attributes.get("rank_size")); written && written.getInt() != parent.devices) {
    error(given.lookup("rank_size")) << "'rank_size' is " << written.getInt() << ", but the number of devices is " << parent.devices;
    return false;
  }
  state.attributes.set("rank_size", builder.getI64IntegerAttr(parent.devices));
  return true;
}

bool OperatorBuilder::checkRequired() {
  for (const AttributeSpec &spec : interface.attributeSpecs())
    if (spec.required && !given.count(spec.name)) {
      error(call.place) << "'" << call.callee << "' needs '" << spec.name << "'";
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

/// A strategy for all tensors that says what these tuples say, as far as they fit: others are cut where they share a factor.
static net::Strategy completed(Operation *op, const net::Strategy &tuples, bool isIn, ValueRange values) {
  net::Strategy whole;
  for (Value value : values)
    whole.emplace_back(cast<RankedTensorType>(value.getType()).getRank(), 1);
  auto ruled = dyn_cast<net::ShardingRuleInterface>(op);
  if (!ruled) {
    for (auto [tuple, all] : zip(tuples, whole))
      all = tuple.size() == all.size() ? tuple : all;
    return whole;
  }
  const net::ShardingRule rule = ruled.shardingRule();
  const auto &tensors = isIn ? rule.operands : rule.results;
  std::vector<int64_t> pieces(rule.factors.size(), 1);
  for (auto [tuple, dims] : zip(tuples, tensors))
    for (size_t dim = 0; tuple.size() == dims.size() && dim < dims.size(); ++dim)
      if (!dims[dim].empty() && pieces[dims[dim].front()] == 1)
        pieces[dims[dim].front()] = std::max<int64_t>(tuple[dim], 1);
  for (auto [all, dims] : zip(whole, tensors))
    for (auto [count, factors] : zip(all, dims))
      for (int32_t factor : factors)
        count *= pieces[factor];
  return whole;
}

bool OperatorBuilder::refuseFlatStrategies(Operation *op) {
  for (const FlatStrategy &flat : flatStrategies) {
    const bool isIn = flat.isIn;
    InFlightDiagnostic diagnostic = error(flat.given.place) << "'" << (isIn ? "in_strategy" : "out_strategy") << "' expects one tuple of pieces per "
                                                            << (isIn ? "operand" : "result") << ", found '" << flat.text << "'";
    ValueRange values = isIn ? ValueRange(op->getOperands()) : ValueRange(op->getResults());
    net::addHelp(diagnostic, "write " + net::strategyText(completed(op, flat.given.pieces, isIn, values)));
  }
  return flatStrategies.empty();
}

bool OperatorBuilder::checkStrategy(Operation *op, const net::Strategy &strategy, ValueRange values, StringRef key, StringRef what) {
  const ast::Place &place = (key == "in_strategy" ? inStrategy : outStrategy)->place;
  if (strategy.size() != values.size()) {
    InFlightDiagnostic diagnostic = error(place) << "'" << key << "' " << net::strategyText(strategy) << " has " << strategy.size()
                                                 << (strategy.size() == 1 ? " tuple" : " tuples") << ", but '" << call.callee
                                                 << "' has " << values.size() << " " << what << (values.size() == 1 ? "" : "s");
    net::addHelp(diagnostic, "write " + net::strategyText(completed(op, strategy, key == "in_strategy", values)));
    return false;
  }
  for (auto [index, pieces] : enumerate(strategy)) {
    size_t rank = cast<RankedTensorType>(values[index].getType()).getRank();
    auto wrong = find_if(pieces, [](int64_t count) { return count < 1; });
    if (pieces.size() == rank && wrong == pieces.end())
      continue;
    if (pieces.size() == rank) {
      InFlightDiagnostic diagnostic = error(place) << "'" << key << "' cuts dimension " << (wrong - pieces.begin()) << " of " << what
                                                   << " " << index << " into " << *wrong << " pieces";
      net::addHelp(diagnostic, "every number of pieces is 1 or more; 1 leaves the dimension whole");
      return false;
    }
    error(place) << "tuple " << index << " of '" << key << "' " << net::strategyText(strategy) << " has "
                 << pieces.size() << " numbers, but " << what << " " << index << ", " << values[index].getType()
                 << ", has " << rank << " dimensions";
    return false;
  }
  return true;
}

bool OperatorBuilder::checkSignature() {
  if (!parent.checkOperandTypes(call.signature, call.args, frame))
    return false;
  if (!call.signature || !call.signature->results)
    return true;
  for (auto [written, type] : zip(*call.signature->results, state.types)) {
    RankedTensorType expected = tensorTypeFromDump(written.dump, parent.context);
    if (!expected || expected == type)
      continue;
    InFlightDiagnostic diagnostic = error(written.place) << "'" << call.callee << "' gives " << type << ", not " << expected;
    net::addHelp(diagnostic, "write " + dumpTypeText(cast<RankedTensorType>(type)));
    return false;
  }
  return true;
}

bool OperatorBuilder::takeFixedPieces(Operation *op) {
  auto ruled = dyn_cast<net::ShardingRuleInterface>(op);
  const size_t factors = ruled ? ruled.shardingRule().factors.size() : 0;
  if (fixed.size() != factors || any_of(fixed, [](int64_t pieces) { return pieces < 0; })) {
    error(call.place) << "'fixed_pieces' of '" << call.callee << "' expects " << factors << " numbers from 0";
    return false;
  }
  net::setFixedPieces(op, fixed, fixedPlace);
  return true;
}

/// A strategy of the user that is taken as if it were not there.
bool OperatorBuilder::isLeftOut() const {
  const bool isByUser = origin.empty() || origin == "user" || origin == "dump";
  if (!isByUser || !(inStrategy || outStrategy) || !parent.options.onStrategy)
    return false;
  const std::string own = instance.empty() ? assign.results.front().name : instance;
  return parent.options.onStrategy(parent.evaluator.location((inStrategy ? inStrategy : outStrategy)->place), frame.prefix + own);
}

bool OperatorBuilder::finish(Operation *op) {
  if (!refuseFlatStrategies(op) || (!fixed.empty() && !takeFixedPieces(op)))
    return false;
  if (auto ours = inStrategy && !outStrategy ? strategiesOfMindSpore(op, inStrategy->pieces) : std::nullopt) {
    outStrategy = GivenStrategy{ours->second, inStrategy->place};
    inStrategy->pieces = ours->first;
  }
  if ((inStrategy && !checkStrategy(op, inStrategy->pieces, op->getOperands(), "in_strategy", "operand")) ||
      (outStrategy && !checkStrategy(op, outStrategy->pieces, op->getResults(), "out_strategy", "result")))
    return false;
  bool keep = !parent.options.repropagate || origin == "user" || origin == "dump"; // dump: edited in an earlier one
  if (keep && isLeftOut())
    keep = false;
  if (inStrategy && keep)
    net::setInStrategy(op, inStrategy->pieces);
  else if (inStrategy)
    op->setAttr(leftOutStrategyName, builder.getStringAttr(net::strategyText(inStrategy->pieces)));
  if (outStrategy && keep)
    net::setOutStrategy(op, outStrategy->pieces);
  if ((inStrategy || outStrategy) && keep)
    net::setStrategyOrigin(op, joinOrigin(origin, source));
  if (!alike.empty())
    net::setAlike(op, alike);
  if (recompute)
    net::setRecomputed(op);
  if (!instance.empty())
    net::setInstanceName(op, frame.prefix + instance);
  StringRef scope = call.origin.scope;
  std::string own = ("Default/network-WithLossCell/_backbone-" + parent.network.getSymName() + frame.scopePath).str();
  net::setScope(op, scope.empty() ? own : parent.nameHere(scope));
  SmallVector<std::string> names;
  for (const ast::Result &result : assign.results) {
    StringRef source = result.debugName && isPlainName(*result.debugName) ? StringRef(*result.debugName) : StringRef(result.name);
    names.push_back(frame.prefix + source.str() + frame.suffix);
  }
  for (size_t i = names.size(); i < op->getNumResults() && !parent.isDump; ++i) // by-products, all of which have names
    names.push_back(frame.prefix + assign.results.front().name + "." + interface.outputNames()[i].str() + frame.suffix);
  SmallVector<StringRef> views(names.begin(), names.end());
  net::setValueNames(op, views);
  return true;
}

/// Statistics and masks, which operators give beside their result for those who ask: a network that does not may leave them without a name.
static bool isByProduct(StringRef output) {
  return is_contained<StringRef>({"batch_mean", "batch_variance", "mean", "variance", "rstd", "mask", "logsumexp"}, output);
}

bool OperatorBuilder::build() {
  if (call.instance) {
    FailureOr<std::string> decoded = parent.evaluator.decodeName(*call.instance, frame.env, call.instancePlace.begin);
    if (failed(decoded))
      return false;
    instance = *decoded;
  }
  bool sound = takeArguments();
  sound = takeAttributeLists() && sound;
  sound = fillRankSize() && sound;
  if (parent.evaluator.namesOnly) {
    (void)(isArityKnown && checkArity() && sound && checkRequired());
    return parent.bindUnknown(assign, frame);
  }
  if (!sound || !checkArity() || !checkRequired() || !addConstants())
    return false;
  name.populateDefaultAttrs(state.attributes);
  if (failed(net::inferResultTypes(state)) || !checkSignature())
    return false;
  bool isTuple = parent.isDump && assign.results.size() == 1 && state.types.size() > 1; // read by TupleGetItem
  const size_t named = assign.results.size();
  ArrayRef<StringRef> outputs = interface.outputNames(); // fewer than results where these are any number
  const bool namesEnough = named > 0 && named < state.types.size() && outputs.size() == state.types.size() && all_of(outputs.drop_front(named), isByProduct);
  if (state.types.size() != named && !isTuple && !namesEnough) {
    std::vector<NamedValue> results(state.types.size());
    return parent.bindResults(assign, results, "'" + call.callee + "'", call.place, frame, interface.outputNames()); // reports the counts
  }
  for (auto [result, type] : zip(assign.results, state.types))
    if (!parent.mayResult(call, result.name, cast<RankedTensorType>(type)))
      return false;
  Operation *op = builder.create(state);
  if (!finish(op) || failed(mlir::verify(op, /*verifyRecursively=*/false)) ||
      (sharding && !parent.takeSharding(*sharding, op->getResult(0), frame.env)))
    return false;
  if (isTuple)
    return parent.bindTuple(assign, SmallVector<Value>(op->getResults()), frame);
  std::vector<NamedValue> results;
  for (Value value : op->getResults().take_front(named))
    results.push_back({"", value, call.place});
  return parent.bindResults(assign, results, "'" + call.callee + "'", call.place, frame);
}

bool Elaborator::runOperator(const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  if (call.graph)
    return runGraph(call, assign, frame);
  if (std::optional<bool> done = isDump ? runStructure(call, assign, frame) : std::nullopt)
    return *done;
  std::optional<RegisteredOperationName> name = RegisteredOperationName::lookup("net." + call.callee, context);
  if (!name || !name->getInterface<net::Operator>()) {
    bool known = unknownOperator(call);
    if (evaluator.namesOnly)
      checkValues(call.args, frame);
    return known;
  }
  return OperatorBuilder(*this, call, assign, frame, *name).build();
}

} // namespace msc::frontend
