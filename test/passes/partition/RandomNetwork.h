// Random networks with random legal strategies.
#pragma once

#include "test/dialects/net/TestNetwork.h"

#include <random>

namespace msc::test {

/// A forward network with inputs, parameters and a result "loss"; all sizes are small, many are odd.
class RandomNetwork {
public:
  RandomNetwork(TestNetwork &network, uint64_t seed);

  /// Gives some operators a random legal strategy.
  void configure(int64_t devices, double share);

  /// Random values of all inputs, parameters and scalars.
  std::map<std::string, reference::Tensor> values();

private:
  mlir::Value pick();
  mlir::Value fresh(llvm::ArrayRef<int64_t> shape);
  mlir::Value step();
  mlir::Value movement(mlir::Value x, const std::string &name);
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); }

  TestNetwork &network;
  std::mt19937_64 random;
  std::vector<mlir::Value> pool;
  int64_t names = 0;
};

} // namespace msc::test
