#include "tools/RedistributeCheck.h"

#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/executor/Transfers.h"

#include <fmt/format.h>

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

/// Terms are small whole numbers, so that sums of any order are exact.
double valueOf(int64_t index) { return static_cast<double>(index % 4099 + 1); }

/// The term that a rank holds: the element's value times a number of the rank's place on the partial axes.
double factorOf(const Sharding &sharding, int64_t rank) {
  std::vector<int64_t> at = sharding.coordinates(rank);
  int64_t place = 0;
  for (const PartialAxis &p : sharding.partial)
    place = place * sharding.axes[p.axis] + at[p.axis];
  return static_cast<double>(place + 1);
}

/// What all terms of an element come to, as a factor of its value. One kind of reduction.
double completeFactor(const Sharding &sharding) {
  double places = 1;
  for (const PartialAxis &p : sharding.partial)
    places *= static_cast<double>(sharding.axes[p.axis]);
  if (sharding.partial.empty())
    return 1;
  switch (sharding.partial.front().kind) {
  case ReduceKind::Sum: return places * (places + 1) / 2;
  case ReduceKind::Min: return 1;
  case ReduceKind::Max: return places;
  case ReduceKind::Prod: break;
  }
  return 0;
}

struct Run {
  const Sharding &from, &to;
  const Shape &shape;
  const std::vector<dist::ReshardStep> &steps;
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
  double factor = factorOf(run.from, rank);
  forEachElement(box, run.shape, [&](int64_t index, int64_t at) { data[static_cast<size_t>(at)] = valueOf(index) * factor; });
  const Sharding *before = &run.from;
  for (const dist::ReshardStep &step : run.steps) {
    if (Status status = runStep(step, *before, run.shape, world, data); !status)
      return status;
    before = &step.after;
  }
  Status result;
  double wanted = run.to.isPartial() ? factor : completeFactor(run.from);
  Box end = run.to.localBox(run.shape, rank);
  if (static_cast<int64_t>(data.size()) != elementCount(end))
    return Error{ExitCode::Failed, fmt::format("rank {} ends with {} elements, expected {}", rank, data.size(),
                                               elementCount(end)), ""};
  forEachElement(end, run.shape, [&](int64_t index, int64_t at) {
    double found = data[static_cast<size_t>(at)], expected = valueOf(index) * wanted;
    if (result && found != expected)
      result = Error{ExitCode::Failed, fmt::format("rank {}, element {}: {} instead of {}", rank, index, found, expected),
                     ""};
  });
  return result;
}

} // namespace

Status verifyRedistribution(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                            const std::vector<dist::ReshardStep> &steps) {
  for (const PartialAxis &p : from.partial)
    if (p.kind == ReduceKind::Prod || p.kind != from.partial.front().kind)
      return Error{ExitCode::Usage, "--verify takes partial sums, maxima or minima, one kind at a time", ""};
  if (to.isPartial() && to.partial != from.partial)
    return Error{ExitCode::Usage, "--verify takes targets that are whole, or as partial as the source", ""};
  if (from.devices() > 64 || elementCount(shape) > (int64_t{1} << 26))
    return Error{ExitCode::Usage, "--verify runs up to 64 ranks and 2^26 elements", "leave out --verify"};
  Result<std::shared_ptr<comm::ThreadHub>> hub = comm::ThreadHub::create(from.devices());
  if (!hub)
    return hub.error();
  Run run{from, to, shape, steps, {}, {}};
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < from.devices(); ++rank)
    threads.emplace_back([&, rank] {
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
  for (std::thread &thread : threads)
    thread.join();
  return run.failure ? Status(*run.failure) : Status::ok();
}

} // namespace msc::tools
