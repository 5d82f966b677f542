// Brings in NCCL: a plugin, so that one msrun runs where it is not installed.
#pragma once

#include "runtime/comm/StreamCommunicator.h"

namespace msc::comm {

/// NCCL, by the plugin libmsc_comm_nccl.so, which lies beside the program or in MSC_PLUGIN_PATH. NoResource, with what is missing
/// and how to repair it: the plugin, or NCCL in a version that will do.
Result<std::shared_ptr<StreamTransport>> loadNccl();

} // namespace msc::comm
