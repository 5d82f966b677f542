#include "test/e2e/Coverage.h"

#include "runtime/plan/PlanIndex.h"
#include "test/e2e/Reading.h"

#include <algorithm>
#include <sstream>

namespace msc::e2e {

/// True if some rank holds fewer elements of the buffer than another; `isEmpty` is set if one holds none.
static bool isUneven(const PlanIndex &index, uint32_t buffer, bool &isEmpty) {
  int64_t least = index.localCount(buffer, 0), most = least;
  for (int64_t rank = 1; rank < index.devices(); ++rank) {
    least = std::min(least, index.localCount(buffer, rank));
    most = std::max(most, index.localCount(buffer, rank));
  }
  isEmpty |= least == 0 && most > 0;
  return least < most;
}

void Coverage::add(const Case &test, const ReferenceStep &reference, const plan::Plan &plan) {
  ++cases;
  ++modes[test.mode];
  ++types[test.type];
  ++devices[test.devices];
  configured += static_cast<int>(test.strategies);
  fewestNodes = std::min(fewestNodes, reference.forwardNodes);
  mostNodes = std::max(mostNodes, reference.forwardNodes);
  for (const auto &[op, count] : reference.operators)
    operators[op] += count;
  PlanIndex index(plan);
  bool someUneven = false, someEmpty = false;
  for (uint32_t buffer = 0; buffer < index.bufferCount(); ++buffer)
    someUneven |= isUneven(index, buffer, someEmpty);
  uneven += someUneven;
  empty += someEmpty;
  for (const plan::Step &step : plan.programs(0).variants(0).steps()) {
    if (step.has_collective()) {
      ++collectives[collectiveName(step.collective().kind())];
      buckets += step.collective().also_size() != 0;
      overlapped += step.collective().asynchronous();
      continue;
    }
    BodyAccess access = accessOf(step);
    access.reads.insert(access.reads.end(), step.reads().begin(), step.reads().end());
    linear += std::any_of(access.reads.begin(), access.reads.end(),
                          [&](uint32_t buffer) { return index.sharding(buffer).isPartial(); });
  }
}

template <typename Key> static void printCounts(std::ostream &out, const char *title, const std::map<Key, int> &counts) {
  out << title << ":";
  for (const auto &[key, count] : counts)
    out << " " << key << " " << count;
  out << "\n";
}

std::string Coverage::text() const {
  std::ostringstream out;
  out << "cases: " << cases << " and " << withoutState << " without a smooth state, " << fewestNodes << " to " << mostNodes << " operators, " << configured
      << " strategies by the user\n";
  out << "uneven: " << uneven << " cases, " << empty << " with a rank without elements; " << buckets
      << " buckets of gradients, " << linear << " steps on partial values, " << overlapped
      << " collectives in flight\n";
  printCounts(out, "devices", devices);
  printCounts(out, "modes", modes);
  printCounts(out, "types", types);
  printCounts(out, "collectives", collectives);
  printCounts(out, "operators", operators);
  return out.str();
}

std::vector<std::string> allOperators() {
  Reading reading("network n(%x: f32[2]) {\n  return x: %x\n}\n", 1);
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : reading.context.getRegisteredOperations())
    if (name.hasInterface<net::Operator>() && !name.stripDialect().ends_with("Pieces") && name.stripDialect() != "TopKMerge")
      names.push_back(name.stripDialect().str());
  return names;
}

} // namespace msc::e2e
