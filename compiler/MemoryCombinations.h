// Several changes of a network that does not fit at once, where they may be faster than one that is enough.
#pragma once

#include "compiler/MemoryTrials.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace msc::compiler {

/// Combinations of single changes that were tried, the fastest first, by what their shares of memory and time let expect.
class MemoryCombinations {
public:
  explicit MemoryCombinations(MemoryTrials &trials) : trials(trials) {}

  /// Tries the few that may be faster than what fits so far. `staysPlain`: neither with other types nor with other devices.
  void run(bool staysPlain);

private:
  static constexpr size_t mostTogether = 6;
  static constexpr double oneMore = 1.25;
  static constexpr double surpriseUs = 1.5, surpriseBytes = 1.25; ///< they may be so much better than is expected

  /// At most one single change of each kind, and what it is expected to need and to take.
  struct Combination {
    std::vector<const SingleChange *> of;
    std::set<std::string> repairs;
    double bytes = 0, us = 0;
  };

  /// The fastest first; one more change counts as some more time.
  static double order(const Combination &combination);
  std::optional<Combination> next(bool staysPlain);
  void each(const Combination &on, size_t from, bool staysPlain, llvm::function_ref<void(const Combination &)> look) const;
  void expect(Combination &combination) const;
  bool isWorthwhile(const Combination &combination) const;

  MemoryTrials &trials;
  std::set<std::set<std::string>> known; ///< whether they compile or not
};

} // namespace msc::compiler
