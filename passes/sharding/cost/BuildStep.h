// From the IR to steps as plain data.
#pragma once

#include "dialects/net/Network.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/cost/StepModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <unordered_map>

namespace msc::passes {

/// Builds the steps of operators. What an operator expands to and its gradient are built in a network of their own; operators
/// that do not differ share one step. The builder has to outlive the steps, for their prices ask the operators in it.
class StepBuilder {
public:
  StepBuilder(mlir::MLIRContext *context, MachineModel machine);

  std::shared_ptr<const OperatorStep> step(mlir::Operation *op, const GradientsWanted &wanted);

private:
  std::shared_ptr<const OperatorStep> step(mlir::Operation *op, const GradientsWanted &wanted, const Pieces &pieces);

  MachineModel machine;
  mlir::OwningOpRef<mlir::ModuleOp> scratch;
  std::unordered_map<std::string, std::shared_ptr<const OperatorStep>> known;
  std::unordered_map<std::string, int32_t> computed; ///< as StepOperator::computes
};

/// What the strategies of a problem cost. `members` as problemOf made them.
StepModel modelOf(const Problem &problem, llvm::ArrayRef<Members> members, dist::ReshardPlanner &planner);
/// The step of each operator, whatever the strategies: what a model of the problem is made of.
ProblemSteps stepsOf(const Problem &problem, llvm::ArrayRef<Members> members, StepBuilder &builder);

} // namespace msc::passes
