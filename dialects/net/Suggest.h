// Repairs in diagnostics.
#pragma once

#include "runtime/Nearest.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace msc::net {

/// Adds the line "help: <text>" to a diagnostic.
inline void addHelp(mlir::InFlightDiagnostic &diagnostic, const llvm::Twine &text) {
  diagnostic.attachNote() << "help: " << text.str();
}

/// The candidate that is most like a key, or that it ends in, as "heads" for "num_heads"; else the first that begins with it or is its first
/// word: "padding" for "pad", "out" for "out_channels". Empty if there is none.
template <typename Candidates> std::string nearestKey(llvm::StringRef key, const Candidates &candidates) {
  std::string best = nearest(key, candidates);
  if (best.empty() || editDistance(key, best) > 2) // else it is mistyped
    for (llvm::StringRef candidate : candidates)
      if (candidate.size() >= 3 && key.ends_with(candidate) && key.drop_back(candidate.size()).ends_with("_"))
        return candidate.str();
  for (llvm::StringRef candidate : candidates)
    if (best.empty() && ((key.size() >= 3 && candidate.starts_with(key)) || (key.starts_with(candidate) && key.substr(candidate.size()).starts_with("_"))))
      best = candidate.str();
  return best;
}

/// Adds "help: did you mean 'x'?" if one of the candidates is near.
template <typename Candidates>
void addSuggestion(mlir::InFlightDiagnostic &diagnostic, llvm::StringRef word, const Candidates &candidates,
                   llvm::StringRef prefix = "") {
  if (std::string best = nearest(word, candidates); !best.empty())
    addHelp(diagnostic, "did you mean '" + prefix + best + "'?");
}

/// The same; if none is near, "help: expected one of a, b, c".
template <typename Candidates>
void addSuggestionOrList(mlir::InFlightDiagnostic &diagnostic, llvm::StringRef word, const Candidates &candidates) {
  std::string best = nearest(word, candidates);
  addHelp(diagnostic, best.empty() ? "expected one of " + llvm::join(candidates, ", ") : "did you mean '" + best + "'?");
}

} // namespace msc::net
