// Random networks under random legal strategies against the f64 reference. MSC_LONG=1 runs 4,000 of them.
// `differential_test --seed N` runs one case and prints everything about it; `--cases N` sets the number of cases, `--first SEED` where
// they begin, for a campaign in parts; `--cases N --write FOLDER` only writes the networks of all cases there, and those of all operators
// of the table, each with its number of devices in its first line: "# 4 devices".
#include "test/e2e/Case.h"
#include "test/e2e/Differential.h"
#include "test/e2e/OperatorNetworks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

using namespace msc::e2e;

namespace {

int64_t caseCount = 320, firstSeed = 1;

/// Runs so many seeds from the first one on, on all processors.
struct Campaign {
  Coverage coverage;
  std::vector<std::string> failures;

  void run(int64_t count) {
    std::atomic<int64_t> next{firstSeed};
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back([&] {
        for (int64_t seed = next++; seed < firstSeed + count; seed = next++)
          runOne(static_cast<uint64_t>(seed));
      });
    for (std::thread &worker : workers)
      worker.join();
  }

private:
  void runOne(uint64_t seed) {
    Verdict verdict = runCase(seed, coverage);
    std::lock_guard lock(mutex);
    if (!verdict.failure.empty())
      failures.push_back(verdict.failure);
  }

  std::mutex mutex;
};

TEST(Differential, randomNetworksUnderRandomStrategiesGiveTheReferencesNumbers) {
  Campaign campaign;
  campaign.run(caseCount);
  for (const std::string &failure : campaign.failures)
    ADD_FAILURE() << failure;
  const Coverage &coverage = campaign.coverage;
  std::cout << coverage.text() << "failed: " << campaign.failures.size() << "\n";
  if (caseCount < 300)
    return;
  // So many are enough; fewer networks have fewer.
  auto least = [](int64_t enough, int64_t networks) { return std::min(enough, caseCount / networks); };
  for (const std::string &op : allOperators())
    if (!speaksOfRanks(op))
      EXPECT_GE(coverage.operators.contains(op) ? coverage.operators.at(op) : 0, least(10, 300)) << "operator " << op;
  for (const auto &[kind, count] : coverage.collectives)
    EXPECT_GE(count, least(20, 36)) << kind;
  EXPECT_GE(coverage.collectives.size(), 6u);
  // Windows, places of extrema and quotients tie more often than sums: one network in fifty has no derivative to compare with.
  EXPECT_LE(coverage.withoutState * 50, coverage.cases);
  EXPECT_GE(coverage.buckets, least(50, 14)) << "buckets of gradients";
  EXPECT_GE(coverage.windows, least(100, 7)) << "kernels with halos";
  EXPECT_GE(coverage.overlapped, least(100, 7)) << "collectives in flight";
  EXPECT_GE(coverage.linear, least(20, 36)) << "steps on partial values";
  EXPECT_GE(coverage.uneven * 10, coverage.cases * 3);
  EXPECT_GE(coverage.fewestNodes, 5);
  EXPECT_LE(coverage.mostNodes, 40);
}

int runOne(uint64_t seed) {
  Coverage coverage;
  Verdict verdict = runCase(seed, coverage, true);
  std::printf("%sworst error %.3g\n%s", coverage.text().c_str(), verdict.worst, verdict.failure.c_str());
  return verdict.failure.empty() ? 0 : 1;
}

int writeAll(const std::string &folder) {
  std::filesystem::create_directories(folder);
  for (int64_t seed = 1; seed <= caseCount; ++seed) {
    msc::Result<Case> made = makeCase(static_cast<uint64_t>(seed));
    if (!made)
      return 1;
    std::ofstream(folder + "/seed-" + std::to_string(seed) + ".mir") << "# " << made->devices << " devices\n" << made->text;
  }
  const std::vector<const msc::test::OperatorCase *> cases = casesForLoss();
  constexpr size_t together = 8; // in a network
  for (size_t begin = 0; begin < cases.size(); begin += together)
    for (const char *element : {"f32", "f64"}) {
      const std::vector<const msc::test::OperatorCase *> some(cases.begin() + static_cast<ptrdiff_t>(begin),
                                                              cases.begin() + static_cast<ptrdiff_t>(std::min(begin + together, cases.size())));
      std::ofstream file(folder + "/operators-" + std::to_string(begin) + "-" + element + ".mir");
      file << "# 1 devices\n#";
      for (const msc::test::OperatorCase *theCase : some)
        file << " '" << theCase->name << "'";
      file << "\n" << lossOfCases(some, element);
    }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char *isLong = std::getenv("MSC_LONG"); isLong && *isLong && std::string(isLong) != "0")
    caseCount = 4000;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--seed")
      return runOne(std::strtoull(argv[i + 1], nullptr, 10));
    if (std::string(argv[i]) == "--cases")
      caseCount = std::strtoll(argv[i + 1], nullptr, 10);
    if (std::string(argv[i]) == "--first")
      firstSeed = std::strtoll(argv[i + 1], nullptr, 10);
    if (std::string(argv[i]) == "--write")
      return writeAll(argv[i + 1]);
  }
  return RUN_ALL_TESTS();
}
