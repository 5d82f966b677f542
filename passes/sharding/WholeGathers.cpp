// Parameters that are stored in pieces and gathered on every device.
#include "passes/sharding/Surprises.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetDialect.h"
#include "passes/partition/MoveSteps.h"
#include "runtime/machine/TimeText.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace msc::passes {

namespace {

bool isCast(Operation *op) { return op->getName().stripDialect() == "Cast"; }

/// A parameter on its way to one reader, in all rounds.
struct Gather {
  dist::CollectiveOp last;
  std::string parameter;
  int64_t bytes = 0, rounds = 0;
  double us = 0;
};

class Gathers {
public:
  Gathers(net::NetworkOp network, Alternatives &alternatives) : network(network), alternatives(alternatives) {
    for (Operation &op : network.getBody().front())
      if (std::optional<int64_t> id = net::getId(&op))
        forward[*id] = &op;
  }

  std::vector<SurpriseAt> run() {
    network.walk([&](dist::CollectiveOp op) { look(op); });
    std::vector<SurpriseAt> found;
    for (auto &[key, gather] : gathers) {
      const size_t reader = key.second;
      if (!alternatives.wasWeighed(reader, [&, reader = reader](const Pieces &pieces) { return keepsCut(reader, alternatives.optionOf(reader, pieces)); }))
        found.push_back(surpriseOf(reader, gather));
    }
    return found;
  }

private:
  net::NetworkOp network;
  Alternatives &alternatives;
  llvm::DenseMap<int64_t, Operation *> forward; ///< by net.id
  llvm::MapVector<std::pair<const void *, size_t>, Gather> gathers; ///< by parameter and operator

  /// Does this collective make a parameter whole on every device?
  void look(dist::CollectiveOp op) {
    if (!dist::shardingOf(op.getResult()).isReplicated() || dist::shardingOf(op.getSource()).isPartial())
      return;
    double us = 0;
    int64_t bytes = 0;
    Operation *at = op;
    for (; at && (isMoveStep(at) || isCast(at)); at = at->getOperand(0).getDefiningOp()) {
      if (isMoveStep(at))
        us += dist::stepUs(at, dist::machineOf(op));
      if (auto collective = dyn_cast<dist::CollectiveOp>(at))
        bytes += dist::receivedBytes(collective);
    }
    auto param = dyn_cast_if_present<net::ParamOp>(at);
    std::optional<size_t> reader = param ? readerOf(op.getResult()) : std::nullopt;
    if (!reader)
      return;
    Gather &gather = gathers[{LocationAttr(param.getLoc()).getAsOpaquePointer(), *reader}];
    if (gather.rounds++ == 0) {
      gather.last = op;
      gather.parameter = param.getName().str();
    }
    gather.bytes += bytes;
    gather.us += us;
  }

  /// The first operator that reads the value, unless the user gave one of the readers its strategy.
  std::optional<size_t> readerOf(Value value) {
    std::optional<size_t> first;
    for (Operation *user : value.getUsers()) {
      std::optional<int64_t> id = net::getForwardId(user);
      Operation *op = id ? forward.lookup(*id) : user;
      std::optional<size_t> reader = isMoveStep(user) ? readerOf(user->getResult(0))
                                     : op             ? alternatives.find(net::getUserName(op))
                                                      : std::nullopt;
      if (reader && alternatives.isByUser(*reader))
        return std::nullopt;
      first = reader && (!first || *reader < *first) ? reader : first;
    }
    return first;
  }

  /// No parameter is wanted whole.
  bool keepsCut(size_t reader, std::optional<size_t> option) const {
    const OperatorOptions &options = alternatives.model().options(reader);
    const Problem &problem = alternatives.problem();
    bool cuts = option && !options.placed.empty();
    for (size_t i = 0; cuts && i < options.placed[*option].wanted.size(); ++i)
      if (problem.tensors[problem.operators[reader].operands[i]].isParameter)
        cuts = llvm::none_of(options.placed[*option].wanted[i], [](const Wanted &wanted) { return wanted.sharding.isReplicated(); });
    return cuts;
  }

  SurpriseAt surpriseOf(size_t reader, Gather &gather) {
    std::string text = "all of parameter '" + gather.parameter + "' is gathered on every device for '" +
                       alternatives.name(reader).str() + "', and nobody asked for it: " + std::to_string(gather.bytes) + " bytes and " +
                       timeText(gather.us) + " of a step";
    const std::optional<size_t> chosen = alternatives.chosenOption(reader);
    std::optional<Alternative> other = alternatives.cheapest(reader, [&](const OperatorOptions &, size_t option) {
      return option != chosen && alternatives.keepsFixed(reader, option) && keepsCut(reader, option);
    });
    return {gather.last.getLoc(),
            {Surprise::Kind::Gather, alternatives.name(reader).str(), "", text,
             adviceText(alternatives, reader, other, "where the parameter stays cut"), gather.us}};
  }
};

} // namespace

std::vector<SurpriseAt> wholeGathers(net::NetworkOp network, Alternatives &alternatives) {
  return Gathers(network, alternatives).run();
}

} // namespace msc::passes
