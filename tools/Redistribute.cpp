#include "tools/Redistribute.h"

#include "compiler/JsonText.h"
#include "compiler/Tables.h"
#include "dialects/dist/MeshNotation.h"
#include "dialects/dist/Reshard.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/machine/Presets.h"
#include "tools/CommandLine.h"
#include "tools/RedistributeCheck.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace msc::tools {

using Json = nlohmann::ordered_json;
using Steps = std::vector<dist::ReshardStep>;

namespace {

constexpr size_t shownGroups = 4;

Error usage(const std::string &message, const std::string &help) { return {ExitCode::Usage, message, help}; }

/// Numbers between separators, blanks and one pair of brackets around them: "16x32", "(2, 4)", "0,2,1,3".
Result<std::vector<int64_t>> numbersOf(const std::string &flag, const std::string &text, char separator,
                                       const std::string &example) {
  std::string inside;
  for (char c : text)
    if (c != ' ' && c != '(' && c != ')' && c != '[' && c != ']')
      inside += c;
  std::vector<int64_t> numbers;
  const char *at = inside.data(), *end = at + inside.size();
  while (at != end) {
    auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    bool last = next == end;
    if (error != std::errc() || (!last && (*next != separator || next + 1 == end)))
      return usage(flag + ": '" + text + "' is no list of numbers", "write it as " + example);
    at = last ? end : next + 1;
  }
  return numbers;
}

/// The question as asked.
struct Question {
  dist::Mesh mesh; ///< empty: both sides in MindSpore's form
  Sharding from, to;
  std::vector<int64_t> shape;
  std::string dtype;
  size_t elementBytes = 4;
  MachineModel machine;
  std::vector<int64_t> order; ///< the rank at each place of the mesh

  bool fromIsLayout = false, toIsLayout = false; ///< given in MindSpore's form

  /// As it was given; what lies between, over the mesh.
  std::string text(const Sharding &sharding) const {
    bool layout = (fromIsLayout && sharding == from) || (toIsLayout && sharding == to);
    if (mesh.empty() || layout)
      return layoutText(sharding);
    std::string text = dist::meshText(sharding, mesh);
    bool isOverMesh = text != sharding.str();
    return isOverMesh || sharding.isPartial() ? text : layoutText(sharding);
  }

  static std::string layoutText(const Sharding &sharding) {
    dist::TensorLayout layout = dist::tensorLayout(sharding);
    std::vector<std::string> map;
    for (const auto &dim : layout.tensorMap)
      map.push_back(dim.empty()       ? "-1"
                    : dim.size() == 1 ? std::to_string(dim[0])
                                      : fmt::format("({})", fmt::join(dim, ", ")));
    return fmt::format("({}) map ({})", fmt::join(layout.deviceMatrix, ", "), fmt::join(map, ", "));
  }

  int64_t devices() const { return from.devices(); }
  int64_t placeOf(int64_t rank) const {
    return rank < 0 || order.empty() ? rank : std::find(order.begin(), order.end(), rank) - order.begin();
  }
  int64_t rankAt(int64_t place) const { return order.empty() ? place : order[static_cast<size_t>(place)]; }
  int64_t bytes(int64_t elements) const { return elements * static_cast<int64_t>(elementBytes); }

  double us(const Steps &steps) const { return dist::reshardUs(steps, elementBytes, machine); }
  double us(const dist::ReshardStep &step) const { return us(Steps{step}); }

  /// The group of one rank, ascending; empty for a slice.
  std::vector<int64_t> group(const dist::ReshardStep &step, int64_t place) const {
    if (step.groupAxes.empty())
      return {};
    std::vector<int64_t> ranks = groupOf(step.groupMatrix, step.groupAxes, place);
    for (int64_t &member : ranks)
      member = rankAt(member);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  /// All groups of a step, each ascending by rank, in order of their first rank.
  std::vector<std::vector<int64_t>> groups(const dist::ReshardStep &step) const {
    std::set<std::vector<int64_t>> all;
    std::vector<char> isListed(static_cast<size_t>(devices()));
    for (int64_t place = 0; place < devices() && !step.groupAxes.empty(); ++place)
      if (!isListed[static_cast<size_t>(place)]) {
        for (int64_t member : groupOf(step.groupMatrix, step.groupAxes, place))
          isListed[static_cast<size_t>(member)] = 1;
        all.insert(group(step, place));
      }
    return {all.begin(), all.end()};
  }

  int64_t lowerBound() const { return dist::leastReceived(from, to, shape); }
};

Result<size_t> bytesOfType(const std::string &dtype) {
  static const std::pair<const char *, size_t> types[] = {{"f64", 8}, {"i64", 8},  {"f32", 4}, {"i32", 4},
                                                          {"f16", 2}, {"bf16", 2}, {"bool", 1}};
  for (const auto &[name, bytes] : types)
    if (dtype == name)
      return bytes;
  return usage("--dtype: unknown type '" + dtype + "'", "use f64, f32, f16, bf16, i64, i32 or bool");
}

Result<Sharding> layoutSide(const std::string &side, const RedistributeFlags::Side &flags, size_t rank) {
  auto matrix = numbersOf("--" + side + "-device-matrix", flags.deviceMatrix, ',', "(2, 4)");
  auto map = numbersOf("--" + side + "-tensor-map", flags.tensorMap, ',', "(1, 0)");
  if (!matrix || !map)
    return !matrix ? matrix.error() : map.error();
  auto axes = static_cast<int64_t>(matrix->size());
  if (std::any_of(matrix->begin(), matrix->end(), [](int64_t size) { return size < 1; }))
    return usage("--" + side + "-device-matrix: '" + flags.deviceMatrix + "' has an axis below 1", "write it as (2, 4)");
  if (map->size() != rank)
    return usage(fmt::format("--{}-tensor-map: '{}' has {} {}, the shape has {}", side, flags.tensorMap,
                             map->size(), map->size() == 1 ? "dimension" : "dimensions", rank),
                 "one number per dimension: the axis that splits it, counted from the right, or -1");
  std::set<int64_t> used;
  for (int64_t axis : *map) {
    if (axis < -1 || axis >= axes)
      return usage(fmt::format("--{}-tensor-map: the device matrix {} has no axis {}", side, flags.deviceMatrix, axis),
                   fmt::format("axes count from the right, 0 to {}, or -1", axes - 1));
    if (axis >= 0 && !used.insert(axis).second)
      return usage(fmt::format("--{}-tensor-map: axis {} splits two dimensions", side, axis),
                   "an axis splits one dimension");
  }
  return dist::shardingFromLayout(*matrix, *map);
}

Result<Sharding> readSide(const std::string &side, const RedistributeFlags::Side &flags, const dist::Mesh &mesh,
                          size_t rank) {
  bool layout = !flags.deviceMatrix.empty() || !flags.tensorMap.empty();
  if (layout == !flags.axes.empty())
    return usage(layout ? "--" + side + " and --" + side + "-device-matrix are given at once" : "--" + side + " is missing",
                 "give --" + side + " '[x, y]' with --mesh, or --" + side + "-device-matrix '(2, 4)' with --" + side +
                     "-tensor-map '(1, 0)'");
  if (layout && (flags.deviceMatrix.empty() || flags.tensorMap.empty()))
    return usage("--" + side + "-device-matrix and --" + side + "-tensor-map go together", "give both");
  if (layout)
    return layoutSide(side, flags, rank);
  if (mesh.empty())
    return usage("--" + side + " names axes, but there is no --mesh", "add --mesh x=2,y=4");
  Result<Sharding> sharding = dist::parseMeshSharding(flags.axes, mesh, rank);
  if (!sharding)
    return usage("--" + side + ": " + sharding.error().message, sharding.error().help);
  return sharding;
}

Status checkSides(const RedistributeFlags &flags, const Question &question) {
  if (question.from.devices() != question.to.devices())
    return usage(fmt::format("the source is on {} devices, the target on {}", question.from.devices(),
                             question.to.devices()),
                 "both sides have to cover the same devices");
  if (flags.devices != 0 && flags.devices != question.devices())
    return usage(fmt::format("--devices is {}, the shardings are on {}", flags.devices, question.devices()),
                 "leave out --devices");
  // Partial axes of the target are partial in the source, over whatever matrix fits both.
  if (question.to.isPartial()) {
    auto common = dist::overCommonMatrix(question.from, question.to);
    bool kept = common.has_value();
    if (common)
      for (const PartialAxis &p : common->second.partial)
        kept &= std::find(common->first.partial.begin(), common->first.partial.end(), p) != common->first.partial.end();
    if (!kept)
      return usage("the target is partial where the source is not", "only an operator makes a value partial");
    // Kinds do not commute: what is completed lies behind what is kept, or is of the same kind.
    for (const PartialAxis &p : common->first.partial)
      for (const PartialAxis &k : common->second.partial)
        if (p.axis < k.axis && p.kind != k.kind &&
            std::find(common->second.partial.begin(), common->second.partial.end(), p) == common->second.partial.end())
          return usage(fmt::format("'{}' cannot be completed before '{}'", reduceKindName(p.kind), reduceKindName(k.kind)),
                       "kinds are completed one after the other, the most minor axis first");
  }
  return Status::ok();
}

Result<Question> readQuestion(const RedistributeFlags &flags) {
  Question question;
  auto shape = numbersOf("--shape", flags.shape, 'x', "16x32");
  if (!shape)
    return shape.error();
  question.shape = *shape;
  __int128 elements = 1;
  for (int64_t size : question.shape) {
    if (size < 0)
      return usage("--shape: '" + flags.shape + "' has a negative size", "write it as 16x32");
    elements *= size;
    if (elements > (int64_t{1} << 48))
      return usage("--shape: '" + flags.shape + "' has more than 2^48 elements", "choose a smaller shape");
  }
  Result<size_t> bytes = bytesOfType(flags.dtype);
  if (!bytes)
    return bytes.error();
  question.dtype = flags.dtype;
  question.elementBytes = *bytes;
  if (!flags.mesh.empty()) {
    Result<dist::Mesh> mesh = dist::parseMesh(flags.mesh);
    if (!mesh)
      return usage("--mesh: " + mesh.error().message, mesh.error().help);
    question.mesh = *mesh;
    __int128 devices = 1;
    for (const dist::MeshAxis &axis : *mesh)
      if ((devices *= axis.size) > (int64_t{1} << 20))
        return usage("--mesh: " + flags.mesh + " has more than 2^20 devices", "choose a smaller mesh");
  }
  Result<Sharding> from = readSide("from", flags.from, question.mesh, question.shape.size());
  Result<Sharding> to = from ? readSide("to", flags.to, question.mesh, question.shape.size()) : from;
  if (!to)
    return to.error();
  question.from = *from;
  question.to = *to;
  question.fromIsLayout = !flags.from.deviceMatrix.empty();
  question.toIsLayout = !flags.to.deviceMatrix.empty();
  if (Status status = checkSides(flags, question); !status)
    return status.error();
  Result<MachineModel> machine = readMachine(flags.machine);
  if (!machine)
    return machine.error();
  question.machine = machine->amongFirst(question.devices());
  if (!flags.deviceOrder.empty()) {
    auto order = numbersOf("--device-order", flags.deviceOrder, ',', "0,2,1,3");
    if (!order)
      return order.error();
    std::vector<int64_t> sorted = *order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < question.devices(); ++i)
      if (static_cast<int64_t>(sorted.size()) != question.devices() || sorted[static_cast<size_t>(i)] != i)
        return usage("--device-order is no order of " + std::to_string(question.devices()) + " ranks",
                     "name each rank from 0 to " + std::to_string(question.devices() - 1) + " once");
    question.order = *order;
  }
  if (flags.rank >= question.devices())
    return usage(fmt::format("--rank {} is none of {} ranks", flags.rank, question.devices()), "ranks count from 0");
  if (Status status = flags.verify ? mayVerify(question.from, question.shape) : Status::ok(); !status)
    return status.error();
  return question;
}

/// Another way, which lost.
struct Alternative {
  std::string name;
  Steps steps;
};

bool areAlike(const Steps &a, const Steps &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const dist::ReshardStep &x, const dist::ReshardStep &y) {
    return x.kind == y.kind && x.groupMatrix == y.groupMatrix && x.groupAxes == y.groupAxes && dist::samePlacement(x.after, y.after);
  });
}

/// The ways that take longer than `winner`, each once.
std::vector<Alternative> losersAgainst(const Steps &winner, const Question &q) {
  std::vector<Alternative> list;
  auto add = [&](const std::string &name, Steps steps) {
    bool isKnown = std::any_of(list.begin(), list.end(), [&](const Alternative &other) { return areAlike(other.steps, steps); });
    if (!isKnown && q.us(steps) > q.us(winner) * (1 + 1e-9))
      list.push_back({name, std::move(steps)});
  };
  auto plan = [&](const Sharding &from, const dist::ReshardOptions &options) {
    return dist::planReshard(from, q.to, q.shape, q.elementBytes, q.machine, options);
  };
  if (q.from.isPartial() && !q.to.isPartial()) {
    Steps steps = dist::planCompletion(q.from.canonical(), q.shape);
    Steps rest = plan(steps.back().after, {});
    steps.insert(steps.end(), rest.begin(), rest.end());
    add("AllReduce first", std::move(steps));
  } else if (dist::receivedElements(q.from, q.to, q.shape) > 0) {
    add("one direct exchange", {dist::exchangeAmongAll(q.from, q.to, q.shape)});
  }
  add("without direct exchange", plan(q.from, {.exchange = false}));
  if (!q.to.isPartial())
    add("gather all, then slice", dist::gatherAndSlice(q.from, q.to, q.shape));
  return list;
}

std::string groupsText(const std::vector<std::vector<int64_t>> &groups) {
  if (groups.empty())
    return "";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(groups.size(), shownGroups); ++i) {
    const std::vector<int64_t> &group = groups[i];
    shown.push_back(group.size() <= 16 ? fmt::format("{}", fmt::join(group, "-"))
                                       : fmt::format("{}-{}-...-{}", group[0], group[1], group.back()));
  }
  std::string text = fmt::format("{} of {}: {}", groups.size(), groups[0].size(), fmt::join(shown, ", "));
  return text + (groups.size() > shownGroups ? ", ..." : "");
}

std::string boxText(const Box &box) {
  std::vector<std::string> ranges;
  for (const Range &range : box)
    ranges.push_back(fmt::format("{}:{}", range.begin, range.end));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

/// Rows of equal columns.
void printTable(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  for (const auto &row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i)
      line += fmt::format(" {:<{}} ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void printSteps(const Question &q, const Steps &steps, int64_t rank) {
  std::vector<std::vector<std::string>> rows{{"step", "sharding after", "received", "us", "groups"}};
  if (rank >= 0) {
    rows[0].back() = "its group";
    rows[0].insert(rows[0].begin() + 2, "elements of rank " + std::to_string(rank));
  }
  int64_t place = q.placeOf(rank);
  for (const dist::ReshardStep &step : steps) {
    bool moves = step.kind != MoveKind::Slice;
    std::vector<std::string> row{moveKindName(step.kind), q.text(step.after),
                                 moves ? compiler::bytesText(static_cast<uint64_t>(q.bytes(step.receivedElements))) : "-",
                                 fmt::format("{:.1f}", q.us(step)),
                                 rank >= 0 ? fmt::format("{}", fmt::join(q.group(step, place), "-")) : groupsText(q.groups(step))};
    if (rank >= 0)
      row.insert(row.begin() + 2, boxText(step.after.localBox(q.shape, place)));
    rows.push_back(std::move(row));
  }
  printTable(rows);
}

void printText(const Question &q, const Steps &steps, const RedistributeFlags &flags) {
  fmt::print("{} -> {}: ({}) {} on {} ranks, machine {} ({}{})\n\n", q.text(q.from), q.text(q.to), fmt::join(q.shape, ", "),
             q.dtype, q.devices(), q.machine.name, q.machine.source,
             q.machine.measuredRanks != 0 ? fmt::format(" on {} ranks", q.machine.measuredRanks) : "");
  if (steps.empty()) {
    fmt::print("nothing moves: both place all elements alike\n");
    return;
  }
  printSteps(q, steps, flags.rank);
  int64_t received = dist::reshardElements(steps);
  fmt::print("\neach rank receives at most {} in all, lower bound {}; {:.1f} us predicted\n",
             compiler::bytesText(static_cast<uint64_t>(q.bytes(received))),
             compiler::bytesText(static_cast<uint64_t>(q.bytes(q.lowerBound()))), q.us(steps));
  if (!flags.all)
    return;
  std::vector<Alternative> losers = losersAgainst(steps, q);
  if (losers.empty())
    fmt::print("\nno other way takes longer\n");
  for (const Alternative &other : losers) {
    const double us = q.us(other.steps), least = q.us(steps);
    fmt::print("\n{}: {} received, {:.1f} us{}\n", other.name,
               compiler::bytesText(static_cast<uint64_t>(q.bytes(dist::reshardElements(other.steps)))), us,
               least > 0 ? fmt::format(", {:.2f} times as long", us / least) : "");
    printSteps(q, other.steps, -1);
  }
}

/// Microseconds for people: what double arithmetic leaves behind the sixth digit after the point is dropped.
double shownUs(double us) { return std::round(us * 1e6) / 1e6; }

Json stepsJson(const Question &q, const Steps &steps, int64_t rank) {
  int64_t place = q.placeOf(rank);
  Json list = Json::array();
  for (const dist::ReshardStep &step : steps) {
    Json json{{"kind", moveKindName(step.kind)},
              {"sharding", q.text(step.after)},
              {"groups", q.groups(step)},
              {"received_elements", step.kind == MoveKind::Slice ? 0 : step.receivedElements},
              {"predicted_us", shownUs(q.us(step))}};
    if (rank >= 0) {
      Json box = Json::array();
      for (const Range &range : step.after.localBox(q.shape, place))
        box.push_back({range.begin, range.end});
      json["rank_slice"] = box;
      json["rank_group"] = q.group(step, place);
    }
    list.push_back(std::move(json));
  }
  return list;
}

void printJson(const Question &q, const Steps &steps, const RedistributeFlags &flags) {
  Json json{{"from", q.text(q.from)},
            {"to", q.text(q.to)},
            {"shape", q.shape},
            {"dtype", q.dtype},
            {"devices", q.devices()},
            {"machine", q.machine.name},
            {"steps", stepsJson(q, steps, flags.rank)},
            {"received_elements", dist::reshardElements(steps)},
            {"received_bytes", q.bytes(dist::reshardElements(steps))},
            {"lower_bound_elements", q.lowerBound()},
            {"predicted_us", shownUs(q.us(steps))}};
  if (flags.all) {
    json["alternatives"] = Json::array();
    for (const Alternative &other : losersAgainst(steps, q))
      json["alternatives"].push_back({{"name", other.name},
                                      {"steps", stepsJson(q, other.steps, -1)},
                                      {"received_elements", dist::reshardElements(other.steps)},
                                      {"received_bytes", q.bytes(dist::reshardElements(other.steps))},
                                      {"predicted_us", shownUs(q.us(other.steps))}});
  }
  fmt::print("{}", compiler::jsonText(json));
}

int fail(const Error &error) {
  printError("msc", error.message, error.help);
  return static_cast<int>(error.code);
}

} // namespace

void RedistributeFlags::addTo(CLI::App &app) {
  app.add_option("--mesh", mesh, "named axes of the devices, most major first: x=2,y=4");
  app.add_option("--shape", shape, "sizes of the tensor: 16x32")->required();
  app.add_option("--dtype", dtype, "element type (default: f32)");
  app.add_option("--from", from.axes, "sharding at the start: '[x, y.z, -] +{w}', axes per dimension, partial sums; '+{v} +max{w}': sums of maxima, if v is the more major axis");
  app.add_option("--to", to.axes, "sharding at the end");
  app.add_option("--from-device-matrix", from.deviceMatrix, "MindSpore's form of the start: '(2, 4)'");
  app.add_option("--from-tensor-map", from.tensorMap, "per dimension its axis counted from the right, or -1: '(1, 0)'");
  app.add_option("--to-device-matrix", to.deviceMatrix, "MindSpore's form of the end");
  app.add_option("--to-tensor-map", to.tensorMap, "MindSpore's form of the end");
  takesNumber(*app.add_option("--devices", devices, "number of devices, if it is to be checked"), 1, int64_t{1} << 20);
  app.add_option("--device-order", deviceOrder, "the rank at each place of the mesh: 0,2,1,3");
  takesNumber(*app.add_option("--rank", rank, "shows which elements this rank holds after each step, and its groups"), 0, int64_t{1} << 20);
  app.add_option("--machine", machine, fmt::format("{}, or a machine file (default: cpu-local)", presetWords()));
  app.add_flag("--all", all, "also shows the other ways that lost, and by how much");
  app.add_flag("--json", json, "the answer as JSON");
  app.add_flag("--verify", verify, "runs the steps on data, every rank a thread, and compares with index arithmetic");
}

int runRedistribute(const RedistributeFlags &flags) {
  Result<Question> question = readQuestion(flags);
  if (!question)
    return fail(question.error());
  Steps steps =
      dist::planReshard(question->from, question->to, question->shape, question->elementBytes, question->machine);
  flags.json ? printJson(*question, steps, flags) : printText(*question, steps, flags);
  if (!flags.verify)
    return 0;
  if (Status status = verifyRedistribution(question->from, question->to, question->shape, steps); !status)
    return fail(status.error());
  if (!flags.json)
    fmt::print("verified on {} threads\n", question->devices());
  return 0;
}

} // namespace msc::tools
