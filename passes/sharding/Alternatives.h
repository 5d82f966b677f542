// What `msc explain --op` tells of an operator: every strategy that it may take, and what a step takes under it.
#pragma once

#include "passes/sharding/Convert.h"
#include "passes/sharding/SearchFacts.h"

namespace msc::passes {

/// Of the operator with this instance name (within a repeat that of any of its rounds), the cheapest first; strategies under
/// which nothing is possible are left out. None if there is no such operator. The network has its strategies and is not
/// unrolled yet.
std::vector<Alternative> alternativesOf(net::NetworkOp network, llvm::StringRef name, const TrainingFacts &training);

} // namespace msc::passes
