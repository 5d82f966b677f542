// The inner loops of min-plus algebra.
#pragma once

#include <cstddef>

namespace msc::search {

/// out[j] = min over i < count of base[i] + rows[i][j], for j < width; infinity where count is 0.
void minPlusRows(double *out, size_t width, size_t count, const double *base, const double *const *rows);

/// sum[i] += add[i]
void addRow(double *sum, const double *add, size_t width);

/// out[i] = a[i] + b[i]; `out` may be `a`.
void sumOfRows(double *out, const double *a, const double *b, size_t width);

/// Minimum of a[i] + b[i]; infinity where size is 0.
double leastSum(const double *a, const double *b, size_t size);

/// The same of three.
double leastSum(const double *a, const double *b, const double *c, size_t size);

/// out[i] = min(out[i], row[i] + add)
void lowerTo(double *out, const double *row, double add, size_t width);

/// c = a * b in min-plus algebra; all size x size, row-major; c is neither a nor b.
void minPlusProduct(double *c, const double *a, const double *b, size_t size);

} // namespace msc::search
