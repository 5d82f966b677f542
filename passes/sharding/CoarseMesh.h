// What a search keeps to where there are too many factorisations of the devices.
#pragma once

#include "passes/sharding/Problem.h"

#include "mlir/IR/Location.h"

namespace msc::passes {

/// Ascending, each as often as it divides the number (>= 1).
std::vector<int64_t> primeFactors(int64_t number);

/// Sizes of the axes of a mesh on which no operator has thousands of strategies, with as many axes as that allows: the prime factors of
/// the devices, of which the two least are multiplied until it is so. Empty where no operator has so many anyway, or the user wrote a mesh.
std::vector<int64_t> coarseMesh(const Problem &problem);

/// A remark with a repair, unless `mesh` is empty.
void noteCoarse(mlir::Location location, int64_t devices, const std::vector<int64_t> &mesh);

} // namespace msc::passes
