// Cases of the operators that layers of networks are made of: pooling, convolution, norms, losses, lookups, attention, optimizers.
#pragma once

#include "test/dialects/net/OperatorCases.h"

namespace msc::test {

void addLayers(std::vector<OperatorCase> &cases);

} // namespace msc::test
