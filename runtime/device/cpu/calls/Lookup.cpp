// Look-ups by number, and sums by number.
//
// Sums are added in the order of the rows: a task owns a part of the result.
#include "runtime/plan/calls/Lookup.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace msc::device::calls {
namespace {

size_t bytesOf(plan::DataType type) {
  switch (type) {
  case plan::F64:
  case plan::I64: return 8;
  case plan::F16:
  case plan::BF16: return 2;
  case plan::BOOL: return 1;
  default: return 4;
  }
}

/// Indices of either type, from which an offset is taken.
class Indices {
public:
  explicit Indices(const CallTensor &tensor, int64_t offset = 0)
      : data(tensor.data), isWide(tensor.type == plan::I64), offset(offset) {}
  int64_t row(int64_t i) const { return plus((*this)[i], offset == INT64_MIN ? offset : -offset); }
  int64_t operator[](int64_t i) const {
    return isWide ? reinterpret_cast<const int64_t *>(data)[i] : reinterpret_cast<const int32_t *>(data)[i];
  }

private:
  const std::byte *data;
  bool isWide;
  int64_t offset;
};

/// Tasks that may meet an index that numbers nothing. The smallest place is reported, so that every run says the same.
class CheckedTasks final : public ScratchOperation {
public:
  /// `refuse` says that the index at this place numbers nothing.
  using Body = std::function<void(int64_t task, const std::function<void(int64_t place)> &refuse)>;
  using Message = std::function<std::string(int64_t place)>;

  CheckedTasks(WorkerPool &pool, int64_t tasks, Body body, Message message)
      : pool(pool), tasks(tasks), body(std::move(body)), message(std::move(message)) {}

  Status run() override {
    wrong = INT64_MAX;
    pool.run(
        tasks,
        [](void *self, int64_t task, int) {
          auto *own = static_cast<CheckedTasks *>(self);
          own->body(task, own->refuse);
        },
        this);
    if (wrong == INT64_MAX)
      return {};
    return Error{ExitCode::Failed, message(wrong), ""};
  }
  ScratchSize scratchSize() const override { return {}; }
  void setScratch(const Scratch &) override {}

private:
  void note(int64_t place) {
    int64_t sofar = wrong;
    while (place < sofar && !wrong.compare_exchange_weak(sofar, place))
      ;
  }

  WorkerPool &pool;
  int64_t tasks;
  Body body;
  Message message;
  std::atomic<int64_t> wrong{INT64_MAX};
  std::function<void(int64_t)> refuse = [this](int64_t place) { note(place); };
};

using Prepared = Result<std::unique_ptr<ScratchOperation>>;

/// Calls f with the size of a row: as a constant where it is so small that a call of memcpy would take longer than the copy.
template <typename Function> auto withRowBytes(size_t bytes, Function f) {
  switch (bytes) {
  case 2: return f(std::integral_constant<size_t, 2>());
  case 4: return f(std::integral_constant<size_t, 4>());
  case 8: return f(std::integral_constant<size_t, 8>());
  case 16: return f(std::integral_constant<size_t, 16>());
  case 32: return f(std::integral_constant<size_t, 32>());
  default: return f(bytes);
  }
}

/// out[o, n, :] = table[o, indices[n] - offset, :], zeros for rows that other ranks hold, or none.
Prepared prepareLookup(const CallSpec &spec, WorkerPool &pool) {
  Lookup whole = lookupOf(spec);
  Indices numbers(spec.operands[1], whole.offset);
  bool mayMiss = spec.kernel == "EmbeddingLookup";
  const std::byte *table = spec.operands[0].data;
  std::byte *out = spec.results[0].data;
  int64_t total = whole.outer * whole.count, tasks = std::min(spec.tasks, total);
  auto message = [=, name = spec.kernel](int64_t place) {
    return fmt::format("index {} of '{}' is outside [0, {})", numbers[place], name, whole.size);
  };
  return withRowBytes(static_cast<size_t>(whole.inner) * bytesOf(spec.results[0].type), [&](auto rowBytes) -> Prepared {
    auto body = [=](int64_t task, const auto &refuse) {
      const Lookup lookup = whole; // of its own, or every byte that is written might change it
      const Indices indices = numbers;
      const bool misses = mayMiss;
      const auto bytes = rowBytes;
      Range range = pieceOf(total, task, tasks);
      for (int64_t outer = range.begin / lookup.count; outer * lookup.count < range.end; ++outer) {
        int64_t before = outer * lookup.count;
        const std::byte *rows = table + static_cast<size_t>(outer * lookup.rows.size()) * bytes;
        std::byte *found = out + static_cast<size_t>(before) * bytes;
        int64_t last = std::min(range.end - before, lookup.count);
        for (int64_t n = std::max(range.begin - before, int64_t{0}); n < last; ++n) {
          int64_t row = indices.row(n);
          if (!misses && (row < 0 || row >= lookup.size))
            refuse(n);
          std::byte *target = found + static_cast<size_t>(n) * bytes;
          if (row < lookup.rows.begin || row >= lookup.rows.end)
            std::memset(target, 0, bytes);
          else
            std::memcpy(target, rows + static_cast<size_t>(row - lookup.rows.begin) * bytes, bytes);
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(new CheckedTasks(pool, tasks, body, message));
  });
}

template <typename Element> Element sumOf(Element a, Element b) {
  return static_cast<Element>(plus(static_cast<Number<Element>>(a), static_cast<Number<Element>>(b)));
}

/// How the rows of one number become one row: what it is without any, and how one more element is taken in.
template <typename Element> struct Sum {
  static Element start() { return {}; }
  static void take(Element &sofar, Element more) { sofar = sumOf(sofar, more); }
};

/// The largest, or the smallest; NaN if one is.
template <typename Element, bool Largest> struct Extremum {
  static Element start() {
    using Limits = std::numeric_limits<Number<Element>>;
    if constexpr (std::is_floating_point_v<Number<Element>>)
      return static_cast<Element>(Largest ? -Limits::infinity() : Limits::infinity());
    else
      return Largest ? Limits::min() : Limits::max();
  }
  static void take(Element &sofar, Element more) {
    auto a = static_cast<Number<Element>>(sofar), b = static_cast<Number<Element>>(more);
    if (b != b || (Largest ? b > a : b < a))
      sofar = more;
  }
};

/// The rows of a table in blocks of a power of two: a task owns a block of one outer slice. Which rows of the operand belong to a block
/// is listed first, for all slices alike, so that no task looks at all indices.
class Blocks {
public:
  Blocks(const Lookup &lookup, int64_t tasks) : rows(lookup.rows.size()), outer(lookup.outer) {
    if (lookup.count <= INT32_MAX)
      while (rows > 0 && perSlice() > std::max<int64_t>(1, tasks / std::max<int64_t>(outer, 1)))
        ++shift;
    else
      shift = 62;
    listed = perSlice() > 1 ? lookup.count : 0;
  }

  int64_t perSlice() const { return rows == 0 ? 0 : ((rows - 1) >> shift) + 1; }
  int64_t tasks() const { return outer * perSlice(); }
  /// The rows of a task, from the first of its slice.
  Range rowsOf(int64_t task) const {
    int64_t block = task % perSlice();
    return {block << shift, std::min(rows, (block + 1) << shift)};
  }
  bool isListed() const { return listed != 0; }
  size_t scratchBytes() const { return isListed() ? static_cast<size_t>(listed + perSlice() + 2) * sizeof(int32_t) : 0; }

  /// Lists, block by block, the places of the indices that number its rows, in ascending order. `base` is the index of the first row.
  void list(const Indices &given, int64_t base, int32_t *scratch) const {
    const Indices indices = given;
    int64_t blocks = perSlice();
    int32_t *ends = scratch, *places = scratch + blocks + 2;
    auto blockOf = [=, this](int64_t n) { // `blocks` for the rows of others
      int64_t row = indices.row(n);
      return row < base || row >= base + rows ? blocks : (row - base) >> shift;
    };
    std::fill_n(ends, blocks + 2, 0);
    for (int64_t n = 0; n < listed; ++n)
      ++ends[blockOf(n) + 1];
    for (int64_t block = 0; block <= blocks; ++block)
      ends[block + 1] += ends[block];
    for (int64_t n = 0; n < listed; ++n)
      places[ends[blockOf(n)]++] = static_cast<int32_t>(n);
  }
  /// Of the block of a task, from what `list` wrote.
  std::span<const int32_t> listOf(int64_t task, const int32_t *scratch) const {
    int64_t block = task % perSlice();
    const int32_t *places = scratch + perSlice() + 2;
    return {places + (block == 0 ? 0 : scratch[block - 1]), places + scratch[block]};
  }

private:
  int64_t rows, outer, listed = 0;
  int shift = 0;
};

/// table[o, r, :] = the rows of rows[o, n, :] with indices[n] - offset == r, folded in the order of n. `width` is lookup.inner, as a
/// constant if it is small.
template <typename Fold, typename Element, typename Width>
auto foldOf(const Lookup &whole, const Indices &numbers, const Element *source, Element *results, const Blocks &blocks, Width width) {
  return [=](int64_t task, std::byte *, std::byte *shared) {
    const Lookup lookup = whole;
    const Indices indices = numbers;
    const auto inner = width;
    int64_t outer = task / blocks.perSlice();
    Range rows = blocks.rowsOf(task);
    Element *part = results + outer * lookup.rows.size() * inner;
    const Element *from = source + outer * lookup.count * inner;
    std::fill_n(part + rows.begin * inner, rows.size() * inner, Fold::start());
    auto take = [=](int64_t row, int64_t n) {
      for (int64_t i = 0; i < inner; ++i)
        Fold::take(part[row * inner + i], from[n * inner + i]);
    };
    if (blocks.isListed()) {
      for (int32_t n : blocks.listOf(task, reinterpret_cast<const int32_t *>(shared)))
        take(indices.row(n) - lookup.rows.begin, n);
      return;
    }
    for (int64_t n = 0; n < lookup.count; ++n)
      if (int64_t row = indices.row(n); row >= lookup.rows.begin && row < lookup.rows.end)
        take(row - lookup.rows.begin, n);
  };
}

/// sums[o, r, :] = the sum (or an extremum) of rows[o, n, :] over all n with indices[n] - offset == r.
Prepared prepareSums(const CallSpec &spec, WorkerPool &pool) {
  Lookup lookup = lookupOf(spec);
  LookupTensors tensors = lookupTensors(spec);
  Indices indices(*tensors.indices, lookup.offset);
  Blocks blocks(lookup, spec.tasks);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto fold = [&]<typename Fold>(Fold, auto width) -> Prepared {
      auto body = foldOf<Fold>(lookup, indices, reinterpret_cast<const Element *>(tensors.rows->data),
                               reinterpret_cast<Element *>(tensors.table->data), blocks, width);
      if (!blocks.isListed())
        return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, blocks.tasks(), body));
      auto list = [=](int64_t, std::byte *, std::byte *shared) {
        blocks.list(indices, lookup.rows.begin, reinterpret_cast<int32_t *>(shared));
      };
      auto operation = std::make_unique<TaskOperation>(pool, 1, list, ScratchSize{.shared = blocks.scratchBytes()});
      operation->then(blocks.tasks(), body);
      return std::unique_ptr<ScratchOperation>(std::move(operation));
    };
    if (spec.kernel == "UnsortedSegmentMax")
      return fold(Extremum<Element, true>(), lookup.inner);
    if (spec.kernel == "UnsortedSegmentMin")
      return fold(Extremum<Element, false>(), lookup.inner);
    switch (lookup.inner) {
    case 1: return fold(Sum<Element>(), std::integral_constant<int64_t, 1>());
    case 2: return fold(Sum<Element>(), std::integral_constant<int64_t, 2>());
    case 4: return fold(Sum<Element>(), std::integral_constant<int64_t, 4>());
    case 8: return fold(Sum<Element>(), std::integral_constant<int64_t, 8>());
    default: return fold(Sum<Element>(), lookup.inner);
    }
  });
}

/// out[o, n, i] = table[o, indices[o, n, i], i].
Prepared prepareGatherD(const CallSpec &spec, WorkerPool &pool) {
  Lookup lookup = alongsideOf(spec);
  Indices indices(spec.operands[1]);
  size_t bytes = bytesOf(spec.results[0].type);
  const std::byte *table = spec.operands[0].data;
  std::byte *out = spec.results[0].data;
  int64_t total = lookup.outer * lookup.count * lookup.inner, tasks = std::min(spec.tasks, total);
  auto body = [=](int64_t task, const auto &refuse) {
    Range range = pieceOf(total, task, tasks);
    for (int64_t at = range.begin; at < range.end; ++at) {
      int64_t row = indices[at];
      row = row < 0 ? row + lookup.size : row;
      if (row < 0 || row >= lookup.size)
        refuse(at);
      int64_t outer = at / (lookup.count * lookup.inner), inner = at % lookup.inner;
      int64_t from = (outer * lookup.rows.size() + row - lookup.rows.begin) * lookup.inner + inner;
      std::byte *target = out + static_cast<size_t>(at) * bytes;
      if (row < lookup.rows.begin || row >= lookup.rows.end)
        std::memset(target, 0, bytes);
      else
        std::memcpy(target, table + static_cast<size_t>(from) * bytes, bytes);
    }
  };
  auto message = [=](int64_t place) {
    return fmt::format("index {} of 'GatherD' is outside [{}, {})", indices[place], -lookup.size, lookup.size);
  };
  return std::unique_ptr<ScratchOperation>(new CheckedTasks(pool, tasks, body, message));
}

/// sums[o, r, i] = the sum of rows[o, n, i] over all n with indices[o, n, i] == r. A task has whole outer slices.
Prepared prepareGatherDSums(const CallSpec &spec, WorkerPool &pool) {
  Lookup lookup = alongsideOf(spec);
  Indices indices(spec.operands[0]);
  int64_t tasks = std::min(spec.tasks, lookup.outer);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *source = reinterpret_cast<const Element *>(spec.operands[1].data);
    auto *sums = reinterpret_cast<Element *>(spec.results[0].data);
    auto body = [=](int64_t task, std::byte *, std::byte *) {
      Range range = pieceOf(lookup.outer, task, tasks);
      int64_t slice = lookup.rows.size() * lookup.inner, part = lookup.count * lookup.inner;
      std::fill_n(sums + range.begin * slice, range.size() * slice, Element());
      for (int64_t at = range.begin * part; at < range.end * part; ++at) {
        int64_t row = indices[at];
        row = row < 0 ? row + lookup.size : row;
        if (row < lookup.rows.begin || row >= lookup.rows.end)
          continue;
        Element &sum = sums[at / part * slice + (row - lookup.rows.begin) * lookup.inner + at % lookup.inner];
        sum = sumOf(sum, source[at]);
      }
    };
    return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body));
  });
}

} // namespace

void addLookup(Table &table) {
  table["Gather"] = table["EmbeddingLookup"] = prepareLookup;
  for (const char *name : {"GatherGrad", "UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"})
    table[name] = prepareSums;
  table["GatherD"] = prepareGatherD;
  table["GatherDGrad"] = prepareGatherDSums;
}

} // namespace msc::device::calls
