#include "tools/Ops.h"

#include "compiler/JsonText.h"
#include "compiler/Layers.h"
#include "compiler/Operators.h"
#include "dialects/net/Optimizers.h"
#include "tools/CommandLine.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace msc::tools {

using compiler::LayerDescription;
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

/// Of lines, in one line and without its full stop.
std::string firstSentence(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text = text.substr(0, text.find(". "));
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

void printAll(const std::vector<OperatorDescription> &ops, const std::vector<LayerDescription> &layers) {
  fmt::print("operators of networks; msc ops NAME describes one:\n");
  printLines(ops, /*differentiable=*/true);
  fmt::print("\noperators that training adds, without a gradient of their own:\n");
  printLines(ops, /*differentiable=*/false);
  fmt::print("\nlayers, which are cells of import \"nn.mir\":\n");
  for (const LayerDescription &layer : layers) {
    fmt::print("  {}\n", layer.head);
    if (!layer.comment.empty())
      fmt::print("      {}\n", firstSentence(layer.comment));
  }
}

/// Each line behind `indent`.
std::string indented(const std::string &text, const char *indent) {
  std::string lines = indent;
  for (char letter : text)
    lines += letter == '\n' ? std::string("\n") + indent : std::string(1, letter);
  return lines;
}

void printLayer(const LayerDescription &layer) {
  fmt::print("{}\n  a layer of import \"nn.mir\"\n\n{}{}{}\n\nexample:\n  {}\n", layer.head, layer.comment, layer.comment.empty() ? "" : "\n\n",
             indented(layer.text, "  "), layer.example);
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

/// An optimizer of the train block, which is no operator.
void printOptimizer(const net::OptimizerForm &form) {
  using Range = net::OptimizerArgument::Range;
  std::vector<std::string> parts{form.learningRate ? fmt::format("learning_rate: float = {}", *form.learningRate) : "learning_rate: float"};
  std::string lines;
  for (const net::OptimizerArgument &argument : form.arguments) {
    const bool isFlag = argument.range == Range::Flag;
    const char *range = isFlag                                   ? "true or false"
                        : argument.range == Range::Share    ? "from 0 to below 1"
                        : argument.range == Range::Positive ? "above 0"
                                                            : "from 0 up";
    const std::string value = !argument.otherwise ? "" : isFlag ? (*argument.otherwise != 0 ? "true" : "false") : fmt::format("{}", *argument.otherwise);
    parts.push_back(argument.name.str() + (isFlag ? ": bool" : ": float") + (value.empty() ? "" : " = " + value));
    lines += fmt::format("  {}: {}, {}{}\n", argument.name.str(), range, value.empty() ? "has to be given" : "default " + value,
                         argument.synonym.empty() ? "" : "; also called " + argument.synonym.str());
  }
  parts.push_back("[no_decay: strings]");
  fmt::print("{}({})\n  an optimizer of the train block, which is no operator\n\nattributes:\n", form.name.str(), fmt::join(parts, ", "));
  fmt::print("  learning_rate: a number or a schedule, {}\n{}", form.learningRate ? fmt::format("default {}", *form.learningRate) : "has to be given", lines);
  fmt::print("  no_decay: patterns of names of parameters that weight_decay spares\n");
  fmt::print("\nkept for each parameter, as large as it: {} state{}\n", form.states, form.states == 1 ? "" : "s");
  std::string required = "learning_rate: 0.001";
  for (const net::OptimizerArgument &argument : form.arguments)
    required += argument.otherwise ? "" : ", " + argument.name.str() + ": 0.9";
  fmt::print("\nexample:\n  train {{optimizer: {}({}), minimize: loss}}\n", form.name.str(), required);
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
  app.add_option("name", name, "one operator, e.g. MatMul, a layer, e.g. Linear, or an optimizer, e.g. Adam (default: all operators and layers)");
  app.add_flag("--json", json, "names, operands, attributes, element types and formulas as JSON");
}

int runOps(const OpsFlags &flags) {
  if (const net::OptimizerForm *form = net::findOptimizer(flags.name); form && !flags.json) {
    printOptimizer(*form);
    return 0;
  }
  auto ops = compiler::describeOperators(flags.name);
  Result<std::vector<LayerDescription>> library = compiler::describeLayers();
  auto fail = [](const Error &error) {
    printError("msc", error.message, error.help);
    return static_cast<int>(error.code);
  };
  if (!library && !ops && !flags.json) // it may be a layer
    return fail(library.error());
  const std::vector<LayerDescription> layers = library ? *library : std::vector<LayerDescription>();
  auto layer = std::find_if(layers.begin(), layers.end(), [&](const LayerDescription &known) { return known.name == flags.name; });
  if (!ops && layer != layers.end() && !flags.json) {
    printLayer(*layer);
    return 0;
  }
  if (!ops)
    return fail(ops.error());
  if (flags.json) {
    Json all = Json::array();
    for (const OperatorDescription &op : *ops)
      all.push_back(toJson(op));
    fmt::print("{}", compiler::jsonText(all));
  } else if (flags.name.empty()) {
    printAll(*ops, layers);
    if (!library)
      return fail(library.error());
  } else {
    printOne(ops->front());
    if (layer != layers.end())
      fmt::print("\nwith import \"nn.mir\" a layer has its name:\n  {}\n{}{}", layer->head, layer->comment.empty() ? "" : indented(layer->comment, "  "),
                 layer->comment.empty() ? "" : "\n");
  }
  return 0;
}

} // namespace msc::tools
