#include "runtime/calibrate/Fit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace msc {
namespace {

constexpr size_t terms = 4; ///< alpha, hop, beta, beyond the cache
/// No collective is free: alpha is at least this share of the shortest sample, whose few bytes take less time than its start.
constexpr double latencyShare = 0.5;
using Row = std::array<double, terms>;

/// Least squares over the terms in `subset` by normal equations; false where they are not independent.
bool solve(const std::vector<Row> &rows, const std::vector<double> &values, unsigned subset, Row &solution) {
  std::array<size_t, terms> chosen{};
  size_t count = 0;
  for (size_t term = 0; term < terms; ++term)
    if (subset >> term & 1)
      chosen[count++] = term;
  std::array<std::array<double, terms + 1>, terms> system{};
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j)
        system[i][j] += rows[r][chosen[i]] * rows[r][chosen[j]];
      system[i][count] += rows[r][chosen[i]] * values[r];
    }
  std::array<double, terms> diagonal{};
  for (size_t i = 0; i < count; ++i)
    diagonal[i] = system[i][i];
  for (size_t i = 0; i < count; ++i) { // positive definite: no pivoting
    if (system[i][i] <= 1e-9 * diagonal[i])
      return false;
    for (size_t below = 0; below < count; ++below) {
      if (below == i)
        continue;
      double factor = system[below][i] / system[i][i];
      for (size_t j = i; j <= count; ++j)
        system[below][j] -= factor * system[i][j];
    }
  }
  solution = {};
  for (size_t i = 0; i < count; ++i)
    solution[chosen[i]] = system[i][count] / system[i][i];
  return true;
}

double predict(const Row &row, const Row &solution) {
  double sum = 0;
  for (size_t term = 0; term < terms; ++term)
    sum += row[term] * solution[term];
  return sum;
}

/// Least squares with no negative term: the best of all subsets of terms.
Row solveNonNegative(const std::vector<Row> &rows, const std::vector<double> &values) {
  Row best{}, solution;
  double least = INFINITY;
  for (unsigned subset = 1; subset < 1u << terms; ++subset) {
    if (!solve(rows, values, subset, solution) || *std::min_element(solution.begin(), solution.end()) < 0)
      continue;
    double squares = 0;
    for (size_t r = 0; r < rows.size(); ++r)
      squares += std::pow(predict(rows[r], solution) - values[r], 2);
    // A term more has to be worth it.
    if (squares < least * (1 - 1e-9)) {
      least = squares;
      best = solution;
    }
  }
  return best;
}

/// Sum of relative errors.
double errorOf(const LinkCost &cost, const std::vector<CollectiveSample> &samples) {
  double sum = 0;
  for (const CollectiveSample &sample : samples)
    sum += std::abs(cost.us(sample.groupSize, static_cast<double>(sample.bytes)) / sample.us - 1);
  return sum;
}

/// The best cost of that shape: least squares, reweighted towards the least sum of absolute relative errors, so that single
/// disturbed samples do not count more than others.
LinkCost fitShape(const std::vector<CollectiveSample> &samples, double ownShare, double cacheBytes) {
  constexpr int rounds = 4;
  constexpr double smallestError = 0.02;
  LinkCost cost{.ownShare = ownShare, .cacheBytes = cacheBytes};
  double leastAlpha = latencyShare * std::min_element(samples.begin(), samples.end(), [](const auto &a, const auto &b) {
                                       return a.us < b.us;
                                     })->us;
  std::vector<double> weights;
  for (const CollectiveSample &sample : samples)
    weights.push_back(1 / sample.us);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Row> rows;
    std::vector<double> values;
    for (size_t i = 0; i < samples.size(); ++i) {
      auto others = static_cast<double>(samples[i].groupSize - 1);
      double handled = static_cast<double>(samples[i].bytes) * (1 + ownShare / others), w = weights[i];
      rows.push_back({w, w * others, w * handled, w * std::max(0.0, handled - cacheBytes)});
      values.push_back(w * (samples[i].us - leastAlpha));
    }
    Row solution = solveNonNegative(rows, values);
    cost.alphaUs = leastAlpha + solution[0];
    cost.hopUs = solution[1];
    cost.betaUsPerByte = solution[2];
    cost.beyondCacheUsPerByte = solution[3];
    for (size_t i = 0; i < samples.size(); ++i) {
      double error = std::abs(cost.us(samples[i].groupSize, static_cast<double>(samples[i].bytes)) / samples[i].us - 1);
      weights[i] = 1 / samples[i].us / std::sqrt(std::max(error, smallestError));
    }
  }
  return cost;
}

/// Six significant digits: the rest is noise, and would only make the file longer.
double rounded(double value) {
  if (value == 0)
    return 0;
  double unit = std::pow(10, std::floor(std::log10(value)) - 5);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

} // namespace

LinkCost fitLinkCost(const std::vector<CollectiveSample> &samples) {
  constexpr double ownShares[] = {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2};
  LinkCost best;
  double least = INFINITY;
  for (double ownShare : ownShares)
    for (double cacheBytes = 1 << 14; cacheBytes <= 1 << 24; cacheBytes *= 2) {
      LinkCost cost = fitShape(samples, ownShare, cacheBytes);
      if (double error = errorOf(cost, samples); error < least * (1 - 1e-9)) {
        least = error;
        best = cost;
      }
    }
  for (double *term : {&best.alphaUs, &best.hopUs, &best.betaUsPerByte, &best.beyondCacheUsPerByte})
    *term = rounded(*term);
  if (best.beyondCacheUsPerByte == 0)
    best.cacheBytes = 0;
  return best;
}

} // namespace msc
