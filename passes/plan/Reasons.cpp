#include "passes/plan/Reasons.h"

#include "dialects/net/NetOps.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace msc::passes {

/// The operator that computes a value, in front of moves and biases.
static Operation *makerOf(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && isa<dist::CollectiveOp, dist::SliceOp, net::BiasAddOp>(maker))
    maker = maker->getOperand(0).getDefiningOp();
  return maker;
}

/// "'qkv'", or nothing for a value without a name.
static std::string named(Value value) {
  while (Operation *move = value.getDefiningOp()) {
    if (!isa<dist::CollectiveOp, dist::SliceOp>(move))
      break;
    value = move->getOperand(0);
  }
  StringRef name = net::getValueName(value);
  return name.empty() ? "" : ("'" + name + "'").str();
}

/// "dimensions 1 and 2", "4 and 2": where elements move and the operand is cut.
struct CutDimensions {
  std::string dims, pieces;
};
static CutDimensions cutDimensions(const Sharding &sharding, const std::vector<bool> &moved) {
  std::vector<std::string> dims, pieces;
  for (size_t dim = 0; dim < moved.size(); ++dim)
    if (int64_t count = sharding.pieces(dim); moved[dim] && count > 1) {
      dims.push_back(std::to_string(dim));
      pieces.push_back(std::to_string(count));
    }
  return {(dims.size() == 1 ? "dimension " : "dimensions ") + llvm::join(dims, " and "), llvm::join(pieces, " and ")};
}

/// "Split 'parts'", "backward of 'parts'".
static std::string whoMoves(Operation *op, Operation *forward) {
  return forward ? "backward of '" + net::getUserName(forward).str() + "'"
                 : net::getUserOp(op).str() + " '" + net::getUserName(op).str() + "'";
}

/// " of 'qkv', cut into 4 pieces".
static std::string cutText(Value value, const CutDimensions &cut) {
  std::string name = named(value);
  return (name.empty() ? "" : " of " + name) + ", cut into " + cut.pieces + " pieces";
}

std::string exchangeReason(Operation *op, Operation *forward, const net::RegionExchange &exchange,
                           const net::RegionTensor &tensor) {
  std::vector<bool> moved = net::regionCopyOf(op).movedDimensions();
  const net::RegionTensor *shown = &tensor;
  for (const net::RegionTensor &other : exchange.tensors)
    if (cutDimensions(shown->ends.source, moved).pieces.empty())
      shown = &other;
  CutDimensions cut = cutDimensions(shown->ends.source, moved);
  std::string reason = whoMoves(op, forward) + " moves elements along " + cut.dims + cutText(op->getOperand(shown->operand), cut);
  if (!forward && isa<net::SplitOp, net::SplitVOp>(op) && isa_and_nonnull<net::MatMulOp>(makerOf(op->getOperand(0))))
    reason += "; a product for each part, with a weight of its own, would move nothing";
  return reason;
}

std::string haloReason(Operation *op, Operation *forward, const net::HaloWindows &windows) {
  std::vector<bool> moved;
  for (int64_t size : windows.windowed)
    moved.push_back(size != 0);
  CutDimensions cut = cutDimensions(windows.sharding, moved);
  return whoMoves(op, forward) + " reaches over the boundaries of " + cut.dims + cutText(op->getOperand(windows.operand), cut);
}

/// The first operator that reads a value; who fetches results does not count.
static Operation *firstReader(Value value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers())
    if (!isa<net::ReturnOp>(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  return first;
}

Operation *operatorServed(dist::CollectiveOp move) {
  auto isMove = [](Operation *other) { return isa<dist::CollectiveOp, dist::SliceOp>(other); };
  Operation *at = move;
  if (move.getMove() == "completion") {
    while (at && isMove(at))
      at = at->getOperand(0).getDefiningOp();
  } else {
    while (at && isMove(at))
      at = firstReader(at->getResult(0));
  }
  return at;
}

} // namespace msc::passes
