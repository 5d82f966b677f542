// msc-opt: runs passes on MLIR text, for tests and for people who debug a pass.
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
  msc::autodiff::registerAutodiffPasses();
  msc::passes::registerMscShardingPasses();
  msc::passes::registerMscPartitionPasses();
  mlir::registerCanonicalizer();
  mlir::registerCSE();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "msc-opt: passes on networks\n", registry));
}
