#include "passes/sharding/search/Powers.h"
#include "passes/sharding/search/CostNetwork.h"
#include "passes/sharding/search/MinPlus.h"

namespace msc::search {

Powers::Powers(std::vector<double> step, size_t size, int64_t length) : size(size) {
  const int64_t product = int64_t(size) * int64_t(size) * int64_t(size);
  squares.push_back(std::move(step));
  for (size_t level = 0; length >> level; ++level) {
    if (level > 0) {
      squares.emplace_back(size * size);
      minPlusProduct(squares[level].data(), squares[level - 1].data(), squares[level - 1].data(), size);
      operations += product;
    }
    if (!(length >> level & 1))
      continue;
    used.push_back(level);
    if (products.empty()) {
      products.push_back(squares[level]);
      continue;
    }
    products.emplace_back(size * size);
    minPlusProduct(products.back().data(), products[products.size() - 2].data(), squares[level].data(), size);
    operations += product;
  }
}

int32_t Powers::halfway(const std::vector<double> &a, const std::vector<double> &b, int32_t from, int32_t to) const {
  double least = infinity;
  int32_t best = 0;
  for (size_t m = 0; m < size; ++m)
    if (double cost = a[from * size + m] + b[m * size + to]; cost < least) {
      least = cost;
      best = static_cast<int32_t>(m);
    }
  return best;
}

static void extend(std::vector<Steps> &path, const std::vector<Steps> &more) {
  for (const Steps &steps : more)
    if (!path.empty() && path.back().from == steps.from && path.back().to == steps.to)
      path.back().count += steps.count;
    else
      path.push_back(steps);
}

const std::vector<Steps> &Powers::pathOfSquare(size_t level, int32_t from, int32_t to) {
  auto [place, isNew] = known.try_emplace({level, from, to});
  if (!isNew)
    return place->second;
  std::vector<Steps> path;
  if (level == 0) {
    path = {{from, to, 1}};
  } else {
    const int32_t middle = halfway(squares[level - 1], squares[level - 1], from, to);
    extend(path, pathOfSquare(level - 1, from, middle));
    extend(path, pathOfSquare(level - 1, middle, to));
  }
  return known[{level, from, to}] = std::move(path);
}

std::vector<Steps> Powers::path(int32_t from, int32_t to) {
  std::vector<int32_t> borders(used.size() + 1, to); // of the products, from the last to the first
  for (size_t i = used.size(); i-- > 1;)
    borders[i] = halfway(products[i - 1], squares[used[i]], from, borders[i + 1]);
  borders[0] = from;
  std::vector<Steps> path;
  for (size_t i = 0; i < used.size(); ++i)
    extend(path, pathOfSquare(used[i], borders[i], borders[i + 1]));
  return path;
}

} // namespace msc::search
