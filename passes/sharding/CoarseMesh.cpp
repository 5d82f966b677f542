#include "passes/sharding/CoarseMesh.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <set>
#include <string>

namespace msc::passes {

/// Pairs of operators are priced for all strategies of both: with these it takes minutes. Where devices have several prime
/// factors, there are many device matrices: most pairs of shardings have none in common and are bounded less well, and what moves
/// between them is counted rank by rank.
static size_t mostStrategies(const std::vector<int64_t> &primes) {
  constexpr int64_t fewRanks = 512, manyRanks = 4096;
  int64_t devices = 1;
  for (int64_t prime : primes)
    devices *= prime;
  if (primes.front() == primes.back() || devices <= fewRanks)
    return 2048;
  return devices > manyRanks ? 128 : 1024;
}

std::vector<int64_t> primeFactors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t factor = 2; factor * factor <= number; ++factor)
    for (; number % factor == 0; number /= factor)
      factors.push_back(factor);
  if (number > 1)
    factors.push_back(number);
  return factors;
}

std::vector<int64_t> coarseMesh(const Problem &problem) {
  if (problem.devices == 1 || !problem.meshes.empty())
    return {};
  std::vector<int64_t> mesh = primeFactors(problem.devices);
  const size_t most = mostStrategies(mesh);
  std::vector<std::vector<Pieces>> large;
  std::set<std::vector<std::vector<int64_t>>> seen; // operators that are cut alike
  for (const ProblemOperator &op : problem.operators) {
    std::vector<std::vector<int64_t>> key = op.facts.operandShapes;
    key.insert(key.end(), op.facts.resultShapes.begin(), op.facts.resultShapes.end());
    for (const net::Factor &factor : op.facts.rule.factors)
      key.push_back({static_cast<int64_t>(factor.kind), factor.size, factor.block, factor.halo ? 1 : 0});
    if (!seen.insert(std::move(key)).second)
      continue;
    if (std::vector<Pieces> list = candidates(op.facts, problem.devices); list.size() > most)
      large.push_back(std::move(list));
  }
  if (large.empty())
    return {};
  auto isCoarse = [&](const std::vector<Pieces> &list) {
    return std::ranges::count_if(list, [&](const Pieces &pieces) { return isOnMesh(pieces, mesh); }) <= static_cast<std::ptrdiff_t>(most);
  };
  while (mesh.size() > 1 && !std::ranges::all_of(large, isCoarse)) {
    std::ranges::sort(mesh);
    mesh[1] *= mesh[0];
    mesh.erase(mesh.begin());
  }
  std::ranges::sort(mesh);
  return mesh;
}

void noteCoarse(mlir::Location location, int64_t devices, const std::vector<int64_t> &mesh) {
  if (mesh.empty())
    return;
  std::string sizes;
  for (int64_t size : mesh)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  mlir::InFlightDiagnostic remark = mlir::emitRemark(location);
  remark << devices << " devices have too many factorisations, the search keeps to products of (" << sizes << ")";
  const int64_t least = primeFactors(devices).front();
  remark.attachNote() << "help: write a mesh to look at others, such as mesh (a: " << least << ", b: " << devices / least << ")";
}

} // namespace msc::passes
