// What a step of training does with the elements of a trained parameter.
#pragma once

#include "dialects/net/Config.h"
#include "passes/sharding/Problem.h"

namespace msc::passes {

/// The update of one f32 parameter, as autodiff makes it: scaling, accumulation, clipping, the optimizer.
struct UpdateFacts {
  std::vector<UpdateWork> work; ///< its operators, but for those that all parameters share
  std::vector<UpdateKernel> kernels; ///< one after the other
  int64_t states = 0;           ///< tensors like the parameter that are kept for it
  int64_t scalars = 0;          ///< that all parameters share: learning rate, corrections, scale of the loss
};

UpdateFacts updateFacts(mlir::MLIRContext *context, const net::TrainConfig &train);

} // namespace msc::passes
