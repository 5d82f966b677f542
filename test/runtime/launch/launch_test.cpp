#include "runtime/launch/Launch.h"

#include <gtest/gtest.h>
#include <map>

using namespace msc;

namespace {

Environment with(std::map<std::string, std::string> variables) {
  return [variables](const char *name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

struct Case {
  const char *flag; ///< null: no --transport
  std::map<std::string, std::string> variables;
  const char *transport; ///< null: an error
  int code;
  const char *text; ///< part of the reason or of the message
};

const std::map<std::string, std::string> kMpirun4 = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"},
                                                     {"PMIX_RANK", "2"}};

const Case kCases[] = {
    {nullptr, {}, "threads", 0, "no launcher"},
    {nullptr, {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "1"}}, "threads", 0, ""},
    {nullptr, kMpirun4, "mpi", 0, "OMPI_COMM_WORLD_SIZE"},
    {nullptr, {{"PMIX_RANK", "0"}}, "mpi", 0, "PMIX_RANK"},
    {nullptr, {{"OMPI_COMM_WORLD_SIZE", "1"}}, "mpi", 0, ""},
    {"threads", {}, "threads", 0, "--transport threads"},
    {"threads", kMpirun4, nullptr, 2, "each process would train alone"},
    {"threads", {{"PMIX_RANK", "0"}}, nullptr, 2, "PMIX_RANK"},
    {"threads", {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}, "threads", 0, ""},
    {"mpi", kMpirun4, "mpi", 0, ""},
    {"mpi", {}, nullptr, 2, "mpirun did not start this process"},
    {"mpi", {{"MS_ROLE", "MS_WORKER"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "mpi", 0, ""},
    {"cluster", {}, nullptr, 4, "no cluster transport"},
    {"carrier pigeon", {}, nullptr, 2, "unknown transport 'carrier pigeon'"},
    {nullptr, {{"MS_ROLE", "MS_WORKER"}}, nullptr, 4, "MS_ROLE=MS_WORKER"},
    {nullptr, {{"MS_ROLE", "MS_WORKER"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, nullptr, 2, "mpirun started this process"},
    {nullptr, {{"OMPI_COMM_WORLD_SIZE", "many"}}, nullptr, 2, "OMPI_COMM_WORLD_SIZE is 'many'"},
    {nullptr, {{"OMPI_COMM_WORLD_SIZE", "0"}}, nullptr, 2, "'0'"},
    {nullptr, {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "2"}}, nullptr, 2, "OMPI_COMM_WORLD_RANK is 2"},
};

} // namespace

TEST(Launch, TheRankInTheEnvironment) {
  EXPECT_EQ(rankInEnvironment(with({})), 0);
  EXPECT_EQ(rankInEnvironment(with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}})), 3);
  EXPECT_EQ(rankInEnvironment(with({{"PMIX_RANK", "2"}})), 2);
  EXPECT_EQ(rankInEnvironment(with({{"OMPI_COMM_WORLD_RANK", "three"}})), 0);
  EXPECT_EQ(rankInEnvironment(with({{"SLURM_PROCID", "2"}})), 0);
}

TEST(Launch, DetectsTheTransportOrSaysWhyNot) {
  for (const Case &c : kCases) {
    SCOPED_TRACE(std::string(c.flag ? c.flag : "no flag") + ", expected: " + c.text);
    Result<Launch> launch =
        detectLaunch(c.flag ? std::optional<std::string>(c.flag) : std::nullopt, with(c.variables));
    ASSERT_EQ(launch.isOk(), c.transport != nullptr);
    if (launch.isOk()) {
      EXPECT_STREQ(transportName(launch->transport), c.transport);
      EXPECT_NE(launch->reason.find(c.text), std::string::npos) << launch->reason;
    } else {
      EXPECT_EQ(static_cast<int>(launch.error().code), c.code);
      EXPECT_NE(launch.error().message.find(c.text), std::string::npos) << launch.error().message;
      EXPECT_FALSE(launch.error().help.empty());
    }
  }
}

TEST(Launch, TakesRankAndSizeFromMpirunOnly) {
  Result<Launch> launch = detectLaunch(std::nullopt, with(kMpirun4));
  EXPECT_EQ(launch->rank, 2);
  EXPECT_EQ(launch->size, 4);
  EXPECT_FALSE(detectLaunch(std::nullopt, with({}))->size.has_value());
}

TEST(Launch, WrongNumberOfRanksShowsTheRightCommand) {
  Launch mpi{Transport::Mpi, 0, 4, ""};
  EXPECT_TRUE(checkRankCount(4, mpi, 4, "net.plan", "net.mir").isOk());
  Status wrong = checkRankCount(8, mpi, 4, "net.plan", "net.mir");
  EXPECT_EQ(wrong.error().message, "net.plan was made for 8 ranks, but mpirun started 4");
  EXPECT_EQ(wrong.error().help, "mpirun -n 8 msrun net.plan, or compile for as many: msc compile net.mir --devices 4 -o net.plan");
  EXPECT_EQ(checkRankCount(1, mpi, 4, "net.plan", "net.mir").error().help,
            "compile for as many: msc compile net.mir --devices 4 -o net.plan");
  EXPECT_EQ(checkRankCount(8, mpi, 4, "net.plan", "").error().help, "mpirun -n 8 msrun net.plan"); // its strategies are for 8
  EXPECT_EQ(checkRankCount(1, mpi, 4, "net.plan", "").error().help, "msrun net.plan");
  EXPECT_EQ(wrong.error().code, ExitCode::Usage);
  EXPECT_EQ(checkRankCount(8, Launch{}, 1, "net.plan", "net.mir").error().message,
            "net.plan was made for 8 ranks, but 1 rank was asked for");
}

TEST(Launch, FirstLineAndLogs) {
  EXPECT_EQ(launchLine(8, Transport::Threads, "cpu"), "8 ranks: threads, cpu");
  EXPECT_EQ(launchLine(1, Transport::Mpi, "cpu"), "1 rank: mpi, cpu");
  EXPECT_FALSE(printsOnEveryRank(false, with({})));
  EXPECT_TRUE(printsOnEveryRank(true, with({})));
  EXPECT_TRUE(printsOnEveryRank(false, with({{"OMPI_MCA_orte_output_filename", "logs"}})));
  EXPECT_TRUE(printsOnEveryRank(false, with({{"MS_ROLE", "MS_WORKER"}})));
}
