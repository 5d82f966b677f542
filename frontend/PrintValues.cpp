#include "frontend/PrintValues.h"

#include "dialects/net/Config.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/NetOps.h"
#include "frontend/Diagnostics.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

std::string quotedText(StringRef text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '{')
      quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : c == '\t' ? std::string("\\t") : std::string(1, c);
  }
  return quoted + "\"";
}

std::string wordText(StringRef text) {
  bool means = text == "true" || text == "false" || text == "True" || text == "False" || text == "devices" || isKeyword(text); // other than themselves
  return !means && isBareWord(text) ? text.str() : quotedText(text);
}

static std::string listText(ArrayRef<std::string> parts, StringRef open, StringRef close) {
  return (open + join(parts, ", ") + close).str();
}

static std::string fieldText(NamedAttribute field) {
  StringRef key = field.getName().getValue();
  return (isIdent(key) ? key.str() : quotedText(key)) + ": " + attributeText(field.getValue());
}

std::string attributeText(Attribute attribute) {
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue() ? "true" : "false";
  if (auto word = dyn_cast<StringAttr>(attribute))
    return wordText(word.getValue());
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return std::to_string(integer.getInt());
  if (auto real = dyn_cast<FloatAttr>(attribute))
    return net::numberText(real.getValueAsDouble());
  if (auto type = dyn_cast<TypeAttr>(attribute))
    return elementTypeName(type.getValue()).str();
  SmallVector<std::string> parts;
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute)) {
    for (int64_t number : numbers.asArrayRef())
      parts.push_back(std::to_string(number));
    return listText(parts, "(", ")");
  }
  if (auto tuple = dyn_cast<ArrayAttr>(attribute)) {
    for (Attribute element : tuple)
      parts.push_back(attributeText(element));
    return listText(parts, "(", ")");
  }
  if (auto call = net::asCall(attribute)) {
    for (Attribute argument : call->args)
      parts.push_back(attributeText(argument));
    for (NamedAttribute argument : call->named)
      parts.push_back(fieldText(argument));
    return listText(parts, (call->callee + "(").str(), ")");
  }
  if (auto map = dyn_cast<DictionaryAttr>(attribute)) {
    if (auto value = map.getAs<StringAttr>("value"); value && map.size() == 1)
      return ("%" + value.getValue()).str();
    for (NamedAttribute field : map)
      parts.push_back(fieldText(field));
    return listText(parts, "{", "}");
  }
  return "None";
}

static DictionaryAttr defaultsOf(OperationName name) {
  NamedAttrList defaults;
  name.populateDefaultAttrs(defaults);
  return defaults.getDictionary(name.getContext());
}

/// (1, 2, 0, 0) -> ((1, 2), (0, 0)).
static Attribute pairsOf(Attribute value) {
  Builder builder(value.getContext());
  SmallVector<Attribute> pairs;
  for (ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(value).asArrayRef(); !numbers.empty();
       numbers = numbers.drop_front(2))
    pairs.push_back(builder.getDenseI64ArrayAttr(numbers.take_front(2)));
  return builder.getArrayAttr(pairs);
}

std::vector<std::pair<std::string, Attribute>> userAttributes(Operation *op) {
  std::vector<std::pair<std::string, Attribute>> result;
  auto face = dyn_cast<net::Operator>(op);
  if (!face)
    return result;
  DictionaryAttr defaults = defaultsOf(op->getName());
  for (const net::AttributeSpec &spec : face.attributeSpecs()) {
    Attribute value = op->getAttr(spec.name);
    if (!value)
      value = defaults.get(spec.name);
    if (value)
      result.emplace_back(spec.name.str(), spec.kind == net::AttributeKind::IntPairs ? pairsOf(value) : value);
  }
  return result;
}

bool isDefaultAttribute(Operation *op, StringRef name, Attribute value) {
  return defaultsOf(op->getName()).get(name) == value;
}

std::string inlineNumber(Operation *user, Value value) {
  auto constant = value.getDefiningOp<net::ConstantOp>();
  if (!constant || cast<RankedTensorType>(value.getType()).getRank() != 0)
    return "";
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  auto isTensor = [](Value operand) { return !operand.getDefiningOp<net::ConstantOp>(); };
  const ValueRange operands = user->getOperands();
  if (none_of(operands, isTensor))
    return "";
  for (size_t place = 0; place < operands.size(); ++place) {
    if (operands[place] != value)
      continue;
    auto [first, behind] = alikeOperands(user->getName().stripDialect(), place, operands.size(), isTensor(operands[0]));
    const ValueRange alike = operands.slice(first, behind - first);
    auto tensor = find_if(alike, isTensor);
    Type taken = tensor == alike.end() ? Type(Float32Type::get(user->getContext())) : getElementTypeOrSelf((*tensor).getType());
    if (taken != element)
      return "";
  }
  return net::numberText(constant.getSplat().convertToDouble());
}

std::pair<size_t, size_t> alikeOperands(StringRef op, size_t place, size_t operands, bool isFirstTensor) {
  if (op == "SelectEqual" && operands == 4)
    return place < 2 ? std::pair<size_t, size_t>(0, 2) : std::pair<size_t, size_t>(2, 4);
  return {op == "Select" && isFirstTensor ? 1 : 0, operands};
}

std::pair<std::string, std::string> splitOrigin(StringRef origin) {
  auto [word, rest] = origin.split(' ');
  rest.consume_front("from ");
  if (isIdent(word) && rest.size() > 2 && rest.consume_front("'") && rest.consume_back("'") && !rest.contains('\''))
    return {word.str(), rest.str()};
  return {origin.str(), ""};
}

ArrayRef<StringRef> originWords() {
  static const StringRef words[] = {"user",        "dump",          "propagated", "searched", "one device", "stand_alone",
                                    "data_parallel", "hybrid_parallel", "semi_auto default"};
  return words;
}

bool isOrigin(StringRef text) {
  return is_contained(originWords(), text) || text.starts_with("propagated from ") || text.starts_with("searched within sharding (") ||
         (text.starts_with("most pieces, for ") && text.ends_with(" arrives whole"));
}

std::string joinOrigin(StringRef origin, StringRef source) {
  if (source.empty())
    return origin.str();
  return (origin + (origin == "propagated" ? " from '" : " '") + source + "'").str();
}

bool isForward(Operation &op) {
  return net::getPhase(&op) == net::Phase::Forward && !isa<net::UpdateOp>(op);
}

//===----------------------------------------------------------------------===//
// Parameters and blocks
//===----------------------------------------------------------------------===//

std::string initializerText(DictionaryAttr initializer) {
  StringRef kind = initializer.getAs<StringAttr>("kind").getValue();
  auto number = [&](StringRef key) {
    auto value = initializer.getAs<FloatAttr>(key);
    return value ? value.getValueAsDouble() : 0.0;
  };
  double a = number("a"), b = number("b");
  static const std::pair<StringRef, StringRef> plain[] = {{"zeros", "Zeros()"},
                                                          {"ones", "Ones()"},
                                                          {"he_normal", "HeNormal()"},
                                                          {"he_uniform", "HeUniform()"},
                                                          {"xavier_uniform", "XavierUniform()"}};
  for (auto [name, text] : plain)
    if (kind == name)
      return text.str();
  if (kind == "constant")
    return "Constant(" + net::numberText(a) + ")";
  if (kind == "uniform")
    return "Uniform(" + net::numberText(b) + ")";
  std::string name = kind == "normal" ? "Normal(" : "TruncatedNormal(";
  return name + net::numberText(a) + (b == 0 ? "" : ", " + net::numberText(b)) + ")";
}

void printPlace(Location location, unsigned indent, raw_ostream &os) {
  FileLineColLoc file = findFileLocation(location);
  if (file && file.getLine())
    os.indent(indent) << "# In file " << file.getFilename().getValue() << '(' << file.getLine() << ")\n";
}

static void printMesh(net::ConfigOp config, raw_ostream &os) {
  os << "mesh " << config.getName() << (config.getName().empty() ? "(" : " (");
  auto axes = config.getFields().getAs<ArrayAttr>("axes");
  auto sizes = config.getFields().getAs<DenseI64ArrayAttr>("sizes").asArrayRef();
  interleaveComma(zip(axes.getAsValueRange<StringAttr>(), sizes), os,
                  [&](auto axis) { os << std::get<0>(axis) << ": " << std::get<1>(axis); });
  os << ")\n";
}

/// Fields in the order in which they were written.
static std::vector<NamedAttribute> writtenOrder(net::ConfigOp config) {
  std::vector<NamedAttribute> fields(config.getFields().begin(), config.getFields().end());
  auto place = [&](NamedAttribute field) {
    auto location = config.getLocations().getAs<LocationAttr>(field.getName());
    FileLineColLoc file = location ? findFileLocation(Location(location)) : FileLineColLoc();
    return std::tuple(file ? file.getLine() : 0, file ? file.getColumn() : 0, field.getName().getValue());
  };
  llvm::sort(fields, [&](NamedAttribute a, NamedAttribute b) { return place(a) < place(b); });
  return fields;
}

void printBlocks(ModuleOp module, bool withPlaces, raw_ostream &os) {
  auto devices = module->getAttrOfType<IntegerAttr>(net::devicesAttributeName);
  std::string deviceNum = devices ? "device_num: " + std::to_string(devices.getInt()) : "";
  auto configs = module.getOps<net::ConfigOp>();
  if (!deviceNum.empty() && none_of(configs, [](net::ConfigOp config) { return config.getKind() == "context"; }))
    os << "context {" << deviceNum << "}\n";
  for (net::ConfigOp config : configs) {
    if (config.getKind() == "mesh") {
      printMesh(config, os);
      if (withPlaces)
        printPlace(config.getLoc(), 4, os);
      continue;
    }
    os << config.getKind() << ' ' << config.getName() << (config.getName().empty() ? "{" : " {");
    interleaveComma(writtenOrder(config), os, [&](NamedAttribute field) { os << fieldText(field); });
    if (config.getKind() == "context" && !deviceNum.empty())
      os << (config.getFields().empty() ? "" : ", ") << deviceNum;
    os << "}\n";
    if (withPlaces)
      printPlace(config.getLoc(), 4, os);
  }
}

} // namespace msc::frontend
