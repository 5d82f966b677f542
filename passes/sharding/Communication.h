// Communication that networks write themselves.
#pragma once

#include "dialects/net/Network.h"

namespace msc::passes {

/// Communication operators stand in hybrid_parallel mode only, in which every rank has tensors of its own. What receives gets
/// the number of its rank from what sends.
llvm::LogicalResult checkCommunication(net::NetworkOp network, int64_t devices, llvm::StringRef parallelMode);

/// Does what a rank computes depend on which one it is? In hybrid_parallel mode all have the same data.
bool differsByRank(net::NetworkOp network);

} // namespace msc::passes
