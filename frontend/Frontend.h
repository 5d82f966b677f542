// Text -> `net` dialect: networks and dumps, by content.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SourceMgr.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msc::frontend {

/// Name of the module attribute (unit) that says that the network could not be read.
inline constexpr llvm::StringLiteral brokenAttributeName = "net.broken";

/// Marks a module of which neither the options nor the file says how many devices there are: it is for one.
inline constexpr llvm::StringLiteral impliedDevicesName = "net.devices_implied";

/// A call of a cell where it stands in a file.
struct CellCall {
  mlir::Location place;
  llvm::StringRef cell;
  llvm::StringRef instance; ///< with those of the cells around it: "h.{i}.attn"
  bool isRecomputed = false;
};

struct ParseOptions {
  /// `--devices`; absent: the product of the mesh, else 1.
  std::optional<int64_t> devices;
  /// True: `devices` overrides `device_num` of the context (`--device-num`); else the file has to say the same number.
  bool overridesDeviceNum = false;
  /// `--parallel-mode`; empty: what the context says.
  std::string parallelMode;
  /// `-D name=value`: overrides a const of the file; the value is an expression.
  std::vector<std::pair<std::string, std::string>> defines;
  /// `--repropagate`: of a dump, keep only the strategies that the user wrote or edited.
  bool repropagate = false;
  /// Folder of the layer library: where imports are looked for that do not lie beside the network. Empty: nowhere.
  std::string layerLibrary;
  /// Return the module in spite of mistakes, marked with `brokenAttributeName`, so that its blocks can be checked, too.
  bool keepBroken = false;
  /// Keep rounds that are alike in one `net.repeat`; otherwise all are put one after the other.
  bool keepRepeats = false;
  /// A file that holds cells, but no network, is sound.
  bool mayLackNetwork = false;
  /// Called for each value that gets a name, with the place of the name; in cells and repeats once per expansion.
  std::function<void(llvm::SMLoc place, mlir::Value value)> onBinding;
  /// Called for each call of a cell, once per expansion. True: its operators are marked as by `{recompute: true}` behind it.
  std::function<bool(const CellCall &call)> onCell;
  /// Called for each strategy and sharding that the user gave an operator, a parameter or the result of a cell, once per expansion. True: it
  /// is left out.
  std::function<bool(mlir::Location place, llvm::StringRef name)> onStrategy;
  /// Called for each const of a file that is a whole number: what `defines` may override.
  std::function<void(llvm::StringRef name, int64_t value)> onConst;
};

/// Reads a file into a module that holds one `net.network`, a `net.config` per block and the attribute `net.devices`.
/// Null after a mistake, which is reported through MLIR's diagnostics (see Diagnostics.h). The source manager keeps the
/// text, so that carets can be shown as long as it lives. The context needs the net dialect loaded.
mlir::OwningOpRef<mlir::ModuleOp> parseFile(llvm::StringRef path, mlir::MLIRContext &context,
                                            const ParseOptions &options, llvm::SourceMgr &sources);

/// The same for text in memory; `name` stands in messages and locations. Imports are relative to the folder of `name`.
mlir::OwningOpRef<mlir::ModuleOp> parseString(llvm::StringRef text, llvm::StringRef name, mlir::MLIRContext &context,
                                              const ParseOptions &options, llvm::SourceMgr &sources);

/// The text of a file in the one layout (see Formatter.h). Nothing after reporting its mistakes.
std::optional<std::string> formatString(llvm::StringRef text, llvm::StringRef name, mlir::MLIRContext &context,
                                        llvm::SourceMgr &sources);

} // namespace msc::frontend
