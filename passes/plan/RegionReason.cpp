#include "passes/plan/RegionReason.h"

#include "dialects/dist/DistDialect.h"
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
static CutDimensions cutDimensions(const net::RegionTensor &tensor, const std::vector<bool> &moved) {
  std::vector<std::string> dims, pieces;
  for (size_t dim = 0; dim < moved.size(); ++dim)
    if (int64_t count = tensor.ends.source.pieces(dim); moved[dim] && count > 1) {
      dims.push_back(std::to_string(dim));
      pieces.push_back(std::to_string(count));
    }
  return {(dims.size() == 1 ? "dimension " : "dimensions ") + llvm::join(dims, " and "), llvm::join(pieces, " and ")};
}

std::string exchangeReason(Operation *op, Operation *forward, const net::RegionExchange &exchange,
                           const net::RegionTensor &tensor) {
  std::string who = forward ? "backward of '" + net::getUserName(forward).str() + "'"
                            : net::getUserOp(op).str() + " '" + net::getUserName(op).str() + "'";
  std::vector<bool> moved = net::regionCopyOf(op).movedDimensions();
  const net::RegionTensor *shown = &tensor;
  for (const net::RegionTensor &other : exchange.tensors)
    if (cutDimensions(*shown, moved).pieces.empty())
      shown = &other;
  CutDimensions cut = cutDimensions(*shown, moved);
  std::string value = named(op->getOperand(shown->operand));
  std::string reason = who + " moves elements along " + cut.dims + (value.empty() ? "" : " of " + value) +
                       ", cut into " + cut.pieces + " pieces";
  if (!forward && isa<net::SplitOp, net::SplitVOp>(op) && isa_and_nonnull<net::MatMulOp>(makerOf(op->getOperand(0))))
    reason += "; a product for each part, with a weight of its own, would move nothing";
  return reason;
}

} // namespace msc::passes
