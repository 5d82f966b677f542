// Random networks with repeated sections.
#pragma once

#include "Networks.h"
#include "passes/sharding/search/Repeat.h"

#include <cmath>

namespace msc::search::test {

/// Terms over some of these references.
class RandomTerms {
public:
  RandomTerms(Random &random, const std::vector<int32_t> &options) : random(random), options(options) {}

  Terms over(const std::vector<int32_t> &references, int32_t tables, int32_t shared) {
    // In place of the references, which may be negative, their positions.
    std::vector<int32_t> positions, ofPositions;
    for (int32_t reference : references) {
      positions.push_back(static_cast<int32_t>(positions.size()));
      ofPositions.push_back(options[reference < 0 ? ~reference : reference]);
    }
    Terms terms;
    for (int32_t i = random.below(tables + 1); i > 0; --i) {
      Table table = randomTable(random, ofPositions, randomSubset(random, positions, 3));
      for (int32_t &variable : table.scope)
        variable = references[variable];
      terms.tables.push_back(std::move(table));
    }
    for (int32_t i = random.below(shared + 1); i > 0; --i) {
      SharedCost cost = randomShared(random, randomSubset(random, positions, 4), ofPositions);
      cost.producer = references[cost.producer];
      for (SharedCost::Reader &reader : cost.readers)
        reader.variable = references[reader.variable];
      terms.shared.push_back(std::move(cost));
    }
    return terms;
  }

private:
  Random &random;
  const std::vector<int32_t> &options;
};

/// One or two sections with parameters, some variables outside, and anything between them.
inline RepeatedNetwork randomRepeated(uint64_t seed, int32_t mostRounds, double limit) {
  while (true) {
    Random random(seed);
    RepeatedNetwork network;
    const int32_t outside = random.below(3), sections = 1 + random.below(2);
    std::vector<int32_t> &options = network.network.options;
    for (int32_t i = 0; i < outside; ++i)
      options.push_back(1 + random.below(4));
    double size = assignments(options);
    for (int32_t s = 0; s < sections; ++s) {
      Section &section = network.sections.emplace_back();
      section.rounds = 1 + random.below(mostRounds);
      for (int32_t i = 1 + random.below(3); i > 0; --i) {
        section.variables.push_back(static_cast<int32_t>(options.size()));
        options.push_back(1 + random.below(4));
        size *= std::pow(options.back(), section.rounds);
      }
    }
    if (size > limit) {
      seed += 1000003;
      continue;
    }
    RandomTerms terms(random, options);
    std::vector<int32_t> out(outside);
    for (int32_t i = 0; i < outside; ++i)
      out[i] = i;
    if (outside) {
      Terms around = terms.over(out, 3, 1);
      network.network.tables = around.tables;
      network.network.shared = around.shared;
    }
    std::vector<int32_t> every = out;
    for (const Section &section : network.sections)
      every.insert(every.end(), section.variables.begin(), section.variables.end());
    for (Section &section : network.sections) {
      std::vector<int32_t> own = section.variables, both = own;
      for (int32_t variable : section.variables)
        both.push_back(inNextRound(variable));
      if (random.below(3) == 0)
        for (std::vector<int32_t> *list : {&own, &both})
          list->insert(list->end(), out.begin(), out.end());
      section.within = terms.over(own, 4, 1);
      section.carried = terms.over(both, 3, 2);
      section.entry = terms.over(every, 2, 1);
      section.exit = terms.over(every, 2, 1);
    }
    return network;
  }
}

} // namespace msc::search::test
