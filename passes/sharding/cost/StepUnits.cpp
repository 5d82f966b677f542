#include "passes/sharding/cost/StepUnits.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace msc::passes {
namespace {

/// The domain of a kernel that may still grow (passes/codegen/Cluster.h): the loops of its operator that has most, by number, with loops
/// that other operators tie to them.
class KernelDomain {
public:
  /// Where the loops of an operator stand in the domain; `none`: of size one.
  using Loops = std::vector<int32_t>;

  /// Absent where the operator and the kernel cannot be one.
  std::optional<Loops> placed(const StepEvent &event, const KernelLoops &kernel) const {
    Loops to(kernel.loops.size(), none);
    for (bool isInside : {true, false}) // what reads the same memory runs together where it may
      for (size_t r = 0; r < event.reads.size(); ++r) {
        const std::unordered_map<int32_t, Loops> &known = isInside ? made : read;
        const auto at = known.find(event.reads[r]);
        if (at == known.end())
          continue;
        const std::vector<int32_t> &dims = kernel.reads[event.readUses.empty() ? r : event.readUses[r].number];
        for (size_t d = 0; d < std::min(dims.size(), at->second.size()); ++d)
          if (dims[d] != none && at->second[d] != none && !tie(kernel, to, dims[d], at->second[d]) && isInside)
            return std::nullopt; // used in two orders
      }
    const size_t depth = order.size();
    for (size_t back = 1; back <= std::min(depth, to.size()); ++back)
      if (const auto loop = static_cast<int32_t>(to.size() - back); kernel.loops[loop].size != 1)
        tie(kernel, to, loop, order[depth - back]);
    const bool isWider = weight(kernel) > std::pair(depth, wide());
    for (size_t loop = 0; loop < to.size(); ++loop)
      if (to[loop] == none && kernel.loops[loop].size != 1 && !isWider)
        return std::nullopt;
    if (isWider)
      for (int32_t own : order)
        if (sizes[own] != 1 && std::ranges::find(to, own) == to.end())
          return std::nullopt;
    const std::vector<int32_t> reduces = reducedBy(kernel, to);
    if (!reduces.empty() && !reduced.empty() && reduces != reduced)
      return std::nullopt;
    return to;
  }

  void take(const StepEvent &event, const KernelLoops &kernel, Loops to) {
    const bool isWider = order.empty() || weight(kernel) > std::pair(order.size(), wide());
    for (size_t loop = 0; loop < to.size(); ++loop)
      if (to[loop] == none && isWider) {
        to[loop] = static_cast<int32_t>(sizes.size());
        sizes.push_back(kernel.loops[loop].size);
      }
    if (isWider)
      order = to;
    if (reduced.empty())
      reduced = reducedBy(kernel, to);
    auto placesOf = [&](const std::vector<int32_t> &dims) {
      Loops places;
      for (int32_t loop : dims)
        places.push_back(loop == none ? none : to[loop]);
      return places;
    };
    for (size_t r = 0; r < event.reads.size(); ++r)
      if (!made.contains(event.reads[r]))
        read.try_emplace(event.reads[r], placesOf(kernel.reads[event.readUses.empty() ? r : event.readUses[r].number]));
    for (size_t w = 0; w < event.writes.size(); ++w)
      made.try_emplace(event.writes[w], placesOf(kernel.writes[event.writeUses.empty() ? w : event.writeUses[w].number]));
  }

private:
  static constexpr int32_t none = KernelLoops::none;
  std::vector<int64_t> sizes;    ///< of loops, by number
  std::vector<int32_t> order;    ///< of the widest operator, outermost first
  std::vector<int32_t> reduced;  ///< ascending
  std::unordered_map<int32_t, Loops> made, read; ///< of buffers, of each dimension: loop

  size_t wide() const { return std::ranges::count_if(order, [&](int32_t loop) { return sizes[loop] != 1; }); }
  static std::pair<size_t, size_t> weight(const KernelLoops &kernel) {
    return {kernel.loops.size(), std::ranges::count_if(kernel.loops, [](const KernelLoops::Loop &loop) { return loop.size != 1; })};
  }
  /// Ascending.
  static std::vector<int32_t> reducedBy(const KernelLoops &kernel, const Loops &to) {
    std::vector<int32_t> reduces;
    for (size_t loop = 0; loop < to.size(); ++loop)
      if (kernel.loops[loop].isReduced && kernel.loops[loop].size != 1)
        reduces.push_back(to[loop]);
    std::ranges::sort(reduces);
    return reduces;
  }
  bool tie(const KernelLoops &kernel, Loops &to, int32_t loop, int32_t own) const {
    if (to[loop] == own)
      return true;
    if (to[loop] != none || sizes[own] != kernel.loops[loop].size || std::ranges::find(to, own) != to.end())
      return false;
    to[loop] = own;
    return true;
  }
};

} // namespace

/// Forms units over the events of a step.
class StepUnitBuilder {
public:
  StepUnitBuilder(const StepEvents &step, StepUnits &to)
      : step(step), to(to), madeBy(step.buffers.size(), none), readers(step.buffers.size()), isTracked(step.events.size() <= mostEventsOrdered) {
    for (const StepEvent &event : step.events)
      for (int32_t buffer : event.reads)
        readers[step.rootOf(buffer)].push_back(&event - step.events.data());
    for (size_t i = 0; i < step.events.size(); ++i)
      place(i);
    order();
  }

private:
  static constexpr int32_t none = -1;
  static constexpr int64_t mostOperators = 24;   ///< as UnitOptions
  static constexpr int64_t leastBytesOfNarrowSums = int64_t{4} << 20;
  struct Unit {
    StepKind kind = StepKind::Call;
    bool isUpdate = false, isCopy = false, isBackward = false;
    int64_t operators = 0;
    int32_t last = none;      ///< buffer that its last event made
    std::vector<size_t> events;
    bool isActivated = false; ///< by its epilogue
    KernelDomain domain;
    std::vector<int32_t> before, after; ///< units that it reads, and that read it
    std::vector<uint64_t> ancestors;    ///< bits: what has to run before it
  };

  const StepEvents &step;
  StepUnits &to;
  std::vector<int32_t> madeBy;  ///< of each buffer that an event writes: the unit
  std::vector<std::vector<size_t>> readers; ///< of each root: events
  std::vector<Unit> units;
  std::vector<int32_t> lastReader; ///< of each: a unit that reads it
  bool isTracked; ///< else what stands behind a unit is taken to need it

  void place(size_t index) {
    const StepEvent &event = step.events[index];
    int32_t unit = none;
    if (event.kind == StepKind::Kernel) {
      unit = carrierOf(event);
      if (unit != none)
        units[unit].isActivated = event.reads.size() == 1;
      if (unit == none && event.loops >= 0)
        unit = joined(event);
      if (unit == none && event.loops >= 0)
        if (std::vector<int32_t> reads = readAgain(index); !reads.empty())
          to.readsInstead.emplace(index, std::move(reads));
    }
    if (unit == none) {
      unit = static_cast<int32_t>(units.size());
      lastReader.push_back(none);
      units.push_back({event.kind, event.isUpdate, event.isCopy, event.isBackward, 0, none, {}, false, {}, {}, {}, {}});
      if (event.kind == StepKind::Kernel && event.loops >= 0)
        units.back().domain.take(event, step.kernels[event.loops], *units.back().domain.placed(event, step.kernels[event.loops]));
    }
    ++units[unit].operators;
    units[unit].events.push_back(index);
    units[unit].last = event.writes.empty() ? none : event.writes.front();
    to.unitOf.push_back(unit);
    for (int32_t buffer : event.writes)
      madeBy[buffer] = unit;
    inherit(unit, to.readsOf(step, index));
  }

  /// What made it, or what it shows.
  int32_t makerOf(int32_t buffer) const {
    while (madeBy[buffer] == none && step.buffers[buffer].viewOf >= 0)
      buffer = step.buffers[buffer].viewOf;
    return madeBy[buffer];
  }

  /// As passes/plan/Units.cpp has it for the sum of a narrow product and its bias: rows are of multiples of 16 bytes, and the sum, or what ReLU makes of it, is large
  /// and read by others than kernels of its phase, or in another shape.
  bool isWorthItsBias(const StepEvent &event) const {
    constexpr int64_t columns = 8;
    if (event.loops < 0)
      return false;
    const std::vector<KernelLoops::Loop> &loops = step.kernels[event.loops].loops;
    return !loops.empty() && loops.back().size % columns == 0 && isStoredAnyway(event);
  }
  bool isStoredAnyway(const StepEvent &event) const {
    const int32_t sum = event.writes.front();
    const std::vector<size_t> &by = readers[sum];
    auto isOther = [&](const StepEvent &reader) {
      return reader.kind != StepKind::Kernel || reader.isBackward != event.isBackward || std::ranges::find(reader.reads, sum) == reader.reads.end();
    };
    if (by.size() == 1 && !step.buffers[sum].isFetched)
      if (const StepEvent &reader = step.events[by.front()]; reader.isEpilogue && reader.reads.size() == 1 && !isOther(reader))
        return isStoredAnyway(reader);
    return step.buffers[sum].bytes >= leastBytesOfNarrowSums &&
           (step.buffers[sum].isFetched || std::ranges::any_of(by, [&](size_t reader) { return isOther(step.events[reader]); }));
  }

  /// The product that takes it along as its epilogue: a bias first, and one activation.
  int32_t carrierOf(const StepEvent &event) const {
    const bool isOfFirst = !event.reads.empty() && (event.readUses.empty() || event.readUses.front().number == 0);
    const int32_t unit = event.isEpilogue && isOfFirst ? madeBy[event.reads.front()] : none;
    if (unit == none || units[unit].kind != StepKind::Product || event.reads.front() != units[unit].last || isTangled(event, unit))
      return none;
    const bool isBias = event.reads.size() > 1;
    if (isBias && event.isNarrow && !isWorthItsBias(event))
      return none;
    const bool isRead = readers[step.rootOf(units[unit].last)].size() > 1 || step.buffers[units[unit].last].isFetched;
    return isRead || units[unit].isActivated || (isBias && units[unit].operators > 1) ? none : unit;
  }

  /// Among the kernels that made what it reads and can take it up the one of which it reads most, and of such the latest.
  int32_t joined(const StepEvent &event) {
    std::vector<std::pair<int64_t, int32_t>> candidates; // bytes, unit
    for (size_t r = 0; r < event.reads.size(); ++r) {
      const int32_t buffer = event.reads[r], unit = madeBy[buffer];
      if (unit == none || units[unit].kind != StepKind::Kernel || std::find(event.reads.begin(), event.reads.begin() + r, buffer) != event.reads.begin() + r)
        continue; // what is shown in another shape is another step
      const auto known = std::ranges::find(candidates, unit, &std::pair<int64_t, int32_t>::second);
      if (known != candidates.end())
        known->first += step.buffers[buffer].bytes;
      else
        candidates.emplace_back(step.buffers[buffer].bytes, unit);
    }
    std::ranges::sort(candidates, std::greater());
    const KernelLoops &kernel = step.kernels[event.loops];
    for (auto [bytes, candidate] : candidates) {
      Unit &unit = units[candidate];
      if (unit.isUpdate != event.isUpdate || unit.isCopy != event.isCopy || unit.operators >= mostOperators || isTangled(event, candidate) ||
          (event.sum >= 0 && waits(event, candidate)) || (event.isCast && isOfOtherPass(event, unit))) // a cast belongs to its reader
        continue;
      if (std::optional<KernelDomain::Loops> loops = unit.domain.placed(event, kernel)) {
        unit.domain.take(event, kernel, std::move(*loops));
        return candidate;
      }
    }
    return none;
  }

  /// What it casts was made by the other pass.
  bool isOfOtherPass(const StepEvent &cast, const Unit &unit) const {
    return std::ranges::any_of(unit.events, [&](size_t maker) {
      const StepEvent &event = step.events[maker];
      return event.isBackward != cast.isBackward && std::ranges::find(event.writes, cast.reads.front()) != event.writes.end();
    });
  }

  /// What a sum reads that makes its terms itself (UnitBuilder::computeAgain); empty: it does not.
  std::vector<int32_t> readAgain(size_t index) const {
    const StepEvent &sum = step.events[index];
    const int32_t terms = sum.reads.size() == 1 ? sum.reads.front() : none, unit = terms == none ? none : madeBy[terms];
    if (unit == none || units[unit].kind != StepKind::Kernel || sum.sum >= 0 || !sum.isBackward || !units[unit].isBackward || units[unit].isCopy != sum.isCopy ||
        units[unit].isUpdate != sum.isUpdate || !step.reduces(sum) || readers[step.rootOf(terms)].size() != 1 || step.buffers[terms].isFetched)
      return {};
    int64_t elements = 1;
    for (const KernelLoops::Loop &loop : step.kernels[sum.loops].loops)
      elements *= loop.size;
    std::vector<int32_t> reads{terms}, made;
    for (size_t i = units[unit].events.size(); i-- > 0;) {
      const StepEvent &event = step.events[units[unit].events[i]];
      if (event.writes.size() != 1 || std::ranges::find(reads, event.writes.front()) == reads.end())
        continue;
      const int32_t result = event.writes.front();
      if (result != terms && (elementsMade(event) < elements || isReadOutside(result, unit)))
        continue; // it is read
      if (!event.isCheap || event.sum >= 0 || step.reduces(event))
        return {};
      made.push_back(result);
      reads.insert(reads.end(), event.reads.begin(), event.reads.end());
    }
    std::ranges::sort(reads);
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    std::erase_if(reads, [&](int32_t buffer) { return std::ranges::find(made, buffer) != made.end(); });
    int64_t bytes = 0;
    for (int32_t buffer : reads)
      if (std::ranges::none_of(readers[step.rootOf(buffer)], [&](size_t reader) { return reader > index && isAlike(step.events[reader], sum); }))
        bytes += step.buffers[buffer].bytes;
    return made.empty() || bytes >= 2 * step.buffers[terms].bytes ? std::vector<int32_t>() : reads;
  }

  /// By something that is in another kernel, or not yet in one.
  bool isReadOutside(int32_t buffer, int32_t unit) const {
    return step.buffers[buffer].isFetched || std::ranges::any_of(readers[step.rootOf(buffer)], [&](size_t event) {
      return event >= to.unitOf.size() || to.unitOf[event] != unit;
    });
  }
  int64_t elementsMade(const StepEvent &event) const {
    int64_t elements = 1;
    for (const KernelLoops::Loop &loop : step.kernels[event.loops].loops)
      elements *= loop.isReduced ? 1 : loop.size;
    return elements;
  }
  /// Both reduce as large a tensor to a result of the same shape.
  bool isAlike(const StepEvent &a, const StepEvent &b) const {
    return a.reads.size() == 1 && a.loops >= 0 && a.kind == StepKind::Kernel &&
           std::ranges::equal(step.kernels[a.loops].loops, step.kernels[b.loops].loops,
                              [](const KernelLoops::Loop &x, const KernelLoops::Loop &y) { return x.size == y.size && x.isReduced == y.isReduced; });
  }

  bool waits(const StepEvent &event, int32_t unit) const {
    return std::ranges::any_of(event.reads, [&](int32_t buffer) { return makerOf(buffer) > unit; });
  }

  /// Something that it reads and the unit does not make needs the unit.
  bool isTangled(const StepEvent &event, int32_t unit) const {
    return std::ranges::any_of(event.reads, [&](int32_t buffer) {
      const int32_t maker = makerOf(buffer);
      return maker != none && madeBy[buffer] != unit && (maker == unit || needs(maker, unit));
    });
  }

  bool needs(int32_t unit, int32_t other) const {
    if (!isTracked)
      return unit > other;
    const std::vector<uint64_t> &bits = units[unit].ancestors;
    const size_t word = static_cast<size_t>(other) / 64;
    return word < bits.size() && (bits[word] >> (other % 64) & 1) != 0;
  }

  /// The unit has taken up the event: what that needs it needs, too, and so does all that reads the unit.
  void inherit(int32_t unit, const std::vector<int32_t> &reads) {
    bool grew = false;
    for (int32_t buffer : reads)
      if (const int32_t maker = makerOf(buffer); maker != none && maker != unit && std::exchange(lastReader[maker], unit) != unit) { // twice is no harm
        units[unit].before.push_back(maker);
        units[maker].after.push_back(unit);
        grew |= add(unit, maker);
      }
    for (std::vector<int32_t> work{grew ? std::vector<int32_t>{unit} : std::vector<int32_t>{}}; !work.empty();) {
      const int32_t from = work.back();
      work.pop_back();
      for (int32_t reader : units[from].after)
        if (add(reader, from))
          work.push_back(reader);
    }
  }

  /// True if that is news.
  bool add(int32_t unit, int32_t maker) {
    if (!isTracked)
      return false;
    std::vector<uint64_t> &own = units[unit].ancestors;
    const std::vector<uint64_t> &more = units[maker].ancestors;
    own.resize(std::max({own.size(), more.size(), static_cast<size_t>(maker) / 64 + 1}));
    uint64_t news = 0;
    auto set = [&](size_t word, uint64_t bits) {
      news |= bits & ~own[word];
      own[word] |= bits;
    };
    for (size_t word = 0; word < more.size(); ++word)
      set(word, more[word]);
    set(static_cast<size_t>(maker) / 64, uint64_t(1) << (maker % 64));
    return news != 0;
  }

  /// As their numbers say, but behind what they read.
  void order() {
    std::vector<size_t> waiting;
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (const Unit &unit : units)
      if (waiting.emplace_back(unit.before.size()) == 0)
        ready.push(static_cast<int32_t>(waiting.size() - 1));
    to.place.resize(units.size());
    while (!ready.empty()) {
      const int32_t unit = ready.top();
      ready.pop();
      to.place[unit] = to.steps++;
      for (int32_t reader : units[unit].after)
        if (--waiting[reader] == 0)
          ready.push(reader);
    }
  }
};

StepUnits::StepUnits(const StepEvents &step) { StepUnitBuilder(step, *this); }

} // namespace msc::passes
