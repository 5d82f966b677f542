#include "test/e2e/OperatorNetworks.h"

#include "frontend/PrintValues.h"
#include "test/e2e/Coverage.h"

using namespace mlir;

namespace msc::e2e {

static Type elementOf(mlir::Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

std::string typeText(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (tensor.getElementType().isInteger(1))
    os << "bool";
  else
    os << tensor.getElementType();
  os << '[';
  llvm::interleaveComma(tensor.getShape(), os);
  os << ']';
  return text;
}

std::string callText(Operation *op, const std::string &prefix) {
  std::string text = op->getName().stripDialect().str() + "(";
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    text += (i ? ", %" : "%") + prefix + (elementOf(operand).isInteger(1) ? "b" : "x") + std::to_string(i);
  for (const auto &[name, value] : frontend::userAttributes(op))
    if (!frontend::isDefaultAttribute(op, name, value))
      text += (text.ends_with("(") ? "" : ", ") + name + ": " + frontend::attributeText(value);
  return text + ")";
}

std::string resultsText(Operation *op, const std::string &prefix) {
  std::string text;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    text += (i ? ", %" : "%") + prefix + "y" + std::to_string(i);
  return text;
}

std::string whyNoNetwork(const test::OperatorCase &theCase) {
  auto reason = test::withoutGradient().find(theCase.op);
  if (reason != test::withoutGradient().end() && reason->second.find("optimizer") != std::string::npos)
    return "networks do not call it";
  std::vector<std::string> types(theCase.operands.begin(), theCase.operands.end());
  types.push_back(theCase.result);
  for (const std::string &type : types)
    if (("x" + type).find("x0x") != std::string::npos)
      return "networks have no empty tensors";
  return "";
}

bool isMadeByPartition(const test::OperatorCase &theCase) {
  auto reason = test::withoutGradient().find(theCase.op);
  return reason != test::withoutGradient().end() && reason->second.find("partition") != std::string::npos;
}

std::vector<const test::OperatorCase *> casesForLoss() {
  std::vector<const test::OperatorCase *> cases;
  for (const test::OperatorCase &theCase : test::operatorCases())
    if (whyNoNetwork(theCase).empty() && !speaksOfRanks(theCase.op) && !isMadeByPartition(theCase)) // which takes what the partition gives it
      cases.push_back(&theCase);
  return cases;
}

namespace {

/// The parts of a network, to which one case after the other is added.
class LossOfCases {
public:
  void add(const test::OperatorCase &theCase, const std::string &prefix) {
    test::NetContext context;
    test::TestNetwork network(context);
    Operation *op = test::buildCase(network, theCase);
    const bool trains = !test::withoutGradient().contains(theCase.op);
    add(theCase, op, prefix, trains);
    if (trains && op->getNumResults() > 1)
      add(theCase, op, prefix + "u_", false); // for its other results
  }

  std::string text() const {
    return "network operators(" + inputs + ") {\n  param %unused: f64[1] = Zeros()\n" + params + body + "  %last = ReduceSum(%unused)\n  %loss = Add(%" + loss +
           ", %last)\n  return loss: %loss\n}\ndataset {source: Random(seed: 1), columns: {" + columns +
           "}, steps: 2}\ntrain {optimizer: SGD(learning_rate: 0.001), minimize: loss}\ncontext {dataset_strategy: full_batch}\n";
  }

private:
  std::string inputs, columns, params, body, loss;

  /// Trained, its first result is weighed: the others may have no gradient.
  void add(const test::OperatorCase &theCase, Operation *op, const std::string &prefix, bool trains) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const std::string name = prefix + "x" + std::to_string(i), type = typeText(operand.getType());
      if (elementOf(operand).isInteger(1)) {
        addInput(name, "i32" + type.substr(4), "integers(-2, 3)"); // most are true: a row of attention that hides all has the logarithm of 0
        body += "  %" + prefix + "b" + std::to_string(i) + " = Cast(%" + name + ", bool)\n";
      } else if (trains && elementOf(operand).isF64()) {
        params += "  param %" + name + "p: " + type + " = Zeros()\n";
        addInput(name + "d", type, valuesOf(operand, theCase.domain));
        body += "  %" + name + " = Add(%" + name + "p, %" + name + "d)\n";
      } else {
        addInput(name, type, valuesOf(operand, theCase.domain));
      }
    }
    body += "  " + resultsText(op, prefix) + " = " + callText(op, prefix) + "\n";
    for (auto [i, result] : llvm::enumerate(op->getResults().take_front(trains ? 1 : op->getNumResults()))) {
      const std::string y = prefix + "y" + std::to_string(i), number = prefix + "n" + std::to_string(i), part = prefix + "l" + std::to_string(i);
      addInput(y + "w", "f64" + typeText(result.getType()).substr(typeText(result.getType()).find('[')), "uniform(0.5, 1)");
      body += "  %" + number + " = Cast(%" + y + ", f64)\n  %" + y + "p = Mul(%" + number + ", %" + y + "w)\n  %" + part + " = ReduceSum(%" + y + "p)\n";
      loss = loss.empty() ? part : (body += "  %" + part + "s = Add(%" + loss + ", %" + part + ")\n", part + "s");
    }
  }

  void addInput(const std::string &name, const std::string &type, const std::string &values) {
    inputs += (inputs.empty() ? "%" : ", %") + name + ": " + type;
    columns += (columns.empty() ? "" : ", ") + name + ": " + values;
  }

  /// A column of the data set with such values as randomTensor draws.
  static std::string valuesOf(mlir::Value operand, test::Domain domain) {
    if (!isa<FloatType>(elementOf(operand)))
      return domain == test::Domain::Index ? "integers(0, 3)" : "integers(-3, 4)";
    return domain == test::Domain::Positive ? "uniform(0.5, 2)" : domain == test::Domain::Unit ? "uniform(0.1, 0.9)" : "normal";
  }
};

} // namespace

std::string lossOfCases(const std::vector<const test::OperatorCase *> &cases, const std::string &element) {
  LossOfCases network;
  for (auto [i, theCase] : llvm::enumerate(cases))
    network.add(*theCase, "c" + std::to_string(i) + "_");
  std::string text = network.text();
  for (size_t at = 0; (at = text.find("f64", at)) != std::string::npos; at += element.size())
    text.replace(at, 3, element);
  return text;
}

} // namespace msc::e2e
