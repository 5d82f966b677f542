// Changes of a network that does not fit, as they are tried: each is compiled, or what it needs is estimated.
#pragma once

#include "compiler/MemoryLimit.h"

#include <functional>
#include <set>

namespace msc::compiler {

/// A change that has not been tried yet, or has.
struct MemoryCandidate {
  MemoryChange change;
  CompileOptions options;
  uint64_t parts = 1;            ///< into which it cuts the batch
  std::set<std::string> repairs; ///< of the changes that it consists of
};

/// Puts a single change on top of others.
using ChangeOfMemory = std::function<MemoryCandidate(const MemoryCandidate &on)>;

/// A single change that was tried, and what becomes of memory and time with it.
struct SingleChange {
  std::string kind, repair;
  ChangeOfMemory change;
  double bytes = 1, us = 1; ///< shares
};

/// Neither types nor devices are others.
bool isPlain(const MemoryChange &change);

/// What was tried. Of large networks trials are estimates.
class MemoryTrials {
public:
  MemoryTrials(const CompileOptions &asked, const WithinLimit &now);

  /// The network as it is, for changes to stand on.
  const MemoryCandidate &asItIs() const { return start; }
  uint64_t limit() const { return start.options.memoryLimit; }
  const NetworkFacts &network() const { return facts; }
  /// What is needed without a change, and what a step takes, in the measure of trials.
  uint64_t bytesNow() const { return bytesAsItIs; }
  double usNow() const { return usAsItIs; }

  /// The last one, if it was sound; of cells that are computed again, if that saves something. Valid until the next one.
  const MemoryCandidate *attempt(const MemoryCandidate &on, const ChangeOfMemory &change);
  /// The same of several changes, which are no single one.
  void attempt(MemoryCandidate candidate);
  /// A plan instead of the estimate that was tried last; null: it does not compile.
  const MemoryCandidate *compileLast();
  /// The last one is not listed.
  void forgetLast(bool isSingle);

  /// Those that compile, in the order in which they were tried.
  const std::vector<MemoryCandidate> &candidates() const { return tried; }
  const std::vector<SingleChange> &singleChanges() const { return singles; }
  bool anyFits() const;

  /// All that help, those that make it fit first, then by time; what a message is about to name are plans.
  std::vector<MemoryChange> conclude();

private:
  static constexpr int64_t operationsOfTrial = int64_t(1) << 31; ///< of a search; some seconds
  static constexpr size_t mostClose = 3; ///< plans of what was estimated to need a little too much
  static constexpr double closeToLimit = 1.15;

  bool isSound(MemoryCandidate &candidate) const;
  bool isSameNetwork(const NetworkFacts &other, uint64_t parts) const;
  void sort();
  void compileNamed();
  MemoryCandidate *nextNamed();
  MemoryCandidate *nextClose(double us, double usOfPlain);

  const NetworkFacts &facts;
  const bool isOfLarge;       ///< of a large network
  const bool areEstimates;    ///< trials, but for what a message names
  const uint64_t bytesOfPlan; ///< without a change
  uint64_t bytesAsItIs;
  double usAsItIs;
  MemoryCandidate start;
  std::vector<SingleChange> singles; ///< of those that were tried
  std::vector<MemoryCandidate> tried;
  size_t closeOnes = 0; ///< of which a plan was made as they nearly fit
};

/// Gives an option of the context block another value.
void override(CompileOptions &options, const std::string &name, const std::string &value);

} // namespace msc::compiler
