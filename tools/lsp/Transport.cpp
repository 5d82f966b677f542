#include "tools/lsp/Transport.h"
#include "runtime/WriteRepair.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace msc::lsp {

static Error bad(const std::string &why) {
  return {ExitCode::BadFile, "the input is no language server protocol: " + why, ""};
}

bool Transport::fill() {
  char bytes[1 << 16];
  ssize_t got;
  do
    got = ::read(input, bytes, sizeof bytes);
  while (got < 0 && errno == EINTR);
  if (got > 0)
    buffer.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

bool Transport::hasMore() const {
  pollfd ready{input, POLLIN, 0};
  return !buffer.empty() || poll(&ready, 1, 0) > 0;
}

/// The number behind "Content-Length:", in any case.
static std::optional<size_t> lengthIn(std::string_view headers) {
  constexpr std::string_view name = "content-length:";
  while (!headers.empty()) {
    std::string_view line = headers.substr(0, headers.find("\r\n"));
    headers.remove_prefix(std::min(line.size() + 2, headers.size()));
    bool matches = line.size() > name.size() && std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
                     return a == std::tolower(static_cast<unsigned char>(b));
                   });
    if (!matches)
      continue;
    line.remove_prefix(name.size());
    while (!line.empty() && line.front() == ' ')
      line.remove_prefix(1);
    size_t length = 0;
    auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (error == std::errc() && end == line.data() + line.size())
      return length;
    return std::nullopt;
  }
  return std::nullopt;
}

Result<std::optional<std::string>> Transport::read() {
  size_t end;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos || end > longestHeaders) {
    if (buffer.size() > longestHeaders)
      return bad("headers of more than " + std::to_string(longestHeaders) + " bytes");
    if (fill())
      continue;
    if (buffer.empty())
      return std::optional<std::string>();
    return bad("it ends within the headers of a message");
  }
  std::optional<size_t> length = lengthIn(std::string_view(buffer).substr(0, end));
  if (!length)
    return bad("a message without 'Content-Length: N'");
  if (*length > longestMessage)
    return bad("a message of " + std::to_string(*length) + " bytes, more than " + std::to_string(longestMessage));
  buffer.erase(0, end + 4);
  while (buffer.size() < *length)
    if (!fill())
      return bad("it ends after " + std::to_string(buffer.size()) + " of " + std::to_string(*length) +
                 " bytes of a message");
  std::string message = buffer.substr(0, *length);
  buffer.erase(0, *length);
  return std::optional<std::string>(std::move(message));
}

Status Transport::write(const Json &message) {
  // File names and texts of other files need not be UTF-8.
  std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string all = "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  if (std::fwrite(all.data(), 1, all.size(), output) == all.size() && std::fflush(output) == 0)
    return {};
  return Error{ExitCode::NoResource, std::string("cannot write to stdout: ") + std::strerror(errno), writeRepair(errno)};
}

} // namespace msc::lsp
