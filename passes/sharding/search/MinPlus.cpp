#include "passes/sharding/search/MinPlus.h"
#include "passes/sharding/search/CostNetwork.h"

#include <algorithm>

// The widest vectors of the machine that runs it; the results are the same.
#if defined(__x86_64__) && defined(__linux__) && defined(__clang__)
#define MSC_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define MSC_WIDE_VECTORS
#endif

namespace msc::search {

static inline double lower(double a, double b) {
  return a < b ? a : b;
}

MSC_WIDE_VECTORS void minPlusRows(double *__restrict out, size_t width, size_t count, const double *base,
                                  const double *const *rows) {
  size_t i = 0;
  for (size_t j = 0; j < width; ++j)
    out[j] = infinity;
  for (; i + 4 <= count; i += 4) {
    const double b0 = base[i], b1 = base[i + 1], b2 = base[i + 2], b3 = base[i + 3];
    const double *__restrict r0 = rows[i], *__restrict r1 = rows[i + 1], *__restrict r2 = rows[i + 2],
                             *__restrict r3 = rows[i + 3];
    for (size_t j = 0; j < width; ++j)
      out[j] = lower(out[j], lower(lower(b0 + r0[j], b1 + r1[j]), lower(b2 + r2[j], b3 + r3[j])));
  }
  for (; i < count; ++i) {
    const double b = base[i];
    const double *__restrict row = rows[i];
    for (size_t j = 0; j < width; ++j)
      out[j] = lower(out[j], b + row[j]);
  }
}

MSC_WIDE_VECTORS void addRow(double *__restrict sum, const double *__restrict add, size_t width) {
  for (size_t j = 0; j < width; ++j)
    sum[j] += add[j];
}

MSC_WIDE_VECTORS void sumOfRows(double *out, const double *a, const double *b, size_t width) {
  for (size_t j = 0; j < width; ++j)
    out[j] = a[j] + b[j];
}

MSC_WIDE_VECTORS double leastSum(const double *a, const double *b, size_t size) {
  constexpr size_t lanes = 8;
  double least[lanes];
  for (double &lane : least)
    lane = infinity;
  size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    for (size_t j = 0; j < lanes; ++j)
      least[j] = lower(least[j], a[i + j] + b[i + j]);
  for (; i < size; ++i)
    least[0] = lower(least[0], a[i] + b[i]);
  return *std::min_element(least, least + lanes);
}

MSC_WIDE_VECTORS double leastSum(const double *a, const double *b, const double *c, size_t size) {
  constexpr size_t lanes = 8;
  double least[lanes];
  for (double &lane : least)
    lane = infinity;
  size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    for (size_t j = 0; j < lanes; ++j)
      least[j] = lower(least[j], a[i + j] + b[i + j] + c[i + j]);
  for (; i < size; ++i)
    least[0] = lower(least[0], a[i] + b[i] + c[i]);
  return *std::min_element(least, least + lanes);
}

MSC_WIDE_VECTORS void lowerTo(double *__restrict out, const double *__restrict row, double add, size_t width) {
  for (size_t j = 0; j < width; ++j)
    out[j] = lower(out[j], row[j] + add);
}

void minPlusProduct(double *c, const double *a, const double *b, size_t size) {
  std::vector<const double *> rows(size);
  std::vector<double> base(size);
  for (size_t i = 0; i < size; ++i) {
    size_t count = 0;
    for (size_t k = 0; k < size; ++k)
      if (double value = a[i * size + k]; value < infinity) {
        base[count] = value;
        rows[count++] = b + k * size;
      }
    minPlusRows(c + i * size, size, count, base.data(), rows.data());
  }
}

} // namespace msc::search
