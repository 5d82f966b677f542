// Lower bounds of many redistributions, each in a few microseconds: for searches that look at all pairs of shardings and need
// the time of few. Shardings and shapes are numbered, so that each is looked at once.
#pragma once

#include "dialects/dist/Algebra.h"
#include "dialects/dist/reshard/Bound.h"

#include <memory>
#include <unordered_map>

namespace msc::dist {

class LowerBounds {
public:
  /// Holds a reference.
  explicit LowerBounds(const MachineModel &machine) : machine(machine) {}

  int32_t numberOf(const Sharding &sharding);
  int32_t numberOfShape(const std::vector<int64_t> &shape);
  const Sharding &sharding(int32_t number) const { return *shardings[number].sharding; }
  const std::vector<int64_t> &shape(int32_t number) const { return *shapes[number].shape; }

  /// No plan from one sharding to the other takes less microseconds; 0 also where nothing is known. `startShare`: of the time of
  /// starting collectives, what counts.
  double us(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare = 1);

private:
  struct Hash {
    size_t operator()(const Sharding &sharding) const;
    size_t operator()(const std::vector<int64_t> &numbers) const;
  };
  struct KnownSharding {
    const Sharding *sharding;
    int32_t matrix;
    std::vector<std::pair<int32_t, State>> states; ///< over matrices
  };
  struct KnownShape {
    const std::vector<int64_t> *shape;
    std::vector<std::unique_ptr<Frame>> frames; ///< by matrix
  };
  static constexpr int32_t none = -1;

  int32_t numberOfMatrix(const std::vector<int64_t> &matrix);
  int32_t common(int32_t a, int32_t b);
  Frame &frame(int32_t matrix, int32_t shape);
  State stateOf(int32_t sharding, int32_t matrix, const Frame &frame);
  const LeastPrices &pricesFor(double startShare);
  double usAmongAll(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, size_t elementBytes, double startShare) const;

  const MachineModel &machine;
  Bound bound;
  std::vector<std::pair<double, std::unique_ptr<LeastPrices>>> prices; ///< by share
  std::unordered_map<Sharding, int32_t, Hash> shardingNumbers;
  std::vector<KnownSharding> shardings;
  std::unordered_map<std::vector<int64_t>, int32_t, Hash> matrixNumbers, shapeNumbers;
  std::vector<const std::vector<int64_t> *> matrices;
  std::vector<KnownShape> shapes;
  std::unordered_map<int64_t, int32_t> commons; ///< of two matrices
};

} // namespace msc::dist
