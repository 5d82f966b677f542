// What would make a network fit into the memory of a rank: changes that a user can type, each of them compiled and priced.
#pragma once

#include "compiler/MemoryLimit.h"

namespace msc::compiler {

/// Changes of a network that does not fit, with what they make of it: those that make it fit first, then by time. They are tried one
/// by one: every call of a cell computed again and all of them, narrow types, smaller batches that make one update, more
/// devices, a search where there was none; where none is enough, a preset with more nodes, and several at once. Of combinations of these
/// the few that are expected to be fastest are tried, too.
std::vector<MemoryChange> changesThatFit(const CompileOptions &options, const WithinLimit &now);

/// The cheapest of them, with its figures; where none is enough, what needs least. `namesLimit`: says how another limit is set.
std::string helpOf(const MemoryAnswer &answer, bool namesLimit);

} // namespace msc::compiler
