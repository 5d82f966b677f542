#include "dialects/net/ops/print/Print.h"

#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

LogicalResult PrintOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult PrintOp::buildGradient(OpBuilder &, ValueRange dy, const llvm::SmallBitVector &, MutableArrayRef<Value> gradients) {
  gradients[0] = dy[0];
  return success();
}

ShardingRule PrintOp::shardingRule() { return pointwiseRule(*this); }
OperatorCost PrintOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>>) { return {}; }
LoweringKind PrintOp::loweringKind() { return LoweringKind::View; }

//===-- results that are printed ------------------------------------------===//

constexpr llvm::StringLiteral kPrinted = "net.printed"; ///< {name of a result: message}

void msc::net::returnPrinted(NetworkOp network) {
  ReturnOp results = getReturn(network);
  SmallVector<Attribute> names(results.getNames().getValue());
  NamedAttrList messages;
  Builder builder(network.getContext());
  for (auto print : network.getBody().front().getOps<PrintOp>()) {
    std::string name = getInstanceName(print).empty() ? "print" : getInstanceName(print).str();
    StringAttr free = builder.getStringAttr(name);
    for (int number = 2; llvm::is_contained(names, free); ++number)
      free = builder.getStringAttr(name + "_" + std::to_string(number));
    names.push_back(free);
    results.getValuesMutable().append(print.getOutput());
    messages.set(free, print.getMessageAttr());
  }
  if (messages.empty())
    return;
  results.setNamesAttr(builder.getArrayAttr(names));
  network->setAttr(kPrinted, messages.getDictionary(network.getContext()));
}

StringAttr msc::net::messageOf(NetworkOp network, Attribute result) {
  auto messages = network->getAttrOfType<DictionaryAttr>(kPrinted);
  return messages ? messages.getAs<StringAttr>(cast<StringAttr>(result)) : StringAttr();
}
