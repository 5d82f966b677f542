// How messages look: place, one sentence, the source line with a caret, further places, a repair.
//
//   net.mir:4:8: error: unknown operator 'RleU'
//       4 |   %a = RleU(%h)
//         |        ^~~~
//   help: did you mean 'ReLU'?
//
// Passes report through MLIR (`emitError`, notes); a note whose text starts with "help: " is a repair.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <set>
#include <string>

namespace msc::frontend {

/// A file that is no network at all has an error per line.
inline constexpr unsigned shownErrors = 200;

/// How a text is shown: in the language of the user, and with its code if `isMain` (not a note or a help line).
using Wording = std::function<std::string(llvm::StringRef text, bool isMain)>;

/// Prints the diagnostics of a context while it lives: an error at one place once, however many instances of a cell or
/// rounds of a repeat have it, and no more than the first 200 errors, then their number. The source manager and the
/// stream are the caller's and have to outlive it. Not thread safe beyond what MLIR's diagnostic engine guarantees (one
/// message at a time).
class Diagnostics {
public:
  Diagnostics(mlir::MLIRContext &context, llvm::SourceMgr &sources, llvm::raw_ostream &os, Wording wording = nullptr);
  ~Diagnostics();
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;

  /// Warnings and notes of this list, by place and text, are not printed; what is printed joins it. It outlives this.
  void sayOnce(std::set<std::string> &list) { said = &list; }

  /// Errors at different places; those beyond the limit count too.
  unsigned errors() const { return errorCount; }
  unsigned warnings() const { return warningCount; }
  /// True if the first error is about a flag of the command line.
  bool blamesCommandLine() const { return firstErrorAtFlag; }

  /// Where a message is shown: in a dump at the node, not at what the node's remark names. Null if unknown.
  mlir::FileLineColLoc shownPlace(mlir::Location location) const;

private:
  void print(mlir::Diagnostic &diagnostic);
  void printOne(mlir::Location location, llvm::StringRef kind, llvm::StringRef text);
  std::string worded(llvm::StringRef text, bool isMain) const;
  std::string displayed(mlir::FileLineColLoc file) const;
  void printSnippet(llvm::StringRef file, unsigned line, unsigned column);
  /// Where a dump has what its remarks place in `original`; null if no dump is read.
  mlir::FileLineColLoc findInDump(mlir::FileLineColLoc original) const;

  /// True if a warning or note is to be printed.
  bool isNews(mlir::Location location, llvm::StringRef text);
  /// True if an error is to be printed; counts it.
  bool admit(mlir::Location location, llvm::StringRef text);

  mlir::MLIRContext &context;
  llvm::SourceMgr &sources;
  llvm::raw_ostream &os;
  std::set<std::pair<const void *, size_t>> seen; ///< places and texts of errors
  std::set<std::string> *said = nullptr;
  Wording wording;
  mlir::DiagnosticEngine::HandlerID handler;
  bool printedOperations;
  unsigned errorCount = 0;
  unsigned warningCount = 0;
  bool firstErrorAtFlag = false;
};

/// In front of the names of files of the layer library, so that they are the same wherever msc is installed.
inline constexpr llvm::StringLiteral libraryPrefix = "<msc>/";

/// What to call a file in messages: the names of sources are relative to the folder of the network, which the source
/// manager holds as its include folder.
std::string displayedPath(const llvm::SourceMgr &sources, llvm::StringRef name);

/// The text of a message, with types and numbers as dumps spell them and operators as users know them.
std::string messageText(mlir::Diagnostic &diagnostic);

/// The file and line that a location stands for, looking through fused, named and call-site locations; null if unknown.
mlir::FileLineColLoc findFileLocation(mlir::Location location);

} // namespace msc::frontend
