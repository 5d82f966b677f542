// A World whose groups reduce and move numbers in the memory of devices, by the collectives that plans run there: what is given lies on the host, is
// brought to the device, and what came about is brought back. So the suite for communicators runs on those of devices, too.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"

#include <cstdlib>
#include <memory>
#include <string_view>

namespace msc::comm::test {

/// The rank of `hosts`, all of whose ranks make one together, on a device of `backend` that communicates with the others. barrier() and broadcast() are
/// those of the hosts.
Result<std::unique_ptr<World>> makeDeviceWorld(World &hosts, device::Backend &backend);

/// What devices communicate by in this process: MSC_COLLECTIVES=nccl, or else the kernels of one GPU.
inline bool asksForNccl() {
  const char *asked = std::getenv("MSC_COLLECTIVES");
  return asked && std::string_view(asked) == "nccl";
}

} // namespace msc::comm::test
