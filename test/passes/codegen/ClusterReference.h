// A plain evaluator of clusters, one scalar at a time in f64 and 64-bit integers: it says what a kernel has to compute.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::test {

/// A float or an integer; the type that belongs to it decides which.
struct Scalar {
  double real = 0;
  int64_t whole = 0;
};

/// A dense row-major tensor.
struct Tensor {
  mlir::RankedTensorType type;
  std::vector<Scalar> elements;
};

/// Runs the function on the arguments. Floats are computed in f64 whatever their type; integers wrap at their width.
std::vector<Tensor> evaluateCluster(mlir::func::FuncOp func, const std::vector<Tensor> &arguments);

} // namespace msc::test
