// Operators by the names that PyTorch, NumPy and ONNX give them.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace msc::frontend {

struct ForeignName {
  llvm::StringRef name;
  llvm::StringRef ours;       ///< "MatMul + BiasAdd": operators in order; empty: none in this version
  llvm::StringRef layer = ""; ///< "Linear": the cell of the layer library that does the same
};

llvm::ArrayRef<ForeignName> foreignNames();

/// What a function of PyTorch is called here: "relu" ReLU, "mean" ReduceMean, "linear" Linear; its own name where that is several operators,
/// or not known.
std::string calledHere(llvm::StringRef function);

/// The repair for an operator that nobody knows: its equivalent here, else the nearest of `known`, else where the
/// operators are listed. Upper and lower case count as equal.
std::string helpForOperator(llvm::StringRef name, const std::vector<std::string> &known);

} // namespace msc::frontend
