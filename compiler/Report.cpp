#include "compiler/Report.h"

#include "compiler/JsonText.h"
#include "runtime/plan/PlanIndex.h"
#include "runtime/plan/StepText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

namespace msc::compiler {

using Json = nlohmann::ordered_json;

static Sharding shardingAt(const plan::Plan &plan, uint32_t index) { return toSharding(plan.shardings(index)); }

/// Ranks that differ on these axes of a device matrix.
static std::vector<std::vector<int64_t>> groupsAlong(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes) {
  std::vector<std::vector<int64_t>> groups;
  std::map<int64_t, size_t> groupOf; // by the lowest rank
  int64_t ranks = std::accumulate(matrix.begin(), matrix.end(), int64_t{1}, std::multiplies<>());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t lowest = rank, stride = 1;
    for (size_t axis = matrix.size(); axis-- > 0; stride *= matrix[axis])
      if (std::find(axes.begin(), axes.end(), static_cast<int32_t>(axis)) != axes.end())
        lowest -= rank / stride % matrix[axis] * stride;
    auto [found, isNew] = groupOf.try_emplace(lowest, groups.size());
    if (isNew)
      groups.emplace_back();
    groups[found->second].push_back(rank);
  }
  return groups;
}

/// Reasons name the operator whose result is completed: "MatMul 'matmul' sums ...", "gradient of 'w' (matmul) sums ...".
static bool isCausedBy(const std::string &user, const std::string &reason, const plan::OperatorNote &note) {
  return user == note.name() || reason.find(note.op() + " '" + note.name() + "' ") != std::string::npos ||
         reason.find("' (" + note.name() + ") ") != std::string::npos;
}

/// Of the tensors that a collective moves, those that an operator causes (null: all): their bytes, and what the first of
/// them says. Nothing if there are none.
struct Cause {
  uint64_t bytes = 0;
  std::string user, reason;
};
static std::optional<Cause> causeOf(const plan::Collective &collective, const plan::OperatorNote *note) {
  std::vector<Cause> tensors{{collective.bytes(), collective.for_operator(), collective.reason()}};
  for (const plan::Collective::Part &part : collective.also()) {
    tensors[0].bytes -= part.bytes();
    tensors.push_back({part.bytes(), part.for_operator(), part.reason()});
  }
  std::optional<Cause> found;
  for (const Cause &tensor : tensors) {
    if (note && !isCausedBy(tensor.user, tensor.reason, *note))
      continue;
    if (!found)
      found = Cause{0, tensor.user, tensor.reason};
    found->bytes += tensor.bytes;
  }
  return found;
}

namespace {

/// The operators of a plan by their names.
class NamedOperators {
public:
  explicit NamedOperators(const plan::Plan &plan) : plan(plan) {
    for (int i = 0; i < plan.operators_size(); ++i)
      indices[plan.operators(i).name()].push_back(i);
  }

  /// Whose result is completed, or whose gradient wants it, else who wants the value: the first that the reason names as isCausedBy says.
  std::string causing(const Cause &cause) const {
    const std::string_view reason = cause.reason;
    int first = plan.operators_size();
    auto look = [&](std::string_view name) {
      if (auto found = indices.find(name); found != indices.end())
        for (int i : found->second)
          if (i < first && isCausedBy("", cause.reason, plan.operators(i)))
            first = i;
    };
    for (size_t quote = reason.find('\''); quote != std::string_view::npos; quote = reason.find('\'', quote + 1)) {
      const std::string_view behind = reason.substr(quote + 1);
      look(behind.substr(0, behind.find('\'')));
      if (behind.starts_with(" ("))
        look(behind.substr(2, behind.find(')') - 2));
    }
    return first < plan.operators_size() ? plan.operators(first).name() : cause.user;
  }

private:
  const plan::Plan &plan;
  std::map<std::string, std::vector<int>, std::less<>> indices;
};

} // namespace

std::vector<CollectiveFacts> collectivesOf(const plan::Plan &plan, const std::string &op) {
  auto note = std::find_if(plan.operators().begin(), plan.operators().end(),
                           [&](const plan::OperatorNote &note) { return note.name() == op; });
  const NamedOperators operators(plan);
  std::vector<CollectiveFacts> result;
  for (const plan::Program &program : plan.programs())
    for (const plan::Variant &variant : program.variants()) {
      std::map<int64_t, decltype(CollectiveFacts::groups)> groups; // of thousands of ranks they are large
      for (const plan::Step &step : variant.steps()) {
        if (!step.has_collective())
          continue;
        const plan::Collective &collective = step.collective();
        if (!op.empty() && note == plan.operators().end())
          continue;
        std::optional<Cause> cause = causeOf(collective, op.empty() ? nullptr : &*note);
        if (!cause)
          continue;
        auto &ranks = groups[collective.group()];
        if (!ranks)
          ranks = std::make_shared<const std::vector<std::vector<int64_t>>>(groupsOf(variant.groups(collective.group())));
        result.push_back({collectiveName(collective.kind()), step.name(), ranks, cause->bytes, phaseName(step.phase()), cause->user,
                          cause->reason, placeOf(plan, step.location()), collective.predicted_us(), operators.causing(*cause),
                          static_cast<size_t>(collective.also_size()) + 1, collective.bytes()});
      }
    }
  return result;
}

double hiddenUs(const plan::Plan &plan, const Findings &findings) {
  auto overlap = std::ranges::find(findings.savings, "overlap", &Saving::pass);
  return overlap == findings.savings.end() ? plan.prediction().hidden_us() : overlap->us;
}

std::string localShapeText(const plan::Plan &plan, const plan::OperatorNote::Value &value, int64_t rank) {
  std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
  std::string text = "(";
  for (int64_t size : shardingAt(plan, value.sharding()).localShape(shape, rank))
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

Json strategyJson(std::string text) {
  if (text.empty())
    return nullptr;
  std::string json;
  for (char c : text)
    json += c == '(' ? '[' : c == ')' ? ']' : c;
  // A one-element tuple may end in a comma.
  for (size_t at; (at = json.find(",]")) != std::string::npos;)
    json.erase(at, 1);
  Json parsed = Json::parse(json, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

static Json valueJson(const plan::Plan &plan, const plan::OperatorNote::Value &value) {
  std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
  Sharding sharding = shardingAt(plan, value.sharding());
  std::vector<int64_t> capacity = sharding.capacity(shape);
  return {{"name", value.name()}, {"shape", shape}, {"local_shape", capacity}, {"sharding", sharding.str()}};
}

static Json operatorJson(const plan::Plan &plan, const plan::OperatorNote &note) {
  Json operands = Json::array(), results = Json::array();
  for (const auto &value : note.operands())
    operands.push_back(valueJson(plan, value));
  for (const auto &value : note.results())
    results.push_back(valueJson(plan, value));
  return {{"name", note.name()},
          {"op", note.op()},
          {"scope", note.scope()},
          {"location", placeOf(plan, note.location())},
          {"in_strategy", strategyJson(note.in_strategy())},
          {"out_strategy", strategyJson(note.out_strategy())},
          {"origin", note.origin()},
          {"operands", operands},
          {"results", results}};
}

static Json knownBytes(double bytes) { return bytes > 0 ? Json(bytes) : Json(); }

static Json nextBestJson(const Findings &findings, const std::string &op) {
  auto found = findings.nextBest.find(op);
  if (found == findings.nextBest.end())
    return nullptr;
  return {{"in_strategy", strategyJson(found->second.inStrategy)}, {"step_us", found->second.us}, {"more_us", found->second.more},
          {"peak_bytes", knownBytes(found->second.bytes)}, {"instead_of_users", found->second.isInsteadOfUsers}};
}

static const char *surpriseName(passes::Surprise::Kind kind) {
  using Kind = passes::Surprise::Kind;
  return kind == Kind::Gather ? "gather" : kind == Kind::Imbalance ? "imbalance" : "replication";
}

static Json memoryJson(const plan::Plan &plan, const std::optional<MemoryAnswer> &answer) {
  Json memory = {{"parameter_bytes", plan.prediction().parameter_bytes()}, {"peak_bytes", plan.arena_bytes()}};
  if (!answer)
    return memory;
  memory["limit"] = {{"bytes", answer->limit},
                     {"fits", answer->fits},
                     {"peak_bytes_without", answer->bytesWithoutLimit},
                     {"step_us_without", answer->usWithoutLimit},
                     {"changes", Json::array()}};
  for (const MemoryChange &change : answer->changes)
    memory["limit"]["changes"].push_back(
        {{"kind", change.kind},
         {"repair", change.repair},
         {"fits", change.fits},
         {"estimated", change.isEstimated},
         {"peak_bytes", change.bytes},
         {"saved_bytes", static_cast<int64_t>(answer->bytes) - static_cast<int64_t>(change.bytes)},
         {"batch_us", change.us},
         {"more_us", change.us - answer->usWithoutLimit}});
  return memory;
}

static Json predictedJson(const std::vector<passes::PredictedCollective> &collectives) {
  Json list = Json::array();
  for (const passes::PredictedCollective &collective : collectives)
    list.push_back({{"kind", moveKindName(collective.kind)},
                    {"phase", collective.isBackward ? "backward" : "forward"},
                    {"groups", groupsAlong(collective.groupMatrix, collective.groupAxes)},
                    {"bytes", collective.bytes},
                    {"count", collective.count},
                    {"us", collective.us}});
  return list;
}

std::string reportJson(const plan::Plan &plan, const Findings &findings, const std::string &op) {
  const PhaseTimes &timing = findings.timing;
  Json report;
  report["network"] = plan.network();
  report["devices"] = plan.devices();
  report["mesh"] = nullptr;
  for (const plan::MeshAxis &axis : plan.mesh())
    report["mesh"][axis.name()] = axis.size();
  report["digest"] = plan.digest();
  report["parallel_mode"] = plan.parallel_mode();
  report["search_mode"] = plan.search_mode();
  report["machine"] = plan.machine();
  report["operators"] = Json::array();
  for (const plan::OperatorNote &note : plan.operators())
    if (op.empty() || note.name() == op)
      report["operators"].push_back(operatorJson(plan, note));
  report["collectives"] = Json::array();
  for (const CollectiveFacts &facts : collectivesOf(plan, op))
    report["collectives"].push_back({{"kind", facts.kind},
                                     {"name", facts.name},
                                     {"groups", *facts.groups},
                                     {"bytes", facts.bytes},
                                     {"phase", facts.phase},
                                     {"for", facts.forOperator},
                                     {"location", facts.location},
                                     {"reason", facts.reason},
                                     {"predicted_us", facts.predictedUs},
                                     {"tensors", facts.tensors},
                                     {"cause", facts.cause},
                                     {"next_best", nextBestJson(findings, facts.cause)}});
  report["memory"] = memoryJson(plan, findings.memory);
  const double hidden = hiddenUs(plan, findings);
  report["cost"] = {{"compute_us", plan.prediction().compute_us()},
                    {"communication_us", plan.prediction().communication_us()},
                    {"communication_bytes", plan.prediction().communication_bytes()},
                    {"step_us", plan.prediction().step_us()},
                    {"overlapped_us", timing.empty() && hidden == 0 ? Json() : Json(plan.prediction().step_us() - hidden)},
                    {"model_us", findings.modelled ? Json(findings.modelled->us) : Json()}};
  report["savings"] = timing.empty() ? Json() : Json::array();
  for (const Saving &saving : findings.savings)
    report["savings"].push_back({{"pass", saving.pass}, {"bytes", saving.bytes}, {"us", saving.us}});
  Json seconds;
  for (const auto &[phase, value] : timing)
    seconds[phase] = (seconds.contains(phase) ? seconds[phase].get<double>() : 0) + value;
  Json search = timing.empty() ? Json() : seconds["strategies"];
  report["search"] = {{"seconds", search}, {"optimal", nullptr}, {"gap", nullptr}, {"step_us", nullptr}};
  if (findings.search) {
    const bool isBound = findings.search->isOptimal || findings.search->boundUs > 0;
    report["search"].update({{"optimal", findings.search->isOptimal && !findings.search->isForPlan()},
                             {"gap", isBound ? Json(findings.search->gap()) : Json()},
                             {"taken", findings.search->isForPlan() ? "fastest plan" : "least"},
                             {"step_us", findings.search->us},
                             {"candidates", findings.search->candidates},
                             {"least_us", findings.search->leastUs},
                             {"least_optimal", findings.search->isOptimal},
                             {"on_mesh", findings.search->isOnMesh},
                             {"peak_bytes", knownBytes(findings.search->arenaBytes)},
                             {"collectives", Json::array()}});
    if (findings.search->candidates > 1)
      report["search"].update({{"planned_us", findings.search->repricedUs}, {"first_planned_us", findings.search->firstRepricedUs}});
    report["search"]["collectives"] = predictedJson(findings.search->collectives);
  }
  report["model_collectives"] = findings.modelled ? predictedJson(findings.modelled->collectives) : Json();
  if (!findings.alternatives.empty())
    report["alternatives"] = Json::array();
  for (const passes::Alternative &alternative : findings.alternatives)
    report["alternatives"].push_back({{"in_strategy", strategyJson(alternative.inStrategy)},
                                      {"step_us", alternative.us},
                                      {"least_us", alternative.leastUs},
                                      {"exact", alternative.isExact},
                                      {"peak_bytes", knownBytes(alternative.bytes)},
                                      {"chosen", alternative.isChosen},
                                      {"instead_of_users", alternative.isInsteadOfUsers}});
  report["surprises"] = timing.empty() ? Json() : Json::array();
  for (const passes::Surprise &surprise : findings.surprises)
    if (op.empty() || surprise.op == op)
      report["surprises"].push_back({{"kind", surpriseName(surprise.kind)},
                                     {"for", surprise.op},
                                     {"location", surprise.place},
                                     {"text", surprise.text},
                                     {"help", surprise.help},
                                     {"us", surprise.us}});
  report["timing"] = seconds;
  // Names may hold any bytes; those that are no UTF-8 show as U+FFFD.
  return jsonText(report);
}

} // namespace msc::compiler
