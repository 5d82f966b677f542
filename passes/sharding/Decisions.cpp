#include "passes/sharding/Decisions.h"

#include "dialects/net/Pieces.h"

using namespace mlir;

namespace msc::passes {

static constexpr StringLiteral kInputs = "dist.inputs", kStored = "dist.stored", kSearch = "dist.search";

int64_t getDevices(net::NetworkOp network) {
  return net::devicesOf(network);
}

void setDevices(net::NetworkOp network, int64_t devices) {
  network->setAttr(net::devicesAttributeName, Builder(network.getContext()).getI64IntegerAttr(devices));
}

std::optional<SearchFacts> takeSearchFacts(net::NetworkOp network) {
  auto facts = network->getAttrOfType<DenseF64ArrayAttr>(kSearch);
  if (!facts)
    return std::nullopt;
  network->removeAttr(kSearch);
  ArrayRef<double> numbers = facts.asArrayRef();
  return SearchFacts{numbers[0] != 0, numbers[1], numbers[2], numbers[3], numbers[4], numbers[5] != 0};
}

void setSearchFacts(net::NetworkOp network, const SearchFacts &facts) {
  network->setAttr(kSearch, DenseF64ArrayAttr::get(network.getContext(), {facts.isOptimal ? 1.0 : 0.0, facts.us, facts.boundUs,
                                                                          facts.bytes, facts.leastBytes, facts.isOnMesh ? 1.0 : 0.0}));
}

std::vector<Sharding> getInputShardings(net::NetworkOp network) {
  std::vector<Sharding> shardings;
  if (auto attr = network->getAttrOfType<ArrayAttr>(kInputs))
    for (auto input : attr.getAsRange<dist::ShardingAttr>())
      shardings.push_back(input.get());
  return shardings;
}

void setInputShardings(net::NetworkOp network, const std::vector<Sharding> &shardings) {
  SmallVector<Attribute> inputs;
  for (const Sharding &sharding : shardings)
    inputs.push_back(dist::ShardingAttr::get(network.getContext(), sharding));
  network->setAttr(kInputs, ArrayAttr::get(network.getContext(), inputs));
}

std::optional<Sharding> getStoredSharding(net::ParamOp param) {
  auto attr = param->getAttrOfType<dist::ShardingAttr>(kStored);
  return attr ? std::optional(attr.get()) : std::nullopt;
}

void setStoredSharding(net::ParamOp param, const Sharding &sharding) {
  param->setAttr(kStored, dist::ShardingAttr::get(param.getContext(), sharding));
}

} // namespace msc::passes
