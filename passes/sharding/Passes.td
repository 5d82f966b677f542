//===- Passes.td - choosing strategies ------------------------------------===//

#ifndef MSC_PASSES_SHARDING
#define MSC_PASSES_SHARDING

include "mlir/Pass/PassBase.td"

def AssignStrategiesPass : Pass<"msc-assign-strategies", "::mlir::ModuleOp"> {
  let summary = "gives every forward operator its strategy";
  let description = [{
    Checks the strategies that the user gave against the sharding rules, chooses those of all other operators as the
    parallel mode says (`net::readConfig` checks the modes), and writes `net.in_strategy` and `net.strategy_origin`. Also decides how dataset inputs arrive
    and how parameters are stored (see passes/sharding/Decisions.h). Runs before autodiff.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
  let options = [
    Option<"devices", "devices", "int64_t", "0", "number of devices; 0: what the module says, else 1">,
    Option<"parallelMode", "parallel-mode", "std::string", "\"\"",
           "stand_alone, data_parallel, semi_auto_parallel or else auto_parallel">,
    Option<"searchMode", "search-mode", "std::string", "\"sharding_propagation\"",
           "how auto_parallel chooses: sharding_propagation, or else the strategies of least modelled time">,
    Option<"minimize", "minimize", "std::string", "\"\"", "name of the loss; empty: the network is not trained">,
    Option<"optimizerStates", "optimizer-states", "int64_t", "0", "tensors that the optimizer keeps for each parameter">,
    Option<"inBuckets", "in-buckets", "bool", "false", "gradient collectives of one group will run together">,
    Option<"memoryBytes", "memory-bytes", "int64_t", "0",
           "what a rank may need for a step, as the search simulates it; 0: any">,
    Option<"closesGap", "closes-gap", "bool", "true",
           "under such a limit, look for what costs less than multipliers find, and prove how much less is possible">,
    Option<"searchOperations", "search-operations", "int64_t", "0",
           "additions and minima that a search may take; behind them it answers with a bound; 0: those of some tens of seconds">,
    Option<"tellsMemory", "tells-memory", "bool", "false",
           "simulate what a rank will need (SearchFacts::arenaBytes), which takes longer than the search of a deep network">,
    Option<"datasetStrategy", "dataset-strategy", "std::string", "\"data_parallel\"",
           "data_parallel, full_batch, or pieces per dimension per input such as ((2, 1), (2, 1))">,
    Option<"datasetRepeatDimRight", "dataset-repeat-dim-right", "bool", "false",
           "the axis along which given input pieces repeat is on the right of the device matrix">,
    Option<"strict", "strict", "bool", "false", "a parameter that is used under two shardings is an error">,
  ];
}

def UnrollPass : Pass<"msc-unroll", "::mlir::ModuleOp"> {
  let summary = "puts the rounds of every repeat one after the other";
  let description = [{
    Runs when strategies are chosen: those of a body hold for all of its rounds. Names get the numbers of their rounds,
    parameters come first in the order of their declaration.
  }];
}

def CanonicalOrderPass : Pass<"msc-canonical-order", "::mlir::ModuleOp"> {
  let summary = "puts independent operators into an order that does not depend on how they are written down";
  let description = [{
    Runs on the unrolled network, on copies of which it is priced; a network that is compiled keeps the order of its lines.
  }];
}

#endif // MSC_PASSES_SHARDING
