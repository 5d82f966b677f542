// Ranks that do something each and go on only if all of them succeeded.
#pragma once

#include "runtime/comm/Communicator.h"

namespace msc {

/// What all ranks together came to: success, the error of the lowest rank that has one (the same on all), or the error of
/// the communication.
struct Agreement {
  std::optional<Error> failed; ///< of some rank's own work
  Status communication;
  /// Either of them.
  Status status() const { return !communication ? communication : failed ? Status(*failed) : Status::ok(); }
  bool isOk() const { return communication.isOk() && !failed; }
};

/// Called by all members with the outcome of their own work.
Agreement agree(comm::Group &all, const Status &own, const comm::OperationLabel &label);

} // namespace msc
