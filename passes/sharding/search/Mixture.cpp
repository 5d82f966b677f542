#include "passes/sharding/search/Mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace msc::search {

Mixture::Mixture(double cost, std::vector<double> above) : costs{cost} {
  for (double amount : above)
    limits.push_back({amount});
}

void Mixture::add(double cost, const std::vector<double> &above) {
  costs.push_back(cost);
  for (size_t i = 0; i < limits.size(); ++i)
    limits[i].push_back(above[i]);
}

void Mixture::addLimit(const std::vector<double> &above) {
  limits.push_back(above);
}

namespace {

/// A dense tableau: rows of limits, the row of the sum, the row of costs. Columns: assignments, slacks of the limits, the right side.
class Tableau {
public:
  Tableau(const std::vector<double> &costs, const std::vector<std::vector<double>> &limits)
      : assignments(costs.size()), rows(limits.size() + 1), columns(costs.size() + limits.size()),
        cells((rows + 1) * (columns + 1)), basis(rows) {
    for (size_t i = 0; i < limits.size(); ++i) {
      std::copy(limits[i].begin(), limits[i].end(), &at(i, 0));
      at(i, assignments + i) = 1;
      basis[i] = assignments + i;
    }
    std::fill_n(&at(limits.size(), 0), assignments, 1.0);
    at(limits.size(), columns) = 1;
    std::copy(costs.begin(), costs.end(), &at(rows, 0));
    pivot(limits.size(), 0); // the first assignment alone
  }

  void solve() {
    // The column that saves most at first; the first that saves later, which cannot go in circles (R. G. Bland, 1977).
    const size_t most = 50 * rows + columns;
    for (size_t step = 0; step < 10 * most; ++step) {
      size_t column = columns;
      for (size_t j = 0; j < columns; ++j)
        if (at(rows, j) < -tolerance && (column == columns || (step < most && at(rows, j) < at(rows, column))))
          column = j;
      if (column == columns)
        return;
      size_t row = rows;
      for (size_t i = 0; i < rows; ++i)
        if (at(i, column) > tolerance && (row == rows || isBefore(i, row, column)))
          row = i;
      if (row == rows)
        return; // shares are bounded: rounding alone leads here
      pivot(row, column);
    }
  }

  double cost() const { return -at(rows, columns); }
  double share(size_t assignment) const {
    const auto row = std::ranges::find(basis, assignment);
    return row == basis.end() ? 0 : std::max(0.0, at(row - basis.begin(), columns));
  }
  double price(size_t limit) const { return std::max(0.0, at(rows, assignments + limit)); }

private:
  static constexpr double tolerance = 1e-11;

  double &at(size_t row, size_t column) { return cells[row * (columns + 1) + column]; }
  double at(size_t row, size_t column) const { return cells[row * (columns + 1) + column]; }

  bool isBefore(size_t a, size_t b, size_t column) const {
    const double ofA = at(a, columns) / at(a, column), ofB = at(b, columns) / at(b, column);
    return ofA != ofB ? ofA < ofB : basis[a] < basis[b];
  }

  void pivot(size_t row, size_t column) {
    const double pivot = at(row, column);
    for (size_t j = 0; j <= columns; ++j)
      at(row, j) /= pivot;
    for (size_t i = 0; i <= rows; ++i)
      if (const double factor = at(i, column); i != row && factor != 0)
        for (size_t j = 0; j <= columns; ++j)
          at(i, j) -= factor * at(row, j);
    basis[row] = column;
  }

  size_t assignments, rows, columns;
  std::vector<double> cells;
  std::vector<size_t> basis;
};

} // namespace

void Mixture::solve() {
  // Units of their own, so that one tolerance holds for all.
  auto largest = [](const std::vector<double> &list) {
    double most = 0;
    for (double value : list)
      most = std::max(most, std::abs(value));
    return most > 0 ? most : 1;
  };
  auto inUnits = [](std::vector<double> list, double unit) {
    for (double &value : list)
      value /= unit;
    return list;
  };
  const double ofCosts = largest(costs);
  std::vector<double> units;
  std::vector<std::vector<double>> scaled;
  for (const std::vector<double> &limit : limits)
    scaled.push_back(inUnits(limit, units.emplace_back(largest(limit))));
  Tableau tableau(inUnits(costs, ofCosts), scaled);
  tableau.solve();
  least = tableau.cost() * ofCosts;
  mixed.clear();
  for (size_t j = 0; j < costs.size(); ++j)
    mixed.push_back(tableau.share(j));
  dual.clear();
  for (size_t i = 0; i < limits.size(); ++i)
    dual.push_back(tableau.price(i) * ofCosts / units[i]);
}

} // namespace msc::search
