// Collectives: what they do to shardings, and that all ranks agree on them.
#include "runtime/plan/PlanChecks.h"

#include <algorithm>
#include <map>
#include <set>

namespace msc::check {
namespace {

/// Most (rank, collective, member) triples that the simulation of several variants looks at.
constexpr int64_t simulationLimit = int64_t{1} << 26;

/// What one tensor of a collective does.
struct Ends {
  uint32_t source = 0, target = 0;
  std::vector<int64_t> matrix; ///< of the group
  std::vector<int32_t> axes;   ///< of the group, in `matrix`
  const Sharding *from = nullptr;
  const Sharding *to = nullptr;
  const std::vector<int64_t> *shape = nullptr;
};

Status proven(const PlanIndex &index, const plan::Step &step, const Ends &ends, Proof proof, const std::string &what) {
  if (proof == Proof::Yes)
    return {};
  return bad("{}: {} from {} to {}: {}{}", at(index, step), collectiveName(step.collective().kind()),
             index.bufferTitle(ends.source), index.bufferTitle(ends.target), what,
             proof == Proof::Unknown ? " (cannot be proven within bounded work)" : "");
}

/// The axes that are partial in the source and not in the target are exactly those of the group, all of one kind.
Status checkReducedAxes(const PlanIndex &index, const plan::Step &step, const Ends &ends) {
  auto fail = [&](const std::string &what) { return proven(index, step, ends, Proof::No, what); };
  auto refined = commonRefinement({&ends.from->axes, &ends.to->axes, &ends.matrix});
  if (!refined)
    return fail("source, target and group factorise the ranks in ways that do not fit");
  Sharding from = refine(*ends.from, *refined), to = refine(*ends.to, *refined);
  std::vector<int32_t> reduced;
  for (const PartialAxis &partial : from.partial) {
    bool stays = std::find(to.partial.begin(), to.partial.end(), partial) != to.partial.end();
    if (stays)
      continue;
    if (static_cast<int>(partial.kind) != static_cast<int>(step.collective().reduction()))
      return fail(fmt::format("the source is partial by {}, the reduction is {}", reduceKindName(partial.kind),
                              reduceKindName(static_cast<ReduceKind>(step.collective().reduction()))));
    reduced.push_back(partial.axis);
  }
  for (const PartialAxis &partial : to.partial)
    if (std::find(from.partial.begin(), from.partial.end(), partial) == from.partial.end())
      return fail("the target is partial where the source is not");
  std::vector<int32_t> group = refineAxes(ends.matrix, ends.axes, *refined);
  std::sort(group.begin(), group.end());
  if (group != reduced)
    return fail("the group is not the one over which the source is partial");
  return {};
}

Status checkReduction(const PlanIndex &index, const plan::Step &step, const Ends &ends) {
  if (Status status = checkReducedAxes(index, step, ends); !status)
    return status;
  plan::DataType type = index.buffer(ends.source).dtype();
  if (type == plan::BOOL)
    return proven(index, step, ends, Proof::No, "values of type bool cannot be reduced");
  Proof within = boxWithin(*ends.to, *ends.from, *ends.shape);
  if (Status status = proven(index, step, ends, within, "a rank does not hold all terms of its part of the target"); !status)
    return status;
  if (step.collective().kind() == plan::Collective::REDUCE_SCATTER)
    return {};
  return proven(index, step, ends, boxWithin(*ends.from, *ends.to, *ends.shape), "source and target are cut differently");
}

Status checkTensor(const PlanIndex &index, const plan::Step &step, const Ends &ends) {
  const plan::Collective &collective = step.collective();
  if (index.shape(ends.source) != index.shape(ends.target) ||
      index.buffer(ends.source).dtype() != index.buffer(ends.target).dtype())
    return proven(index, step, ends, Proof::No, "source and target are different tensors");
  // An AllReduce may work in place: its target is then a view of its source, with another sharding.
  if (index.root(ends.source) == index.root(ends.target) && collective.kind() != plan::Collective::ALL_REDUCE)
    return proven(index, step, ends, Proof::No, "source and target share memory");
  if (collective.kind() == plan::Collective::ALL_REDUCE || collective.kind() == plan::Collective::REDUCE_SCATTER)
    return checkReduction(index, step, ends);
  Proof covered = coveredByGroup(*ends.to, *ends.from, *ends.shape, ends.matrix, ends.axes);
  return proven(index, step, ends, covered, "a rank needs elements that no member of its group holds");
}

/// Several tensors: all of one type, and what one writes no other one reads or writes.
Status checkTogether(const PlanIndex &index, const plan::Step &step) {
  auto tensors = tensorsOf(step.collective());
  std::map<uint32_t, size_t> users; // tensors that touch a root
  std::set<uint32_t> written;       // targets that several sources may write, by regions
  for (auto [source, target, regions] : tensors) {
    if (index.buffer(source).dtype() != index.buffer(tensors[0].source).dtype())
      return bad("{} moves {} and {}, which differ in type", at(index, step), index.bufferTitle(tensors[0].source),
                 index.bufferTitle(source));
    users[index.root(target)] += !regions || written.insert(target).second;
    if (index.root(source) != index.root(target))
      ++users[index.root(source)];
  }
  for (auto [source, target, regions] : tensors)
    if (users[index.root(target)] > 1)
      return bad("{} uses the memory of {} for two tensors", at(index, step), index.bufferTitle(target));
  return {};
}

Status checkCollective(const PlanIndex &index, const plan::Variant &variant, const plan::Step &step) {
  const plan::Collective &collective = step.collective();
  const plan::Group &group = variant.groups(static_cast<int>(collective.group()));
  std::vector<MovedTensor> tensors = tensorsOf(collective);
  bool byRegions = std::any_of(tensors.begin(), tensors.end(), [](const MovedTensor &tensor) { return tensor.regions; });
  if (byRegions && collective.kind() != plan::Collective::EXCHANGE)
    return bad("{} copies regions, which only an exchange does", at(index, step));
  if (byRegions)
    if (Status status = checkRegionTensors(index, step, tensors, collective.has_fill(), &group); !status)
      return status;
  for (auto [source, target, regions] : byRegions ? std::vector<MovedTensor>() : tensors) {
    Ends ends{source,
              target,
              {group.matrix().begin(), group.matrix().end()},
              {group.axes().begin(), group.axes().end()},
              &index.sharding(source),
              &index.sharding(target),
              &index.shape(source)};
    if (Status status = checkTensor(index, step, ends); !status)
      return status;
  }
  return collective.also_size() == 0 ? Status() : checkTogether(index, step);
}

/// What members of a group must agree on besides the group itself.
std::string signatureOf(const PlanIndex &index, const plan::Collective &collective) {
  std::string text = fmt::format("{} {}", collectiveName(collective.kind()), static_cast<int>(collective.reduction()));
  for (auto [source, target, regions] : tensorsOf(collective)) {
    const plan::Buffer &buffer = index.buffer(source);
    text += fmt::format(" {}[{}] {} -> {}", dataTypeName(buffer.dtype()), fmt::join(buffer.shape(), ", "),
                        index.sharding(source).str(), index.sharding(target).str());
    if (regions)
      text += fmt::format(" [{}] {}", fmt::join(index.buffer(target).shape(), ", "), regions->SerializeAsString());
  }
  return text;
}

/// One rank in the simulation: the collectives that it still has to run.
struct Runner {
  const plan::Variant *variant = nullptr;
  std::vector<const plan::Step *> collectives;
  size_t next = 0;
};

/// True if all members of the group of `rank`'s next collective stand at the same one.
bool isReady(const PlanIndex &index, const std::vector<Runner> &runners, int64_t rank, std::vector<int64_t> &members) {
  const Runner &runner = runners[rank];
  const plan::Collective &own = runner.collectives[runner.next]->collective();
  members = membersOf(runner.variant->groups(static_cast<int>(own.group())), rank);
  std::string signature = signatureOf(index, own);
  for (int64_t member : members) {
    const Runner &other = runners[member];
    if (other.next == other.collectives.size())
      return false;
    const plan::Collective &theirs = other.collectives[other.next]->collective();
    if (membersOf(other.variant->groups(static_cast<int>(theirs.group())), member) != members ||
        signatureOf(index, theirs) != signature)
      return false;
  }
  return true;
}

Status simulate(const PlanIndex &index, std::vector<Runner> &runners) {
  int64_t work = 0;
  std::vector<int64_t> members, ready;
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    ready.push_back(rank);
  while (!ready.empty()) {
    int64_t rank = ready.back();
    ready.pop_back();
    while (runners[rank].next < runners[rank].collectives.size() && isReady(index, runners, rank, members)) {
      work += static_cast<int64_t>(members.size());
      if (work > simulationLimit)
        return bad("its variants have too many collectives to prove that they agree");
      for (int64_t member : members) {
        ++runners[member].next;
        ready.push_back(member);
      }
    }
  }
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    if (const Runner &runner = runners[rank]; runner.next < runner.collectives.size())
      return bad("{}: rank {} would wait for ever, because the members of its group run other collectives",
                 at(index, *runner.collectives[runner.next]), rank);
  return {};
}

} // namespace

Status checkCollectives(const PlanIndex &index, const plan::Variant &variant) {
  // Layers repeat: the same kind, group, tensor and shardings are proven once.
  std::set<std::string> proven;
  for (const plan::Step &step : variant.steps()) {
    if (!step.has_collective())
      continue;
    const plan::Collective &collective = step.collective();
    std::string key = fmt::format("{} {} {}", collective.group(), signatureOf(index, collective),
                                  index.root(collective.source()) == index.root(collective.target()));
    if (!proven.insert(key).second && collective.also_size() == 0 && !collective.has_regions())
      continue;
    if (Status status = checkCollective(index, variant, step); !status)
      return status;
  }
  return {};
}

Status checkAgreement(const PlanIndex &index, const plan::Program &program) {
  // Ranks of one variant run the same list, and a group is a function of the rank: they agree by construction.
  if (program.variants_size() == 1)
    return {};
  std::vector<Runner> runners(static_cast<size_t>(index.devices()));
  int64_t total = 0;
  for (int64_t rank = 0; rank < index.devices(); ++rank) {
    Runner &runner = runners[rank];
    runner.variant = PlanIndex::variantOf(program, rank);
    for (const plan::Step &step : runner.variant->steps())
      if (step.has_collective())
        runner.collectives.push_back(&step);
    total += static_cast<int64_t>(runner.collectives.size());
    if (total > simulationLimit)
      return bad("its variants have too many collectives to prove that they agree");
  }
  return simulate(index, runners);
}

} // namespace msc::check
