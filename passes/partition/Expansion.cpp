#include "passes/partition/Expansion.h"

#include "dialects/net/NetAttributes.h"
#include "passes/partition/Moves.h"

using namespace mlir;

namespace msc::passes {

DictionaryAttr recordOf(Operation *op, ValueRange operands) {
  Builder builder(op->getContext());
  NamedAttrList record;
  auto strategy = [](std::optional<net::Strategy> pieces) { return pieces ? net::strategyText(*pieces) : ""; };
  record.set("name", builder.getStringAttr(net::getInstanceName(op)));
  record.set("op", builder.getStringAttr(op->getName().stripDialect()));
  record.set("scope", builder.getStringAttr(net::getScope(op)));
  record.set("location", LocationAttr(op->getLoc()));
  record.set("in_strategy", builder.getStringAttr(strategy(net::getInStrategy(op))));
  record.set("out_strategy", builder.getStringAttr(strategy(net::getOutStrategy(op))));
  record.set("origin", builder.getStringAttr(net::getStrategyOrigin(op)));
  auto typesOf = [&](ValueRange values) {
    return builder.getTypeArrayAttr(llvm::to_vector(values.getTypes()));
  };
  auto namesOf = [&](ValueRange values) {
    SmallVector<Attribute> names;
    for (Value value : values)
      names.push_back(builder.getStringAttr(nameOfValue(value)));
    return builder.getArrayAttr(names);
  };
  record.set("operand_types", typesOf(operands));
  record.set("result_types", typesOf(op->getResults()));
  record.set("operand_names", namesOf(operands));
  record.set("result_names", namesOf(op->getResults()));
  return record.getDictionary(op->getContext());
}

} // namespace msc::passes
