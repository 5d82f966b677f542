// Text that is equal for two clusters exactly if one kernel serves both.
#pragma once

#include "passes/codegen/KernelLibrary.h"
#include "passes/codegen/Schedule.h"

#include <string>

namespace msc::codegen {

std::string kernelKey(const Cluster &cluster, const Schedule &schedule);
/// Batch dimensions that could be one make another key.
std::string matMulKey(const MatMulShape &shape);

} // namespace msc::codegen
