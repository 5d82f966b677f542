// The cheapest mixture of assignments that keeps to several limits on average.
#pragma once

#include <cstddef>
#include <vector>

namespace msc::search {

/// Assignments by what they cost and how much they are above each limit (below zero: within). A mixture is a list of shares, >= 0, with
/// the sum 1; that of the cheapest one that is above no limit is a linear program, which is solved by the simplex method. Its dual says
/// what it would be worth to exceed each limit by one: the prices at which the next assignment is to be looked for (column generation:
/// G. B. Dantzig, P. Wolfe, Decomposition principle for linear programs, 1960).
class Mixture {
public:
  /// The first assignment is above no limit.
  Mixture(double cost, std::vector<double> above);

  void add(double cost, const std::vector<double> &above);
  /// One more limit, and how much those that were added so far are above it; the first one is not.
  void addLimit(const std::vector<double> &above);

  void solve();
  /// Of each limit, per unit; >= 0. After solve().
  const std::vector<double> &prices() const { return dual; }
  /// Of the cheapest mixture. After solve().
  double cost() const { return least; }
  /// Of each assignment in it. After solve().
  const std::vector<double> &shares() const { return mixed; }

private:
  std::vector<double> costs;
  std::vector<std::vector<double>> limits; ///< [limit][assignment]
  std::vector<double> dual, mixed;
  double least = 0;
};

} // namespace msc::search
