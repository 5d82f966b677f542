// How dataset inputs are spread over the devices. Plain data, no IR.
#pragma once

#include "passes/sharding/Strategy.h"

namespace msc::passes {

struct InputFacts {
  std::string name;
  Shape shape;
};

/// Reads "((2, 1), (2, 1))"; nothing if the text is not of that form.
std::optional<net::Strategy> parseStrategy(const std::string &text);

/// One sharding per input for a dataset_strategy: "data_parallel" cuts dimension 0 over all devices (device matrix
/// (N)), "full_batch" gives every rank everything, pieces per dimension per input induce a device matrix whose idle
/// rest is a repeat axis on the left, or on the right if asked.
std::variant<std::vector<Sharding>, StrategyError> datasetShardings(const std::vector<InputFacts> &inputs,
                                                                    const std::string &strategy, int64_t devices,
                                                                    bool repeatOnRight);

} // namespace msc::passes
