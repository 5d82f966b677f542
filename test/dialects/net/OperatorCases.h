// One table of operators with shapes: every test of operators runs over all of it.
#pragma once

#include "test/dialects/net/TestNetwork.h"

namespace msc::test {

struct OperatorCase {
  const char *name; ///< unique
  const char *op;
  std::vector<const char *> operands; ///< element f64 where the operator takes floats
  const char *attributes;
  const char *result; ///< type of the first result
  const char *rule;
  Domain domain = Domain::Any;
};

/// At least one case per operator.
const std::vector<OperatorCase> &operatorCases();

/// Operators without a gradient, and why.
const std::map<std::string, std::string> &withoutGradient();

/// The operator of a case on inputs "x0", "x1", ... of a fresh network; result i is called "y<i>".
mlir::Operation *buildCase(TestNetwork &network, const OperatorCase &theCase, bool asParams = false);

} // namespace msc::test
