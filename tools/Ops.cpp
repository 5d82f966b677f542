#include "tools/Ops.h"

#include "compiler/Operators.h"
#include "tools/CommandLine.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace msc::tools {

using compiler::OperatorAttribute;
using compiler::OperatorDescription;
using Json = nlohmann::ordered_json;

std::string signature(const OperatorDescription &op) {
  std::vector<std::string> parts = op.operands;
  for (size_t i = parts.size() - op.optionalOperands; i < parts.size(); ++i)
    parts[i] = "[" + parts[i] + "]";
  for (const OperatorAttribute &attribute : op.attributes) {
    std::string part = attribute.name + ": " + attribute.type;
    if (attribute.defaultText)
      part += " = " + *attribute.defaultText;
    parts.push_back(attribute.defaultText || attribute.required ? part : "[" + part + "]");
  }
  return fmt::format("{}({}) -> {}", op.name, fmt::join(parts, ", "), fmt::join(op.results, ", "));
}

namespace {

void printLines(const std::vector<OperatorDescription> &ops, bool differentiable) {
  for (const OperatorDescription &op : ops) {
    if (op.differentiable != differentiable)
      continue;
    fmt::print("  {}\n", signature(op));
    bool isFormula = op.formulas.size() == 1 && op.formulas.front() == op.results.front() + " = " + op.summary;
    if (!isFormula)
      fmt::print("      {}\n", op.summary);
    for (const std::string &formula : op.formulas)
      fmt::print("      {}\n", formula);
    fmt::print("      of {}\n", fmt::join(op.elementTypes, ", "));
  }
}

void printAll(const std::vector<OperatorDescription> &ops) {
  fmt::print("operators of networks; msc ops NAME describes one:\n");
  printLines(ops, /*differentiable=*/true);
  fmt::print("\noperators that training adds, without a gradient of their own:\n");
  printLines(ops, /*differentiable=*/false);
  fmt::print("\nlayers such as Linear, LayerNorm, Softmax and MultiHeadAttention are cells: import \"nn.mir\"\n");
}

void printOne(const OperatorDescription &op) {
  fmt::print("{}\n  {}\n\n{}\n", signature(op), op.summary, op.description);
  if (!op.attributes.empty())
    fmt::print("\nattributes:\n");
  for (const OperatorAttribute &attribute : op.attributes) {
    std::string type = attribute.words.empty() ? attribute.type : fmt::format("{}", fmt::join(attribute.words, " or "));
    fmt::print("  {}: {}, {}: {}{}\n", attribute.name, type,
               attribute.defaultText ? "default " + *attribute.defaultText
               : attribute.required  ? "has to be given"
                                     : "may be left out",
               attribute.summary, attribute.positional ? "; may follow the operands without its name" : "");
  }
  if (!op.elementTypes.empty())
    fmt::print("\nelement types: {}", fmt::join(op.elementTypes, ", "));
  fmt::print("\nrule of the example: {}\nruns as: {}\n", op.rule, op.lowering);
  fmt::print("gradient: {}\n", op.differentiable ? "yes" : "no");
  fmt::print("\nexample{}{}:\n  {}\n", op.exampleInputs.empty() ? "" : ", with ", op.exampleInputs, op.exampleCall);
}

Json toJson(const OperatorDescription &op) {
  Json attributes = Json::array();
  for (const OperatorAttribute &attribute : op.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"type", attribute.type},
                          {"default", attribute.defaultText ? Json(*attribute.defaultText) : Json()},
                          {"required", attribute.required},
                          {"words", attribute.words},
                          {"positional", attribute.positional},
                          {"summary", attribute.summary}});
  return {{"name", op.name},
          {"summary", op.summary},
          {"description", op.description},
          {"formulas", op.formulas},
          {"operands", op.operands},
          {"optional_operands", op.optionalOperands},
          {"results", op.results},
          {"attributes", std::move(attributes)},
          {"element_types", op.elementTypes},
          {"rule", op.rule},
          {"lowering", op.lowering},
          {"differentiable", op.differentiable},
          {"example", {{"inputs", op.exampleInputs}, {"call", op.exampleCall}}}};
}

} // namespace

void OpsFlags::addTo(CLI::App &app) {
  app.add_option("name", name, "one operator, e.g. MatMul (default: all)");
  app.add_flag("--json", json, "names, operands, attributes, element types and formulas as JSON");
}

int runOps(const OpsFlags &flags) {
  auto ops = compiler::describeOperators(flags.name);
  if (!ops) {
    printError("msc", ops.error().message, ops.error().help);
    return static_cast<int>(ops.error().code);
  }
  if (flags.json) {
    Json all = Json::array();
    for (const OperatorDescription &op : *ops)
      all.push_back(toJson(op));
    fmt::print("{}\n", all.dump(2));
  } else if (flags.name.empty()) {
    printAll(*ops);
  } else {
    printOne(ops->front());
  }
  return 0;
}

} // namespace msc::tools
