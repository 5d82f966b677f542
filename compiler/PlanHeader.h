// The parts of a plan that do not come from steps: options, training loop, data, notes on operators, digest.
#pragma once

#include "compiler/PlanWriter.h"
#include "dialects/net/Config.h"
#include "dialects/net/Network.h"
#include "runtime/plan/plan.pb.h"

namespace msc::compiler {

/// Devices, modes, seed, training loop, datasets, checkpoints.
void writeHeader(llvm::StringRef network, const net::Config &config, plan::Plan &plan);

/// One note per forward operator of the partitioned network.
void writeOperatorNotes(net::NetworkOp network, PlanTables &tables);

/// SHA-256 over the meaning of a network whose strategies are decided: operators, attributes, shapes, strategies,
/// initializers, results, loop and options that change what runs; not names, origins or locations. `unusual`: the options of
/// the command line that do so, and the machine, empty if they are the defaults. Hex.
std::string digestOf(net::NetworkOp network, const net::Config &config, const std::string &unusual);

} // namespace msc::compiler
