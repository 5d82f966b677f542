// Propagation again and again with one operator that is given another strategy.
#pragma once

#include "passes/sharding/Problem.h"

#include <memory>

namespace msc::passes {

/// What is found out about operators, their candidates and moves, is kept from one propagation to the next.
class Propagations {
public:
  explicit Propagations(Problem problem);
  ~Propagations();

  /// As propagate() of the problem in which the user gave this operator these pieces.
  Choices with(size_t op, const Pieces &pieces);

private:
  struct Kept;
  std::unique_ptr<Kept> kept;
};

} // namespace msc::passes
