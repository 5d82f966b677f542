// The exact solver against toulbar2 and CBC on synthetic networks.
#include "Oracles.h"
#include "Transformer.h"

using namespace msc::search;
using namespace msc::search::test;

namespace {

std::vector<Question> networks(int32_t mostHalvings) {
  std::vector<Question> all;
  for (int seed = 0; seed < 60; ++seed)
    all.push_back(questionOf("seed " + std::to_string(seed), rounded(randomNetwork(seed, 1e9))));
  for (int32_t halvings = 1; halvings <= mostHalvings; ++halvings)
    for (int64_t layers : {1, 2, 3})
      all.push_back(questionOf(std::to_string(layers) + " layers, 2^" + std::to_string(halvings) + " devices",
                               rounded(unroll(SyntheticTransformer(layers, halvings).repeated).network)));
  return all;
}

} // namespace

TEST(OracleTest, Toulbar2FindsTheSameCost) { compare<Wcsp>("toulbar2", networks(3), 30); }

TEST(OracleTest, CbcFindsTheSameCost) { compare<Lp>("cbc", networks(2), 30); }
