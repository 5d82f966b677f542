// `msc explain`: what was decided, for people.
#pragma once

#include "compiler/Report.h"
#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace msc::compiler {

struct NamedOperator {
  std::string name, place; ///< instance name; file:line
};
/// An error that offers the nearest name unless `op` is empty or the instance name of one operator of the network.
Status checkOperator(const std::string &network, const std::vector<NamedOperator> &operators, const std::string &op);
Status checkOperator(const plan::Plan &plan, const std::string &op);

/// The text of `msc explain`: operators with strategy, origin and place, collectives with groups, bytes and reason, memory.
/// `op` limits it to one operator by instance name; an unknown name is an error that offers the nearest one. What the
/// communication passes saved is told of a network that was just compiled. `columns`: of the terminal for which tables are laid out, 0
/// for none.
Result<std::string> explainText(const plan::Plan &plan, const Findings &findings, const std::string &op, size_t columns);

} // namespace msc::compiler
