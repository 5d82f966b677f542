#include "compiler/PlanDiff.h"

#include "compiler/JsonText.h"
#include "compiler/Report.h"
#include "compiler/Tables.h"
#include "runtime/plan/PlanIndex.h"
#include "runtime/plan/StepText.h"

#include <nlohmann/json.hpp>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace msc::compiler {

using Json = nlohmann::ordered_json;

// Comparing ----------------------------------------------------------------------------------------------------------

/// Without the type that a cast reads: sums of narrow numbers that are cast to wide ones may be read before they are rounded.
static std::string shapesOf(const plan::OperatorNote &note) {
  std::string text;
  for (const auto &values : {note.operands(), note.results()}) {
    const bool isCast = note.op() == "Cast" && text.empty();
    text += text.empty() ? "" : " -> ";
    for (int i = 0; i < values.size(); ++i) {
      text += (i ? ", " : "") + std::string(isCast ? "" : dataTypeName(values[i].dtype())) + "[";
      for (int dim = 0; dim < values[i].shape_size(); ++dim)
        text += (dim ? ", " : "") + std::to_string(values[i].shape(dim));
      text += "]";
    }
  }
  return text;
}

/// Of operators with one name, in their order.
using Notes = std::map<std::string, std::vector<const plan::OperatorNote *>>;

static Notes notesOf(const plan::Plan &plan) {
  Notes notes;
  for (const plan::OperatorNote &note : plan.operators())
    notes[note.name()].push_back(&note);
  return notes;
}

/// An operator of one plan, and the one of the other plan that has its name, and its place among those that share it.
using Pair = std::pair<const plan::OperatorNote *, const plan::OperatorNote *>;

/// Of plans of one network, in the order of the first one.
static std::vector<Pair> pairsOf(const plan::Plan &first, const plan::Plan &second) {
  Notes others = notesOf(second);
  std::map<std::string, size_t> counts;
  std::vector<Pair> pairs;
  for (const plan::OperatorNote &note : first.operators())
    pairs.emplace_back(&note, others.at(note.name()).at(counts[note.name()]++));
  return pairs;
}

static Status checkSameNetwork(const NamedPlan &first, const NamedPlan &second) {
  auto differ = [&](const std::string &why) {
    return Error{ExitCode::Failed, "'" + first.name + "' and '" + second.name + "' are plans of different networks: " + why,
                 "compare plans that were compiled from one network"};
  };
  Notes notes[] = {notesOf(*first.plan), notesOf(*second.plan)};
  for (int i : {0, 1})
    for (const plan::OperatorNote &note : (i == 0 ? first : second).plan->operators())
      if (notes[1 - i][note.name()].size() < notes[i][note.name()].size())
        return differ("only '" + (i == 0 ? first : second).name + "' has the operator '" + note.name() + "'");
  for (const auto &[mine, its] : pairsOf(*first.plan, *second.plan)) {
    const plan::OperatorNote &note = *mine, &other = *its;
    if (note.op() != other.op())
      return differ("'" + note.name() + "' is " + note.op() + " in one and " + other.op() + " in the other");
    if (shapesOf(note) != shapesOf(other))
      return differ("'" + note.name() + "' computes " + shapesOf(note) + " in one and " + shapesOf(other) + " in the other");
  }
  return Status::ok();
}

static std::vector<OperatorChange> operatorChanges(const plan::Plan &first, const plan::Plan &second) {
  std::vector<OperatorChange> changes;
  for (const auto &[mine, its] : pairsOf(first, second)) {
    const plan::OperatorNote &note = *mine, &other = *its;
    if (note.in_strategy() != other.in_strategy() || note.out_strategy() != other.out_strategy())
      changes.push_back({note.name(), note.op(), placeOf(first, note.location()), {note.in_strategy(), other.in_strategy()},
                         {note.out_strategy(), other.out_strategy()}, {note.origin(), other.origin()}});
  }
  return changes;
}

static bool isAlike(const CollectiveSum &a, const CollectiveSum &b) {
  return a.count == b.count && a.tensors == b.tensors && a.bytes == b.bytes && std::abs(a.us - b.us) < 1e-9 * (1 + a.us);
}

static std::vector<CollectiveChange> collectiveChanges(const plan::Plan &first, const plan::Plan &second) {
  std::vector<CollectiveChange> all;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> known;
  for (size_t side : {0, 1})
    for (const CollectiveFacts &facts : collectivesOf(side == 0 ? first : second)) {
      std::string groups = groupsText(*facts.groups);
      auto [at, isNew] = known.try_emplace({facts.phase, facts.kind, facts.forOperator, groups}, all.size());
      if (isNew)
        all.push_back({facts.phase, facts.kind, facts.forOperator, facts.location, groups, facts.reason, {}});
      std::optional<CollectiveSum> &sum = all[at->second].sums[side];
      sum = sum ? sum : CollectiveSum{};
      ++sum->count;
      sum->tensors += facts.tensors;
      sum->bytes += facts.bytes;
      sum->us += facts.predictedUs;
    }
  std::erase_if(all, [](const CollectiveChange &change) {
    return change.sums[0] && change.sums[1] && isAlike(*change.sums[0], *change.sums[1]);
  });
  return all;
}

Result<PlanDiff> diffOf(const NamedPlan &first, const NamedPlan &second) {
  if (Status same = checkSameNetwork(first, second); !same)
    return same.error();
  return PlanDiff{{first, second}, operatorChanges(*first.plan, *second.plan), collectiveChanges(*first.plan, *second.plan)};
}

// For programs -------------------------------------------------------------------------------------------------------

static Json sumJson(const std::optional<CollectiveSum> &sum) {
  return sum ? Json{{"count", sum->count}, {"tensors", sum->tensors}, {"bytes", sum->bytes}, {"us", sum->us}} : Json();
}

static Json planJson(const NamedPlan &named) {
  const plan::Plan &plan = *named.plan;
  return {{"plan", named.name},
          {"digest", plan.digest()},
          {"devices", plan.devices()},
          {"parallel_mode", plan.parallel_mode()},
          {"search_mode", plan.search_mode()},
          {"machine", plan.machine()},
          {"step_us", plan.prediction().step_us()},
          {"hidden_us", plan.prediction().hidden_us()},
          {"compute_us", plan.prediction().compute_us()},
          {"communication_us", plan.prediction().communication_us()},
          {"communication_bytes", plan.prediction().communication_bytes()},
          {"peak_bytes", plan.arena_bytes()},
          {"parameter_bytes", plan.prediction().parameter_bytes()}};
}

std::string diffJson(const PlanDiff &diff) {
  Json json{{"network", diff.plans[0].plan->network()}, {"a", planJson(diff.plans[0])}, {"b", planJson(diff.plans[1])},
            {"operators", Json::array()}, {"collectives", Json::array()}};
  for (const OperatorChange &change : diff.operators) {
    Json entry{{"name", change.name}, {"op", change.op}, {"location", change.place}};
    for (int i : {0, 1})
      entry[i == 0 ? "a" : "b"] = {{"in_strategy", strategyJson(change.inStrategy[i])},
                                   {"out_strategy", strategyJson(change.outStrategy[i])},
                                   {"origin", change.origin[i]}};
    json["operators"].push_back(entry);
  }
  for (const CollectiveChange &change : diff.collectives)
    json["collectives"].push_back({{"phase", change.phase},
                                   {"kind", change.kind},
                                   {"for", change.forOperator},
                                   {"location", change.place},
                                   {"groups", change.groups},
                                   {"reason", change.reason},
                                   {"a", sumJson(change.sums[0])},
                                   {"b", sumJson(change.sums[1])}});
  return jsonText(json);
}

} // namespace msc::compiler
