// Look-ups by number, and sums by number.
//
// Sums are added in the order of the rows: a task owns a part of the result and looks at all indices.
#include "runtime/plan/calls/Lookup.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>

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

/// out[o, n, :] = table[o, indices[n] - offset, :], zeros for rows that other ranks hold, or none.
Prepared prepareLookup(const CallSpec &spec, WorkerPool &pool) {
  Lookup lookup = lookupOf(spec);
  Indices indices(spec.operands[1], lookup.offset);
  bool mayMiss = spec.kernel == "EmbeddingLookup";
  size_t rowBytes = static_cast<size_t>(lookup.inner) * bytesOf(spec.results[0].type);
  const std::byte *table = spec.operands[0].data;
  std::byte *out = spec.results[0].data;
  int64_t total = lookup.outer * lookup.count, tasks = std::min(spec.tasks, total);
  auto body = [=](int64_t task, const auto &refuse) {
    Range range = pieceOf(total, task, tasks);
    for (int64_t at = range.begin; at < range.end; ++at) {
      int64_t row = indices.row(at % lookup.count);
      if (!mayMiss && (row < 0 || row >= lookup.size))
        refuse(at % lookup.count);
      std::byte *target = out + static_cast<size_t>(at) * rowBytes;
      if (row < lookup.rows.begin || row >= lookup.rows.end)
        std::memset(target, 0, rowBytes);
      else
        std::memcpy(target, table + static_cast<size_t>((at / lookup.count) * lookup.rows.size() + row - lookup.rows.begin) * rowBytes,
                    rowBytes);
    }
  };
  auto message = [=, name = spec.kernel](int64_t place) {
    return fmt::format("index {} of '{}' is outside [0, {})", indices[place], name, lookup.size);
  };
  return std::unique_ptr<ScratchOperation>(new CheckedTasks(pool, tasks, body, message));
}

template <typename Element> Element sumOf(Element a, Element b) {
  return static_cast<Element>(plus(static_cast<Number<Element>>(a), static_cast<Number<Element>>(b)));
}

template <typename Element> void addRow(Element *sum, const Element *row, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    sum[i] = sumOf(sum[i], row[i]);
}

/// The larger, or the smaller, of both; NaN if one is.
template <bool Largest, typename Element> void takeRow(Element *sofar, const Element *row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    auto a = static_cast<Number<Element>>(sofar[i]), b = static_cast<Number<Element>>(row[i]);
    if (b != b || (Largest ? b > a : b < a))
      sofar[i] = row[i];
  }
}

/// How the rows of one number become one row: what it is without any, and how one more is taken in.
template <typename Element> struct RowFold {
  Element start{};
  void (*take)(Element *, const Element *, int64_t) = addRow<Element>;

  explicit RowFold(const std::string &kernel) {
    using Limits = std::numeric_limits<Number<Element>>;
    constexpr bool isFloat = std::is_floating_point_v<Number<Element>>;
    if (kernel == "UnsortedSegmentMax")
      start = static_cast<Element>(isFloat ? -Limits::infinity() : Limits::min()), take = takeRow<true, Element>;
    if (kernel == "UnsortedSegmentMin")
      start = static_cast<Element>(isFloat ? Limits::infinity() : Limits::max()), take = takeRow<false, Element>;
  }
};

/// sums[o, r, :] = the sum (or an extremum) of rows[o, n, :] over all n with indices[n] - offset == r.
Prepared prepareSums(const CallSpec &spec, WorkerPool &pool) {
  Lookup lookup = lookupOf(spec);
  LookupTensors tensors = lookupTensors(spec);
  Indices indices(*tensors.indices, lookup.offset);
  int64_t rows = lookup.rows.size(), total = lookup.outer * rows, tasks = std::min(spec.tasks, total);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *source = reinterpret_cast<const Element *>(tensors.rows->data);
    auto *sums = reinterpret_cast<Element *>(tensors.table->data);
    RowFold<Element> fold(spec.kernel);
    auto body = [=](int64_t task, std::byte *, std::byte *) {
      Range range = pieceOf(total, task, tasks);
      std::fill_n(sums + range.begin * lookup.inner, range.size() * lookup.inner, fold.start);
      for (int64_t o = range.begin / rows; o * rows < range.end; ++o) {
        int64_t first = std::max(range.begin - o * rows, int64_t{0}), last = std::min(range.end - o * rows, rows);
        for (int64_t n = 0; n < lookup.count; ++n) {
          int64_t row = indices.row(n);
          if (row < lookup.rows.begin || row >= lookup.rows.end)
            continue;
          row -= lookup.rows.begin;
          if (row >= first && row < last)
            fold.take(sums + (o * rows + row) * lookup.inner, source + (o * lookup.count + n) * lookup.inner, lookup.inner);
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body));
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
