// Attributes and names as text that reads back; shared by the printers.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <utility>
#include <vector>

namespace msc::frontend {

/// A word where it reads back as one, else a quoted string.
std::string wordText(llvm::StringRef text);
/// "text" with escapes.
std::string quotedText(llvm::StringRef text);
/// Any value that configs and operators hold.
std::string attributeText(mlir::Attribute attribute);

/// The attributes that users may write for an operator, with their values or defaults, in the order of its specs.
std::vector<std::pair<std::string, mlir::Attribute>> userAttributes(mlir::Operation *op);
/// True if the operator would have this value without anybody saying so.
bool isDefaultAttribute(mlir::Operation *op, llvm::StringRef name, mlir::Attribute value);

/// `Normal(0.01)` for {kind = "normal", a = 0.01, b = 0}.
std::string initializerText(mlir::DictionaryAttr initializer);
/// The blocks and the mesh of a module in the form of networks; `withPlaces` adds `# In file F(L)` behind each.
void printBlocks(mlir::ModuleOp module, bool withPlaces, llvm::raw_ostream &os);
/// "    # In file F(L)" with this indentation and a newline; nothing for unknown places.
void printPlace(mlir::Location location, unsigned indent, llvm::raw_ostream &os);

/// A number among operands takes the element type of the first tensor within [first, behind) around its place, and is f32 where there is none:
/// the condition of Select says nothing about what it selects, and neither does what SelectEqual compares. `isFirstTensor`: operand 0 is no number.
std::pair<size_t, size_t> alikeOperands(llvm::StringRef op, size_t place, size_t operands, bool isFirstTensor);
/// If the value is a number that stands in an operand's place (`Mul(%x, 2.0)`), its text; else empty.
std::string inlineNumber(mlir::Operation *user, mlir::Value value);
/// "propagated from 'matmul'" -> ("propagated", "matmul"); the second is empty where nothing is named.
std::pair<std::string, std::string> splitOrigin(llvm::StringRef origin);
/// Words of strategy_origin; some have more behind them, `isOrigin` knows how.
llvm::ArrayRef<llvm::StringRef> originWords();
bool isOrigin(llvm::StringRef text);
/// The opposite of splitOrigin.
std::string joinOrigin(llvm::StringRef origin, llvm::StringRef source);

/// True for what step_parallel_begin and step_parallel_end show.
bool isForward(mlir::Operation &op);

} // namespace msc::frontend
