// "did you mean": the nearest of some known names.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <string>

namespace msc::net {

/// The candidate that is most like `word`, or an empty text if none is near enough to be what was meant. Upper and lower
/// case count as equal, ties go to the first candidate.
template <typename Candidates> std::string nearest(llvm::StringRef word, const Candidates &candidates) {
  std::string best, lower = word.lower();
  unsigned limit = std::min<size_t>(3, std::max<size_t>(1, word.size() / 2)) + 1;
  for (llvm::StringRef candidate : candidates) {
    unsigned distance = llvm::StringRef(lower).edit_distance(candidate.lower(), /*AllowReplacements=*/true, limit);
    if (distance < limit) {
      best = candidate.str();
      limit = distance;
    }
  }
  return best;
}

/// Adds the line "help: <text>" to a diagnostic.
inline void addHelp(mlir::InFlightDiagnostic &diagnostic, const llvm::Twine &text) {
  diagnostic.attachNote() << "help: " << text.str();
}

/// Adds "help: did you mean 'x'?" if one of the candidates is near.
template <typename Candidates>
void addSuggestion(mlir::InFlightDiagnostic &diagnostic, llvm::StringRef word, const Candidates &candidates,
                   llvm::StringRef prefix = "") {
  if (std::string best = nearest(word, candidates); !best.empty())
    addHelp(diagnostic, "did you mean '" + prefix + best + "'?");
}

} // namespace msc::net
