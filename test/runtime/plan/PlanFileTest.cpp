#include "runtime/plan/PlanFile.h"
#include "test/runtime/PlanBuilder.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace msc;
using namespace msc::test;

namespace {

/// A folder that is gone after the test.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "plan-file-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char *name) const { return (path / name).string(); }
};

void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(PlanFile, WhatIsWrittenIsRead) {
  Folder folder;
  plan::Plan plan = regression(3).plan;
  ASSERT_TRUE(plan::writePlan(folder / "net.plan", plan));
  Result<plan::Plan> read = plan::readPlan(folder / "net.plan");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->SerializeAsString(), plan.SerializeAsString());
  // Nothing temporary stays behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1);
}

TEST(PlanFile, EqualPlansGiveEqualBytes) {
  EXPECT_EQ(plan::encodePlan(regression(2).plan), plan::encodePlan(regression(2).plan));
  EXPECT_NE(plan::encodePlan(regression(2).plan), plan::encodePlan(regression(3).plan));
  EXPECT_TRUE(plan::encodePlan(regression(2).plan).ends_with(plan::checksumOf(regression(2).plan)));
  EXPECT_EQ(plan::checksumOf(regression(2).plan).size(), 32u);
}

TEST(PlanFile, MissingFileIsAUsageError) {
  Result<plan::Plan> read = plan::readPlan("/nowhere/net.plan");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ExitCode::Usage);
  EXPECT_EQ(read.error().message, "there is no file '/nowhere/net.plan'");
}

TEST(PlanFile, AnotherFormatIsNamed) {
  std::string bytes = plan::encodePlan(regression(1).plan, 4);
  Result<plan::Plan> read = plan::decodePlan(bytes, "net.plan");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ExitCode::BadFile);
  EXPECT_EQ(read.error().message, "net.plan has format 4, this msrun reads formats 1-3");
}

TEST(PlanFile, FormatIsTheOldestThatSaysIt) {
  PlanBuilder builder = matmulAllReduce(2);
  EXPECT_EQ(plan::formatOf(builder.plan), 1u);
  for (plan::Step &step : *builder.plan.mutable_programs(0)->mutable_variants(0)->mutable_steps())
    if (step.has_collective())
      step.mutable_collective()->add_also();
  EXPECT_EQ(plan::formatOf(builder.plan), 2u);
  EXPECT_TRUE(plan::decodePlan(plan::encodePlan(builder.plan), "net.plan"));
}

TEST(PlanFile, OtherFilesAreNoPlans) {
  for (std::string bytes : {std::string(), std::string("#IR entry"), std::string(5000, 'x')}) {
    Result<plan::Plan> read = plan::decodePlan(bytes, "net.mir");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ExitCode::BadFile);
    EXPECT_EQ(read.error().message, "net.mir is not a plan");
  }
}

TEST(PlanFile, EveryFlippedBitAndEveryCutIsFound) {
  std::string bytes = plan::encodePlan(matmulAllReduce(2).plan);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    Result<plan::Plan> read = plan::decodePlan(flipped, "net.plan");
    ASSERT_FALSE(read) << "byte " << at;
    EXPECT_EQ(read.error().code, ExitCode::BadFile);
    Result<plan::Plan> cut = plan::decodePlan(bytes.substr(0, at), "net.plan");
    ASSERT_FALSE(cut) << "cut at " << at;
    EXPECT_EQ(cut.error().code, ExitCode::BadFile);
  }
}

TEST(PlanFile, DamageSaysWhatDiffers) {
  std::string bytes = plan::encodePlan(matmulAllReduce(2).plan);
  bytes[100] ^= 1;
  Result<plan::Plan> read = plan::decodePlan(bytes, "net.plan");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "net.plan is damaged: the checksum of its " + std::to_string(bytes.size()) +
                                      " bytes differs from the one at its end");
}

TEST(PlanFile, AFolderThatCannotBeWrittenLeavesNothing) {
  Folder folder;
  Status status = plan::writePlan(folder / "no/such/net.plan", regression(1).plan);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::NoResource);
}

TEST(PlanFile, APipeIsWrittenToAndStaysOne) {
  Folder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Status unread = plan::writePlan(path, regression(1).plan);
  ASSERT_FALSE(unread); // instead of waiting for ever
  EXPECT_EQ(unread.error().code, ExitCode::NoResource);
  int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const std::string wanted = plan::encodePlan(regression(1).plan);
  ASSERT_LT(wanted.size(), 60000u); // what a pipe holds
  ASSERT_TRUE(plan::writePlan(path, regression(1).plan));
  std::string got(wanted.size(), 0);
  EXPECT_EQ(::read(reader, got.data(), got.size()), static_cast<ssize_t>(wanted.size()));
  EXPECT_EQ(got, wanted);
  ::close(reader);
  EXPECT_EQ(std::filesystem::status(path).type(), std::filesystem::file_type::fifo);
}

TEST(PlanFile, AFailedWriteKeepsTheOldPlan) {
  Folder folder;
  ASSERT_TRUE(plan::writePlan(folder / "net.plan", regression(1).plan));
  std::filesystem::create_directory(folder / "other");
  // The target is a folder: the rename fails after the new bytes were written.
  ASSERT_FALSE(plan::writePlan(folder / "other", regression(2).plan));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 2);
  writeBytes(folder / "x", "");
  EXPECT_TRUE(plan::readPlan(folder / "net.plan"));
}

} // namespace
