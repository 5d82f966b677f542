// The numbers that a case has to give: the f64 reference on the whole network, from random state.
#pragma once

#include "runtime/Status.h"
#include "test/e2e/Case.h"
#include "test/reference/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace msc::e2e {

struct ReferenceStep {
  std::map<std::string, reference::Tensor> given;   ///< inputs, parameters and states before the step
  std::map<std::string, reference::Tensor> outputs; ///< loss, results, kept values, gradients as "grad:w0"
  std::map<std::string, reference::Tensor> updated; ///< parameters and states after the step
  /// By name, how far each output and updated tensor moves when every operator rounds its result to the element type:
  /// what no order of summation can avoid.
  std::map<std::string, double> noise;
  std::vector<std::string> keep;                    ///< what the compiler is asked to keep
  std::map<std::string, int> operators;             ///< how often each operator occurs, backward and update included
  int forwardNodes = 0;
};

/// Draws inputs, parameters and states until no element lies so close to a kink (ReLU at 0, ties of a maximum, equality of
/// a comparison) that rounding decides which side it is on; then computes one step. The same seed gives the same state.
Result<ReferenceStep> computeReference(const Case &test);

} // namespace msc::e2e
