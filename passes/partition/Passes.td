//===- Passes.td - from global tensors to shards --------------------------===//

#ifndef MSC_PASSES_PARTITION
#define MSC_PASSES_PARTITION

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"msc-partition", "::mlir::ModuleOp"> {
  let summary = "gives every value a sharding and makes every change of sharding explicit";
  let description = [{
    Before: operators on global tensors; forward operators have strategies, backward operators name their forward
    operator. After: the same operators on types that carry `#dist.sharding`, and a `dist.reshard` wherever a partial
    result is completed or a consumer wants another sharding. Generic over sharding rules: no operator is known by name,
    except that a sum of partial gradients stays partial.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
}

def PlanReshardsPass : Pass<"msc-plan-reshards", "::mlir::ModuleOp"> {
  let summary = "replaces every dist.reshard by slices and collectives";
  let description = [{
    After: no `dist.reshard` is left; each step carries its name (`forward_op_<hash>`,
    `redistribution_op_<hash><Op>`) and the reason of the reshard it comes from.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
}

#endif // MSC_PASSES_PARTITION
