// Which of several ways a library computes a problem by: measured once, kept in a file, so that later runs repeat their bits.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace msc::device::cuda {

/// A file of lines "WAY PROBLEM". All functions may be called by several threads at once.
class Choices {
public:
  /// A file that is not there yet holds nothing. BadFile where it is something else.
  static Result<std::shared_ptr<Choices>> open(const std::string &path);

  std::optional<size_t> of(const std::string &problem) const;
  /// What is chosen from now on: `way`, unless another rank was first.
  size_t settle(const std::string &problem, size_t way);
  /// Replaces the file if anything was set, with what others have written to it in the meantime.
  Status write();

private:
  using Ways = std::map<std::string, size_t>;
  explicit Choices(std::string path) : path(std::move(path)) {}
  static Result<Ways> read(const std::string &path);

  const std::string path;
  mutable std::mutex mutex;
  Ways ways, added;
};

} // namespace msc::device::cuda
