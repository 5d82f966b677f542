//===- Passes.td - from global tensors to shards and collectives ----------===//

#ifndef MSC_PASSES_PARTITION
#define MSC_PASSES_PARTITION

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"msc-partition", "::mlir::ModuleOp"> {
  let summary = "gives every value its sharding and makes every change of sharding explicit";
  let description = [{
    Before: forward operators with strategies, backward operators that name their forward operator, update operators.
    After: the same operators; every tensor type carries a `#dist.sharding`, and `dist.reshard` operators stand where a
    partial result is completed or a consumer wants another sharding than its producer leaves. Generic over sharding
    rules. Ends in the check of `msc-verify-partition`.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
}

def PlanReshardsPass : Pass<"msc-plan-reshards", "::mlir::ModuleOp"> {
  let summary = "replaces every dist.reshard by slices and collectives";
  let description = [{
    A completion becomes one AllReduce per kind of reduction, a redistribution the steps of `dist::ReshardPlanner`. Ends in the check of `msc-verify-partition`.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
}

def VerifyPartitionPass : Pass<"msc-verify-partition", "::mlir::ModuleOp"> {
  let summary = "states what holds for a partitioned network";
  let description = [{
    Every tensor has a sharding over all devices; operands and results of every operator agree with its sharding rule;
    no partial value reaches an operator other than one that adds partial values of one sharding.
  }];
}

#endif // MSC_PASSES_PARTITION
