// msc-opt: runs passes on MLIR text, for tests and for people who debug a pass. Passes in the order of a compilation:
// msc-check-network, msc-assign-strategies, msc-build-gradients, msc-partition, msc-plan-reshards.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "passes/autodiff/Passes.h"
#include "passes/infer/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  msc::net::registerNetDialect(registry);
  registry.insert<msc::dist::DistDialect, msc::plan_ir::PlanDialect>();
  msc::infer::registerInferPasses();
  msc::passes::registerMscShardingPasses();
  msc::autodiff::registerAutodiffPasses();
  msc::passes::registerMscPartitionPasses();
  mlir::registerCanonicalizer();
  mlir::registerCSE();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "msc-opt: passes on networks\n", registry));
}
