#include "runtime/device/cuda/Tuning.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace msc::device::cuda {

Result<Choices::Ways> Choices::read(const std::string &path) {
  Ways ways;
  std::ifstream file(path);
  if (!file && std::filesystem::exists(path))
    return Error{ExitCode::BadFile, fmt::format("cannot read '{}' to its end: {}", path, std::strerror(errno)), ""};
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    size_t end = line.find(' ');
    if (end == 0 || end == std::string::npos || end > 3 || line.find_first_not_of("0123456789") != end)
      return Error{ExitCode::BadFile, fmt::format("{}:{}: no line of a file that --tune wrote", path, number),
                   "give --tune another file, or remove this one"};
    ways[line.substr(end + 1)] = std::stoul(line.substr(0, end));
  }
  return ways;
}

Result<std::shared_ptr<Choices>> Choices::open(const std::string &path) {
  Result<Ways> known = read(path);
  if (!known)
    return known.error();
  std::shared_ptr<Choices> made(new Choices(path));
  made->ways = std::move(*known);
  return made;
}

std::optional<size_t> Choices::of(const std::string &problem) const {
  std::lock_guard lock(mutex);
  auto known = ways.find(problem);
  return known == ways.end() ? std::nullopt : std::optional(known->second);
}

size_t Choices::settle(const std::string &problem, size_t way) {
  std::lock_guard lock(mutex);
  auto [place, isFirst] = ways.emplace(problem, way);
  if (isFirst)
    added[problem] = way;
  return place->second;
}

Status Choices::write() {
  std::lock_guard lock(mutex);
  if (added.empty())
    return {};
  Result<Ways> all = read(path);
  if (!all)
    return all.error();
  for (const auto &[problem, way] : added)
    (*all)[problem] = way;
  std::string next = fmt::format("{}.{}", path, getpid());
  std::ofstream file(next);
  for (const auto &[problem, way] : *all)
    file << way << ' ' << problem << '\n';
  file.close();
  if (!file || std::rename(next.c_str(), path.c_str()) != 0) {
    Error error{ExitCode::NoResource, fmt::format("cannot write '{}': {}", path, std::strerror(errno)), "give --tune another file"};
    std::remove(next.c_str());
    return error;
  }
  added.clear();
  return {};
}

} // namespace msc::device::cuda
