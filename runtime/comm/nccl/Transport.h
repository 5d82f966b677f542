// NCCL between the GPUs of all ranks.
#pragma once

#include "runtime/comm/StreamCommunicator.h"
#include "runtime/comm/nccl/Nccl.h"

#include <functional>

namespace msc::comm::nccl {

struct Options {
  /// Between two looks at errors.
  std::chrono::milliseconds interval{20};
  /// After a failure NCCL has so long to end its communicators; then `onStuck` is called, from a thread of the transport, and
  /// ends the process unless it is a test's.
  std::chrono::milliseconds abortLimit{30000};
  std::function<void(const Error &cause)> onStuck = {};
};

/// Opens `file`, which stays loaded, and fills a table. NoResource with what is missing or too old, and how to repair it.
Result<Table> loadTable(const char *file = "libnccl.so.2");

/// "2.28.9" of 22809.
std::string versionText(int version);

/// A transport that calls `table`. NoResource if its version is too old.
Result<std::unique_ptr<StreamTransport>> makeTransport(const Table &table, Options options = {});

} // namespace msc::comm::nccl
