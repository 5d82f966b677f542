// Collectives of a plan as what communicators have: dense memory, blocks of equal size, and copies for the rest.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// Makes a copy as the device does.
using PrepareCopy = std::function<Prepared(const CopySpec &spec)>;

/// A collective among `group`, which is null where the rank is alone. Elements that lie apart are packed into scratch memory
/// before and unpacked behind. Asks the other members, through their hosts, which of the possible ways all of them can go.
Prepared prepareCollective(Shared &shared, comm::StreamGroup *group, const CollectiveSpec &spec, const PrepareCopy &copy);

} // namespace msc::device::cuda
