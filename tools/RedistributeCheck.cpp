#include "tools/RedistributeCheck.h"

#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/Thread.h"
#include "runtime/executor/Transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace msc::tools {

namespace {

using Shape = std::vector<int64_t>;

/// Calls visit(index, position) for all elements of a box, row-major; `index` is the element's number in the whole tensor.
template <typename Visit> void forEachElement(const Box &box, const Shape &shape, Visit visit) {
  int64_t count = elementCount(box);
  for (int64_t position = 0; position < count; ++position) {
    int64_t rest = position, index = 0, stride = 1;
    for (size_t dim = shape.size(); dim-- > 0;) {
      index += (box[dim].begin + rest % box[dim].size()) * stride;
      rest /= box[dim].size();
      stride *= shape[dim];
    }
    visit(index, position);
  }
}

double combine(double a, double b, ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum: return a + b;
  case ReduceKind::Prod: return a * b;
  case ReduceKind::Min: return std::min(a, b);
  case ReduceKind::Max: break;
  }
  return std::max(a, b);
}

/// What the ranks hold at the start, and what one of them ends with by the definition: the terms along the axes that the target
/// completes, brought together axis by axis, the most minor one first. Both over the common refinement.
class Terms {
public:
  Terms(const Sharding &from, const Sharding &to) {
    auto common = dist::overCommonMatrix(from, to);
    source = common ? common->first : from;
    for (const PartialAxis &p : source.partial) {
      const auto *kept = common ? &common->second.partial : nullptr;
      if (!kept || std::find(kept->begin(), kept->end(), p) == kept->end())
        completed.push_back(p);
      multiplies |= p.kind == ReduceKind::Prod;
    }
  }

  /// Whole numbers that are small, also multiplied by those of 64 ranks, so that any order gives the same.
  double term(int64_t index, int64_t place) const {
    if (multiplies)
      return place % 8 == index % 8 ? 2 : (place + index) % 3 == 0 ? -1 : 1;
    return static_cast<double>(index % 4099 + 1) * static_cast<double>(place + 1);
  }

  int64_t placeOf(int64_t rank) const { return placeAt(source.coordinates(rank)); }

  /// The places whose terms a rank's result consists of, the most minor completed axis varying fastest.
  std::vector<int64_t> placesOf(int64_t rank) const {
    std::vector<std::vector<int64_t>> all{source.coordinates(rank)};
    for (const PartialAxis &p : completed) {
      std::vector<std::vector<int64_t>> longer;
      for (std::vector<int64_t> &at : all)
        for (at[p.axis] = 0; at[p.axis] < source.axes[p.axis]; ++at[p.axis])
          longer.push_back(at);
      all = std::move(longer);
    }
    std::vector<int64_t> places;
    for (const auto &at : all)
      places.push_back(placeAt(at));
    return places;
  }

  double definition(int64_t index, const std::vector<int64_t> &places, std::vector<double> &buffer) const {
    buffer.clear();
    for (int64_t place : places)
      buffer.push_back(term(index, place));
    for (size_t next = completed.size(); next-- > 0;) {
      auto size = static_cast<size_t>(source.axes[completed[next].axis]);
      for (size_t i = 0; i < buffer.size(); i += size) {
        double value = buffer[i];
        for (size_t j = 1; j < size; ++j)
          value = combine(value, buffer[i + j], completed[next].kind);
        buffer[i / size] = value;
      }
      buffer.resize(buffer.size() / size);
    }
    return buffer[0];
  }

private:
  int64_t placeAt(const std::vector<int64_t> &coordinates) const {
    int64_t place = 0;
    for (const PartialAxis &p : source.partial)
      place = place * source.axes[p.axis] + coordinates[p.axis];
    return place;
  }

  Sharding source;
  std::vector<PartialAxis> completed; ///< most major first
  bool multiplies = false;
};

struct Run {
  const Sharding &from, &to;
  const Shape &shape;
  const std::vector<dist::ReshardStep> &steps;
  const Terms &terms;
  std::mutex mutex;
  std::optional<Error> failure;
};

Status runStep(const dist::ReshardStep &step, const Sharding &before, const Shape &shape, comm::World &world,
               std::vector<double> &data) {
  std::vector<int64_t> members = groupOf(step.groupMatrix, step.groupAxes, world.rank());
  Result<comm::Group *> group = world.group(members);
  if (!group)
    return group.error();
  size_t position = static_cast<size_t>((*group)->rank());
  std::vector<double> after(static_cast<size_t>(elementCount(step.after.localBox(shape, world.rank()))));
  comm::OperationLabel label{moveKindName(step.kind), ""};
  Status status;
  switch (step.kind) {
  case MoveKind::AllReduce:
    status = (*group)->allReduce(data.data(), after.data(), static_cast<int64_t>(data.size()), comm::ElementType::F64,
                                 step.reduce, label);
    break;
  case MoveKind::ReduceScatter:
    status = (*group)->reduceScatter(data.data(), after.data(), scatterPieces(before, step.after, shape, members),
                                     comm::ElementType::F64, step.reduce, label);
    break;
  default:
    status = (*group)->exchange(data.data(), after.data(),
                                exchangeBetween(before, step.after, shape, members, position, comm::ElementType::F64),
                                label);
  }
  data = std::move(after);
  return status;
}

Status runRank(Run &run, comm::World &world) {
  int64_t rank = world.rank();
  Box box = run.from.localBox(run.shape, rank);
  std::vector<double> data(static_cast<size_t>(elementCount(box)));
  int64_t place = run.terms.placeOf(rank);
  forEachElement(box, run.shape, [&](int64_t index, int64_t at) { data[static_cast<size_t>(at)] = run.terms.term(index, place); });
  const Sharding *before = &run.from;
  for (const dist::ReshardStep &step : run.steps) {
    if (Status status = runStep(step, *before, run.shape, world, data); !status)
      return status;
    before = &step.after;
  }
  Status result;
  std::vector<int64_t> places = run.terms.placesOf(rank);
  std::vector<double> buffer;
  Box end = run.to.localBox(run.shape, rank);
  if (static_cast<int64_t>(data.size()) != elementCount(end))
    return Error{ExitCode::Failed, fmt::format("rank {} ends with {} elements, expected {}", rank, data.size(),
                                               elementCount(end)), ""};
  forEachElement(end, run.shape, [&](int64_t index, int64_t at) {
    double found = data[static_cast<size_t>(at)], expected = run.terms.definition(index, places, buffer);
    if (result && found != expected)
      result = Error{ExitCode::Failed, fmt::format("rank {}, element {}: {} instead of {}", rank, index, found, expected),
                     ""};
  });
  return result;
}

} // namespace

Status mayVerify(const Sharding &from, const std::vector<int64_t> &shape) {
  if (from.devices() > 64 || elementCount(shape) > (int64_t{1} << 26))
    return Error{ExitCode::Usage, "--verify runs up to 64 ranks and 2^26 elements", "leave out --verify"};
  return Status::ok();
}

Status verifyRedistribution(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                            const std::vector<dist::ReshardStep> &steps) {
  Result<std::shared_ptr<comm::ThreadHub>> hub = comm::ThreadHub::create(from.devices());
  if (!hub)
    return hub.error();
  Terms terms(from, to);
  Run run{from, to, shape, steps, terms, {}, {}};
  std::vector<std::thread> threads(static_cast<size_t>(from.devices()));
  Status started;
  for (int64_t rank = 0; rank < from.devices() && started; ++rank)
    started = startThread(threads[static_cast<size_t>(rank)], [&, rank] {
      std::unique_ptr<comm::World> world = (*hub)->world(rank);
      world->setTimeout(std::chrono::seconds(60));
      Status status = runRank(run, *world);
      if (status)
        return;
      world->abort(status.error());
      std::lock_guard lock(run.mutex);
      if (!run.failure || run.failure->code == ExitCode::PeerFailed)
        run.failure = status.error();
    });
  if (!started)
    (*hub)->abort(started.error());
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
  if (!started)
    return Error{started.error().code, started.error().message, "raise the limits that 'ulimit -a' shows, or leave out --verify"};
  return run.failure ? Status(*run.failure) : Status::ok();
}

} // namespace msc::tools
