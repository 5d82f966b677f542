//===- Passes.td - fewer, smaller, earlier collectives --------------------===//

#ifndef MSC_PASSES_OPTIMIZE
#define MSC_PASSES_OPTIMIZE

include "mlir/Pass/PassBase.td"

def ReuseStatisticsPass : Pass<"msc-reuse-statistics", "::mlir::ModuleOp"> {
  let summary = "keeps small results of the forward pass that the backward pass would compute and complete again";
  let description = [{
    Maxima, sums, means and what is computed from them alone: where an operator or a collective computes what an earlier one
    has computed, and the result is at most a quarter of what it was made of, the earlier result is used. Larger values are
    computed again, which costs no memory. The same bits. Ends in the check of `msc-verify-partition`.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
  let statistics = [
    Statistic<"statisticsReused", "statistics-reused", "operators and collectives that are not needed any more">
  ];
}

def KeepPartialsPass : Pass<"msc-keep-partials", "::mlir::ModuleOp"> {
  let summary = "lets linear operators compute with the terms of a sum, and completes the result instead";
  let description = [{
    AllReduce(a) + AllReduce(b) becomes AllReduce(a + b), also where the addition wants shards of both sums, and f(AllReduce(a))
    of a linear f becomes AllReduce(f(a)), such as a product or a sum with a smaller result: where that takes less modelled time,
    and only sums that nobody else reads. Ends in the
    check of `msc-verify-partition`.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
  let statistics = [
    Statistic<"operatorsMoved", "operators-moved", "operators that compute with terms now">
  ];
}

def PlanMovesPass : Pass<"msc-plan-moves", "::mlir::ModuleOp"> {
  let summary = "plans all moves of a value together, from the sharding in which it was computed";
  let description = [{
    Before: a partial result is completed, then redistributed to each sharding that a consumer wants, every move on its
    own. After: each wanted sharding is reached from the partial value or from another sharding that is there already,
    whichever takes the least modelled time: AllReduce and StridedSlice become one ReduceScatter, redistributions share
    their first steps. A value is left as it is where this would not be faster. Ends in the check of
    `msc-verify-partition`.
  }];
  let dependentDialects = ["::msc::dist::DistDialect"];
  let statistics = [
    Statistic<"valuesPlanned", "values-planned", "values whose moves were planned anew">
  ];
}

#endif // MSC_PASSES_OPTIMIZE
