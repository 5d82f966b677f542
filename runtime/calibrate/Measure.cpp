#include "runtime/calibrate/Measure.h"

#include "runtime/executor/Transfers.h"

#include <algorithm>
#include <numeric>

namespace msc {
namespace {

constexpr int64_t smallestBytes = int64_t{1} << 10, largestBytes = int64_t{64} << 20, sizeFactor = 4;
/// One collective of one group on tensors of one size, ready to run.
class Trial {
public:
  /// `bytes`: the whole tensor of the group.
  Trial(comm::Group &group, MoveKind kind, int64_t bytes) : group(group), kind(kind) {
    int64_t size = group.size();
    // Two dimensions that the group cuts evenly, so that nothing is left out of what is received.
    int64_t elements = std::max<int64_t>(bytes / 4, size * size);
    shape = {size, elements / (size * size) * size};
    Sharding whole{{size}, {{}, {}}, {}}, rows{{size}, {{0}, {}}, {}}, columns{{size}, {{}, {0}}, {}};
    Sharding sum = whole;
    sum.partial = {{0, ReduceKind::Sum}};
    std::vector<int64_t> members(size);
    std::iota(members.begin(), members.end(), 0); // ranks of the shardings are positions in the group
    count = elementCount(shape);
    int64_t tensor = count * 4, shard = tensor / size;
    auto exchangeFrom = [&](const Sharding &from, const Sharding &to) {
      exchange = exchangeBetween(from, to, shape, members, group.rank(), comm::ElementType::F32);
    };
    switch (kind) {
    case MoveKind::AllReduce:
      received = 2 * (tensor - shard);
      break;
    case MoveKind::ReduceScatter:
      pieces = scatterPieces(sum, rows, shape, members);
      received = tensor - shard;
      break;
    case MoveKind::AllGather:
      exchangeFrom(rows, whole);
      received = tensor - shard;
      break;
    case MoveKind::AlltoAll:
      exchangeFrom(rows, columns);
      received = shard - shard / size;
      break;
    case MoveKind::CollectivePermute:
      shiftWholeTensors(members);
      received = tensor;
      break;
    default: // Exchange: from columns to rows, so that the pieces are strided in the target
      exchangeFrom(columns, rows);
      received = shard - shard / size;
    }
    source.assign(static_cast<size_t>(count), 1.0f);
    target.assign(static_cast<size_t>(count), 0.0f);
  }

  int64_t receivedBytes() const { return received; }

  Status run() {
    if (kind == MoveKind::AllReduce)
      return group.allReduce(source.data(), target.data(), count, comm::ElementType::F32, ReduceKind::Sum, label);
    if (kind == MoveKind::ReduceScatter)
      return group.reduceScatter(source.data(), target.data(), pieces, comm::ElementType::F32, ReduceKind::Sum, label);
    return group.exchange(source.data(), target.data(), exchange, label);
  }

private:
  /// Everybody receives the tensor of the next member.
  void shiftWholeTensors(const std::vector<int64_t> &members) {
    comm::Region all{0, {count}, {1}};
    auto size = static_cast<int32_t>(members.size());
    exchange.type = comm::ElementType::F32;
    exchange.receives = {{(group.rank() + 1) % size, all, all}};
    exchange.sends = {{(group.rank() + size - 1) % size, all, all}};
  }

  comm::Group &group;
  MoveKind kind;
  std::vector<int64_t> shape;
  int64_t count = 0, received = 0;
  std::vector<comm::Region> pieces;
  comm::ExchangePlan exchange;
  std::vector<float> source, target;
  comm::OperationLabel label{"calibration", ""};
};

} // namespace

std::vector<int64_t> measuredGroupSizes(int64_t ranks) {
  std::vector<int64_t> sizes;
  for (int64_t size = 2; size <= ranks; ++size)
    if (ranks % size == 0)
      sizes.push_back(size);
  while (sizes.size() > 4)
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2));
  return sizes;
}

/// Samples of one kind and group from small to large, within `seriesUs`.
static Status measureSeries(comm::Group &group, MoveKind kind, Stopwatch &watch, double seriesUs,
                            std::vector<CollectiveSample> &samples) {
  double endUs = watch.left() - seriesUs, lastUs = 0;
  for (int64_t bytes = smallestBytes; bytes <= largestBytes; bytes *= sizeFactor) {
    double share = watch.left() - endUs;
    if (lastUs > 0 && sizeFactor * lastUs * Stopwatch::fewestRuns > share) // the smallest is always measured
      break;
    Trial trial(group, kind, bytes);
    // What small sizes leave of the time is for the large ones.
    Result<double> us = watch.median([&] { return trial.run(); }, share / sizeFactor);
    if (!us)
      return us.error();
    samples.push_back({kind, group.size(), trial.receivedBytes(), *us, watch.spreads().back()});
    lastUs = *us;
  }
  return {};
}

std::vector<GroupForm> consecutiveGroups(int64_t ranks) {
  std::vector<GroupForm> forms;
  for (int64_t size : measuredGroupSizes(ranks))
    forms.push_back({size, 1});
  return forms;
}

std::vector<GroupForm> groupsAcross(int64_t ranks, int64_t node) {
  std::vector<GroupForm> forms;
  for (int64_t size : measuredGroupSizes(ranks / node))
    forms.push_back({size, node});
  forms.push_back({ranks, 1});
  return forms;
}

/// The members of the group of a rank.
static std::vector<int64_t> membersOf(const GroupForm &form, int64_t rank) {
  int64_t block = form.size * form.stride, first = rank / block * block + rank % form.stride;
  std::vector<int64_t> members;
  for (int64_t i = 0; i < form.size; ++i)
    members.push_back(first + i * form.stride);
  return members;
}

Result<std::vector<CollectiveSample>> measureCollectives(comm::World &world, const std::vector<GroupForm> &forms,
                                                         double seconds, const Clock &clock) {
  std::vector<int64_t> all(static_cast<size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  Result<comm::Group *> everybody = world.group(all);
  if (!everybody)
    return everybody.error();
  Stopwatch watch(**everybody, seconds, clock);
  std::vector<CollectiveSample> samples;
  auto series = static_cast<double>(forms.size() * (moveKinds - 1)); // that share the time that is left
  for (const GroupForm &form : forms) {
    Result<comm::Group *> group = world.group(membersOf(form, world.rank()));
    if (!group)
      return group.error();
    for (size_t kind = 1; kind < moveKinds; ++kind, --series)
      if (Status status = measureSeries(**group, static_cast<MoveKind>(kind), watch, watch.left() / series, samples);
          !status)
        return status.error();
  }
  return samples;
}

} // namespace msc
