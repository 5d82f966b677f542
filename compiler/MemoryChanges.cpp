#include "compiler/MemoryChanges.h"

#include "compiler/Tables.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/machine/Presets.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace msc::compiler {
namespace {

/// A change that has not been tried yet, or has.
struct Candidate {
  MemoryChange change;
  CompileOptions options;
  uint64_t parts = 1;            ///< into which it cuts the batch
  std::set<std::string> repairs; ///< of the changes that it consists of
};

/// Puts a single change on top of others.
using Change = std::function<Candidate(const Candidate &on)>;

/// A single change that was tried, and what becomes of memory and time with it.
struct Single {
  std::string kind, repair;
  Change change;
  double bytes = 1, us = 1; ///< shares
};

void override(CompileOptions &options, const std::string &name, const std::string &value) {
  std::erase_if(options.context, [&](const auto &option) { return option.first == name; });
  options.context.emplace_back(name, value);
}

/// Neither types nor devices are others.
bool isPlain(const MemoryChange &change) {
  return change.kind.find("precision") == std::string::npos && change.kind.find("devices") == std::string::npos;
}

class Trials {
public:
  Trials(const CompileOptions &asked, const WithinLimit &now)
      : start(asked), facts(now.outcome.facts), isOfLarge(isLarge(now.outcome.plan)), bytesOfPlan(now.outcome.plan.arena_bytes()), bytesNow(bytesOfPlan),
        usNow(now.outcome.plan.prediction().step_us()) {
    start.isTrial = true;
    start.estimates = isOfLarge;
    start.closesGap = !isOfLarge;
    start.searchOperations = operationsOfTrial;
    if (const auto &search = now.outcome.findings.search; isOfLarge && search && search->arenaBytes > 0) {
      bytesNow = static_cast<uint64_t>(search->arenaBytes);
      usNow = search->us;
    }
    start.explains = start.strict = false;
    start.searchBytes = 0;
    start.saveGraphsRanks.clear();
    override(start, "save_graphs", "0");
  }

  std::vector<MemoryChange> run() {
    Candidate as{{}, start};
    trySearch(as);
    tryRecompute(as);
    tryPrecision(as);
    tryParts(as);
    if (std::ranges::none_of(tried, fits))
      tryWithoutOwn(as);
    tryDevices(as);
    if (std::ranges::none_of(tried, fits)) {
      growsMachine = true;
      tryDevices(as);
    }
    if (std::ranges::none_of(tried, fits))
      trySeveral();
    for (bool staysPlain : {false, true})
      tryTogether(staysPlain);
    sort();
    compileNamed();
    std::vector<MemoryChange> changes;
    std::set<std::string> listed; // what is tried on top of another change may have been tried alone
    for (Candidate &candidate : tried)
      if (const MemoryChange &change = candidate.change;
          (change.fits || change.bytes < (change.isEstimated ? bytesNow : bytesOfPlan)) && listed.insert(change.repair).second)
        changes.push_back(std::move(candidate.change));
    return changes;
  }

private:
  static constexpr int64_t operationsOfTrial = int64_t(1) << 31; ///< of a search; some seconds
  static constexpr size_t mostCalls = 8;      ///< of cells that are tried one by one
  static constexpr uint64_t mostParts = 64;   ///< of a batch
  static constexpr uint64_t mostTimes = 16;   ///< as many devices
  static constexpr size_t mostTogether = 6;   ///< combinations that are tried on top of single ones, and so many that leave devices and types
  static constexpr size_t mostClose = 3;      ///< plans of what was estimated to need a little too much
  static constexpr uint64_t hopeless = 2;
  static constexpr double closeToLimit = 1.15;
  static constexpr double oneMore = 1.25;
  static constexpr double surpriseUs = 1.5, surpriseBytes = 1.25; ///< combinations may be so much better than is expected

  CompileOptions start;
  const NetworkFacts &facts;
  const bool isOfLarge;         ///< of a large network: trials are estimates
  const uint64_t bytesOfPlan;   ///< without a change
  bool growsMachine = false;    ///< it is a preset, and may have more nodes
  uint64_t bytesNow;            ///< what is needed without a change, in the measure of trials
  double usNow = 0;             ///< and what a step takes, in that measure
  std::vector<Single> singles;  ///< of those that were tried
  std::vector<Candidate> tried; ///< that compile
  std::set<std::set<std::string>> known; ///< combinations, whether they compile or not
  size_t closeOnes = 0;         ///< of which a plan was made as they nearly fit

  static bool fits(const Candidate &candidate) { return candidate.change.fits; }

  void sort() {
    std::ranges::sort(tried, {}, [](const Candidate &candidate) {
      const MemoryChange &change = candidate.change;
      return std::tuple(!change.fits, change.us, change.bytes, change.repair);
    });
  }

  static void wantPlan(Candidate &candidate) {
    candidate.options.estimates = false;
    candidate.options.closesGap = true;
  }

  /// A plan instead of the estimate that was tried last; null: it does not compile.
  const Candidate *compileLast() {
    wantPlan(tried.back());
    if (isSound(tried.back()))
      return &tried.back();
    tried.pop_back();
    return nullptr;
  }

  /// Estimates that a message is about to name give way to plans, until it names none. Where nothing is enough: the least of them.
  void compileNamed() {
    bool isLeastCompiled = false;
    for (Candidate *next = nextNamed(); next; next = nextNamed()) {
      if (!next->change.fits && std::exchange(isLeastCompiled, true))
        return;
      wantPlan(*next);
      if (!isSound(*next))
        tried.erase(tried.begin() + (next - tried.data()));
      sort();
    }
  }

  Candidate *nextNamed() {
    auto isFitting = [](const Candidate &candidate) { return candidate.change.fits && isPlain(candidate.change); };
    auto least = std::ranges::min_element(tried, {}, [](const Candidate &candidate) { return candidate.change.bytes; });
    if (least == tried.end() || !tried.front().change.fits)
      return least != tried.end() && least->change.isEstimated ? &*least : nullptr;
    auto plain = std::ranges::find_if(tried, isFitting);
    for (auto named : {tried.begin(), plain})
      if (named != tried.end() && named->change.isEstimated)
        return &*named;
    return nextClose(tried.front().change.us, plain == tried.end() ? std::numeric_limits<double>::infinity() : plain->change.us);
  }

  /// The fastest of those that take less than what is named and may fit, as estimates are a little too high or too low.
  Candidate *nextClose(double us, double usOfPlain) {
    auto isClose = [&](const Candidate &candidate) {
      const MemoryChange &change = candidate.change;
      return change.isEstimated && !change.fits && static_cast<double>(change.bytes) <= closeToLimit * static_cast<double>(start.memoryLimit) &&
             change.us < (isPlain(change) ? usOfPlain : us);
    };
    auto close = std::ranges::find_if(tried, isClose);
    return close == tried.end() || closeOnes++ == mostClose ? nullptr : &*close;
  }

  /// What comes of it, by plans or estimates.
  bool isSound(Candidate &candidate) const {
    Result<WithinLimit> within = findWithin(candidate.options, isOfLarge);
    if (!within || !isSameNetwork(within->outcome.facts, candidate.parts))
      return false;
    candidate.change.bytes = within->outcome.plan.arena_bytes();
    candidate.change.us = within->outcome.plan.prediction().step_us() * static_cast<double>(candidate.parts);
    candidate.change.fits = within->fits;
    candidate.change.isEstimated = within->outcome.plan.programs_size() == 0;
    return true;
  }

  /// The last one, if it was sound; of cells that are computed again, if that saves something.
  const Candidate *attempt(const Candidate &on, const Change &change) {
    Candidate candidate = change(on);
    if (!isSound(candidate))
      return nullptr;
    const MemoryChange &made = candidate.change;
    if (made.kind == "recompute" && made.bytes >= bytesNow)
      return nullptr;
    if (on.repairs.empty())
      singles.push_back({made.kind, made.repair, change, static_cast<double>(made.bytes) / static_cast<double>(bytesNow), made.us / usNow});
    tried.push_back(std::move(candidate));
    return &tried.back();
  }

  /// With a batch that is so many times smaller.
  bool isSameNetwork(const NetworkFacts &other, uint64_t parts) const {
    if (parts == 1)
      return true;
    std::vector<std::vector<int64_t>> whole = other.inputs;
    for (std::vector<int64_t> &shape : whole)
      if (!shape.empty())
        shape.front() *= static_cast<int64_t>(parts);
    return whole == facts.inputs && other.parameters == facts.parameters;
  }

  /// `what` on top of another change.
  static Candidate with(Candidate candidate, const std::string &kind, const std::string &repair) {
    MemoryChange &change = candidate.change;
    change.kind += (change.kind.empty() ? "" : " + ") + kind;
    change.repair += (change.repair.empty() ? "" : "; and ") + repair;
    candidate.repairs.insert(repair);
    return candidate;
  }

  void trySearch(const Candidate &on) {
    bool isAuto = facts.parallelMode == "auto_parallel";
    bool searches = isAuto && (facts.searchMode == "optimal" || facts.searchMode == "dynamic_programming");
    if (searches || facts.devices == 1 || facts.parallelMode == "hybrid_parallel")
      return;
    attempt(on, [isAuto](const Candidate &before) {
      Candidate candidate = with(before, "search", isAuto ? "pass --search-mode optimal" : "pass --parallel-mode auto_parallel --search-mode optimal");
      override(candidate.options, "parallel_mode", "auto_parallel");
      override(candidate.options, "search_mode", "optimal");
      return candidate;
    });
  }

  /// Strategies of the user hold whatever is tried. Without them, where nothing else is enough.
  void tryWithoutOwn(const Candidate &on) {
    const bool mayHave = facts.parallelMode == "auto_parallel" || facts.parallelMode == "semi_auto_parallel";
    if (!mayHave || facts.devices == 1 || (facts.strategies.empty() && start.strategyFile.empty()))
      return;
    attempt(on, [this](const Candidate &before) {
      Candidate candidate = with(before, "strategies", withoutOwnText());
      candidate.options.changes.freesStrategies = true;
      candidate.options.strategyFile.clear();
      override(candidate.options, "parallel_mode", "auto_parallel");
      override(candidate.options, "search_mode", "optimal");
      return candidate;
    });
  }

  std::string withoutOwnText() const {
    constexpr size_t most = 3;
    std::string text;
    for (size_t i = 0; i < std::min(most, facts.strategies.size()); ++i)
      text += (i == 0 ? "leave out the strategies of '" : ", '") + facts.strategies[i].name + "' (" + facts.strategies[i].line + ")";
    if (facts.strategies.size() > most)
      text += " and " + std::to_string(facts.strategies.size() - most) + " more";
    if (!start.strategyFile.empty())
      text += (text.empty() ? "leave out" : " and") + std::string(" --strategy-load ") + start.strategyFile;
    if (facts.parallelMode != "auto_parallel")
      return text + ", and pass --parallel-mode auto_parallel --search-mode optimal";
    return facts.searchMode == "optimal" ? text : text + ", and pass --search-mode optimal";
  }

  static Change recomputing(const std::vector<NetworkFacts::Call> &calls) {
    return [calls](const Candidate &on) {
      std::string list;
      Candidate candidate = on;
      for (const NetworkFacts::Call &call : calls) {
        list += (list.empty() ? "'" : ", '") + call.name + "' (" + call.line + ")";
        candidate.options.changes.recompute.push_back(call.place);
      }
      return with(std::move(candidate), "recompute", "write {recompute: true} behind " + list);
    };
  }

  void tryRecompute(const Candidate &on) {
    if (!facts.trains)
      return;
    const std::vector<NetworkFacts::Call> outermost = outermostCalls();
    const std::vector<NetworkFacts::Call> &each = facts.calls.size() <= mostCalls ? facts.calls : outermost;
    std::vector<NetworkFacts::Call> saving; // on their own
    for (const NetworkFacts::Call &call : each)
      if (each.size() <= mostCalls && attempt(on, recomputing({call})) &&
          std::ranges::any_of(outermost, [&](const auto &other) { return other.name == call.name; }))
        saving.push_back(call);
    const Candidate *together = saving.size() > 1 ? attempt(on, recomputing(saving)) : nullptr;
    if (outermost.size() < 2 || outermost.size() == saving.size())
      return;
    // Cells that save nothing alone may do so together; else they are not named.
    uint64_t least = together ? together->change.bytes : bytesNow;
    for (const Candidate &candidate : tried)
      least = std::min(least, candidate.change.kind == "recompute" ? candidate.change.bytes : least);
    if (const Candidate *all = attempt(on, recomputing(outermost)); all && all->change.bytes >= least) {
      if (on.repairs.empty())
        singles.pop_back();
      tried.pop_back();
    }
  }

  static Candidate narrow(const Candidate &on) {
    Candidate candidate = with(on, "precision", "write amp_level: O2, amp_dtype: bf16 in the train block");
    candidate.options.changes.ampLevel = "O2";
    candidate.options.changes.ampType = "bf16";
    return candidate;
  }

  void tryPrecision(const Candidate &on) {
    if (facts.trains && facts.ampLevel == "O0")
      attempt(on, narrow);
  }

  Candidate inParts(const Candidate &on, const std::string &name, int64_t value, uint64_t parts) const {
    std::string size = std::to_string(value / static_cast<int64_t>(parts)), steps = std::to_string(facts.accumulateSteps * parts);
    Candidate candidate = with(on, "micro_batches", "pass -D " + name + "=" + size + " and write accumulate_steps: " + steps + " in the train block");
    std::erase_if(candidate.options.defines, [&](const auto &define) { return define.first == name; });
    candidate.options.defines.emplace_back(name, size);
    candidate.options.changes.accumulateSteps = facts.accumulateSteps * parts;
    candidate.parts = parts;
    return candidate;
  }

  /// Consts that may be the batch: all inputs have a multiple of it.
  bool mayBeBatch(int64_t value) const {
    return value > 1 && !facts.inputs.empty() &&
           std::ranges::all_of(facts.inputs, [&](const auto &shape) { return !shape.empty() && shape.front() % value == 0; });
  }

  /// As few parts as are enough.
  void tryParts(const Candidate &on) {
    if (!facts.trains)
      return;
    for (const auto &known : facts.consts)
      tryMore(2, [&, name = known.first, value = known.second](uint64_t parts) {
        const bool isCut = parts <= mostParts && mayBeBatch(value) && value % static_cast<int64_t>(parts) == 0;
        auto cut = [this, name, value, parts](const Candidate &before) { return inParts(before, name, value, parts); };
        return isCut ? attempt(on, cut) : static_cast<const Candidate *>(nullptr);
      });
  }

  Candidate onDevices(const Candidate &on, const std::optional<std::string> &larger, int64_t devices) const {
    Candidate candidate = with(on, "devices", "pass " + (larger ? "--machine " + *larger + " " : "") + "--devices " + std::to_string(devices));
    candidate.options.machine = larger.value_or(start.machine);
    candidate.options.devices = devices;
    std::erase_if(candidate.options.context, [](const auto &option) { return option.first == "device_num"; });
    return candidate;
  }

  /// As few devices as are enough. Without another change, what the machine has is tried before it grows.
  void tryDevices(const Candidate &on) {
    Result<MachineModel> machine = readMachine(start.machine);
    const int64_t has = machine && machine->devices > 0 ? machine->devices : std::numeric_limits<int64_t>::max();
    uint64_t first = 2;
    while (growsMachine && on.change.kind.empty() && facts.devices * static_cast<int64_t>(first) <= has && first <= mostTimes)
      first *= 2;
    bool isHopeless = false; // so much too large that all devices that may be tried do not make up for it, even if each takes its share
    tryMore(first, [&](uint64_t times) -> const Candidate * {
      const int64_t devices = facts.devices * static_cast<int64_t>(times);
      const bool isTooMany = devices > has;
      const std::optional<std::string> larger = isTooMany && growsMachine ? presetOfDevices(start.machine, devices) : std::nullopt;
      if (times > mostTimes || (isTooMany && !larger) || isHopeless)
        return nullptr;
      const Candidate *made = attempt(on, [this, larger, devices](const Candidate &before) { return onDevices(before, larger, devices); });
      isHopeless = made && made->change.bytes * times > hopeless * start.memoryLimit * mostTimes;
      return made;
    });
  }

  /// So many times as much, then twice as many, until it is enough, of which a plan is made, or not possible, or saves no more.
  void tryMore(uint64_t first, llvm::function_ref<const Candidate *(uint64_t times)> tryOne) {
    uint64_t before = std::numeric_limits<uint64_t>::max();
    for (uint64_t times = first;; times *= 2) {
      const Candidate *last = tryOne(times);
      if (last && last->change.fits && last->change.isEstimated)
        last = compileLast();
      if (!last || last->change.fits || static_cast<double>(last->change.bytes) > 0.97 * static_cast<double>(before))
        return;
      before = last->change.bytes;
    }
  }

  /// One on top of the other until it is enough: what saves most by being computed again or without strategies of the user, narrow types,
  /// smaller batches, more devices; those that save nothing there are left out.
  void trySeveral() {
    Candidate on{{}, start};
    for (const char *kind : {"recompute", "strategies"})
      for (const Candidate &candidate : tried)
        if (candidate.change.kind == kind && candidate.change.bytes < (on.change.kind.empty() ? bytesNow : on.change.bytes))
          on = candidate;
    for (auto tryMore : {&Trials::tryPrecision, &Trials::tryParts, &Trials::tryDevices}) {
      const size_t before = tried.size();
      if (on.change.kind.empty() && tryMore == &Trials::tryPrecision) {
        if (facts.trains && facts.ampLevel == "O0")
          on = narrow(on); // has been tried on its own
        continue;
      }
      (this->*tryMore)(on);
      const auto added = std::ranges::subrange(tried.begin() + before, tried.end());
      const auto least = std::ranges::min_element(added, {}, [](const Candidate &candidate) { return candidate.change.bytes; });
      if (least == added.end() || (!on.change.kind.empty() && least->change.bytes >= on.change.bytes))
        continue;
      on = *least;
      if (on.change.fits)
        return;
    }
  }

  //===-- several at once, where one is enough ----------------------------===//

  /// At most one single change of each kind, and what it is expected to need and to take.
  struct Combination {
    std::vector<const Single *> of;
    std::set<std::string> repairs;
    double bytes = 0, us = 0;
  };

  /// Combinations that may be faster than what fits so far, the fastest first.
  void tryTogether(bool staysPlain) {
    for (size_t i = 0; i < mostTogether; ++i) {
      std::optional<Combination> next = nextTogether(staysPlain);
      if (!next)
        return;
      Candidate candidate{{}, start};
      for (const Single *single : next->of)
        candidate = single->change(candidate);
      known.insert(next->repairs);
      if (isSound(candidate))
        tried.push_back(std::move(candidate));
    }
  }

  /// The fastest first; one more change counts as some more time.
  static double order(const Combination &combination) { return combination.us * std::pow(oneMore, combination.of.size()); }

  std::optional<Combination> nextTogether(bool staysPlain) {
    for (const Candidate &candidate : tried)
      known.insert(candidate.repairs);
    double leastUs = std::numeric_limits<double>::infinity(); // of what fits
    for (const Candidate &candidate : tried)
      if (fits(candidate) && (!staysPlain || isPlain(candidate.change)))
        leastUs = std::min(leastUs, candidate.change.us);
    std::optional<Combination> next;
    auto look = [&](const Combination &combination) {
      if (combination.us < surpriseUs * leastUs && (!next || order(combination) < order(*next)) && !known.contains(combination.repairs) && isWorthwhile(combination))
        next = combination;
    };
    eachCombination({{}, {}, static_cast<double>(bytesNow), usNow}, 0, staysPlain, look);
    return next;
  }

  /// What decides strategies is one kind.
  static std::string_view chosenBy(const std::string &kind) { return kind == "strategies" ? "search" : std::string_view(kind); }

  void eachCombination(const Combination &on, size_t from, bool staysPlain, llvm::function_ref<void(const Combination &)> look) const {
    for (size_t i = from; i < singles.size(); ++i) {
      const Single &single = singles[i];
      auto isAlike = [&](const Single *other) { return chosenBy(other->kind) == chosenBy(single.kind); };
      if (std::ranges::any_of(on.of, isAlike) || (staysPlain && (single.kind == "precision" || single.kind == "devices")))
        continue;
      Combination with = on;
      with.of.push_back(&single);
      with.repairs.insert(single.repair);
      expect(with);
      if (with.of.size() > 1)
        look(with);
      eachCombination(with, i + 1, staysPlain, look);
    }
  }

  /// From the most of it that was tried, with the shares of the rest.
  void expect(Combination &combination) const {
    const Candidate *most = nullptr;
    for (const Candidate &candidate : tried)
      if ((!most || candidate.repairs.size() > most->repairs.size()) && std::ranges::includes(combination.repairs, candidate.repairs))
        most = &candidate;
    combination.bytes = static_cast<double>(most ? most->change.bytes : bytesNow);
    combination.us = most ? most->change.us : usNow;
    for (const Single *single : combination.of)
      if (!most || !most->repairs.contains(single->repair)) {
        combination.bytes *= single->bytes;
        combination.us *= single->us;
      }
  }

  /// By what is expected. On top of what fits already, something has to make it faster, other than more devices.
  bool isWorthwhile(const Combination &combination) const {
    if (combination.bytes > surpriseBytes * static_cast<double>(start.memoryLimit))
      return false;
    const bool grows = std::ranges::any_of(combination.of, [](const Single *single) { return single->kind == "devices"; });
    return std::ranges::none_of(tried, [&](const Candidate &candidate) {
      return fits(candidate) && (grows || candidate.change.us <= combination.us) && std::ranges::includes(combination.repairs, candidate.repairs);
    });
  }

  /// Of cells that stand in no other cell.
  std::vector<NetworkFacts::Call> outermostCalls() const {
    std::vector<NetworkFacts::Call> calls;
    for (const NetworkFacts::Call &call : facts.calls)
      if (std::ranges::none_of(facts.calls, [&](const auto &other) { return call.name.starts_with(other.name + "."); }))
        calls.push_back(call);
    return calls;
  }
};

} // namespace

std::vector<MemoryChange> changesThatFit(const CompileOptions &options, const WithinLimit &now) { return Trials(options, now).run(); }

std::string helpOf(const MemoryAnswer &answer, bool namesLimit) {
  const std::vector<MemoryChange> &changes = answer.changes;
  std::string help;
  auto least = std::ranges::min_element(changes, {}, [](const MemoryChange &change) { return std::pair(change.isEstimated, change.bytes); });
  if (changes.empty() || least->bytes >= answer.bytes) {
    help = "nothing was found that makes it need less";
  } else if (!changes.front().fits) {
    help = "nothing that was tried is enough; least, " + bytesText(least->bytes) + ", is needed after: " + least->repair;
  } else {
    const MemoryChange &best = changes.front();
    const double more = best.us - answer.usWithoutLimit;
    const auto us = timeTexts({best.us, std::abs(more)});
    help = best.repair + ": a rank then needs " + bytesText(best.bytes) + ", " + bytesText(answer.bytes - best.bytes) + " less, and a batch takes " +
           us[0] + ", " + us[1] + (more < 0 ? " less" : " more") + " than without the limit";
    auto plain = std::ranges::find_if(changes, [](const MemoryChange &change) { return change.fits && isPlain(change); });
    if (!isPlain(best) && plain != changes.end())
      help += "; or, on these devices and in these types, " + plain->repair + ", after which it is " + bytesText(plain->bytes) + " and " +
              timeText(plain->us);
  }
  return namesLimit ? help + "; --memory-limit sets another limit" : help;
}

} // namespace msc::compiler
