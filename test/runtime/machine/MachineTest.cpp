#include "runtime/machine/MachineFile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <vector>

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
  EXPECT_EQ(flawOf(replaced("\"launch_us\"", "\"lunch_us\": 1, \"launch_us\"")),
            ": 'lunch_us' is unknown, expected $schema, name, source, measured_ranks, flops_per_us, memory_bytes_per_us, "
            "launch_us, levels");
  EXPECT_EQ(flawOf(replaced("\"alpha_us\"", "\"own_shares\": 1, \"alpha_us\"")).substr(0, 40),
            ": 'own_shares' is unknown, expected alph");
  EXPECT_EQ(readMachine("h9000").error().code, ExitCode::Usage);
}

/// All presets, and one with the terms that a calibration finds.
std::vector<MachineModel> machines() {
  std::vector<MachineModel> list;
  for (const std::string &name : machinePresets())
    list.push_back(*readMachine(name));
  list.push_back(MachineModel::cpuLocal());
  for (LinkCost &cost : list.back().levels[0].costs) {
    cost.ownShare = 1;
    cost.cacheBytes = 1 << 20;
    cost.beyondCacheUsPerByte = 2 * cost.betaUsPerByte;
  }
  return list;
}

TEST(MachineModel, PresetsAreTheFilesAndSayWhereTheirNumbersComeFrom) {
  EXPECT_EQ(machinePresets().front(), "cpu-local");
  for (const std::string &name : machinePresets()) {
    Result<MachineModel> machine = readMachine(name);
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(machine->name, name);
    EXPECT_NE(machine->source, "");
  }
}

TEST(MachineModel, TimeGrowsWithBytesAndGroup) {
  for (const MachineModel &machine : machines())
    for (size_t kind = 0; kind < moveKinds; ++kind) {
      auto us = [&](GroupShape group, double bytes) { return machine.moveUs(MoveKind(kind), group, bytes); };
      for (double bytes = 1; bytes < 1e9; bytes *= 3)
        EXPECT_LT(us({4, 4}, bytes), us({4, 4}, 3 * bytes)) << machine.name;
      // Of one tensor every rank receives (g - 1) / g.
      for (int64_t group = 2; group < 64; group *= 2)
        for (double tensor = 64; tensor < 1e9; tensor *= 8)
          EXPECT_LE(us({group, group}, tensor * static_cast<double>(group - 1) / static_cast<double>(group)),
                    us({2 * group, 2 * group}, tensor * static_cast<double>(2 * group - 1) / static_cast<double>(2 * group)) + 1e-9)
              << machine.name;
      EXPECT_EQ(MoveKind(kind) == MoveKind::Slice || us({1, 1}, 100) == 0, true);
    }
}

TEST(MachineModel, ReduceScatterAndAllGatherBoundAllReduce) {
  for (const MachineModel &machine : machines())
    for (double full = 64; full < 1e8; full *= 4) {
      double part = 7.0 / 8 * full;
      double scatter = machine.moveUs(MoveKind::ReduceScatter, {8, 8}, part);
      double gather = machine.moveUs(MoveKind::AllGather, {8, 8}, part);
      double reduce = machine.moveUs(MoveKind::AllReduce, {8, 8}, 2 * part);
      EXPECT_LE(scatter, reduce) << machine.name;
      // The cache holds both halves of an AllReduce together: only there it may take longer.
      if (machine.levels[0].costs[1].beyondCacheUsPerByte == 0) {
        EXPECT_LE(reduce, scatter + gather + 1e-6) << machine.name;
      }
      EXPECT_LE(machine.moveUs(MoveKind::AlltoAll, {8, 8}, part / 8), gather) << machine.name;
    }
}

TEST(MachineModel, AHierarchyIsNeverWorseThanItsOutermostLevel) {
  for (const MachineModel &machine : machines()) {
    MachineModel flat = machine;
    flat.levels.erase(flat.levels.begin(), flat.levels.end() - 1);
    for (size_t kind = 1; kind < moveKinds; ++kind)
      for (int64_t block : {2, 4, 8, 16, 32})
        for (double bytes = 1; bytes < 1e9; bytes *= 9)
          EXPECT_LE(machine.moveUs(MoveKind(kind), {2, block}, bytes), flat.moveUs(MoveKind(kind), {2, block}, bytes));
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
