// From a forward test network to a partitioned training step.
#pragma once

#include "passes/sharding/Passes.h"
#include "test/dialects/net/TestNetwork.h"

namespace msc::test {

/// The context also knows the dist dialect.
void loadDist(NetContext &context);

/// Appends backward and one momentum step per trained parameter. The network has a result "loss".
bool addTraining(TestNetwork &network);

/// Runs the passes up to planned collectives. False if one fails (see the context's diagnostics).
bool partitionNetwork(TestNetwork &network, const passes::AssignStrategiesPassOptions &options);

/// Strategies only.
bool assignStrategies(TestNetwork &network, const passes::AssignStrategiesPassOptions &options);
bool partitionAssigned(TestNetwork &network);

/// Plans the moves of each value together.
bool optimizeMoves(TestNetwork &network);
/// Lets linear operators compute with terms, as 19_backend shows it.
bool keepPartials(TestNetwork &network);
/// Puts gradient collectives into buckets, as 19_backend shows it.
bool fuseCollectives(TestNetwork &network);

} // namespace msc::test
