#include "passes/sharding/Decisions.h"

#include "dialects/net/Pieces.h"

using namespace mlir;

namespace msc::passes {

static constexpr StringLiteral kInputs = "dist.inputs", kStored = "dist.stored", kSearch = "dist.search",
                        kPredicted = "dist.predicted", kByModel = "dist.by_model";

int64_t getDevices(net::NetworkOp network) {
  return net::devicesOf(network);
}

void setDevices(net::NetworkOp network, int64_t devices) {
  network->setAttr(net::networkDevicesAttributeName, Builder(network.getContext()).getI64IntegerAttr(devices));
}

/// Kind, phase, bytes, time, count, axes of the matrix; then the matrix and the axes of the group.
static SmallVector<double> packed(const PredictedCollective &collective) {
  SmallVector<double> numbers{static_cast<double>(collective.kind), collective.isBackward ? 1.0 : 0.0, collective.bytes, collective.us,
                              static_cast<double>(collective.count), static_cast<double>(collective.groupMatrix.size())};
  numbers.append(collective.groupMatrix.begin(), collective.groupMatrix.end());
  numbers.append(collective.groupAxes.begin(), collective.groupAxes.end());
  return numbers;
}

static PredictedCollective unpacked(ArrayRef<double> numbers) {
  PredictedCollective collective{.kind = static_cast<MoveKind>(numbers[0]), .isBackward = numbers[1] != 0, .bytes = numbers[2],
                                 .us = numbers[3], .count = static_cast<int64_t>(numbers[4])};
  auto axes = static_cast<size_t>(numbers[5]);
  for (double size : numbers.slice(6, axes))
    collective.groupMatrix.push_back(static_cast<int64_t>(size));
  for (double axis : numbers.drop_front(6 + axes))
    collective.groupAxes.push_back(static_cast<int32_t>(axis));
  return collective;
}

std::optional<SearchFacts> takeSearchFacts(net::NetworkOp network) {
  auto facts = network->getAttrOfType<DenseF64ArrayAttr>(kSearch);
  if (!facts)
    return std::nullopt;
  network->removeAttr(kSearch);
  ArrayRef<double> numbers = facts.asArrayRef();
  SearchFacts taken{numbers[0] != 0, numbers[1], numbers[2], numbers[3], static_cast<int64_t>(numbers[4]),
                    numbers[5], numbers[6], numbers[7], numbers[8], numbers[9] != 0};
  auto predicted = cast<ArrayAttr>(network->removeAttr(kPredicted));
  for (auto entry : predicted.getAsRange<DenseF64ArrayAttr>())
    taken.collectives.push_back(unpacked(entry.asArrayRef()));
  return taken;
}

void setSearchFacts(net::NetworkOp network, const SearchFacts &facts) {
  network->setAttr(kSearch, DenseF64ArrayAttr::get(network.getContext(), {facts.isOptimal ? 1.0 : 0.0, facts.us, facts.boundUs,
                                                                          facts.leastBytes, static_cast<double>(facts.candidates),
                                                                          facts.leastUs, facts.repricedUs, facts.firstRepricedUs, facts.arenaBytes,
                                                                          facts.isOnMesh ? 1.0 : 0.0}));
  SmallVector<Attribute> predicted;
  for (const PredictedCollective &collective : facts.collectives)
    predicted.push_back(DenseF64ArrayAttr::get(network.getContext(), packed(collective)));
  network->setAttr(kPredicted, ArrayAttr::get(network.getContext(), predicted));
}

llvm::DenseMap<Operation *, std::vector<std::vector<int64_t>>> takeModelChoice(net::NetworkOp network) {
  llvm::DenseMap<Operation *, std::vector<std::vector<int64_t>>> pieces;
  network.walk([&](Operation *op) {
    if (auto all = dyn_cast_if_present<ArrayAttr>(op->removeAttr(kByModel)))
      for (auto one : all.getAsRange<DenseI64ArrayAttr>())
        pieces[op].push_back(one.asArrayRef().vec());
  });
  return pieces;
}

void setModelChoice(Operation *op, const std::vector<std::vector<int64_t>> &pieces) {
  SmallVector<Attribute> all;
  for (const std::vector<int64_t> &one : pieces)
    all.push_back(DenseI64ArrayAttr::get(op->getContext(), one));
  op->setAttr(kByModel, ArrayAttr::get(op->getContext(), all));
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
