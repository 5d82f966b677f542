// What a step of training does with the elements of a trained parameter.
#pragma once

#include "dialects/net/Config.h"
#include "passes/sharding/Problem.h"

namespace msc::passes {

/// The operators of the update of one f32 parameter, as autodiff makes them: scaling, accumulation, clipping, the optimizer. Those
/// that all parameters share are left out.
std::vector<UpdateWork> updateWork(mlir::MLIRContext *context, const net::TrainConfig &train);

} // namespace msc::passes
