#include "test/dialects/net/TestNetwork.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace msc::net;

namespace msc::test {

static std::string textOf(const Diagnostic &diagnostic) {
  static const char *kinds[] = {"note", "warning", "error", "remark"};
  return std::string(kinds[static_cast<int>(diagnostic.getSeverity())]) + ": " + diagnostic.str();
}

NetContext::NetContext() {
  DialectRegistry registry;
  registerNetDialect(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    diagnostics.push_back(textOf(diagnostic));
    for (Diagnostic &note : diagnostic.getNotes())
      diagnostics.push_back(textOf(note));
  });
}

RankedTensorType NetContext::type(StringRef text) {
  return cast<RankedTensorType>(parseType(("tensor<" + text + ">").str(), &context));
}

DictionaryAttr NetContext::attributes(StringRef text) {
  return cast<DictionaryAttr>(parseAttribute(text.empty() ? "{}" : text, &context));
}

TestNetwork::TestNetwork(NetContext &context)
    : context(context), module(ModuleOp::create(UnknownLoc::get(context.get()))), builder(context.get()) {
  builder.setInsertionPointToEnd(module->getBody());
  network = builder.create<NetworkOp>(module->getLoc(), "test", builder.getStrArrayAttr({}));
  builder.setInsertionPointToEnd(&network.getBody().emplaceBlock());
}

Value TestNetwork::input(StringRef name, StringRef type) {
  SmallVector<Attribute> names(network.getInputNames().getValue());
  names.push_back(builder.getStringAttr(name));
  network.setInputNamesAttr(builder.getArrayAttr(names));
  return network.getBody().front().addArgument(context.type(type), network.getLoc());
}

Value TestNetwork::param(StringRef name, StringRef type, bool trained) {
  auto initializer = context.attributes("{kind = \"normal\", a = 0.01, b = 0.0}");
  auto param = builder.create<ParamOp>(network.getLoc(), context.type(type), name, initializer);
  param.setTrained(trained);
  return param.getValue();
}

Operation *TestNetwork::op(StringRef name, ArrayRef<Value> operands, StringRef attributes, StringRef valueName) {
  OperationState state(network.getLoc(), ("net." + name).str());
  state.addOperands(operands);
  state.addAttributes(context.attributes(attributes).getValue());
  if (failed(inferResultTypes(state)))
    return nullptr;
  Operation *op = builder.create(state);
  if (!valueName.empty())
    setValueNames(op, valueName);
  return op;
}

Value TestNetwork::value(StringRef name, ArrayRef<Value> operands, StringRef attributes, StringRef valueName) {
  Operation *made = op(name, operands, attributes, valueName);
  return made ? made->getResult(0) : Value();
}

void TestNetwork::results(ArrayRef<Value> values, ArrayRef<StringRef> names) {
  builder.create<ReturnOp>(network.getLoc(), values, builder.getStrArrayAttr(names));
}

reference::Tensor randomTensor(Type type, Domain domain, std::mt19937_64 &random) {
  reference::Tensor tensor(shapeOfType(type));
  Type element = cast<RankedTensorType>(type).getElementType();
  std::uniform_real_distribution<double> unit(0, 1);
  for (double &value : tensor.values) {
    double u = unit(random);
    if (element.isInteger(1))
      value = u < 0.5;
    else if (isa<IntegerType>(element))
      value = domain == Domain::Index ? std::floor(u * 3) : std::floor(u * 7) - 3;
    else if (domain == Domain::Positive)
      value = 0.5 + 1.5 * u;
    else if (domain == Domain::Unit)
      value = 0.1 + 0.8 * u;
    else
      value = (u < 0.5 ? -1 : 1) * (0.1 + 0.9 * unit(random));
  }
  return tensor;
}

std::vector<int64_t> shapeOfType(Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return {shape.begin(), shape.end()};
}

} // namespace msc::test
