// Results out of a run: global arrays on rank 0.
#pragma once

#include "runtime/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/plan/PlanIndex.h"

#include <string>
#include <vector>

namespace msc {

/// The program that msrun runs: the one that trains, else the one that predicts, else the one that evaluates; or null.
const plan::Program *programToRun(const PlanIndex &index);

/// `param:NAME`, or `state:NAME` of what is not trained.
std::string fetchName(const plan::Parameter &parameter);

/// What can be fetched: results, then `param:NAME` and `state:NAME`.
std::vector<std::string> fetchableNames(const PlanIndex &index, const plan::Program &program);

/// The buffer of a result, `param:NAME` or `state:NAME`; a Usage error if there is none.
Result<uint32_t> findFetch(const PlanIndex &index, const plan::Program &program, const std::string &name);

/// Gathers the global value of a buffer on rank 0; empty on the others. All ranks call it.
Result<std::vector<std::byte>> gather(const PlanIndex &index, uint32_t buffer, comm::World &world,
                                      device::Device &device, const std::byte *arena);

/// One element: "0.5", "3", "true".
std::string elementText(plan::DataType type, const std::byte *data);

/// "out: f32[2, 3] = 1 2 3 4 5 6": at most eight elements.
std::string valueText(const PlanIndex &index, uint32_t buffer, const std::string &name, const std::vector<std::byte> &value);

} // namespace msc
