// The kernels of the CPU that a plan calls by name. How to add one: an entry in runtime/plan/calls, which says what the
// kernel takes, and here a file for its family with a function that adds it to the table.
#pragma once

#include "runtime/device/cpu/ScratchOperation.h"

#include <map>
#include <memory>
#include <string>

namespace msc::device::calls {

/// Binds a call that `checkCall` accepted, and of which some result has an element on this rank; operands may be empty.
/// The work is cut by `spec.tasks` and the local sizes alone, never by the number of workers.
using Prepare = Result<std::unique_ptr<ScratchOperation>> (*)(const CallSpec &spec, WorkerPool &pool);
using Table = std::map<std::string, Prepare>;

/// The families, each in a file of its own.
void addAttention(Table &table);
void addConvolution(Table &table);
void addLookup(Table &table);
void addPooling(Table &table);
void addScan(Table &table);

/// All kernels by name.
const Table &table();

} // namespace msc::device::calls
