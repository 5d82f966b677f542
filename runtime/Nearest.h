// "did you mean": the nearest of some known names.
#pragma once

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace msc {

/// Letters that have to be inserted, removed, replaced or exchanged with their neighbour to turn `a` into `b`; upper and
/// lower case count as equal.
inline size_t editDistance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  auto same = [&](size_t i, size_t j) { return lower(a[i]) == lower(b[j]); };
  std::vector<size_t> before, last, row(b.size() + 1); // of the last two letters of `a`, and of this one
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(last);
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(i - 1, j - 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

/// Names of one letter, and names that differ in digits alone, are different names, none of them mistyped: O4 is not O0. (f23 may be f32.)
inline bool isAnother(std::string_view a, std::string_view b, size_t distance) {
  if (distance == 0 || a.size() != b.size())
    return false;
  auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  auto same = [&](char x, char y) { return x == y || (isDigit(x) && isDigit(y)); };
  return a.size() == 1 || (std::equal(a.begin(), a.end(), b.begin(), same) && !std::is_permutation(a.begin(), a.end(), b.begin()));
}

/// The candidate that is most like `word`, or an empty text if none is near enough to be what was meant. Ties go to the
/// first candidate.
template <typename Candidates> std::string nearest(std::string_view word, const Candidates &candidates) {
  std::string best;
  size_t limit = std::clamp<size_t>(word.size() / 2, 1, 3) + 1;
  for (std::string_view candidate : candidates)
    if (size_t distance = editDistance(word, candidate); distance < limit && !isAnother(word, candidate, distance)) {
      best = candidate;
      limit = distance;
    }
  return best;
}

} // namespace msc
