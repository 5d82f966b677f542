#include "runtime/machine/MachineFile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

using namespace msc;

namespace {

/// Reads a machine from a file with this text.
Result<MachineModel> readText(const std::string &text) {
  std::string path = testing::TempDir() + "/machine.json";
  std::ofstream(path) << text;
  Result<MachineModel> machine = readMachine(path);
  std::remove(path.c_str());
  return machine;
}

TEST(MachineFile, ReadsWhatItWrites) {
  MachineModel machine = MachineModel::cpuLocal();
  machine.name = "two levels";
  machine.levels.insert(machine.levels.begin(), machine.levels[0]);
  machine.levels[0].ranks = 4;
  machine.levels[0].costs[1].alphaUs = 0.125;
  Result<MachineModel> read = readText(machineJson(machine));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(machineJson(*read), machineJson(machine));
  EXPECT_EQ(read->levels[0].costs[1].alphaUs, 0.125);
}

TEST(MachineFile, RefusesWhatIsMissingOrImpossible) {
  auto flawOf = [](const std::string &text) {
    Result<MachineModel> machine = readText(text);
    return machine ? "" : machine.error().message.substr(machine.error().message.find("machine.json") + 13);
  };
  std::string good = machineJson(MachineModel::cpuLocal());
  EXPECT_EQ(flawOf("nonsense"), " is no JSON object");
  EXPECT_EQ(flawOf("{}"), ": 'name' is missing or no text");
  auto replaced = [&](const std::string &what, const std::string &with) {
    std::string text = good;
    return text.replace(text.find(what), what.size(), with);
  };
  EXPECT_EQ(flawOf(replaced("\"AllGather\"", "\"Allgather\"")), ": level 'shared memory' has no 'AllGather'");
  EXPECT_EQ(flawOf(replaced("\"flops_per_us\": 20000.0", "\"flops_per_us\": -1")),
            ": 'flops_per_us' is -1, expected at least 1e-09");
  EXPECT_EQ(flawOf(replaced("\"levels\"", "\"level\"")), ": 'levels' is missing or empty");
  EXPECT_EQ(readMachine("h9000").error().code, ExitCode::Usage);
}

TEST(MachineModel, TimeGrowsWithBytesAndGroup) {
  MachineModel machine = MachineModel::cpuLocal();
  for (size_t kind = 0; kind < moveKinds; ++kind)
    for (double bytes = 1; bytes < 1e9; bytes *= 3)
      EXPECT_LT(machine.moveUs(MoveKind(kind), {4, 4}, bytes), machine.moveUs(MoveKind(kind), {4, 4}, 3 * bytes));
  EXPECT_LE(machine.moveUs(MoveKind::AllReduce, {2, 2}, 100), machine.moveUs(MoveKind::AllReduce, {8, 8}, 100));
  EXPECT_EQ(machine.moveUs(MoveKind::AllReduce, {1, 1}, 100), 0);
}

TEST(MachineModel, ReduceScatterAndAllGatherBoundAllReduce) {
  MachineModel machine = MachineModel::cpuLocal();
  for (double full = 64; full < 1e8; full *= 4) {
    double part = 7.0 / 8 * full;
    double scatter = machine.moveUs(MoveKind::ReduceScatter, {8, 8}, part);
    double gather = machine.moveUs(MoveKind::AllGather, {8, 8}, part);
    double reduce = machine.moveUs(MoveKind::AllReduce, {8, 8}, 2 * part);
    EXPECT_LE(scatter, reduce);
    EXPECT_LE(reduce, scatter + gather + 1e-6);
    EXPECT_LE(machine.moveUs(MoveKind::AlltoAll, {8, 8}, part / 8), gather);
  }
}

TEST(MachineModel, GroupsInsideAUnitUseItsLinks) {
  MachineModel machine = MachineModel::cpuLocal();
  machine.levels.insert(machine.levels.begin(), machine.levels[0]);
  machine.levels[0].ranks = 4;
  for (LinkCost &cost : machine.levels[0].costs)
    cost.alphaUs /= 10;
  auto us = [&](std::vector<int32_t> axes) { return machine.moveUs(MoveKind::AllGather, groupShape({2, 4}, axes), 0); };
  EXPECT_LT(us({1}), us({0}));
  EXPECT_EQ(groupShape({2, 4}, {0}).block, 8);
  EXPECT_EQ(groupShape({2, 4}, {1}).block, 4);
}

} // namespace
