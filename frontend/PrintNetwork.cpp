// A module as a hand-written network.
#include "dialects/net/Network.h"
#include "frontend/Lexer.h"
#include "frontend/PrintValues.h"
#include "frontend/Printer.h"
#include "frontend/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

namespace {
class NetworkPrinter {
public:
  NetworkPrinter(net::NetworkOp network, raw_ostream &os) : network(network), os(os) {}
  void run();

private:
  /// Gives the value a name that nothing else has; its own name where possible.
  StringRef define(Value value, StringRef wish);
  void type(Type type);
  void parameter(net::ParamOp param);
  void node(Operation &op);
  void arguments(Operation &op);
  void strategies(Operation &op);

  net::NetworkOp network;
  raw_ostream &os;
  llvm::DenseMap<Value, std::string> names;
  llvm::StringSet<> taken;
};
} // namespace

StringRef NetworkPrinter::define(Value value, StringRef wish) {
  std::string base = isValueName(wish) ? wish.str() : "v", name = base;
  for (int next = 1; !taken.insert(name).second; ++next)
    name = base + "_" + std::to_string(next);
  return names[value] = name;
}

void NetworkPrinter::type(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  os << elementTypeName(tensor.getElementType()) << '[';
  interleaveComma(tensor.getShape(), os);
  os << ']';
}

void NetworkPrinter::parameter(net::ParamOp param) {
  os << "  param %" << define(param.getValue(), param.getName()) << ": ";
  type(param.getValue().getType());
  os << " = " << initializerText(param.getInitializer());
  if (!param.getDrawName().empty())
    os << " @ " << quotedText(param.getDrawName());
  if (!param.getTrained())
    os << " {requires_grad: false}";
  os << '\n';
}

void NetworkPrinter::arguments(Operation &op) {
  interleaveComma(op.getOperands(), os, [&](Value value) {
    std::string number = inlineNumber(&op, value);
    if (number.empty())
      os << '%' << names.lookup(value);
    else
      os << number;
  });
  for (const auto &[name, value] : userAttributes(&op))
    if (!isDefaultAttribute(&op, name, value))
      os << ", " << name << ": " << attributeText(value);
}

void NetworkPrinter::strategies(Operation &op) {
  std::optional<net::Strategy> in = net::getInStrategy(&op), out = net::getOutStrategy(&op);
  if (!in && !out)
    return;
  os << " {";
  if (in)
    os << "in_strategy: " << net::strategyText(*in);
  if (out)
    os << (in ? ", " : "") << "out_strategy: " << net::strategyText(*out);
  os << '}';
  StringRef origin = net::getStrategyOrigin(&op);
  if (origin.empty() || origin == "user")
    return;
  auto [word, source] = splitOrigin(origin);
  os << " cnode_attrs: {strategy_origin: " << wordText(word);
  if (!source.empty())
    os << ", strategy_source: " << wordText(source);
  os << '}';
}

void NetworkPrinter::node(Operation &op) {
  os << "  ";
  interleaveComma(op.getResults(), os, [&](Value value) { os << '%' << define(value, net::getValueName(value)); });
  os << " = " << op.getName().stripDialect() << '(';
  arguments(op);
  os << ')';
  StringRef instance = net::getInstanceName(&op);
  if (!instance.empty() && (op.getNumResults() == 0 || instance != net::getValueName(op.getResult(0))))
    os << " @ " << quotedText(instance);
  strategies(op);
  os << '\n';
}

void NetworkPrinter::run() {
  os << "network " << network.getSymName() << '(';
  Block &block = network.getBody().front();
  interleaveComma(block.getArguments(), os, [&](BlockArgument argument) {
    os << '%' << define(argument, net::getValueName(argument)) << ": ";
    type(argument.getType());
  });
  os << ") {\n";
  for (Operation &op : block) {
    if (auto param = dyn_cast<net::ParamOp>(op))
      parameter(param);
    else if (isa<net::Operator>(op))
      node(op);
  }
  net::ReturnOp results = net::getReturn(network);
  if (!results.getValues().empty())
    os << "  return ";
  interleaveComma(zip(results.getNames().getAsValueRange<StringAttr>(), results.getValues()), os,
                  [&](auto result) { os << std::get<0>(result) << ": %" << names.lookup(std::get<1>(result)); });
  os << "\n}\n";
}

void printNetwork(ModuleOp module, raw_ostream &os) {
  for (net::NetworkOp network : module.getOps<net::NetworkOp>())
    NetworkPrinter(network, os).run();
  printBlocks(module, /*withPlaces=*/false, os);
}

} // namespace msc::frontend
