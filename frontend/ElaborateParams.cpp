// Types, initializers and parameters.
#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Suggest.h"
#include "dialects/net/ops/support/Infer.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

static constexpr int64_t maximumElements = int64_t{1} << 48;

FailureOr<RankedTensorType> Elaborator::elaborateType(const ast::Type &type, const Environment &env) {
  if (!type.dump.empty()) {
    if (RankedTensorType tensor = tensorTypeFromDump(type.dump, context))
      return tensor;
    InFlightDiagnostic diagnostic = error(type.place) << "expected a tensor type, found '" << type.dump << "'";
    net::addHelp(diagnostic, "write a type such as <Tensor[Float32], (16, 32)>");
    return diagnostic;
  }
  Type element = elementTypeFromName(type.element, context);
  if (!element) {
    InFlightDiagnostic diagnostic = error(type.place) << "unknown element type '" << type.element << "'";
    net::addSuggestionOrList(diagnostic, type.element, elementTypeNames());
    return diagnostic;
  }
  if (static_cast<int64_t>(type.dims.size()) > kMostDimensions) {
    InFlightDiagnostic diagnostic = error(type.place) << "a tensor of " << type.dims.size() << " dimensions: at most "
                                                         << kMostDimensions << " are supported";
    net::addHelp(diagnostic, "join dimensions: their sizes multiply");
    return diagnostic;
  }
  SmallVector<int64_t> shape;
  std::optional<int64_t> elements = 1;
  for (auto [index, dim] : enumerate(type.dims)) {
    FailureOr<int64_t> size = evaluator.evaluateInteger(dim, env, "dimension " + std::to_string(index));
    if (evaluator.namesOnly)
      continue;
    if (failed(size))
      return failure();
    if (*size < 1) {
      InFlightDiagnostic diagnostic = error(dim.place) << "dimension " << index << " cannot have size " << *size;
      net::addHelp(diagnostic, "sizes begin at 1");
      return diagnostic;
    }
    elements = elements ? checkedMul(*elements, *size) : std::nullopt;
    shape.push_back(*size);
  }
  if (!elements || *elements > maximumElements) {
    InFlightDiagnostic diagnostic = error(type.place) << "this tensor has more than 2^48 elements";
    net::addHelp(diagnostic, "write smaller sizes");
    return diagnostic;
  }
  return RankedTensorType::get(shape, element);
}

bool Elaborator::mayResult(const ast::Call &call, StringRef result, RankedTensorType type) {
  if (type.getRank() > kMostDimensions) {
    error(call.place) << "'" << call.callee << "' gives a tensor of " << type.getRank() << " dimensions: at most " << kMostDimensions
                      << " are supported";
    return false;
  }
  if (!is_contained(type.getShape(), 0))
    return true;
  error(call.place) << "'" << call.callee << "' gives '" << result << "' (" << net::shapeText(type.getShape()) << "), which has no elements";
  return false;
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
    if (given[slot])
      return error(arg.key.empty() ? arg.value.place : arg.keyPlace) << "'" << form->arguments[slot].first << "' is given twice";
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
  // The outermost of the calls around it that is not the only one of its name: all of its parameters are declared twice.
  StringRef prefix;
  for (size_t dot = name.find('.'); dot != StringRef::npos && prefix.empty(); dot = name.find('.', dot + 1))
    if (auto calls = callsOfPrefixes.find(name.take_front(dot + 1)); calls != callsOfPrefixes.end() && calls->second.size() > 1)
      prefix = calls->first();
  const bool isOfCalls = !repeat && entry->second == place && !prefix.empty();
  if (prefix.empty()) // of the innermost call, in rounds of a repeat
    prefix = name.take_front(name.rfind('.') + 1);
  if ((repeat || entry->second == place) && !prefix.empty() && !refusedPrefixes.insert(prefix).second)
    return false;
  InFlightDiagnostic diagnostic = emitError(place) << "parameter '" << name << "' is declared twice";
  if (isOfCalls)
    diagnostic.attachNote(callsOfPrefixes.find(prefix)->second.front()) << "the first call of this name";
  else
    diagnostic.attachNote(entry->second) << "first declared here";
  if (!repeat) {
    if (entry->second == place) // in calls of one cell that have the same name, or in rounds that differ
      net::addHelp(diagnostic, "give each call of the cell a name of its own, in a repeat one with the round, as in @ \"" + std::string("layer.{i}") + "\"");
    return false;
  }
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
    for (StringRef bound : {"a", "b"})
      if (succeeded(type) && succeeded(initializer) && isa<FloatType>(type->getElementType()))
        if (double number = initializer->getAs<FloatAttr>(bound).getValueAsDouble(); !net::holdsNumber(type->getElementType(), number)) {
          error(param.initializer->place) << "'" << param.initializer->text << "' of " << elementTypeName(type->getElementType())
                                          << " cannot hold the value " << net::numberText(number);
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
  if (value && (!sharding || takeSharding(*sharding, value, frame.env)))
    return bind(param.name, value, param.place, frame.env);
  frame.env.values.try_emplace(param.name, Binding{Value(), param.place.begin}); // users stay silent
  return false;
}

} // namespace msc::frontend
