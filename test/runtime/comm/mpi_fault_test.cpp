// Ranks under mpirun that die, stop, fail or disagree: the run ends within seconds, with the first cause on all ranks.
#include "test/Campaign.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <sys/wait.h>

namespace {

struct Outcome {
  int code = 0; ///< of mpirun
  double seconds = 0;
  std::vector<std::string> ranks; ///< what each rank said; empty: it could not
  std::string log;                ///< of mpirun and all ranks
};

/// Four ranks; one misbehaves in one step. `hosts` > 0: as if on so many hosts. `count` elements are reduced in each step.
Outcome run(const std::string &fault, int hosts, int64_t count, int culprit = 2, int step = 5) {
  std::string folder = (std::filesystem::temp_directory_path() / "msc_fault_XXXXXX").string();
  folder = mkdtemp(folder.data());
  std::string command = "MSC_MPI_HOSTS=" + std::to_string(hosts) + " timeout -s KILL 60 " MSC_MPIRUN " " MSC_ROOT " 4 " MSC_DRIVER " " +
                        fault + " " + folder + " " + std::to_string(count) + " " + std::to_string(culprit) + " " + std::to_string(step) + " > " + folder + "/log 2>&1";
  auto start = std::chrono::steady_clock::now();
  int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int r = 0; r < 4; ++r) {
    std::ifstream file(folder + "/rank_" + std::to_string(r));
    std::string line;
    std::getline(file, line);
    outcome.ranks.push_back(line);
  }
  std::stringstream log;
  log << std::ifstream(folder + "/log").rdbuf();
  outcome.log = log.str();
  std::filesystem::remove_all(folder);
  return outcome;
}

class MpiFault : public testing::TestWithParam<std::pair<int, int64_t>> {
protected:
  void SetUp() override {
    if (std::system("command -v mpirun > /dev/null") != 0)
      GTEST_SKIP() << "mpirun is not installed";
  }
  Outcome run(const std::string &fault) { return ::run(fault, GetParam().first, GetParam().second); }
};

/// Whether a run ended in time, beside what a run without a fault takes on this machine as busy as it is.
bool isWithin(const Outcome &outcome, double seconds) {
  constexpr double asBusy = 4;
  return outcome.seconds < seconds || outcome.seconds < seconds + asBusy * run("none", 0, 7).seconds;
}

bool begins(const std::string &text, const std::string &start) { return text.rfind(start, 0) == 0; }
bool holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_P(MpiFault, NoFaultEndsWell) {
  Outcome outcome = run("none");
  EXPECT_EQ(outcome.code, 0);
  for (const std::string &said : outcome.ranks)
    EXPECT_EQ(said, "0 done");
}

TEST_P(MpiFault, ASlowRankIsWaitedFor) { EXPECT_EQ(run("compute").code, 0); }

TEST_P(MpiFault, AFailureReachesAllRanksWithItsCode) {
  Outcome outcome = run("abort");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(isWithin(outcome, 10)) << outcome.seconds << " s";
  for (int r = 0; r < 4; ++r)
    EXPECT_EQ(outcome.ranks[r], r == 2 ? "3 record 12 is broken" : "3 rank 2 failed: record 12 is broken");
}

TEST_P(MpiFault, DifferentCountsNameBothSides) {
  Outcome outcome = run("count");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(isWithin(outcome, 10)) << outcome.seconds << " s";
  for (const std::string &said : outcome.ranks)
    EXPECT_TRUE(begins(said, "5 ") && holds(said, "rank 0 is in AllReduce 'grad'") && holds(said, "rank 2 is in AllReduce 'grad' of 7 f32")) << said;
}

TEST_P(MpiFault, AStoppedRankIsNamedAfterTheTimeout) {
  Outcome outcome = run("stop");
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(isWithin(outcome, 15)) << outcome.seconds << " s";
  for (int r : {0, 1, 3})
    EXPECT_TRUE(begins(outcome.ranks[r], "6 ") && holds(outcome.ranks[r], "made no progress"))
        << "rank " << r << ": " << outcome.ranks[r] << "\n" << outcome.log;
  // Behind a piece that did not come there may be others that wait themselves; somebody names the cause.
  EXPECT_TRUE(holds(outcome.ranks[0], "rank 2") || holds(outcome.ranks[1], "rank 2")) << outcome.ranks[0];
}

TEST_P(MpiFault, AKilledRankEndsTheRunWithinSeconds) {
  Outcome outcome = run("kill");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(isWithin(outcome, 10)) << outcome.seconds << " s";
  if (GetParam().first == 0)
    for (int r : {0, 1, 3})
      EXPECT_TRUE(begins(outcome.ranks[r], "5 rank 2 died: its process") && holds(outcome.ranks[r], "busy since AllReduce 'grad'"))
          << outcome.ranks[r];
}

TEST_P(MpiFault, ARankThatEndsWithoutAWordEndsTheRun) {
  Outcome outcome = run("exit");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(isWithin(outcome, 10)) << outcome.seconds << " s";
}

TEST_P(MpiFault, ARankThatLeavesEarlyIsNamed) {
  Outcome outcome = run("leave");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(isWithin(outcome, 15)) << outcome.seconds << " s";
  for (int r : {0, 1, 3})
    EXPECT_FALSE(begins(outcome.ranks[r], "0 ")) << outcome.ranks[r];
  if (GetParam().first == 0) {
    EXPECT_TRUE(holds(outcome.ranks[0], "rank 2 failed: it ended while its peers wait in AllReduce 'grad'")) << outcome.ranks[0];
  }
}

TEST(MpiFaultCampaign, AnyFaultAnywhereEndsTheRunWithinSeconds) {
  if (std::system("command -v mpirun > /dev/null") != 0)
    GTEST_SKIP() << "mpirun is not installed";
  const std::pair<const char *, int> faults[] = {{"abort", 3}, {"count", 5}, {"kill", -1}, {"exit", -1}, {"leave", -1}, {"stop", 6}, {"compute", 0}};
  const uint64_t cases = msc::test::campaignCases(6, 40);
  for (uint64_t seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(seed);
    auto [fault, code] = faults[random() % std::size(faults)];
    int hosts = static_cast<int>(random() % 3) * 2, culprit = static_cast<int>(random() % 4), step = static_cast<int>(random() % 50);
    int64_t count = 1 + static_cast<int64_t>(random() % (random() % 2 ? 100 : 300000));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + fault + " of rank " + std::to_string(culprit) + " in step " +
                 std::to_string(step) + ", " + std::to_string(count) + " elements, hosts " + std::to_string(hosts));
    Outcome outcome = run(fault, hosts, count, culprit, step);
    EXPECT_TRUE(isWithin(outcome, 15)) << outcome.seconds << " s";
    if (code >= 0) {
      EXPECT_EQ(outcome.code, code);
    } else {
      EXPECT_NE(outcome.code, 0);
    }
  }
  msc::test::printCampaign(cases, "runs under mpirun with a fault at a random place");
}

// Small payloads travel with the header, large ones after it; on one host, and as if on four.
INSTANTIATE_TEST_SUITE_P(Paths, MpiFault,
                         testing::Values(std::pair<int, int64_t>{0, 10}, std::pair<int, int64_t>{0, 200000},
                                         std::pair<int, int64_t>{4, 10}, std::pair<int, int64_t>{4, 200000}));
