// Success, or one clear error with the exit code it leads to.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace msc {

/// Exit codes of msc and msrun. The code of the first cause wins on every rank.
enum class ExitCode : int {
  Done = 0,
  Failed = 1,       ///< the network is wrong or a check failed
  Usage = 2,        ///< the command line is wrong: unknown flag, missing file, wrong number of ranks
  BadFile = 3,      ///< an input file is bad: plan, checkpoint, data
  NoResource = 4,   ///< memory, disk, device or plugin is missing
  PeerFailed = 5,   ///< a peer or the communication failed
  Timeout = 6,
  Internal = 70,
  Interrupted = 130,
  Terminated = 143,
};

/// An error: what is wrong (lower case, no full stop, both values that clash) and one repair that will work.
struct Error {
  ExitCode code = ExitCode::Internal;
  std::string message;
  std::string help; ///< empty: no repair to offer
};

/// Success or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}
  static Status ok() { return {}; }
  bool isOk() const { return !failure; }
  explicit operator bool() const { return isOk(); }
  const Error &error() const { return *failure; }

private:
  std::optional<Error> failure;
};

/// A value or an Error.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Error error) : content(std::move(error)) {}
  bool isOk() const { return content.index() == 0; }
  explicit operator bool() const { return isOk(); }
  T &operator*() { return std::get<0>(content); }
  const T &operator*() const { return std::get<0>(content); }
  T *operator->() { return &std::get<0>(content); }
  const T *operator->() const { return &std::get<0>(content); }
  const Error &error() const { return std::get<1>(content); }

private:
  std::variant<T, Error> content;
};

} // namespace msc
