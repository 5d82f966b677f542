// Networks of the operators in the table of cases, as text.
#pragma once

#include "test/dialects/net/OperatorCases.h"

#include <string>
#include <vector>

namespace msc::e2e {

/// "f64[3, 4]".
std::string typeText(mlir::Type type);

/// The call of an operator that buildCase made: "MatMul(%x0, %x1, transpose_a: true)". Every name begins with `prefix`; operands that are
/// bools are called b0, b1, ... instead of x0, x1, ...
std::string callText(mlir::Operation *op, const std::string &prefix = "");

/// Its results: "%y0, %y1".
std::string resultsText(mlir::Operation *op, const std::string &prefix = "");

/// Why an operator of the table cannot stand in a network; empty if it can. Some can, but give other numbers on every rank.
std::string whyNoNetwork(const test::OperatorCase &theCase);

/// Its operands are what the partition gives it, not any.
bool isMadeByPartition(const test::OperatorCase &theCase);

/// A network of all these cases, trained on one device for two steps on data that it draws, by the domains of the cases: the loss is the
/// sum of all results, each element with a weight of its own, and the parameters are added to what the operators take, where these have
/// gradients. `element`, "f32" or "f64", stands for the f64 of the table.
std::string lossOfCases(const std::vector<const test::OperatorCase *> &cases, const std::string &element);

/// The cases of the table that lossOfCases takes.
std::vector<const test::OperatorCase *> casesForLoss();

} // namespace msc::e2e
