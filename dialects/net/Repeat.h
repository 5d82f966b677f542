// Repeats: their rounds, the names in them, and how they are put one after the other.
#pragma once

#include "dialects/net/Network.h"

namespace msc::net {

/// How many operators an operation stands for: the product of the rounds of all repeats around it.
int64_t roundsAround(mlir::Operation *op);

/// A name that holds for all rounds in one of them: `{variable}` becomes the round, and `{{` a brace if `isLast`, which
/// says that no further repeat is around.
std::string nameInRound(llvm::StringRef name, llvm::StringRef variable, int64_t round, bool isLast);

/// The name with the round of the repeat in it, if it is not there: "sum" becomes "sum.{i}", and "sum.{k}" of a repeat within "sum.{i}.{k}".
std::string nameWithRound(llvm::StringRef name, llvm::StringRef variable);

/// The name with every brace doubled: how a name that speaks of no round is written in a body.
std::string escapedName(llvm::StringRef name);

/// What a name that `op` carries is in the rounds of the repeats around it; itself if there are none.
std::vector<std::string> namesInRounds(mlir::Operation *op, llvm::StringRef carried);

/// The name is that of a round: the pattern with a number for each `{variable}` in it. A pattern without any is no name of rounds.
bool isNameInRound(llvm::StringRef pattern, llvm::StringRef name);

/// Puts the first round in front of a repeat that has several.
void peelFirst(RepeatOp repeat);

/// Puts the last round behind a repeat that has several. Users of the results take those of the round; `mapping` holds
/// what became of the values of the body.
void peelLast(RepeatOp repeat, mlir::IRMapping &mapping);

/// Puts the rounds from `round` on, which is neither the first one nor behind the last one, into a repeat of their own behind it and
/// gives that. `mapping` holds what became of the values and operations of the body.
RepeatOp splitBefore(RepeatOp repeat, int64_t round, mlir::IRMapping &mapping);

/// Replaces a repeat by its rounds, one after the other; the last one keeps the operations of the body. Repeats within
/// stay folded.
void unroll(RepeatOp repeat);

/// Replaces all repeats of a network by their rounds. Parameters come first, in the order of their declaration.
void unrollAll(NetworkOp network);

/// What operators of a dump say of the repeat that they came from (getAlike) is taken back from all of them unless it is what unrollAll
/// may have left: rounds one behind the other, each with the same operators in the same order, in repeats that lie apart or within each
/// other. Who edits a dump need not keep that up.
void clearBrokenRounds(NetworkOp network);

} // namespace msc::net
