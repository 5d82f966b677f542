// The messages of the Language Server Protocol on stdin and stdout: "Content-Length: N", a blank line, N bytes of JSON.
//
// MLIR has such a transport, too, but it trusts the length that it is told, and nests as deeply as the text.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Json.h"

#include <cstdio>
#include <optional>
#include <string>

namespace msc::lsp {

/// Longest message that is read; documents are sent whole.
inline constexpr size_t longestMessage = 64 << 20;
/// Longest headers of one message.
inline constexpr size_t longestHeaders = 4096;

class Transport {
public:
  Transport(int input, std::FILE *output) : input(input), output(output) {}

  /// The bytes of the next message; nothing at the end of the input. An error says what is wrong with its headers: what
  /// follows cannot be read.
  Result<std::optional<std::string>> read();

  /// Is the next message on its way already?
  bool hasMore() const;

  /// Fails if nobody reads.
  Status write(const Json &message);

private:
  /// More bytes into `buffer`; false at the end.
  bool fill();

  int input;
  std::FILE *output;
  std::string buffer; ///< read, but not taken
};

} // namespace msc::lsp
