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

} // namespace

SearchResult searchRecursively(const Problem &problem, const std::function<StepModel(const Problem &)> &modelOf) {
  std::vector<Pieces> now;
  for (const ProblemOperator &op : problem.operators)
    now.emplace_back(op.facts.rule.factors.size(), 1);
  SearchResult result;
  int64_t devices = 1;
  for (int64_t divisor : divisorsOf(problem)) {
    devices *= divisor;
    bool isLast = devices == problem.devices;
    Problem part = problem;
    part.devices = devices;
    for (ProblemTensor &tensor : part.tensors)
      if (tensor.dataset && !isLast)
        tensor.dataset = within(*tensor.dataset, devices);
    for (size_t i = 0; i < part.operators.size(); ++i) {
      ProblemOperator &op = part.operators[i];
      if (op.configured && !isLast)
        op.configured = within(*op.configured, devices);
      if (!isLast)
        op.out.clear();
      if (!op.configured)
        op.among = towards(cutOnceMore(op.facts, now[i], divisor), problem.operators[i].among, isLast);
    }
    StepModel model = modelOf(part);
    model.makeAllExact(); // options are few
    result = resultOf(part, model, search::sweep(model.network()));
    for (size_t i = 0; i < now.size(); ++i)
      now[i] = result.choices[i].pieces;
  }
  result.boundUs = 0;
  result.isOptimal = false;
  return result;
}

} // namespace msc::passes
