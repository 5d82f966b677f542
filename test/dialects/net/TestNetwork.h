// Networks for tests, built operator by operator.
#pragma once

#include "dialects/net/Network.h"
#include "test/reference/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <random>
#include <string>
#include <vector>

namespace msc::test {

/// A context with the net dialect that collects diagnostics as text: "error: ...", "note: ...".
class NetContext {
public:
  NetContext();
  mlir::MLIRContext *get() { return &context; }
  /// "16x32xf32", "f32" (a scalar).
  mlir::RankedTensorType type(llvm::StringRef text);
  /// "{axis = array<i64: 1>}" or "".
  mlir::DictionaryAttr attributes(llvm::StringRef text);

  std::vector<std::string> diagnostics;

private:
  mlir::MLIRContext context;
};

/// One network under construction.
class TestNetwork {
public:
  explicit TestNetwork(NetContext &context);

  mlir::Value input(llvm::StringRef name, llvm::StringRef type);
  mlir::Value param(llvm::StringRef name, llvm::StringRef type, bool trained = true);
  /// Null if inference fails; the value is called `name`.
  mlir::Operation *op(llvm::StringRef op, llvm::ArrayRef<mlir::Value> operands, llvm::StringRef attributes = "",
                      llvm::StringRef name = "");
  mlir::Value value(llvm::StringRef op, llvm::ArrayRef<mlir::Value> operands, llvm::StringRef attributes = "",
                    llvm::StringRef name = "");
  /// Ends the network.
  void results(llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<llvm::StringRef> names);

  NetContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  net::NetworkOp network;
  mlir::OpBuilder builder;
};

/// What random values are safe for: `Any` stays away from 0, `Positive` lies in [0.5, 2], `Unit` in [0.1, 0.9]. `Index` is `Any`
/// with integers 0, 1 and 2.
enum class Domain { Any, Positive, Unit, Index };

/// Random elements: floats by domain, small integers, bools.
reference::Tensor randomTensor(mlir::Type type, Domain domain, std::mt19937_64 &random);

/// The global shape of a tensor type.
std::vector<int64_t> shapeOfType(mlir::Type type);

} // namespace msc::test
