// The reference interpreter: defines the numbers of every operator, in f64, one plain function per family.
//
// It shares no code with `lowerToLinalg`, kernels or partitioning. It evaluates whole `net.network`s on global tensors:
// forward, backward and update operators, kept values and all. Element types do not round: f32 networks are computed in
// f64 as well; only integers and bools are whole numbers.
#pragma once

#include "dialects/net/NetOps.h"
#include "test/reference/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>

namespace msc::reference {

/// Tensors by name.
using Tensors = std::map<std::string, Tensor>;

/// What one step computes.
struct Step {
  Tensors outputs;                            ///< results of the network, kept values too, by their names
  Tensors updated;                            ///< new values of parameters and states
  llvm::DenseMap<mlir::Value, Tensor> values; ///< every value of the network
};

/// One function per operator: results from operands.
using Evaluate = std::function<std::vector<Tensor>(mlir::Operation *, const std::vector<Tensor> &)>;
using Table = llvm::StringMap<Evaluate>;

/// The families, each in a file of its own.
void addProducts(Table &table);
void addPointwise(Table &table);
void addReductions(Table &table);
void addMovement(Table &table);
void addSelections(Table &table);
void addLosses(Table &table);
void addNormalisations(Table &table);
void addLookups(Table &table);
void addAttention(Table &table);
void addPooling(Table &table);
void addConvolutions(Table &table);
void addOptimizers(Table &table);
void addRandom(Table &table);
void addRanks(Table &table);

class Interpreter {
public:
  Interpreter();

  /// True for every operator, by its name in networks ("MatMul").
  bool knows(llvm::StringRef op) const { return table.contains(op); }

  /// What the table's function takes: the operands, and behind them the state that the operator names.
  static std::vector<Tensor> inputsOf(mlir::Operation *op, const llvm::DenseMap<mlir::Value, Tensor> &values);

  /// Results of one operator. Operands may have other sizes than its types say.
  std::vector<Tensor> evaluate(mlir::Operation *op, const std::vector<Tensor> &operands) const;

  /// One step. `given` holds inputs, parameters, states and scalars by name; constant initializers and simple
  /// schedules, which stand at their first step, need not be given. Reports what is missing or has the wrong shape.
  llvm::FailureOr<Step> run(net::NetworkOp network, const Tensors &given) const;

private:
  Table table;
};

} // namespace msc::reference
