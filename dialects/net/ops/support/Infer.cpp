#include "dialects/net/ops/support/Infer.h"

#include "dialects/net/NetAttributes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace msc::net;

std::string msc::net::shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

bool msc::net::holdsNumber(Type element, double number) {
  if (auto real = dyn_cast<FloatType>(element)) {
    bool loses = false;
    APFloat held(number);
    held.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return !held.isInfinity() || std::isinf(number);
  }
  auto integer = cast<IntegerType>(element);
  if (integer.getWidth() == 1)
    return number == 0 || number == 1;
  double limit = integer.getWidth() == 64 ? 0x1p53 : std::ldexp(1.0, integer.getWidth() - 1);
  return number == std::floor(number) && number >= -limit && number < limit;
}

std::string msc::net::elementText(Type element) {
  if (element.isInteger(1))
    return "bool";
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

RankedTensorType msc::net::tensorOf(ArrayRef<int64_t> shape, Type element) {
  return RankedTensorType::get(shape, element);
}

bool msc::net::sameTensors(TypeRange left, TypeRange right) {
  return llvm::equal(left, right, [](Type a, Type b) {
    auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
    return x && y && x.getShape() == y.getShape() && x.getElementType() == y.getElementType();
  });
}

ArrayRef<int64_t> Inference::shape(unsigned operand) const {
  return cast<RankedTensorType>(operands[operand].getType()).getShape();
}

Type Inference::element(unsigned operand) const {
  return cast<RankedTensorType>(operands[operand].getType()).getElementType();
}

std::string Inference::name(unsigned operand) const {
  StringRef name = getValueName(operands[operand]);
  StringRef own = inputNames[std::min<size_t>(operand, inputNames.size() - 1)];
  return ("'" + (name.empty() ? own : name) + "'").str();
}

std::string Inference::text(unsigned operand) const {
  return name(operand) + " (" + shapeText(shape(operand)) + ")";
}

LogicalResult Inference::error(const Twine &message, ArrayRef<unsigned> declared, const Twine &help) const {
  if (!location)
    return failure();
  InFlightDiagnostic diagnostic = emitError(*location, message);
  for (unsigned operand : declared)
    diagnostic.attachNote(operands[operand].getLoc()) << name(operand) << " declared here";
  if (const std::string text = help.str(); !text.empty())
    diagnostic.attachNote() << "help: " << text;
  return diagnostic;
}

LogicalResult Inference::checkOperandCount() const {
  size_t least = inputNames.size() - optional;
  if (operands.size() < least || (operands.size() > inputNames.size() && !isVariadic))
    return error("'" + opName + "' takes " + (optional ? std::to_string(least) + " to " : "") + Twine(inputNames.size()) +
                 (inputNames.size() == 1 ? " operand" : " operands") + " (" + llvm::join(inputNames, ", ") + "), but " +
                 Twine(operands.size()) + (operands.size() == 1 ? " is" : " are") + " given");
  for (unsigned i = 0; i < operands.size(); ++i)
    if (auto tensor = dyn_cast<RankedTensorType>(operands[i].getType()); !tensor || !tensor.hasStaticShape())
      return error("'" + opName + "' takes tensors of known shape, but " + name(i) + " is none", {i});
  return success();
}

LogicalResult Inference::checkHolds(Type element, const APFloat &number) const {
  if (holdsNumber(element, number.convertToDouble()))
    return success();
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.15g", number.convertToDouble());
  return error("'" + opName + "' of " + elementText(element) + " cannot hold the value " + text);
}

LogicalResult Inference::checkPlaces(int64_t first, int64_t behind) const {
  if (first >= std::numeric_limits<int32_t>::min() && behind <= std::numeric_limits<int32_t>::max())
    return success();
  return error("'" + opName + "' counts places from " + Twine(first) + " to " + Twine(behind) + ", which i32 does not hold");
}

LogicalResult Inference::checkPlacesOf(unsigned operand) const {
  return llvm::success(llvm::all_of(shape(operand), [&](int64_t size) { return succeeded(checkPlaces(0, size)); }));
}

LogicalResult Inference::checkResults(ArrayRef<Type> results) const {
  constexpr int64_t most = int64_t{1} << 48;
  for (Type type : results)
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      int64_t elements = 1;
      for (int64_t size : tensor.getShape()) {
        if (size < 0 || (size > 0 && elements > most / size))
          return error("the result of '" + opName + "' has more than 2^48 elements", {}, "take smaller sizes");
        elements *= std::max<int64_t>(size, 1);
      }
    }
  return success();
}

static bool hasKind(Attribute attribute, AttributeKind kind) {
  switch (kind) {
  case AttributeKind::Bool:
    return isa<BoolAttr>(attribute);
  case AttributeKind::Int:
    return isa<IntegerAttr>(attribute) && !isa<BoolAttr>(attribute);
  case AttributeKind::Float:
    return isa<FloatAttr>(attribute);
  case AttributeKind::String:
    return isa<StringAttr>(attribute);
  case AttributeKind::IntTuple:
    return isa<DenseI64ArrayAttr>(attribute);
  case AttributeKind::IntPairs: {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute);
    return numbers && numbers.size() % 2 == 0;
  }
  case AttributeKind::Type:
    return isa<TypeAttr>(attribute);
  }
  return false;
}

static StringRef kindText(AttributeKind kind) {
  switch (kind) {
  case AttributeKind::Bool:
    return "true or false";
  case AttributeKind::Int:
    return "an integer";
  case AttributeKind::Float:
    return "a number";
  case AttributeKind::String:
    return "a word";
  case AttributeKind::IntTuple:
    return "a tuple of integers";
  case AttributeKind::IntPairs:
    return "a tuple of pairs of integers";
  case AttributeKind::Type:
    return "an element type";
  }
  return "";
}

LogicalResult Inference::checkAttributes(ArrayRef<AttributeSpec> specs, const NamedAttrList &given) const {
  for (const AttributeSpec &spec : specs) {
    Attribute attribute = given.get(spec.name);
    if (!attribute && spec.required)
      return error("'" + opName + "' needs the attribute '" + spec.name + "', " + kindText(spec.kind));
    if (attribute && !hasKind(attribute, spec.kind))
      return error("'" + spec.name + "' of '" + opName + "' is " + kindText(spec.kind));
  }
  return success();
}

static StringRef elementSetText(ElementSet set) {
  switch (set) {
  case ElementSet::Any:
    return "tensors";
  case ElementSet::Number:
    return "tensors of numbers";
  case ElementSet::Float:
    return "float tensors";
  case ElementSet::Bool:
    return "bool tensors";
  }
  return "";
}

static bool contains(ElementSet set, Type element) {
  switch (set) {
  case ElementSet::Any:
    return true;
  case ElementSet::Number:
    return !element.isInteger(1);
  case ElementSet::Float:
    return isa<FloatType>(element);
  case ElementSet::Bool:
    return element.isInteger(1);
  }
  return false;
}

LogicalResult Inference::checkElement(unsigned operand, ElementSet allowed) const {
  if (contains(allowed, element(operand)))
    return success();
  return error("'" + opName + "' takes " + elementSetText(allowed) + ", but " + name(operand) + " is " +
                   elementText(element(operand)),
               {operand});
}

LogicalResult Inference::checkSameElement(ElementSet allowed, unsigned first) const {
  for (unsigned i = first; i < operands.size(); ++i)
    if (failed(checkElement(i, allowed)) || failed(checkSameElementOf(first, i)))
      return failure();
  return success();
}

LogicalResult Inference::checkSameElementOf(unsigned left, unsigned right) const {
  if (element(left) == element(right))
    return success();
  return error("'" + opName + "' takes tensors of one element type, but " + name(left) + " is " + elementText(element(left)) +
                   " and " + name(right) + " is " + elementText(element(right)),
               {right}, "bring one to the type of the other with Cast");
}

LogicalResult Inference::checkSameShape(unsigned left, unsigned right) const {
  if (shape(left) == shape(right))
    return success();
  return error("'" + opName + "' takes tensors of one shape, but " + name(left) + " is " + shapeText(shape(left)) +
                   " and " + name(right) + " is " + shapeText(shape(right)),
               {right});
}

FailureOr<SmallVector<int64_t>> Inference::broadcastShape() const {
  SmallVector<int64_t> result;
  SmallVector<unsigned> owner; // the operand that gave each size
  for (unsigned i = 0; i < operands.size(); ++i) {
    size_t missing = rank(i) > static_cast<int64_t>(result.size()) ? rank(i) - result.size() : 0;
    result.insert(result.begin(), missing, 1);
    owner.insert(owner.begin(), missing, i);
    for (int64_t d = 0; d < rank(i); ++d) {
      size_t at = result.size() - rank(i) + d;
      int64_t size = shape(i)[d];
      if (size == 1 || size == result[at])
        continue;
      if (result[at] != 1) {
        unsigned other = owner[at];
        (void)error("cannot broadcast " + text(other) + " with " + text(i) + ": dimension " +
                        Twine(at - (result.size() - rank(other))) + " of " + name(other) + " is " + Twine(result[at]) +
                        ", dimension " + Twine(d) + " of " + name(i) + " is " + Twine(size),
                    {i});
        return failure();
      }
      result[at] = size;
      owner[at] = i;
    }
  }
  return result;
}

LogicalResult msc::net::inferPointwise(const Inference &at, ElementSet allowed, ResultElement result,
                                       SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(allowed)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = at.broadcastShape();
  if (failed(shape))
    return failure();
  Type element = result == ResultElement::BoolElement ? IntegerType::get(at.context, 1) : at.element(0);
  results.push_back(tensorOf(*shape, element));
  return success();
}

FailureOr<SmallVector<int64_t>> msc::net::resolveAxes(const Inference &at, unsigned operand, ArrayRef<int64_t> axis) {
  int64_t rank = at.rank(operand);
  SmallVector<bool> named(rank, axis.empty());
  for (int64_t entry : axis) {
    if (entry < -rank || entry >= rank) {
      (void)at.error("axis " + Twine(entry) + " of '" + at.opName + "' does not exist: " + at.text(operand) + " has " +
                         Twine(rank) + (rank == 1 ? " dimension" : " dimensions"),
                     {operand});
      return failure();
    }
    int64_t dim = entry < 0 ? entry + rank : entry;
    if (named[dim]) {
      (void)at.error("'" + at.opName + "' names dimension " + Twine(dim) + " of " + at.name(operand) + " twice");
      return failure();
    }
    named[dim] = true;
  }
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (named[dim])
      dims.push_back(dim);
  return dims;
}

LogicalResult msc::net::checkWord(const Inference &at, StringRef attribute, StringRef word, ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, word))
    return success();
  return at.error("'" + attribute + "' of '" + at.opName + "' is '" + word + "', but it is one of " +
                  llvm::join(words, ", "));
}
