#include "test/e2e/NetworkGenerator.h"

#include "test/e2e/NetworkBuilder.h"

#include <sstream>

namespace msc::e2e {

std::string tuple(const Shape &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

static std::string typeText(const Value &value) {
  std::string text = tuple(value.shape);
  return value.type + "[" + text.substr(1, text.size() - 2) + "]";
}

std::string Network::text(const std::map<std::string, std::string> &strategies, const std::string &context) const {
  std::ostringstream out;
  out << "network random(";
  for (size_t i = 0; i < inputs.size(); ++i)
    out << (i ? ", " : "") << "%" << inputs[i].name << ": " << typeText(inputs[i]);
  out << ") {\n";
  for (const Value &parameter : parameters)
    out << "  param %" << parameter.name << ": " << typeText(parameter) << " = Normal(0.5)" << (parameter.state ? " {requires_grad: false}\n" : "\n");
  for (const Node &node : nodes) {
    out << "  %" << node.name;
    for (size_t more = 1; more < node.results; ++more)
      out << ", %" << node.name << "_" << more;
    out << " = " << node.op << "(" << node.arguments << ")";
    if (auto strategy = strategies.find(node.name); strategy != strategies.end())
      out << " {in_strategy: " << strategy->second << "}";
    if (node.recompute)
      out << " {recompute: true}";
    out << "\n";
  }
  out << "  return loss: %loss";
  for (const std::string &output : outputs)
    out << ", " << output << ": %" << output;
  out << "\n}\ndataset {source: Random(seed: 1), columns: {";
  for (size_t i = 0; i < inputs.size(); ++i)
    out << (i ? ", " : "") << inputs[i].name << ": uniform";
  out << "}, steps: 1}\ntrain {optimizer: " << optimizer << ", minimize: loss, epochs: 1}\ncontext {" << context << "}\n";
  return out.str();
}

Network generateNetwork(Random &random) { return NetworkBuilder(random).build(); }

} // namespace msc::e2e
