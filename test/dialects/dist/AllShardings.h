// Every sharding there is, for tests that enumerate.
#pragma once

#include "dialects/dist/Algebra.h"

#include <algorithm>
#include <set>
#include <vector>

namespace msc::test {

/// All ordered factorisations of `n` into factors above 1.
inline std::vector<std::vector<int64_t>> factorisations(int64_t n) {
  if (n == 1)
    return {{}};
  std::vector<std::vector<int64_t>> result;
  for (int64_t first = 2; first <= n; ++first)
    if (n % first == 0)
      for (std::vector<int64_t> rest : factorisations(n / first)) {
        rest.insert(rest.begin(), first);
        result.push_back(std::move(rest));
      }
  return result;
}

/// All shardings of a tensor of `rank` dimensions over `devices`, in canonical form, each once. With `partial`, sums
/// too.
inline std::vector<Sharding> allShardings(int64_t devices, size_t rank, bool partial) {
  std::vector<Sharding> result;
  std::set<std::string> seen;
  for (const auto &axes : factorisations(devices)) {
    std::vector<Sharding> made{{.axes = axes, .dims = std::vector<std::vector<int32_t>>(rank)}};
    for (int32_t axis = 0; axis < static_cast<int32_t>(axes.size()); ++axis) {
      std::vector<Sharding> grown = made; // this axis repeats
      for (const Sharding &s : made) {
        for (size_t dim = 0; dim < rank; ++dim)
          for (size_t at = 0; at <= s.dims[dim].size(); ++at) {
            Sharding next = s;
            next.dims[dim].insert(next.dims[dim].begin() + static_cast<long>(at), axis);
            grown.push_back(std::move(next));
          }
        if (partial) {
          grown.push_back(s);
          grown.back().partial.push_back({axis, ReduceKind::Sum});
        }
      }
      made = std::move(grown);
    }
    for (const Sharding &s : made)
      if (seen.insert(s.canonical().str()).second)
        result.push_back(s.canonical());
  }
  return result;
}

} // namespace msc::test
