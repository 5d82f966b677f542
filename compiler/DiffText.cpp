// What differs between two plans, for people.
#include "compiler/PlanDiff.h"
#include "compiler/Tables.h"

#include "llvm/Support/FormatVariadic.h"

namespace msc::compiler {

static std::string planText(const plan::Plan &plan) {
  std::string text = std::to_string(plan.devices()) + (plan.devices() == 1 ? " device, " : " devices, ") + plan.parallel_mode();
  if (!plan.search_mode().empty() && plan.parallel_mode() == "auto_parallel")
    text += ", " + plan.search_mode();
  return text + ", " + plan.machine();
}

static std::string sumText(const std::optional<CollectiveSum> &sum) {
  if (!sum)
    return "-";
  const std::string tensors = sum->tensors > static_cast<size_t>(sum->count) ? " for " + std::to_string(sum->tensors) + " tensors" : "";
  return llvm::formatv("{0} x{1}, {2}, {3}", sum->count, tensors, bytesText(sum->bytes), timeText(sum->us));
}

static std::string bytesChange(uint64_t before, uint64_t after) {
  return before == after ? "+0 B" : (after < before ? "-" : "+") + bytesText(after < before ? before - after : after - before);
}

static Row usRow(const std::string &name, double a, double b) {
  const auto [textOfA, textOfB] = timeTexts(a, b);
  return {name, textOfA, textOfB, moreText(b - a)};
}
static Row bytesRow(const std::string &name, uint64_t a, uint64_t b) { return {name, bytesText(a), bytesText(b), bytesChange(a, b)}; }

std::string diffText(const PlanDiff &diff, size_t columns) {
  const plan::Plan &a = *diff.plans[0].plan, &b = *diff.plans[1].plan;
  std::string text = a.network() + "\n" + table({{"A", diff.plans[0].name, planText(a)}, {"B", diff.plans[1].name, planText(b)}});
  text += "\noperators with different strategies, " + std::to_string(diff.operators.size()) + " of " +
          std::to_string(a.operators_size()) + "\n";
  std::vector<Row> rows = {{"NAME", "OPERATOR", "PLACE", "IN A", "IN B", "DECIDED BY IN A", "DECIDED BY IN B"}};
  auto strategies = [](const std::string &in, const std::string &out) {
    return (in.empty() ? "-" : in) + (out.empty() ? "" : " -> " + out);
  };
  for (const OperatorChange &change : diff.operators) {
    bool showsOut = change.inStrategy[0] == change.inStrategy[1];
    Row row{change.name, change.op, change.place};
    for (int i : {0, 1})
      row.push_back(strategies(change.inStrategy[i], showsOut ? change.outStrategy[i] : ""));
    row.insert(row.end(), change.origin.begin(), change.origin.end());
    rows.push_back(row);
  }
  text += rows.size() == 1 ? "  none\n" : table(foldAlikeRows(rows, {0, 5, 6}), columns);
  text += "\ncollectives of one step that differ (how many, bytes received per rank, predicted time)\n";
  rows = {{"PHASE", "COLLECTIVE", "FOR", "PLACE", "GROUPS", "A", "B", "REASON"}};
  for (const CollectiveChange &change : diff.collectives)
    rows.push_back({change.phase, change.kind, change.forOperator, change.place, change.groups, sumText(change.sums[0]),
                    sumText(change.sums[1]), change.reason});
  text += rows.size() == 1 ? "  none\n" : table(foldAlikeRows(rows, {2, 7}), columns);
  const plan::Prediction &of = a.prediction(), &to = b.prediction();
  rows = {{"", "A", "B", "MORE"}};
  if (of.hidden_us() > 0 || to.hidden_us() > 0)
    rows.push_back(usRow("with overlap", of.step_us() - of.hidden_us(), to.step_us() - to.hidden_us()));
  rows.insert(rows.end(), {usRow("predicted", of.step_us(), to.step_us()),
                           usRow("of it computing", of.compute_us(), to.compute_us()),
                           usRow("of it communicating", of.communication_us(), to.communication_us()),
                           bytesRow("received per rank", of.communication_bytes(), to.communication_bytes()),
                           bytesRow("memory per rank", a.arena_bytes(), b.arena_bytes()),
                           bytesRow("parameters and states", of.parameter_bytes(), to.parameter_bytes())});
  if (a.machine() != b.machine())
    rows.push_back({"machine", a.machine(), b.machine(), "no times to compare"});
  return text + "\none step\n" + table(rows, columns);
}

} // namespace msc::compiler
