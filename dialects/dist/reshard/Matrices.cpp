#include "dialects/dist/reshard/Matrices.h"

#include <algorithm>

namespace msc::dist {

namespace {

/// Device counts with at most this many prime factors are searched over prime axes, and with at most this many over all orders
/// of them: 24 ranks in nodes of 8 would take several milliseconds.
constexpr size_t fewPrimes = 4, fewestPrimes = 3;

std::vector<int64_t> primeFactors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; n > 1; ++p) {
    if (p * p > n)
      p = n;
    for (; n % p == 0; n /= p)
      factors.push_back(p);
  }
  return factors;
}

/// Every order of the prime factors of each axis.
std::vector<Matrix> primeMatrices(const Matrix &matrix) {
  std::vector<Matrix> result{{}};
  for (int64_t axis : matrix) {
    std::vector<Matrix> longer;
    std::vector<int64_t> primes = primeFactors(axis);
    do
      for (Matrix front : result) {
        front.insert(front.end(), primes.begin(), primes.end());
        longer.push_back(std::move(front));
      }
    while (std::next_permutation(primes.begin(), primes.end()));
    result = std::move(longer);
  }
  return result;
}

/// Do the units of all levels consist of whole blocks of neighbouring ranks along inner axes?
bool alignsWithUnits(const Matrix &matrix, const MachineModel &machine) {
  return std::all_of(machine.levels.begin(), machine.levels.end(), [&](const LinkLevel &level) {
    int64_t block = 1;
    size_t axis = matrix.size();
    while (axis > 0 && block < level.ranks)
      block *= matrix[--axis];
    return level.ranks == 0 || block == level.ranks || (axis == 0 && block < level.ranks);
  });
}

} // namespace

std::vector<Matrix> searchedMatrices(const Matrix &common, const MachineModel &machine, bool targetIsPartial) {
  int64_t devices = 1;
  for (int64_t axis : common)
    devices *= axis;
  size_t primes = primeFactors(devices).size();
  if (primes > fewPrimes)
    return {common};
  std::vector<Matrix> matrices = primeMatrices(common);
  if (primes > fewestPrimes || targetIsPartial ||
      std::all_of(matrices.begin(), matrices.end(),
                  [&](const Matrix &matrix) { return alignsWithUnits(matrix, machine); }))
    return matrices;
  for (Matrix &matrix : primeMatrices({devices}))
    if (std::find(matrices.begin(), matrices.end(), matrix) == matrices.end())
      matrices.push_back(std::move(matrix));
  return matrices;
}

} // namespace msc::dist
