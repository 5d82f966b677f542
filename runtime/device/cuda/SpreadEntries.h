// Streams for operations that do not depend on each other.
#pragma once

#include "runtime/device/Device.h"

#include <functional>

namespace msc::device::cuda {

/// Numbers of the streams that `spreadEntries` adds, which no plan has.
constexpr uint32_t firstSideStream = 1u << 16;

/// Spreads the entries of stream 0 over it and up to `sides` further streams. An entry waits for those before it whose memory it
/// touches, where one of the two writes, and for no others, but that streams are few; `after` says what it has to wait for
/// then. Collectives stay where they are, and wait for all before them. `stays`: operations that do, too.
void spreadEntries(std::vector<SequenceEntry> &entries, unsigned sides, const std::function<bool(const Operation &)> &stays);

} // namespace msc::device::cuda
