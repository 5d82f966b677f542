#include "runtime/checkpoint/Agreement.h"

#include <algorithm>
#include <cstring>

namespace msc {

using comm::ElementType;

/// An Error as plain bytes; longer texts are cut.
struct ErrorBytes {
  int32_t code = 0;
  char message[1500] = {};
  char help[300] = {};
};

Agreement agree(comm::Group &all, const Status &own, const comm::OperationLabel &label) {
  int64_t failing = own.isOk() ? all.size() : all.rank(), first = 0;
  if (Status done = all.allReduce(&failing, &first, 1, ElementType::I64, ReduceKind::Min, label); !done)
    return {std::nullopt, done};
  if (first == all.size())
    return {};
  ErrorBytes bytes;
  if (first == all.rank()) {
    const Error &error = own.error();
    bytes.code = static_cast<int32_t>(error.code);
    memcpy(bytes.message, error.message.data(), std::min(error.message.size(), sizeof(bytes.message) - 1));
    memcpy(bytes.help, error.help.data(), std::min(error.help.size(), sizeof(bytes.help) - 1));
  }
  if (Status done = all.broadcast(&bytes, sizeof(bytes), static_cast<int>(first), label); !done)
    return {std::nullopt, done};
  return {Error{static_cast<ExitCode>(bytes.code), bytes.message, bytes.help}, Status::ok()};
}

} // namespace msc
