// One call of an operator: its attributes, strategies and result types.
#include "frontend/OperatorBuilder.h"

#include "dialects/net/Recompute.h"
#include "dialects/net/Suggest.h"
#include "dialects/net/ops/support/Infer.h"
#include "frontend/LeftOut.h"
#include "frontend/MindSporeForms.h"
#include "frontend/Types.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {
using net::AttributeKind;
using net::AttributeSpec;

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
