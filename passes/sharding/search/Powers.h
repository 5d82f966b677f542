// Min-plus powers of a matrix, and the path behind an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace msc::search {

/// Equal successive steps of a path.
struct Steps {
  int32_t from = 0, to = 0;
  int64_t count = 0;
};

/// The cheapest cost of walks of `length` >= 1 steps between states, where step (i, j) costs step[i * size + j].
class Powers {
public:
  Powers(std::vector<double> step, size_t size, int64_t length);

  const std::vector<double> &result() const { return products.back(); }
  /// The steps of a cheapest walk; of equal halfway states the lowest.
  std::vector<Steps> path(int32_t from, int32_t to);
  int64_t operations = 0;

private:
  int32_t halfway(const std::vector<double> &a, const std::vector<double> &b, int32_t from, int32_t to) const;
  const std::vector<Steps> &pathOfSquare(size_t level, int32_t from, int32_t to);

  size_t size;
  std::vector<std::vector<double>> squares;  ///< of 2^level steps
  std::vector<std::vector<double>> products; ///< of the levels used so far
  std::vector<size_t> used;                  ///< levels, ascending
  std::map<std::tuple<size_t, int32_t, int32_t>, std::vector<Steps>> known;
};

} // namespace msc::search
