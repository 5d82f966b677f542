// Ranks under mpirun that die, stop or are ended: one line on stderr says who and where, and the run ends within seconds.
#include "test/Campaign.h"
#include "test/runtime/executor/MsrunFixture.h"

#include <random>

using namespace msc;
using namespace msc::test;
using std::chrono::seconds;

namespace {

class MsrunMpi : public Msrun {
protected:
  void SetUp() override {
    Msrun::SetUp();
    if (std::system("command -v mpirun > /dev/null") != 0)
      GTEST_SKIP() << "mpirun is not installed";
    save(regression(8, 100000000));
  }
  /// Eight ranks that train until they are stopped. mpirun keeps its own remarks to itself: what is left on stderr is ours.
  pid_t startRanks(std::vector<std::string> flags = {}) {
    std::vector<std::string> words{"env", "OMPI_MCA_orte_execute_quiet=1", MSC_MPIRUN, MSC_ROOT, "8", MSC_MSRUN, "net.plan",
                                   "--log-every", "100000000"};
    words.insert(words.end(), flags.begin(), flags.end());
    pid_t mpirun = startProgram(words);
    EXPECT_TRUE(waitFor("batch num"));
    return mpirun;
  }
  /// The process of a rank among the children of mpirun.
  static pid_t processOf(pid_t mpirun, int rank) {
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
      if (!std::isdigit(entry.path().filename().string()[0]))
        continue;
      std::string stat = contentOf(entry.path() / "stat");
      size_t state = stat.rfind(") ");
      if (state == std::string::npos || std::atoi(stat.c_str() + state + 4) != mpirun)
        continue;
      std::string environment = contentOf(entry.path() / "environ") + '\0';
      std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
      if (environment.find('\0' + wanted + '\0') != std::string::npos)
        return std::atoi(entry.path().filename().c_str());
    }
    ADD_FAILURE() << "no process of rank " << rank;
    return mpirun;
  }
};

bool matches(const std::string &text, const std::string &form) { return std::regex_match(text, std::regex(form)); }

/// What a rank was last seen at: a step of the network, or, before the first one, the checks of plan and memory, which have no
/// line, and of which no epoch is known.
constexpr const char *kPlace = "(in|busy since) (([A-Za-z]+ '[a-z_ ]+' of .* at net.mir:[0-9]+), epoch [0-9]+ step [0-9]+|"
                               "(Broadcast 'plan check' of 32 [a-z]+|AllReduce '(plan|memory) check' of 1 i64 \\(min\\))"
                               "(, epoch [0-9]+ step [0-9]+)?)";

TEST_F(MsrunMpi, AKilledRankIsNamedByOneLine) {
  const uint64_t cases = campaignCases(3);
  for (uint64_t seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(seed);
    int rank = seed < 3 ? std::array{3, 0, 7}[seed] : static_cast<int>(random() % 8);
    pid_t mpirun = startRanks();
    pid_t victim = processOf(mpirun, rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    auto start = std::chrono::steady_clock::now();
    ::kill(victim, SIGKILL);
    Outcome outcome = finish(mpirun);
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
    // mpirun takes the code of the first process that died: 128 + 9, whatever the others say (runtime/comm/mpi/README.md).
    EXPECT_EQ(outcome.code, 137);
    EXPECT_TRUE(matches(outcome.err, "8 ranks: mpi, cpu\nmsrun: error: rank " + std::to_string(rank) + " died: its process " +
                                         std::to_string(victim) + " was " + kPlace + "\n"))
        << outcome.err;
  }
  printCampaign(cases, "ranks killed under mpirun");
}

TEST_F(MsrunMpi, AMistakeIsSaidOnce) {
  auto run = [&](const std::string &command) {
    return finish(startProgram({"env", "OMPI_MCA_orte_execute_quiet=1", MSC_MPIRUN, MSC_ROOT, "8", "sh", "-c", command}));
  };
  auto expect = [&](const std::string &command, int code, const std::string &err) {
    Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << command;
    EXPECT_EQ(outcome.err, err);
  };
  const std::string msrun = "exec " MSC_MSRUN " ";
  expect(msrun + "elsewhere.plan", 2, "msrun: error: there is no file 'elsewhere.plan'\n");
  expect(msrun + "net.plan --ephocs 3", 2, "msrun: error: unknown flag '--ephocs'\nhelp: did you mean '--epochs'?\n");
  expect(msrun + "net.plan --report no/r.json", 4,
         "msrun: error: cannot write 'no/r.json': there is no folder 'no'\nhelp: create it, or choose another one\n");
  save(regression(2), "two.plan");
  for (int i = 0; i < 5; ++i) // the ranks race to the exit
    expect(msrun + "two.plan", 2, "msrun: error: two.plan was made for 2 ranks, but mpirun started 8\nhelp: mpirun -n 2 msrun two.plan, "
                                "or compile for as many: msc compile net.mir --devices 8 -o two.plan\n");
  // What is wrong for one rank alone is said by that rank.
  expect("[ $OMPI_COMM_WORLD_RANK = 5 ] && " + msrun + "elsewhere.plan; " + msrun + "net.plan", 2,
         "msrun: error: rank 5: there is no file 'elsewhere.plan'\n");
  Outcome plan = run(msrun + "net.plan --print-plan");
  EXPECT_EQ(plan.code, 0);
  EXPECT_EQ(plan.out.find("plan 'tiny'"), plan.out.rfind("plan 'tiny'"));
  EXPECT_EQ(plan.out.find("plan 'tiny'"), 0u);
}

TEST_F(MsrunMpi, AStoppedRankIsNamedAndWaitedFor) {
  pid_t mpirun = startRanks();
  pid_t stopped = processOf(mpirun, 5);
  ::kill(stopped, SIGSTOP);
  EXPECT_TRUE(waitFor("waiting for rank 5; rank 5 is "));
  std::this_thread::sleep_for(seconds(1));
  // Nothing but the line: who is alive is waited for.
  EXPECT_EQ(::waitpid(mpirun, nullptr, WNOHANG), 0);
  ::kill(stopped, SIGCONT);
  std::this_thread::sleep_for(seconds(1));
  ::kill(mpirun, SIGTERM);
  Outcome outcome = finish(mpirun);
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(matches(outcome.err, std::string("8 ranks: mpi, cpu\nmsrun: warning: .* of 8 ranks made no progress for 5\\.[0-9] s: "
                                               "waiting for rank 5; rank 5 is ") +
                                       kPlace + "\nmsrun: error: terminated by a signal \\(SIGTERM\\)\n(\\[warn\\] Epoll .*\n)*"))
      << outcome.err;
}

TEST_F(MsrunMpi, AStoppedRankEndsTheRunAfterTheTimeout) {
  pid_t mpirun = startRanks({"--timeout", "2"});
  ::kill(processOf(mpirun, 6), SIGSTOP);
  auto start = std::chrono::steady_clock::now();
  Outcome outcome = finish(mpirun);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(matches(outcome.err, std::string("8 ranks: mpi, cpu\nmsrun: error: .* of 8 ranks made no progress for [23]\\.[0-9] "
                                               "s: waiting for rank 6; rank 6 is ") +
                                       kPlace + "\nhelp: raise --timeout if the ranks are only slow\n"))
      << outcome.err;
}

} // namespace
