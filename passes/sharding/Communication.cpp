#include "passes/sharding/Communication.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/Suggest.h"
#include "dialects/net/ops/communication/CommunicationOps.h"

using namespace mlir;

namespace msc::passes {

static bool speaksOfRanks(Operation *op) {
  return isa<net::SendOp, net::CommunicationInterface>(op);
}

static LogicalResult refuse(Operation *op) {
  InFlightDiagnostic diagnostic = op->emitError("'") << op->getName().stripDialect()
                                                     << "' is for hybrid_parallel mode, in which every rank has tensors of its own";
  net::addHelp(diagnostic, "write 'context {parallel_mode: hybrid_parallel}'; in other modes communication follows from strategies");
  return diagnostic;
}

/// A Receive that does not say which rank receives reads what a Send with its tag gives.
static LogicalResult pair(net::ReceiveOp receive) {
  auto send = receive.getX().getDefiningOp<net::SendOp>();
  auto tag = static_cast<int64_t>(receive.getSrTag());
  if (!send || send.getSrTag() != receive.getSrTag()) {
    if (receive.getDestRank())
      return success();
    InFlightDiagnostic diagnostic = receive.emitError("'Receive' does not read what a Send with its tag ") << tag << " gives";
    net::addHelp(diagnostic, "write %t = Send(%x, " + std::to_string(tag) + ", 1) in front of it, or give the receiving rank: dest_rank: 1");
    return diagnostic;
  }
  if (receive.getDestRank() && *receive.getDestRank() != send.getDestRank()) {
    InFlightDiagnostic diagnostic = receive.emitError("'dest_rank' of 'Receive' is ")
                                    << static_cast<int64_t>(*receive.getDestRank()) << ", but what it reads is sent to rank "
                                    << static_cast<int64_t>(send.getDestRank());
    diagnostic.attachNote(send.getLoc()) << "sent here";
    return diagnostic;
  }
  receive.setDestRank(static_cast<int64_t>(send.getDestRank()));
  return success();
}

LogicalResult checkCommunication(net::NetworkOp network, int64_t devices, StringRef parallelMode) {
  bool isAllowed = devices == 1 || parallelMode == "hybrid_parallel", sound = true;
  network.walk([&](Operation *op) {
    if (!speaksOfRanks(op))
      return;
    if (!isAllowed)
      sound = sound && succeeded(refuse(op)); // once
    else if (auto receive = dyn_cast<net::ReceiveOp>(op))
      sound = succeeded(pair(receive)) && sound;
  });
  return success(sound);
}

bool differsByRank(net::NetworkOp network) {
  return network
      .walk([](Operation *op) {
        return speaksOfRanks(op) || isa<net::DropoutOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace msc::passes
