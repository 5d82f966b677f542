// What holds operators together: verifiers, and helpers on whole networks.
#include "dialects/net/Network.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace msc::net;

LogicalResult NetworkOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputNames().size())
    return emitOpError("has ") << block.getNumArguments() << " inputs, but " << getInputNames().size() << " names";
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError("does not end in net.return");
  llvm::StringMap<ParamOp> params;
  for (ParamOp param : block.getOps<ParamOp>())
    if (auto [at, fresh] = params.try_emplace(param.getName(), param); !fresh) {
      InFlightDiagnostic error = param.emitError("parameter '") << param.getName() << "' is declared twice";
      error.attachNote(at->second.getLoc()) << "first declared here";
      return error;
    }
  return success();
}

LogicalResult ReturnOp::verify() {
  if (getValues().size() != getNames().size())
    return emitOpError("has ") << getValues().size() << " values, but " << getNames().size() << " names";
  llvm::StringSet<> seen;
  for (StringRef name : getNames().getAsValueRange<StringAttr>())
    if (!seen.insert(name).second)
      return emitError("result '") << name << "' is named twice";
  return success();
}

LogicalResult RepeatOp::verify() {
  if (firstRound() >= endRound())
    return emitOpError("has no round: it goes from ") << firstRound() << " to " << endRound();
  for (auto outer = (*this)->getParentOfType<RepeatOp>(); outer; outer = outer->getParentOfType<RepeatOp>())
    if (outer.getVariable() == getVariable())
      return emitOpError("has the variable '") << getVariable() << "' of a repeat around it";
  Block &block = getBody().front();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError("does not end in net.yield");
  TypeRange carried = getInitial().getTypes();
  if (block.getArgumentTypes() != carried || getResultTypes() != carried ||
      block.back().getOperandTypes() != carried)
    return emitOpError("has initial values, block arguments, yielded values and results of different types");
  return success();
}

LogicalResult UpdateOp::verify() {
  if (!getParameter().getDefiningOp<ParamOp>())
    return emitOpError("writes a value that is not a parameter");
  if (!sameTensors(getParameter().getType(), getNewValue().getType()))
    return emitOpError("parameter and new value differ in shape or element type");
  return success();
}

LogicalResult msc::net::inferResultTypes(OperationState &state) {
  auto *interface = state.name.getInterface<InferTypeOpInterface>();
  if (!interface)
    return emitError(state.location, "'") << state.name.stripDialect() << "' is not an operator";
  MLIRContext *context = state.getContext();
  SmallVector<Type> types;
  if (failed(interface->inferReturnTypes(context, state.location, state.operands,
                                         state.attributes.getDictionary(context), state.getRawProperties(),
                                         RegionRange(), types)))
    return failure();
  state.addTypes(types);
  return success();
}

void msc::net::numberOperators(NetworkOp network) {
  int64_t id = 0;
  for (Operation &op : network.getBody().front())
    if (isa<Operator>(op))
      setId(&op, id++);
}

ReturnOp msc::net::getReturn(NetworkOp network) {
  return cast<ReturnOp>(network.getBody().front().back());
}

FailureOr<Value> msc::net::findLoss(NetworkOp network, StringRef name) {
  ReturnOp results = getReturn(network);
  auto names = results.getNames().getAsValueRange<StringAttr>();
  auto at = llvm::find(names, name);
  if (at == names.end())
    return results.emitError("network '") << network.getSymName() << "' has no result '" << name
                                          << "' to minimise; its results are " << llvm::join(names, ", ");
  Value loss = results.getValues()[std::distance(names.begin(), at)];
  auto type = cast<RankedTensorType>(loss.getType());
  if (type.getRank() == 0 && isa<FloatType>(type.getElementType()))
    return loss;
  InFlightDiagnostic error = results.emitError("result '")
                             << name << "' cannot be minimised: it is " << elementText(type.getElementType()) << " "
                             << shapeText(type.getShape()) << ", not a float scalar";
  error.attachNote(loss.getLoc()) << "computed here";
  return error;
}
