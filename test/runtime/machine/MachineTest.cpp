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
  EXPECT_EQ(flawOf("[]"), " is no JSON object");
  EXPECT_EQ(flawOf("nonsense"), " is no JSON object from line 1, column 2 on");
  EXPECT_EQ(flawOf("{\n  \"name\": \"a\",\n}"), " is no JSON object from line 3, column 1 on");
  EXPECT_EQ(flawOf("{\"a\": {\"b\": 1, \"c\": {\"b\": 1}, \"b\": 2}}"), ", line 1, column 33: an object has the key 'b' twice");
  EXPECT_EQ(flawOf("{}"), ": 'name' is missing or no text");
  auto replaced = [&](const std::string &what, const std::string &with) {
    std::string text = good;
    return text.replace(text.find(what), what.size(), with);
  };
  EXPECT_EQ(flawOf(replaced("\"AllGather\"", "\"Allgather\"")), ": 'levels[0].collectives.Allgather' is unknown, expected AllReduce, ReduceScatter, AllGather, AlltoAll, CollectivePermute, Exchange");
  EXPECT_EQ(flawOf(replaced("\"f32\": 20000.0", "\"f32\": -1")), ": 'flops_per_us.f32' is -1, expected a number from 1e-09 to 1e+30");
  EXPECT_EQ(flawOf(replaced("\"f32\": 20000.0", "\"f64\": 1")), ": 'flops_per_us.f32' is missing or no number");
  EXPECT_EQ(flawOf(replaced("\"f32\"", "\"f8\": 1, \"f32\"")), ": 'flops_per_us.f8' is unknown, expected f32, f64, tf32, bf16, f16");
  EXPECT_EQ(flawOf(replaced("\"launch_us\"", "\"products_of_f32\": \"bf16\", \"launch_us\"")),
            ": 'products_of_f32' is \"bf16\", expected f32, tf32");
  EXPECT_EQ(flawOf(replaced("\"ranks\"", "\"staged\": 1, \"ranks\"")), ": 'levels[0].staged' is neither true nor false");
  EXPECT_EQ(flawOf(replaced("\"alpha_us\"", "\"algorithm\": \"star\", \"alpha_us\"")),
            ": 'levels[0].collectives.AllReduce.algorithm' is \"star\", expected ring, tree, switch");
  std::string oneNode = machineJson(*readMachine("h100x8"));
  EXPECT_EQ(flawOf(oneNode.replace(oneNode.find("\"devices\": 8"), 12, "\"devices\": 9")),
            ": the last level has units of 8 ranks, but there are 9 devices");
  EXPECT_EQ(flawOf(replaced("\"levels\"", "\"level\"")), ": 'level' is unknown, expected $schema, name, source, measured_ranks, devices, flops_per_us, products_of_f32, "
            "memory_bytes, memory_bytes_per_us, launch_us, overlap, levels");
  EXPECT_EQ(flawOf(replaced("\"levels\"", "\"levels\": [], \"$schema\"")), ": 'levels' is missing or empty");
  EXPECT_EQ(flawOf(replaced("\"levels\": [", "\"levels\": [7, ")), ": 'levels[0]' is missing or no object");
  EXPECT_EQ(flawOf(replaced("\"launch_us\"", "\"lunch_us\": 1, \"launch_us\"")),
            ": 'lunch_us' is unknown, expected $schema, name, source, measured_ranks, devices, flops_per_us, products_of_f32, "
            "memory_bytes, memory_bytes_per_us, launch_us, overlap, levels");
  EXPECT_EQ(flawOf(replaced("\"overlap\": false", "\"overlap\": 1")), ": 'overlap' is neither true nor false");
  EXPECT_EQ(flawOf(replaced("\"alpha_us\"", "\"own_shares\": 1, \"alpha_us\"")).substr(0, 70),
            ": 'levels[0].collectives.AllReduce.own_shares' is unknown, expected al");
  EXPECT_EQ(readMachine("h9000").error().code, ExitCode::Usage);
}

TEST(MachineFile, BoundsEveryNumber) {
  const std::string good = machineJson(*readMachine("dgx-h100"));
  auto flawOf = [](const std::string &text) {
    Result<MachineModel> machine = readText(text);
    return machine ? "" : machine.error().message.substr(machine.error().message.find("machine.json") + 13);
  };
  // Every number of the file, one after the other: too large, too small, not to be written as a double.
  size_t numbers = 0;
  for (size_t at = 0; (at = good.find(": ", at)) != std::string::npos; at += 2) {
    size_t begin = at + 2, end = good.find_first_not_of("0123456789.e+-", begin);
    if (end == begin)
      continue;
    ++numbers;
    size_t name = good.rfind('"', at - 2) + 1;
    std::string key = good.substr(name, at - 1 - name);
    for (const char *value : {"1e308", "-1", "1e19"}) {
      std::string flaw = flawOf(std::string(good).replace(begin, end - begin, value));
      bool isRate = key == "memory_bytes_per_us" || key[0] == 'f' || key == "tf32" || key == "bf16";
      if (isRate && value == std::string("1e19"))
        EXPECT_EQ(flaw, "");
      else
        EXPECT_NE(flaw.find(key + "' is "), std::string::npos) << flaw << " instead of one of " << key << ", " << value;
    }
    const std::string large = flawOf(std::string(good).replace(begin, end - begin, "1e999"));
    EXPECT_EQ(large.find(", line " + std::to_string(1 + std::count(good.begin(), good.begin() + begin, '\n')) + ", column "), 0u) << large;
    EXPECT_TRUE(large.ends_with(": this number is too large")) << large;
  }
  EXPECT_EQ(numbers, 46u);
  std::string second = good;
  second.replace(second.rfind("\"alpha_us\": "), 12, "\"alpha_us\": -");
  EXPECT_EQ(flawOf(second), ": 'levels[1].collectives.Exchange.alpha_us' is -15.0, expected a number from 0 to 1e+12");
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

TEST(MachineFile, OneNumberIsThePeakOfF32) {
  std::string text = machineJson(MachineModel::cpuLocal());
  size_t begin = text.find("{", text.find("flops_per_us")), end = text.find("}", begin);
  Result<MachineModel> machine = readText(text.replace(begin, end + 1 - begin, "20000.0"));
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machineJson(*machine), machineJson(MachineModel::cpuLocal()));
}

TEST(MachineFile, NamesSayHowManyDevicesThereAre) {
  auto machineOf = [](const char *name) { return *readMachine(name); };
  EXPECT_EQ(machineOf("h100x8").devices, 8);
  EXPECT_EQ(machineOf("h100x8").levels.size(), 1u);
  EXPECT_EQ(machineOf("a100x2").devices, 2);
  EXPECT_EQ(machineOf("h100-1024").devices, 1024);
  EXPECT_EQ(machineOf("h200-16").levels.size(), 2u);
  EXPECT_EQ(machineOf("dgx-h100").devices, 0);
  for (const char *name : {"h100x3", "h100x16", "h100-12", "h100-0", "h100-064", "h100", "h100-", "h100 8", "a100+8", "h300x8"})
    EXPECT_EQ(readMachine(name).error().code, ExitCode::Usage) << name;
  for (auto [name, near] : {std::pair("h100x16", "h100-16"), std::pair("a100x12", "a100-16"), std::pair("h200x6", "h200x8"), std::pair("h100-12", "h100-16")})
    EXPECT_EQ(readMachine(name).error().help, "did you mean '" + std::string(near) + "'?");
  EXPECT_EQ(readMachine("h10x8").error().help, "did you mean 'h100x8'?");
  EXPECT_EQ(readMachine("cpu_local").error().help, "did you mean 'cpu-local'?");
}

/// Peaks and memory of the data sheets that README.md names.
TEST(MachineFile, PresetsHoldTheNumbersOfTheDataSheets) {
  auto peak = [](const char *name, Arithmetic arithmetic) {
    return readMachine(name)->flopsPerUs[static_cast<size_t>(arithmetic)] * 1e6;
  };
  EXPECT_TRUE(readMachine("a100x8")->overlaps && readMachine("h100-64")->overlaps);
  EXPECT_FALSE(readMachine("cpu-local")->overlaps); // ranks share the cores
  EXPECT_EQ(peak("a100x8", Arithmetic::F32), 19.5e12);
  EXPECT_EQ(peak("a100x8", Arithmetic::TF32), 156e12);
  EXPECT_EQ(peak("a100x8", Arithmetic::BF16), 312e12);
  EXPECT_EQ(peak("h100x8", Arithmetic::F64), 67e12);
  EXPECT_EQ(peak("h100x8", Arithmetic::F16), 989.5e12);
  EXPECT_EQ(peak("h200x8", Arithmetic::BF16), 989.5e12);
  EXPECT_EQ(readMachine("h100-64")->memoryBytes, 80e9);
  EXPECT_EQ(readMachine("h200-64")->memoryBytes, 141e9);
  EXPECT_EQ(readMachine("h200-64")->memoryBytesPerUs, 4.8e6);
  EXPECT_EQ(MachineModel::cpuLocal().memoryBytes, 0);
}

TEST(MachineModel, OperatorsTakeThePeakOfTheirArithmetic) {
  MachineModel machine = *readMachine("h100x8");
  EXPECT_EQ(machine.operatorUs(989.5e6, 0, 0, Arithmetic::BF16), machine.launchUs + 1);
  EXPECT_EQ(machine.operatorUs(989.5e6, 0, 0), machine.launchUs + 989.5 / 67);
  EXPECT_EQ(machine.operatorUs(1, 3.35e6, 3.35e6, Arithmetic::BF16), machine.launchUs + 2);
}

TEST(GroupShape, CountsMembersInsideUnits) {
  // 64 ranks as 4 x 2 x 8: the last axis is a unit of 8.
  std::vector<int64_t> matrix = {4, 2, 8};
  EXPECT_EQ(groupShape(matrix, {2}).membersInside(8), 8);
  EXPECT_EQ(groupShape(matrix, {0, 1}).membersInside(8), 1);
  EXPECT_EQ(groupShape(matrix, {0, 1, 2}).membersInside(8), 8);
  EXPECT_EQ(groupShape(matrix, {1, 2}).membersInside(4), 4);
  EXPECT_EQ(groupShape({2, 4, 8, 2}, {1, 3}).membersInside(16), 2); // 2 of the last axis, none of those 16 apart
  EXPECT_EQ(groupShape({8, 4, 2}, {0, 2}).membersInside(8), 2);
  // The same group over other matrices; units that axes do not make up.
  EXPECT_EQ(groupShape({3, 4}, {0, 1}).membersInside(6), groupShape({12}, {0}).membersInside(6));
  EXPECT_EQ(groupShape({2, 3}, {0, 1}).membersInside(4), groupShape({6}, {0}).membersInside(4));
  EXPECT_EQ(groupShape({6}, {0}).membersInside(4), 1);
  EXPECT_EQ(groupShape({2, 2, 2, 2, 2, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}).membersInside(8), 8);
  EXPECT_EQ((GroupShape{64, 64}.membersInside(8)), 8);
  EXPECT_EQ((GroupShape{8, 64}.membersInside(8)), 1);
  EXPECT_EQ((GroupShape{16, 64}.membersInside(8)), 2);
}

/// A byte takes 1 us inside a unit of 8 and 10 us outside, starting nothing.
MachineModel stagedBytes() {
  MachineModel machine = *readMachine("dgx-a100");
  for (LinkLevel &level : machine.levels)
    for (LinkCost &cost : level.costs)
      cost = {.betaUsPerByte = level.ranks == 0 ? 10.0 : 1.0};
  return machine;
}

TEST(MachineModel, StagedCollectivesSendOnePartOfEachTensorOutside) {
  MachineModel machine = stagedBytes();
  // 64 ranks in nodes of 8, a tensor of 6400 bytes: inside 2 * 7/8 of it, outside 2 * 7/8 of an eighth.
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AllReduce, {64, 64}, 2 * 6300), 2 * 5600 + 10 * 2 * 700);
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AllGather, {64, 64}, 6300), 5600 + 10 * 700);
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::ReduceScatter, {64, 64}, 6300), 5600 + 10 * 700);
  // Of what an AlltoAll brings, 7 of 63 parts come from the own node.
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AlltoAll, {64, 64}, 6300), 700 + 10 * 5600);
  // Members in nodes of their own, and pairs, have nothing to do inside.
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AllGather, {8, 64}, 6300), 10 * 6300);
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::CollectivePermute, {64, 64}, 6300), 10 * 6300);
  // Groups of 4 in each of 2 nodes.
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AllGather, groupShape({2, 4, 2}, {0, 1}), 700), 600 + 10 * 100);
  machine.levels[1].isStaged = false;
  EXPECT_DOUBLE_EQ(machine.moveUs(MoveKind::AllGather, {64, 64}, 6300), 10 * 6300);
}

TEST(LinkCost, StepsFollowTheAlgorithm) {
  LinkCost cost{.hopUs = 1};
  EXPECT_EQ(cost.us(8, 100), 7);
  cost.algorithm = CollectiveAlgorithm::Tree;
  EXPECT_EQ(cost.us(8, 100), 3);
  EXPECT_EQ(cost.us(9, 100), 4);
  EXPECT_EQ(cost.us(2, 100), 1);
  cost.algorithm = CollectiveAlgorithm::Switch;
  EXPECT_EQ(cost.us(8, 100), 1);
  // By a switch an AllReduce of 800 bytes among 8 sends them once, by a ring 7/8 of them twice.
  MachineModel machine = stagedBytes();
  EXPECT_EQ(machine.moveUs(MoveKind::AllReduce, {8, 8}, 1400), 1400);
  machine.levels[0].costs[static_cast<size_t>(MoveKind::AllReduce)].algorithm = CollectiveAlgorithm::Switch;
  EXPECT_EQ(machine.moveUs(MoveKind::AllReduce, {8, 8}, 1400), 800);
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

TEST(MachineModel, RanksThatOneUnitHoldsUseItsLinksInGroupsOfAnySize) {
  for (const char *name : {"dgx-h100", "h100-64"}) {
    const MachineModel cluster = *readMachine(name), node = *readMachine("h100x8");
    for (int64_t ranks = 2; ranks <= 8; ++ranks)
      for (size_t kind = 1; kind < moveKinds; ++kind)
        for (int64_t members = 2; members <= ranks; ++members)
          EXPECT_EQ(cluster.amongFirst(ranks).moveUs(MoveKind(kind), {members, members}, 1e6), node.moveUs(MoveKind(kind), {members, members}, 1e6))
              << members << " of " << ranks;
    EXPECT_EQ(cluster.amongFirst(9).levels.size(), cluster.levels.size());
    EXPECT_GT(cluster.amongFirst(9).moveUs(MoveKind::AllGather, {3, 3}, 1e6), node.moveUs(MoveKind::AllGather, {3, 3}, 1e6)); // 6 to 8 are two nodes
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
