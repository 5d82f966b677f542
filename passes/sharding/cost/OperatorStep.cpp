#include "passes/sharding/cost/OperatorStep.h"

#include <algorithm>

namespace msc::passes {

static bool gradientReadsAny(const OperatorStep &step, auto isOne) {
  return std::ranges::any_of(step.operators, [&](const StepOperator &op) { return op.isBackward && std::ranges::any_of(op.operands, isOne); });
}

bool OperatorStep::gradientReadsResult(size_t result) const {
  return gradientReadsAny(*this, [&](int32_t value) { return value == resultOf(result); });
}

bool OperatorStep::gradientReads(int32_t operand) const {
  return gradientReadsAny(*this, [&](int32_t value) { return values[value].kind == StepValue::Kind::Operand && values[value].number == operand; });
}

} // namespace msc::passes
