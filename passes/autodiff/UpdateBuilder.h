// Builds what stands behind the backward pass; private to passes/autodiff.
#pragma once

#include "dialects/net/Config.h"
#include "dialects/net/NetOps.h"
#include "passes/autodiff/Passes.h"

#include <map>
#include <string>

namespace msc::autodiff {

/// States, step-dependent scalars and operators of the update. What it builds has the phase "update" and the scope of the
/// optimizer.
class UpdateBuilder {
public:
  UpdateBuilder(net::NetworkOp network, const net::TrainConfig &train);

  /// A state with the shape of the parameter, called "<prefix>.<parameter>" and stored like it.
  net::ParamOp state(llvm::StringRef prefix, net::ParamOp param, double initial = 0);
  /// A scalar state of the whole network, f32 unless an element type is given; the one that is there if it is.
  net::ParamOp scalarState(llvm::StringRef name, double initial, mlir::Type element = {});
  /// A scalar that the runtime computes before each step, in the precision that fits `element`. One per name and
  /// precision. Updates count as the steps of the schedule, not batches.
  mlir::Value scheduled(llvm::StringRef name, const net::ScheduleConfig &schedule, mlir::Type element);
  /// A constant of the element type.
  mlir::Value constant(double value, mlir::Type element);
  /// A scalar in another element type; itself if it has that one.
  mlir::Value inElement(mlir::Value scalar, mlir::Type element);

  template <typename Op, typename... Arguments> Op create(Arguments &&...arguments) {
    auto op = builder.create<Op>(location, std::forward<Arguments>(arguments)...);
    label(op);
    return op;
  }
  /// sum over all elements, a scalar.
  mlir::Value sumOfAll(mlir::Value value);
  /// The sum of scalars, null for none.
  mlir::Value total(llvm::ArrayRef<mlir::Value> scalars);
  /// Writes a new value at the end of the step, where `applies` holds.
  void write(net::ParamOp target, mlir::Value newValue);

  /// From now on operators belong to the step of this parameter; null: of all.
  void setSubject(net::ParamOp param);

  net::NetworkOp network() { return mlir::cast<net::NetworkOp>(block.getParentOp()); }

  const net::TrainConfig &train;
  /// Whether this step changes parameters, a bool scalar; null: every step does.
  mlir::Value applies;

private:
  void label(mlir::Operation *op);
  /// The first forward operator that reads the parameter.
  static std::optional<int64_t> forwardIdOf(net::ParamOp param);
  net::ParamOp addParam(llvm::StringRef name, mlir::Type type, double initial, llvm::StringRef stateOf);

  mlir::Block &block;
  mlir::OpBuilder builder;
  mlir::Location location;
  net::ParamOp subject;
  std::optional<int64_t> subjectId;
  mlir::Operation *lastParam = nullptr; ///< states and scalars follow it
  std::map<std::string, mlir::Value> scalars; ///< by name and type
};

/// What the optimizer takes instead of the gradients: divided by the loss scale, accumulated, clipped. Sets
/// `update.applies`.
ParameterGradients prepareGradients(UpdateBuilder &update, const ParameterGradients &gradients);

/// The state that counts the steps of dropouts, if there are any.
void countDraws(UpdateBuilder &update);

/// One step of the optimizer for one parameter.
void buildStep(UpdateBuilder &update, net::ParamOp param, mlir::Value gradient);

} // namespace msc::autodiff
