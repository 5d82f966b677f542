#include "compiler/Operators.h"

#include "compiler/Layers.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/Documentation.h"
#include "dialects/net/Network.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "frontend/ForeignNames.h"
#include "frontend/Frontend.h"
#include "frontend/Types.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace mlir;

namespace msc::compiler {

static std::string typeName(net::AttributeKind kind) {
  switch (kind) {
  case net::AttributeKind::Bool:
    return "bool";
  case net::AttributeKind::Int:
    return "int";
  case net::AttributeKind::Float:
    return "float";
  case net::AttributeKind::String:
    return "word";
  case net::AttributeKind::IntTuple:
    return "ints";
  case net::AttributeKind::IntPairs:
    return "pairs of ints";
  case net::AttributeKind::Type:
    return "element type";
  }
  return "";
}

static std::string defaultText(Attribute value) {
  if (auto integers = dyn_cast<DenseI64ArrayAttr>(value))
    return "(" + join(map_range(integers.asArrayRef(), [](int64_t n) { return std::to_string(n); }), ", ") + ")";
  return net::valueText(value);
}

/// Lines without the indentation that they share, without blank lines at both ends.
static std::string dedent(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  while (!lines.empty() && lines.front().trim().empty())
    lines.erase(lines.begin());
  while (!lines.empty() && lines.back().trim().empty())
    lines.pop_back();
  size_t indent = StringRef::npos;
  for (StringRef line : lines)
    if (!line.trim().empty())
      indent = std::min(indent, line.find_first_not_of(' '));
  std::string result;
  bool isBehindBlank = false; // descriptions that are put together have several blank lines in a row
  for (StringRef line : lines) {
    bool isBlank = line.trim().empty();
    if (!isBlank || !isBehindBlank)
      result += (result.empty() ? "" : "\n") + line.drop_front(std::min(indent, line.size())).rtrim().str();
    isBehindBlank = isBlank;
  }
  return result;
}

/// What stands in backquotes and is an equation.
static std::vector<std::string> formulasOf(StringRef description) {
  std::vector<std::string> formulas;
  SmallVector<StringRef> parts;
  description.split(parts, '`');
  for (size_t i = 1; i < parts.size(); i += 2)
    if (parts[i].contains(" = "))
      formulas.push_back(parts[i].str());
  return formulas;
}

/// Which of its types stands for others: indices are i32 where there are no floats.
static StringRef exampleType(const net::Documentation &documentation) {
  return documentation.exampleInputs.contains("f32[") ? "f32[" : "i32[";
}

/// The example as a network, with `type` in the place of that; null where the operator's own inference refuses it.
static OwningOpRef<ModuleOp> exampleNetwork(const net::Documentation &documentation, const std::string &results,
                                            StringRef type, MLIRContext &context) {
  std::string inputs = join(split(documentation.exampleInputs, exampleType(documentation)), (type + "[").str());
  std::string text =
      ("network example(" + inputs + ") {\n" + documentation.exampleCall + "\nreturn " + results + "\n}\n").str();
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  SourceMgr sources;
  return frontend::parseString(text, "example.mir", context, {}, sources);
}

static StringRef loweringText(net::LoweringKind kind) {
  switch (kind) {
  case net::LoweringKind::Generic: return "generated, fused";
  case net::LoweringKind::MatMul: return "library";
  case net::LoweringKind::Library: return "library";
  case net::LoweringKind::View: return "view";
  case net::LoweringKind::Regions: return "copies";
  case net::LoweringKind::Expanded: return "other operators";
  }
  return "";
}

/// What the operator itself says of its example.
static void describeExample(ModuleOp example, StringRef name, OperatorDescription &description) {
  example.walk([&](Operation *op) {
    if (op->getName().stripDialect() != name)
      return;
    if (auto rule = dyn_cast<net::ShardingRuleInterface>(op))
      description.rule = rule.shardingRule().str();
    if (auto lower = dyn_cast<net::Lower>(op))
      description.lowering = loweringText(lower.loweringKind()).str();
    if (isa<net::CommunicationInterface>(op))
      description.lowering = "collective";
  });
}

static OperatorDescription describe(RegisteredOperationName name, MLIRContext &context) {
  const net::Operator::Concept &op = *name.getInterface<net::Operator>();
  net::Documentation documentation = *net::documentationOf(name.stripDialect());
  OperatorDescription description;
  description.name = name.stripDialect().str();
  description.summary = documentation.summary.str();
  description.description = dedent(documentation.description);
  description.formulas = formulasOf(documentation.description);
  for (StringRef operand : op.inputNames())
    description.operands.push_back(operand.str());
  description.optionalOperands = op.optionalInputs();
  for (StringRef result : op.outputNames())
    description.results.push_back(result.str());
  NamedAttrList defaults;
  name.populateDefaultAttrs(defaults);
  for (const net::AttributeSpec &spec : op.attributeSpecs()) {
    OperatorAttribute &attribute = description.attributes.emplace_back();
    attribute.name = spec.name.str();
    attribute.type = typeName(spec.kind);
    if (Attribute value = defaults.get(spec.name))
      attribute.defaultText = defaultText(value);
    for (StringRef word : spec.words)
      attribute.words.push_back(word.str());
    attribute.required = spec.required;
    attribute.positional = spec.positional;
    attribute.summary = spec.summary.str();
  }
  bool isDescribed = false; // f32 has all that others have: sums of bools cannot be partial, for one
  for (StringRef type : frontend::elementTypeNames())
    if (auto example = exampleNetwork(documentation, "%" + join(description.results, ", %"), type, context)) {
      if (documentation.exampleInputs.contains((type + "[").str()) || documentation.exampleInputs.contains(exampleType(documentation)))
        description.elementTypes.push_back(type.str());
      if (!isDescribed || type == "f32")
        describeExample(*example, name.stripDialect(), description);
      isDescribed = true;
    }
  description.differentiable = name.hasInterface<net::Gradient>();
  description.exampleInputs = documentation.exampleInputs.str();
  description.exampleCall = documentation.exampleCall.str();
  return description;
}

Result<std::vector<OperatorDescription>> describeOperators(const std::string &wanted) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<net::NetDialect>();
  std::vector<RegisteredOperationName> names;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<net::Operator>())
      names.push_back(name);
  llvm::sort(names, [](auto a, auto b) { return a.stripDialect() < b.stripDialect(); });
  std::vector<OperatorDescription> descriptions;
  for (RegisteredOperationName name : names)
    if (wanted.empty() || name.stripDialect() == wanted)
      descriptions.push_back(describe(name, context));
  if (!descriptions.empty())
    return descriptions;
  std::vector<std::string> known;
  for (RegisteredOperationName name : names)
    known.push_back(name.stripDialect().str());
  if (const Result<std::vector<LayerDescription>> layers = describeLayers())
    for (const LayerDescription &layer : *layers)
      if (layer.name != wanted)
        known.push_back(layer.name);
  return Error{ExitCode::Usage, "unknown operator '" + wanted + "'", frontend::helpForOperator(wanted, known)};
}

} // namespace msc::compiler
