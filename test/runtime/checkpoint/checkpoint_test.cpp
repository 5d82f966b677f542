#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Index.h"
#include "test/runtime/checkpoint/Run.h"
#include "test/runtime/checkpoint/TemporaryFolder.h"

#include <sys/mount.h>
#include <unistd.h>

using namespace msc;
using namespace msc::test;
namespace fs = std::filesystem;

namespace {

const TrainingState kState{2, 3, 7, 3, "digest", {{"seed", "1"}}};

void save(int64_t ranks, const CheckpointOptions &options, const TrainingState &state = kState, int kind = -1) {
  onRanks(ranks, [&](comm::World &world, comm::Group &all) {
    Memory memory = memoryOf(world.rank(), ranks, kind, true);
    Result<SaveOutcome> saved = CheckpointWriter(options, all).save(memory.tensors, state);
    ASSERT_TRUE(saved.isOk()) << saved.error().message;
    ASSERT_FALSE(saved->skipped) << saved->skipped->message;
  });
}

/// Loads on `ranks` ranks and compares every byte; what each rank reported.
std::vector<Status> load(int64_t ranks, const std::string &where, const CheckpointOptions &options, int kind = -1) {
  std::vector<Status> results(ranks);
  onRanks(ranks, [&](comm::World &world, comm::Group &all) {
    Memory memory = memoryOf(world.rank(), ranks, kind, false), expected = memoryOf(world.rank(), ranks, kind, true);
    Result<LoadOutcome> loaded = loadCheckpoint(where, options, memory.tensors, all);
    if (!loaded) {
      results[world.rank()] = loaded.error();
      return;
    }
    for (size_t t = 0; t < memory.tensors.size(); ++t)
      EXPECT_TRUE(memory.bytes[t] == expected.bytes[t]) << memory.tensors[t].name << " on " << ranks << " ranks";
  });
  return results;
}

void expectLoads(int64_t ranks, const std::string &where, const CheckpointOptions &options, int kind = -1) {
  for (const Status &status : load(ranks, where, options, kind))
    EXPECT_TRUE(status.isOk()) << status.error().message;
}

void expectBad(const std::string &where, const CheckpointOptions &options, const std::string &text, ExitCode code = ExitCode::BadFile) {
  for (const Status &status : load(2, where, options)) {
    ASSERT_FALSE(status.isOk()) << text;
    EXPECT_EQ(status.error().code, code);
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }
}

} // namespace

TEST(Checkpoint, AnyRanksAndShardingsLoadWhatAnyOthersSaved) {
  for (int64_t from : {1, 8, 4, 3})
    for (int kind : {-1, 0, 1, 2, 3, 4}) {
      TemporaryFolder folder;
      CheckpointOptions options{folder.path(), "net", 0, false};
      save(from, options, kState, kind);
      for (int64_t to : {1, 8, 4, 3, 2})
        expectLoads(to, folder.file("net-2_3"), options, (kind + 3) % 5);
    }
}

TEST(Checkpoint, OneToEightToFourToThree) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  int64_t previous = 1, step = 1;
  save(1, options, {1, step, step, step, "", {}});
  for (int64_t ranks : {8, 4, 3}) {
    onRanks(ranks, [&](comm::World &world, comm::Group &all) {
      Memory memory = memoryOf(world.rank(), ranks, -1, false);
      Result<LoadOutcome> loaded = loadCheckpoint("latest", options, memory.tensors, all);
      ASSERT_TRUE(loaded.isOk()) << loaded.error().message;
      EXPECT_EQ(loaded->state.step, step) << "saved by " << previous;
      TrainingState next = loaded->state;
      ++next.step;
      ASSERT_TRUE(CheckpointWriter(options, all).save(memory.tensors, next).isOk());
    });
    previous = ranks;
    ++step;
  }
  expectLoads(2, "latest", options);
}

TEST(Checkpoint, StateComesBackAndEachSliceIsStoredOnce) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  save(8, options, kState, 4); // everything repeated along one axis
  uint64_t bytes = 0, whole = 0;
  Result<CheckpointIndex> index = readIndex(folder.file("net-2_3"));
  ASSERT_TRUE(index.isOk());
  for (const IndexedFile &file : index->files)
    bytes += file.bytes;
  for (const auto &[name, tensor] : index->tensors)
    whole += elementCount(tensor.shape) * comm::elementSize(tensor.type);
  EXPECT_GE(bytes, whole);
  EXPECT_LT(bytes, whole + 8 * 1024) << "headers only on top";
  onRanks(1, [&](comm::World &, comm::Group &all) {
    std::vector<CheckpointTensor> none;
    Result<LoadOutcome> loaded = loadCheckpoint(folder.file("net-2_3") + "/", options, none, all);
    ASSERT_TRUE(loaded.isOk()) << loaded.error().message;
    EXPECT_EQ(loaded->state, kState);
    EXPECT_EQ(loaded->unused.size(), 9u);
  });
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  EXPECT_EQ(names, std::vector<std::string>{"net-2_3"}) << "no temporary folder is left";
}

TEST(Checkpoint, PerRankFoldersAndRanksInThePrefix) {
  for (auto [prefix, perRank, own] : {std::tuple{"net", true, "1/net-2_3"}, std::tuple{"net_{rank}", false, "net_1-2_3"},
                                      std::tuple{"r{rank}", true, "1/r1-2_3"}}) {
    TemporaryFolder folder;
    CheckpointOptions options{folder.path(), prefix, 0, perRank};
    save(4, options);
    EXPECT_TRUE(fs::exists(folder.file(std::string(own) + "/rank_1.safetensors"))) << own;
    EXPECT_TRUE(fs::exists(folder.file(std::string(own) + "/index.json")));
    EXPECT_FALSE(fs::exists(folder.file(std::string(own) + "/rank_0.safetensors")));
    expectLoads(3, folder.file(own), options);
    expectLoads(8, "latest", options);
  }
}

TEST(Checkpoint, AnExistingOneIsReplacedAndLatestIsTheLastSaved) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  save(2, options, {5, 1, 20, 1, "first run", {}});
  save(3, options, {1, 1, 1, 1, "second run", {}}); // earlier in its epoch, but newer
  std::vector<std::string> notes;
  EXPECT_EQ(*findLatestCheckpoint(options, notes), folder.file("net-1_1"));
  save(4, options, {5, 1, 20, 1, "third run", {}});
  EXPECT_EQ(*findLatestCheckpoint(options, notes), folder.file("net-5_1"));
  EXPECT_TRUE(notes.empty());
  EXPECT_FALSE(fs::exists(folder.file("net-5_1/rank_3.safetensors")) && !fs::exists(folder.file("net-5_1/rank_2.safetensors")));
  EXPECT_EQ(readIndex(folder.file("net-5_1"))->files.size(), 4u);
  expectLoads(2, folder.file("net-5_1"), options);
}

TEST(Checkpoint, FilesOfOthersStay) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  fs::create_directories(folder.file("net-2_3"));
  fill(folder.file("net-2_3/rank_0.safetensors"), "of a checkpoint that was not finished");
  save(2, options); // epoch 2, step 3
  expectLoads(2, folder.file("net-2_3"), options);
  fill(folder.file("net-2_3/notes.txt"), "precious");
  onRanks(2, [&](comm::World &world, comm::Group &all) {
    Memory memory = memoryOf(world.rank(), 2, 0, true);
    Result<SaveOutcome> saved = CheckpointWriter(options, all).save(memory.tensors, {2, 3, 30, 1, "", {}});
    ASSERT_TRUE(saved->skipped);
    EXPECT_EQ(saved->skipped->message, "'" + folder.file("net-2_3/notes.txt") + "' is in the way, and is of no checkpoint");
  });
  EXPECT_EQ(contentOf(folder.file("net-2_3/notes.txt")), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1) << "no temporary folder is left";
}

TEST(Checkpoint, LatestIsOfItsPrefixAlone) {
  TemporaryFolder folder;
  std::vector<std::string> notes;
  save(2, {folder.path(), "net", 0, false}, {1, 3, 3, 1, "", {}});
  save(2, {folder.path(), "net-big", 0, false}, {1, 3, 3, 1, "", {}});
  save(2, {folder.path(), "net-1", 0, false}, {2, 3, 3, 1, "", {}});
  save(2, {folder.path(), ".net", 0, false}, {2, 3, 3, 1, "", {}});
  for (auto [prefix, name] : {std::pair{"net", "net-1_3"}, {"net-big", "net-big-1_3"}, {"net-1", "net-1-2_3"}, {".net", ".net-2_3"}})
    EXPECT_EQ(*findLatestCheckpoint({folder.path(), prefix, 0, false}, notes), folder.file(name));
}

TEST(Checkpoint, KeepRemovesOnlyThisRunsOldest) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 2, false};
  save(2, options, {9, 1, 90, 1, "an earlier run", {}});
  onRanks(2, [&](comm::World &world, comm::Group &all) {
    Memory memory = memoryOf(world.rank(), 2, 0, true);
    CheckpointWriter writer(options, all);
    for (int64_t step = 1; step <= 4; ++step)
      ASSERT_FALSE(writer.save(memory.tensors, {1, step, step, step, "", {}})->skipped);
  });
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"net-1_3", "net-1_4", "net-9_1"}));
}

TEST(Checkpoint, RunsInOneFolderReplaceWholeCheckpoints) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 2, false};
  std::vector<std::thread> runs;
  for (int run = 0; run < 3; ++run)
    runs.emplace_back([&] {
      onRanks(3, [&](comm::World &world, comm::Group &all) {
        Memory memory = memoryOf(world.rank(), 3, 0, true);
        CheckpointWriter writer(options, all);
        for (int64_t step = 1; step <= 40; ++step) {
          Result<SaveOutcome> saved = writer.save(memory.tensors, {1, step, step, step, "", {}});
          ASSERT_FALSE(saved->skipped) << saved->skipped->message;
        }
      });
    });
  for (std::thread &run : runs)
    run.join();
  for (const auto &entry : fs::directory_iterator(folder.path()))
    expectLoads(2, entry.path().string(), options);
  std::vector<std::string> notes;
  EXPECT_TRUE(findLatestCheckpoint(options, notes));
  EXPECT_TRUE(notes.empty()) << notes[0];
}

TEST(Checkpoint, WhatDeadRunsLeftIsRemovedAndLivingRunsAreNot) {
  TemporaryFolder folder;
  std::string target = folder.file("net-2_3"), dead = temporaryName(target, 1), living = temporaryName(target, 2);
  FolderLock ended, lock;
  ASSERT_TRUE(makeTemporaryFolder(dead, ended).isOk());
  ended = FolderLock();
  ASSERT_TRUE(makeTemporaryFolder(living, lock).isOk());
  std::ofstream(dead + "/rank_0.safetensors") << "half";
  save(2, {folder.path(), "net", 0, false});
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
}

TEST(Checkpoint, LatestPassesOverIncompleteOnesAndSaysSo) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  for (int64_t step : {1, 2, 3})
    save(2, options, {1, step, step, step, "", {}});
  fs::remove(folder.file("net-1_3/index.json"));
  fs::resize_file(folder.file("net-1_2/rank_1.safetensors"), 100);
  std::vector<std::string> notes;
  EXPECT_EQ(*findLatestCheckpoint(options, notes), folder.file("net-1_1"));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE((notes[0] + notes[1]).find("it has no index.json"), std::string::npos);
  EXPECT_NE((notes[0] + notes[1]).find("has 100 bytes instead of"), std::string::npos);
  expectBad("latest", {folder.path(), "other", 0, false}, "there is no complete checkpoint 'other-*'");
  const Result<std::string> other = findLatestCheckpoint({folder.path(), "other", 0, false}, notes);
  EXPECT_EQ(other.error().message, "there is no complete checkpoint 'other-*' in '" + folder.path() + "'");
  EXPECT_EQ(other.error().help, "'" + folder.file("net-1_1") + "' is of another network or prefix; leave out --resume to train from the beginning");
  fs::remove(folder.file("net-1_1/index.json"));
  const Result<std::string> damaged = findLatestCheckpoint(options, notes);
  EXPECT_EQ(damaged.error().message, "there is no complete checkpoint 'net-*' in '" + folder.path() + "': '" + folder.file("net-1_3") +
                                         "' is no complete checkpoint: it has no index.json");
  EXPECT_EQ(damaged.error().help, "restore its files, or leave out --resume to train from the beginning");
  expectBad("latest", {folder.file("none"), "net", 0, false}, "there is no checkpoint directory", ExitCode::Usage);
  expectBad(folder.file("none"), options, "does not exist", ExitCode::Usage);
}

TEST(Checkpoint, DamageOfAnyFileIsFoundOnAllRanks) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  save(2, options);
  for (std::string name : {"index.json", "state.json", "rank_0.safetensors", "rank_1.safetensors"}) {
    std::string path = folder.file("net-2_3/" + name), content = contentOf(path);
    std::vector<size_t> places{0, 8, content.size() / 2, content.size() - 1};
    for (size_t place : places)
      for (int bit : {0, 5}) {
        std::string flipped = content;
        flipped[place] = static_cast<char>(flipped[place] ^ (1 << bit));
        fill(path, flipped);
        expectBad(folder.file("net-2_3"), options, name);
      }
    for (size_t size : {size_t{0}, size_t{5}, content.size() / 2, content.size() - 1}) {
      fill(path, content.substr(0, size));
      expectBad(folder.file("net-2_3"), options, name);
    }
    fs::remove(path);
    expectBad(folder.file("net-2_3"), options, name);
    fill(path, content);
  }
  expectLoads(2, folder.file("net-2_3"), options);
}

TEST(Checkpoint, EveryBitOfTheIndexCounts) {
  TemporaryFolder folder;
  CheckpointIndex index;
  index.folder = "net-1_1";
  index.files = {{10, std::string(32, 'a')}};
  index.tensors["w"] = {comm::ElementType::F32, {2, 3}, false, {{0, {{0, 2}, {0, 3}}}}};
  index.state = {5, std::string(32, 'b')};
  std::string content = writeIndex(index);
  fill(folder.file("index.json"), content);
  ASSERT_TRUE(readIndex(folder.path()).isOk()) << readIndex(folder.path()).error().message;
  for (size_t i = 0; i < content.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = content;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      fill(folder.file("index.json"), flipped);
      ASSERT_FALSE(readIndex(folder.path()).isOk()) << "byte " << i << " bit " << bit;
    }
}

TEST(Checkpoint, AnIndexThatLiesIsRefused) {
  TemporaryFolder folder;
  auto refused = [&](auto change, const std::string &reason) {
    CheckpointIndex index;
    index.folder = "net-1_1";
    index.files = {{10, std::string(32, 'a')}, {10, std::string(32, 'c')}};
    index.state = {5, std::string(32, 'b')};
    index.tensors["w"] = {comm::ElementType::F32, {4, 3}, false, {{0, {{0, 2}, {0, 3}}}, {1, {{2, 4}, {0, 3}}}}};
    change(index);
    fill(folder.file("index.json"), writeIndex(index));
    Result<CheckpointIndex> read = readIndex(folder.path());
    ASSERT_EQ(read.isOk(), reason.empty()) << reason;
    if (!read) {
      EXPECT_EQ(read.error().code, ExitCode::BadFile);
      EXPECT_NE(read.error().message.find(reason), std::string::npos) << read.error().message;
    }
  };
  using Index = CheckpointIndex &;
  refused([](Index) {}, "");
  refused([](Index i) { i.folder = "../up"; }, "leads out of the directory");
  refused([](Index i) { i.folder = "/etc"; }, "leads out of the directory");
  refused([](Index i) { i.folder = ""; }, "leads out of the directory");
  refused([](Index i) { i.state.checksum = "short"; }, "the entry of the state");
  refused([](Index i) { i.files[1].checksum = ""; }, "the entry of file 1");
  refused([](Index i) { i.tensors["w"].slices.pop_back(); }, "hold 6 of 12 elements");
  refused([](Index i) { i.tensors["w"].slices[1].box[0] = {1, 3}; }, "overlap");
  refused([](Index i) { i.tensors["w"].slices[1].box[0] = {3, 5}; }, "slice 1 of tensor 'w' is not right");
  refused([](Index i) { i.tensors["w"].slices[1].rank = 2; }, "slice 1 of tensor 'w' is not right");
  refused([](Index i) { i.tensors["w"].slices[1].rank = 0; }, "slice 1 of tensor 'w' is not right");
  refused([](Index i) { i.tensors["w"].slices[1].box.pop_back(); }, "slice 1 of tensor 'w' is not right");
  refused([](Index i) { i.tensors["w"].shape = {1LL << 40, 1LL << 40}; }, "too large");
}

TEST(Checkpoint, WhatThePlanAndTheCheckpointDisagreeOnIsNamed) {
  TemporaryFolder folder;
  CheckpointOptions options{folder.path(), "net", 0, false};
  save(2, options);
  onRanks(2, [&](comm::World &world, comm::Group &all) {
    Memory memory = memoryOf(world.rank(), 2, 0, false);
    memory.tensors[1].name = "layer.bias2";
    EXPECT_NE(loadCheckpoint("latest", options, memory.tensors, all).error().message.find("does not hold 'layer.bias2'"),
              std::string::npos);
    memory.tensors[1].name = "layer.bias";
    memory.tensors[1].shape = {25};
    EXPECT_NE(loadCheckpoint("latest", options, memory.tensors, all)
                  .error()
                  .message.find("holds 'layer.bias' as F32 (24), the plan has F32 (25)"),
              std::string::npos);
  });
}

TEST(Checkpoint, AFullDiskSkipsThisCheckpointOnly) {
  TemporaryFolder folder;
  std::string disk = folder.file("disk");
  fs::create_directory(disk);
  // A checkpoint takes 0.6 MB: one fits, the second does not.
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "may not mount a small disk";
  onRanks(2, [&](comm::World &world, comm::Group &all) {
    CheckpointOptions options{disk, "net", 0, false};
    Memory memory = memoryOf(world.rank(), 2, 0, true);
    CheckpointWriter writer(options, all);
    ASSERT_FALSE(writer.save(memory.tensors, {1, 1, 1, 1, "", {}})->skipped);
    Result<SaveOutcome> second = writer.save(memory.tensors, {1, 2, 2, 2, "", {}});
    ASSERT_TRUE(second.isOk()) << "the ranks go on";
    ASSERT_TRUE(second->skipped);
    EXPECT_EQ(second->skipped->code, ExitCode::NoResource);
    for (const char *text : {"No space left on device", "bytes are free", "the file needs"})
      EXPECT_NE(second->skipped->message.find(text), std::string::npos) << second->skipped->message;
    ASSERT_TRUE(loadCheckpoint("latest", options, memory.tensors, all).isOk()) << "the first one is intact";
  });
  EXPECT_FALSE(fs::exists(disk + "/net-1_2"));
  EXPECT_FALSE(fs::exists(disk + "/.net-1_2.tmp"));
  umount(disk.c_str());
}

TEST(Checkpoint, StepsAroundASaveAndLoadGiveTheSameBits) {
  // Momentum on a sharded parameter whose gradient depends on everybody's values.
  auto train = [](comm::Group &all, std::vector<CheckpointTensor> &tensors, int64_t first, int64_t last) {
    auto *w = static_cast<float *>(tensors[0].data), *m = static_cast<float *>(tensors[1].data);
    int64_t count = elementCount(tensors[0].sharding.localShape(tensors[0].shape, all.rank()));
    for (int64_t step = first; step < last; ++step) {
      float sum = 0;
      for (int64_t i = 0; i < count; ++i)
        sum += w[i] * (0.1f + static_cast<float>(step));
      ASSERT_TRUE(all.allReduce(&sum, &sum, 1, comm::ElementType::F32, ReduceKind::Sum, {"loss", ""}).isOk());
      for (int64_t i = 0; i < count; ++i) {
        m[i] = 0.9f * m[i] + 1e-4f * sum + 0.01f * w[i];
        w[i] -= 0.05f * m[i];
      }
    }
  };
  TemporaryFolder folder;
  onRanks(4, [&](comm::World &world, comm::Group &all) {
    Sharding sharding = shardingFor(4, 2, 2);
    int64_t count = elementCount(sharding.localShape({13, 9}, world.rank()));
    auto fresh = [&](std::vector<float> &w, std::vector<float> &m) {
      w.resize(count);
      m.assign(count, 0);
      for (int64_t i = 0; i < count; ++i)
        w[i] = 0.01f * static_cast<float>(i + world.rank() + 1);
      return std::vector<CheckpointTensor>{{"w", comm::ElementType::F32, {13, 9}, sharding, w.data(), false},
                                           {"m", comm::ElementType::F32, {13, 9}, sharding, m.data(), true}};
    };
    std::vector<float> w1, m1, w2, m2;
    auto straight = fresh(w1, m1);
    train(all, straight, 0, 20);
    auto first = fresh(w2, m2);
    train(all, first, 0, 7);
    CheckpointOptions options{folder.path(), "net", 0, false};
    ASSERT_FALSE(CheckpointWriter(options, all).save(first, {1, 7, 7, 7, "", {}})->skipped);
    std::vector<float> w3(count), m3(count);
    first[0].data = w3.data();
    first[1].data = m3.data();
    Result<LoadOutcome> loaded = loadCheckpoint("latest", options, first, all);
    ASSERT_TRUE(loaded.isOk());
    train(all, first, loaded->state.globalStep, 20);
    EXPECT_EQ(memcmp(w1.data(), w3.data(), count * 4), 0);
    EXPECT_EQ(memcmp(m1.data(), m3.data(), count * 4), 0);
  });
}
