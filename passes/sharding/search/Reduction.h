// One step of variable elimination: factors that share a variable become one factor without it.
#pragma once

#include "passes/sharding/search/Workspace.h"

namespace msc::search {

using FactorRefs = std::vector<const Factor *>;

/// A variable of the context, as finely as the factors look at it.
struct Axis {
  int32_t variable = 0;
  PartitionRef part = nullptr;
};

/// The other variables of these factors, in order of appearance.
std::vector<Axis> contextOf(Workspace &workspace, const FactorRefs &factors, const std::vector<int32_t> &without);

/// How finely factors over more than this variable look at it.
PartitionRef finest(Workspace &workspace, const FactorRefs &factors, int32_t variable, int32_t options);

/// Minimum over the options of `variable` of the sum of `factors`, each of which has it in its scope.
Factor reduce(Workspace &workspace, const FactorRefs &factors, int32_t variable, int32_t options);

/// Readers of one value that are minimised together, and maybe one more variable with them.
struct JointReaders {
  const Factor *value = nullptr;        ///< with `shared`
  std::vector<size_t> readers;          ///< positions in its readers; no other factor has two of them in its scope
  std::vector<FactorRefs> otherFactors; ///< of each of them
  std::vector<int32_t> options;         ///< of each of them
  int32_t inner = -1;                   ///< a variable that is a neighbour of readers, not of the value
  FactorRefs innerFactors;              ///< with it, without readers
  int32_t innerOptions = 1;
};

/// Minimum over the options of all these readers and of the inner variable. For every option of the latter there is a
/// bound; only where that is less than what was found the readers are looked at. A bound where that takes too long. `operations` takes
/// what it took.
Factor reduce(Workspace &workspace, const JointReaders &joint, int64_t &operations);

} // namespace msc::search
