#include "compiler/MemoryChanges.h"

#include "compiler/MemoryCombinations.h"
#include "compiler/Tables.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/machine/Presets.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace msc::compiler {
namespace {

/// Single changes one by one, and one on top of the other.
class Changes {
public:
  Changes(const CompileOptions &asked, const WithinLimit &now) : trials(asked, now), facts(trials.network()) {}

  std::vector<MemoryChange> run() {
    const Candidate as = trials.asItIs();
    tryWithoutUnread(as);
    trySearch(as);
    tryRecompute(as);
    tryPrecision(as);
    tryParts(as);
    if (!trials.anyFits())
      tryWithoutOwn(as);
    tryDevices(as);
    if (!trials.anyFits()) {
      growsMachine = true;
      tryDevices(as);
    }
    if (!trials.anyFits())
      trySeveral();
    MemoryCombinations combinations(trials);
    for (bool staysPlain : {false, true})
      combinations.run(staysPlain);
    return trials.conclude();
  }

private:
  using Candidate = MemoryCandidate;
  using Change = ChangeOfMemory;

  static constexpr size_t mostCalls = 8;    ///< of cells that are tried one by one
  static constexpr uint64_t mostParts = 64; ///< of a batch
  static constexpr uint64_t mostTimes = 16; ///< as many devices
  static constexpr uint64_t hopeless = 2;   ///< times too much, even if all devices that may be tried took their share of it

  MemoryTrials trials;
  const NetworkFacts &facts;
  bool growsMachine = false; ///< it is a preset, and may have more nodes

  /// One more change on top of others.
  static Candidate with(Candidate candidate, const std::string &kind, const std::string &repair) {
    MemoryChange &change = candidate.change;
    change.kind += (change.kind.empty() ? "" : " + ") + kind;
    change.repair += (change.repair.empty() ? "" : "; and ") + repair;
    candidate.repairs.insert(repair);
    return candidate;
  }

  /// Plans hold what nothing reads, for checkpoints.
  void tryWithoutUnread(const Candidate &on) {
    if (facts.unread.empty())
      return;
    trials.attempt(on, [this](const Candidate &before) {
      const bool areSeveral = facts.unread.size() > 1;
      Candidate candidate = with(before, "parameters", std::string("take out the ") + (areSeveral ? "parameters " : "parameter ") + listOf(facts.unread) +
                                                           ", which nothing reads");
      candidate.options.changes.dropsUnread = true;
      return candidate;
    });
  }

  void trySearch(const Candidate &on) {
    bool isAuto = facts.parallelMode == "auto_parallel";
    bool searches = isAuto && (facts.searchMode == "optimal" || facts.searchMode == "dynamic_programming");
    if (searches || facts.devices == 1 || facts.parallelMode == "hybrid_parallel")
      return;
    trials.attempt(on, [isAuto](const Candidate &before) {
      Candidate candidate = with(before, "search", isAuto ? "pass --search-mode optimal" : "pass --parallel-mode auto_parallel --search-mode optimal");
      override(candidate.options, "parallel_mode", "auto_parallel");
      override(candidate.options, "search_mode", "optimal");
      return candidate;
    });
  }

  /// Strategies of the user hold whatever is tried. Without them, where nothing else is enough.
  void tryWithoutOwn(const Candidate &on) {
    const bool mayHave = facts.parallelMode == "auto_parallel" || facts.parallelMode == "semi_auto_parallel";
    if (!mayHave || facts.devices == 1 || (facts.strategies.empty() && trials.asItIs().options.strategyFile.empty()))
      return;
    trials.attempt(on, [this](const Candidate &before) {
      Candidate candidate = with(before, "strategies", withoutOwnText());
      candidate.options.changes.freesStrategies = true;
      candidate.options.strategyFile.clear();
      override(candidate.options, "parallel_mode", "auto_parallel");
      override(candidate.options, "search_mode", "optimal");
      return candidate;
    });
  }

  /// The first few: "'h.q' (net.mir:34), 'h.k' (net.mir:35) and 2 more".
  static std::string listOf(const std::vector<NetworkFacts::Given> &named) {
    constexpr size_t most = 3;
    std::string text;
    for (size_t i = 0; i < std::min(most, named.size()); ++i)
      text += (i == 0 ? "'" : ", '") + named[i].name + "' (" + named[i].line + ")";
    return named.size() > most ? text + " and " + std::to_string(named.size() - most) + " more" : text;
  }

  std::string withoutOwnText() const {
    std::string text;
    if (!facts.strategies.empty())
      text = "leave out the strategies of " + listOf(facts.strategies);
    if (!trials.asItIs().options.strategyFile.empty())
      text += (text.empty() ? "leave out" : " and") + std::string(" --strategy-load ") + trials.asItIs().options.strategyFile;
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
      if (each.size() <= mostCalls && trials.attempt(on, recomputing({call})) &&
          std::ranges::any_of(outermost, [&](const auto &other) { return other.name == call.name; }))
        saving.push_back(call);
    const Candidate *together = saving.size() > 1 ? trials.attempt(on, recomputing(saving)) : nullptr;
    if (outermost.size() < 2 || outermost.size() == saving.size())
      return;
    // Cells that save nothing alone may do so together; else they are not named.
    uint64_t least = together ? together->change.bytes : trials.bytesNow();
    for (const Candidate &candidate : trials.candidates())
      least = std::min(least, candidate.change.kind == "recompute" ? candidate.change.bytes : least);
    if (const Candidate *all = trials.attempt(on, recomputing(outermost)); all && all->change.bytes >= least) {
      trials.forgetLast(on.repairs.empty());
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
      trials.attempt(on, narrow);
  }

  Candidate inParts(const Candidate &on, const std::string &name, int64_t value, uint64_t parts) const {
    std::string size = std::to_string(value / static_cast<int64_t>(parts)), steps = std::to_string(facts.accumulateSteps * parts);
    if (facts.steps > 0) // as many updates as before
      steps += ", steps: " + std::to_string(facts.steps * parts);
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
        return isCut ? trials.attempt(on, cut) : static_cast<const Candidate *>(nullptr);
      });
  }

  Candidate onDevices(const Candidate &on, const std::optional<std::string> &larger, int64_t devices) const {
    Candidate candidate = with(on, "devices", "pass " + (larger ? "--machine " + *larger + " " : "") + "--devices " + std::to_string(devices));
    candidate.options.machine = larger.value_or(trials.asItIs().options.machine);
    candidate.options.devices = devices;
    std::erase_if(candidate.options.context, [](const auto &option) { return option.first == "device_num"; });
    return candidate;
  }

  /// As few devices as are enough. Without another change, what the machine has is tried before it grows.
  void tryDevices(const Candidate &on) {
    Result<MachineModel> machine = readMachine(trials.asItIs().options.machine);
    const int64_t has = machine && machine->devices > 0 ? machine->devices : std::numeric_limits<int64_t>::max();
    uint64_t first = 2;
    while (growsMachine && on.change.kind.empty() && facts.devices * static_cast<int64_t>(first) <= has && first <= mostTimes)
      first *= 2;
    bool isHopeless = false;
    tryMore(first, [&](uint64_t times) -> const Candidate * {
      const int64_t devices = facts.devices * static_cast<int64_t>(times);
      const bool isTooMany = devices > has;
      const std::optional<std::string> larger = isTooMany && growsMachine ? presetOfDevices(trials.asItIs().options.machine, devices) : std::nullopt;
      if (times > mostTimes || (isTooMany && !larger) || isHopeless)
        return nullptr;
      const Candidate *made = trials.attempt(on, [this, larger, devices](const Candidate &before) { return onDevices(before, larger, devices); });
      isHopeless = made && made->change.bytes * times > hopeless * trials.limit() * mostTimes;
      return made;
    });
  }

  /// So many times as much, then twice as many, until it is enough, of which a plan is made, or not possible, or saves no more.
  void tryMore(uint64_t first, llvm::function_ref<const Candidate *(uint64_t times)> tryOne) {
    uint64_t before = std::numeric_limits<uint64_t>::max();
    for (uint64_t times = first;; times *= 2) {
      const Candidate *last = tryOne(times);
      if (last && last->change.fits && last->change.isEstimated)
        last = trials.compileLast();
      if (!last || last->change.fits || static_cast<double>(last->change.bytes) > 0.97 * static_cast<double>(before))
        return;
      before = last->change.bytes;
    }
  }

  /// One on top of the other until it is enough: what saves most by being computed again or without strategies of the user, narrow types,
  /// smaller batches, more devices; those that save nothing there are left out.
  void trySeveral() {
    Candidate on = trials.asItIs();
    for (const char *kind : {"recompute", "strategies"})
      for (const Candidate &candidate : trials.candidates())
        if (candidate.change.kind == kind && candidate.change.bytes < (on.change.kind.empty() ? trials.bytesNow() : on.change.bytes))
          on = candidate;
    for (auto tryMore : {&Changes::tryPrecision, &Changes::tryParts, &Changes::tryDevices}) {
      const size_t before = trials.candidates().size();
      if (on.change.kind.empty() && tryMore == &Changes::tryPrecision) {
        if (facts.trains && facts.ampLevel == "O0")
          on = narrow(on); // has been tried on its own
        continue;
      }
      (this->*tryMore)(on);
      const auto added = std::ranges::subrange(trials.candidates().begin() + static_cast<std::ptrdiff_t>(before), trials.candidates().end());
      const auto least = std::ranges::min_element(added, {}, [](const Candidate &candidate) { return candidate.change.bytes; });
      if (least == added.end() || (!on.change.kind.empty() && least->change.bytes >= on.change.bytes))
        continue;
      on = *least;
      if (on.change.fits)
        return;
    }
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

std::vector<MemoryChange> changesThatFit(const CompileOptions &options, const WithinLimit &now) { return Changes(options, now).run(); }

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
    const bool isAsBefore = timeText(best.us) == timeText(answer.usWithoutLimit);
    help = best.repair + ": a rank then needs " + bytesText(best.bytes) + ", " + bytesText(answer.bytes - best.bytes) + " less, and a batch takes " +
           us[0] + (isAsBefore ? ", as" : ", " + us[1] + (more < 0 ? " less" : " more") + " than") + " without the limit";
    auto plain = std::ranges::find_if(changes, [](const MemoryChange &change) { return change.fits && isPlain(change); });
    if (!isPlain(best) && plain != changes.end())
      help += "; or, on these devices and in these types, " + plain->repair + ", after which it is " + bytesText(plain->bytes) + " and " +
              timeText(plain->us);
  }
  return namesLimit ? help + "; --memory-limit sets another limit" : help;
}

} // namespace msc::compiler
