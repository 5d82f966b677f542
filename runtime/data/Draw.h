// Values drawn by global element index: initial parameters and random data sets. Each rank fills its own box and gets what
// any other sharding would have put there.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/Sharding.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace msc {

/// A value for each global element index.
using ElementFunction = std::function<double(uint64_t)>;

/// What an initializer puts into a tensor of global shape `shape`. `single`: results are rounded to f32, and uniform draws
/// stay below their upper bound after rounding.
Result<ElementFunction> initializerFunction(const plan::Initializer &initializer, const std::vector<int64_t> &shape,
                                            uint64_t seed, const std::string &name, bool single);

/// What a random column holds; batch b of the run has the elements from b times the batch's size on.
Result<ElementFunction> columnFunction(const plan::Dataset::Column &column, uint64_t seed, bool single);

/// Writes function(first + global row-major index) for each element of `box` of a tensor of global shape `shape`, densely
/// and as `type`, to `target`.
void fillBox(std::byte *target, plan::DataType type, const std::vector<int64_t> &shape, const Box &box, uint64_t first,
             const ElementFunction &function);

/// Quantile of the standard normal distribution (Wichura's algorithm AS 241, PPND16; relative error 1e-16).
double normalQuantile(double probability);

} // namespace msc
