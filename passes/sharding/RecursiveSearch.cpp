// recursive_programming: the devices are divided by one prime after the other, or by one axis of the user's mesh.
#include "passes/sharding/Search.h"

#include "passes/sharding/CoarseMesh.h"
#include "passes/sharding/search/Sweep.h"

#include <algorithm>
#include <numeric>

namespace msc::passes {
namespace {

std::vector<int64_t> divisorsOf(const Problem &problem) {
  if (problem.meshes.size() != 1)
    return primeFactors(problem.devices);
  std::vector<int64_t> axes = problem.meshes.front();
  std::erase(axes, 1);
  return axes;
}

/// As many of these pieces as so many devices can take, the first ones first.
Pieces within(const Pieces &pieces, int64_t devices) {
  Pieces fewer;
  for (int64_t count : pieces) {
    fewer.push_back(std::gcd(count, devices));
    devices /= fewer.back();
  }
  return fewer;
}

/// The same cuts among fewer devices.
Sharding within(const Sharding &sharding, int64_t devices) {
  Pieces pieces;
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
    pieces.push_back(sharding.pieces(dim));
  Sharding fewer;
  for (int64_t count : within(pieces, devices)) {
    fewer.dims.push_back({static_cast<int32_t>(fewer.axes.size())});
    fewer.axes.push_back(count);
    devices /= count;
  }
  fewer.axes.push_back(devices);
  return fewer.canonical();
}

/// The strategy as it is, and with one factor cut into `divisor` times as many pieces.
std::vector<Pieces> cutOnceMore(const OperatorFacts &facts, const Pieces &now, int64_t divisor) {
  std::vector<Pieces> options{now};
  for (size_t factor = 0; factor < now.size(); ++factor) {
    Pieces more = now;
    more[factor] *= divisor;
    if (piecesPass(facts, more) && isNamed(facts, factor))
      options.push_back(std::move(more));
  }
  return options;
}

/// Of the options those that can still become one of `allowed`, in the end those that are one. None allowed: all are.
std::vector<Pieces> towards(std::vector<Pieces> options, const std::vector<Pieces> &allowed, bool isLast) {
  if (allowed.empty())
    return options;
  const Pieces now = options.front();
  std::erase_if(options, [&](const Pieces &option) {
    return std::ranges::none_of(allowed, [&](const Pieces &goal) {
      return isLast ? option == goal : std::ranges::equal(goal, option, [](int64_t all, int64_t part) { return all % part == 0; });
    });
  });
  return !options.empty() ? options : isLast ? allowed : std::vector<Pieces>{now};
}

/// The strategy as it is, and with one prime fewer in one factor, one more, or one in another factor.
std::vector<Pieces> nearby(const OperatorFacts &facts, const Pieces &now, int64_t devices, const std::vector<int64_t> &primes) {
  std::vector<Pieces> options{now};
  auto offer = [&](const Pieces &pieces) {
    if (devices % devicesUsed(pieces) == 0 && piecesPass(facts, pieces) && std::ranges::find(options, pieces) == options.end())
      options.push_back(pieces);
  };
  for (int64_t prime : primes)
    for (size_t to = 0; to < now.size(); ++to) {
      if (!isNamed(facts, to))
        continue;
      Pieces more = now;
      more[to] *= prime;
      offer(more);
      for (size_t from = 0; from < now.size(); ++from)
        if (now[from] % prime == 0) {
          Pieces moved = from == to ? now : more;
          moved[from] /= prime;
          offer(moved);
        }
    }
  return options;
}

/// No more pieces than elements, as strategies of users and of other searches.
Pieces withoutEmpty(const OperatorFacts &facts, Pieces pieces) {
  for (size_t factor = 0; factor < pieces.size(); ++factor)
    while (!whyNotCut(facts, factor, pieces[factor]).empty())
      pieces[factor] /= primeFactors(pieces[factor]).front();
  return piecesPass(facts, pieces) ? pieces : Pieces(pieces.size(), 1);
}

/// Changes strategies by a prime, all operators together, as long as that makes a step faster. `result` may be of others than `start`.
void refine(const Problem &problem, const std::function<StepModel(const Problem &)> &modelOf, std::vector<Pieces> start, SearchResult &result) {
  constexpr int mostRounds = 4;
  std::vector<int64_t> primes = divisorsOf(problem);
  std::ranges::sort(primes);
  primes.erase(std::unique(primes.begin(), primes.end()), primes.end());
  double before = search::infinity;
  for (int round = 0; round < mostRounds; ++round) {
    Problem part = problem;
    for (size_t i = 0; i < part.operators.size(); ++i) {
      ProblemOperator &op = part.operators[i];
      if (op.configured)
        continue;
      std::vector<Pieces> options = nearby(op.facts, start[i], problem.devices, primes);
      const std::vector<Pieces> &allowed = problem.operators[i].among;
      auto isOnOne = [&](const Pieces &option) { return std::ranges::any_of(problem.meshes, [&](const auto &mesh) { return isOnMesh(option, mesh); }); };
      std::erase_if(options, [&](const Pieces &option) {
        return allowed.empty() ? !problem.meshes.empty() && option != start[i] && !isOnOne(option) : std::ranges::find(allowed, option) == allowed.end();
      });
      op.among = options.empty() ? allowed : std::move(options);
    }
    StepModel model = modelOf(part);
    model.makeAllExact();
    SearchResult next = resultOf(part, model, search::sweep(model.network()));
    const bool isBetter = next.us < before * (1 - 1e-9);
    before = next.us;
    for (size_t i = 0; i < start.size(); ++i)
      start[i] = next.choices[i].pieces;
    if (next.us < result.us)
      result = std::move(next);
    if (!isBetter)
      return;
  }
}

} // namespace

SearchResult searchRecursively(const Problem &problem, const std::function<StepModel(const Problem &)> &modelOf) {
  std::vector<Pieces> now;
  for (const ProblemOperator &op : problem.operators)
    now.emplace_back(op.facts.rule.factors.size(), 1);
  SearchResult result;
  int64_t devices = 1;
  Problem part = problem;
  for (int64_t divisor : divisorsOf(problem)) {
    devices *= divisor;
    bool isLast = devices == problem.devices;
    part.devices = devices;
    for (size_t i = 0; i < part.tensors.size(); ++i)
      if (const std::optional<Sharding> &whole = problem.tensors[i].dataset)
        part.tensors[i].dataset = isLast ? *whole : within(*whole, devices);
    for (size_t i = 0; i < part.operators.size(); ++i) {
      ProblemOperator &op = part.operators[i];
      const ProblemOperator &whole = problem.operators[i];
      if (whole.configured)
        op.configured = isLast ? *whole.configured : within(*whole.configured, devices);
      op.wantedOut = isLast ? whole.wantedOut : std::vector<Pieces>();
      if (!op.configured)
        op.among = towards(cutOnceMore(op.facts, now[i], divisor), problem.operators[i].among, isLast);
    }
    StepModel model = modelOf(part);
    model.makeAllExact(); // options are few
    result = resultOf(part, model, search::sweep(model.network()));
    for (size_t i = 0; i < now.size(); ++i)
      now[i] = result.choices[i].pieces;
  }
  // What was decided among few devices looks different among all of them, and halvings that look good one by one may lead far from what all
  // devices do alike. Where there are very many, moves take long to price.
  constexpr size_t mostRefined = 1000;
  constexpr int64_t fewDevices = 64;
  if (problem.operators.size() <= mostRefined && problem.devices <= fewDevices) {
    refine(problem, modelOf, std::move(now), result);
    for (const Choices &start : {dataParallel(problem), standAlone(problem, "")}) {
      std::vector<Pieces> pieces;
      for (size_t i = 0; i < start.size(); ++i)
        pieces.push_back(withoutEmpty(problem.operators[i].facts, start[i].pieces));
      refine(problem, modelOf, std::move(pieces), result);
    }
  }
  result.boundUs = 0;
  result.isOptimal = false;
  return result;
}

} // namespace msc::passes
