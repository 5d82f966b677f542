// The program as users start it: lines, files, exit codes.
#include "runtime/checkpoint/Npy.h"
#include "runtime/plan/PlanFile.h"
#include "test/runtime/executor/MsrunFixture.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sys/stat.h>

using namespace msc;
using namespace msc::test;

namespace {

TEST_F(Msrun, TrainsAndPrintsWhatUsersKnow) {
  save(regression(4, 2));
  Outcome outcome = run({"net.plan"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "4 ranks: threads, cpu\n");
  std::regex form("rank size: 4, rank id: 0\ntrain dataset batch num: 4\n"
                  "epoch: 1 step: 1, loss is [0-9.e-]+\nepoch: 1 step: 2, loss is [0-9.e-]+\n"
                  "epoch: 1 step: 3, loss is [0-9.e-]+\nepoch: 1 step: 4, loss is [0-9.e-]+\n"
                  "epoch: 2 step: 1, loss is [0-9.e-]+\n(epoch: 2 step: [234], loss is [0-9.e-]+\n){3}");
  EXPECT_TRUE(std::regex_match(outcome.out, form)) << outcome.out;
  std::vector<double> losses = lossesOf(outcome.out);
  for (size_t i = 1; i < losses.size(); ++i)
    EXPECT_LT(losses[i], losses[i - 1]);
}

TEST_F(Msrun, AnyNumberOfRanksGivesTheSameLosses) {
  std::vector<double> alone;
  for (int64_t devices : {1, 2, 3, 4, 8, 12}) {
    save(regression(devices));
    Outcome outcome = run({"net.plan"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<double> losses = lossesOf(outcome.out);
    ASSERT_EQ(losses.size(), 12u);
    if (devices == 1)
      alone = losses;
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i] / alone[i], 1, 1e-5) << devices << " devices, step " << i;
    // The same plan again gives the same bits, with any number of threads.
    EXPECT_EQ(run({"net.plan", "--threads-per-rank", "3"}).out, outcome.out);
  }
}

TEST_F(Msrun, OptionsOfTheLoopAndTheLog) {
  save(regression(2, 3));
  EXPECT_EQ(lossesOf(run({"net.plan", "--epochs", "1"}).out).size(), 4u);
  EXPECT_EQ(lossesOf(run({"net.plan", "--steps", "6"}).out).size(), 6u);
  EXPECT_EQ(lossesOf(run({"net.plan", "--log-every", "epoch"}).out).size(), 3u);
  EXPECT_EQ(lossesOf(run({"net.plan", "--log-every", "5"}).out).size(), 2u);
  EXPECT_EQ(lossesOf(run({"net.plan", "--log-all-ranks"}).out).size(), 24u);
  EXPECT_EQ(run({"net.plan", "--log-prefix", "--steps", "1"}).out.find("rank 0: rank size: 2, rank id: 0\n"), 0u);
}

TEST_F(Msrun, FetchesGlobalArraysOfTheLastStep) {
  save(regression(3));
  Outcome outcome = run({"net.plan", "--fetch", "loss=loss.npy", "--fetch", "predicted=out.npy", "--fetch", "param:w=w.npy"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto loss = readNpy(file("loss.npy")), out = readNpy(file("out.npy")), w = readNpy(file("w.npy"));
  ASSERT_TRUE(loss && out && w);
  EXPECT_EQ(out->shape, (std::vector<int64_t>{10, 3}));
  EXPECT_EQ(w->shape, (std::vector<int64_t>{4, 3}));
  float value = 0;
  std::memcpy(&value, loss->bytes.data(), sizeof(value));
  EXPECT_EQ(value, static_cast<float>(lossesOf(outcome.out).back()));
  save(regression(1));
  ASSERT_EQ(run({"net.plan", "--fetch", "param:w=w1.npy"}).code, 0);
  auto alone = readNpy(file("w1.npy"));
  for (size_t i = 0; i < 12; ++i) {
    float a = 0, b = 0;
    std::memcpy(&a, w->bytes.data() + 4 * i, 4);
    std::memcpy(&b, alone->bytes.data() + 4 * i, 4);
    EXPECT_NEAR(a, b, 1e-5);
  }
}

TEST_F(Msrun, PredictsFromGivenInputs) {
  save(matmulAllReduce(4));
  std::vector<float> x(48, 0.0f);
  x[0] = 1; // row 0 of the result is row 0 of w
  ASSERT_TRUE(writeNpy(file("x.npy"), comm::ElementType::F32, {6, 8}, x.data()));
  Outcome outcome = run({"net.plan", "--input", "x=x.npy", "--fetch", "out=out.npy", "--fetch", "param:w=w.npy"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("out: f32[6, 5] = "), std::string::npos) << outcome.out;
  auto out = readNpy(file("out.npy")), w = readNpy(file("w.npy"));
  ASSERT_TRUE(out && w);
  EXPECT_EQ(std::memcmp(out->bytes.data(), w->bytes.data(), 5 * sizeof(float)), 0);
}

/// Every rank takes its part of the file, whatever the network would draw.
TEST_F(Msrun, BeginsWithGivenParameters) {
  save(matmulAllReduce(4));
  std::vector<float> x(48), w(40);
  std::iota(x.begin(), x.end(), 1.0f);
  std::iota(w.begin(), w.end(), 100.0f);
  ASSERT_TRUE(writeNpy(file("x.npy"), comm::ElementType::F32, {6, 8}, x.data()));
  ASSERT_TRUE(writeNpy(file("given.npy"), comm::ElementType::F32, {8, 5}, w.data()));
  Outcome outcome = run({"net.plan", "--input", "x=x.npy,param:w=given.npy", "--fetch", "out=out.npy", "--fetch", "param:w=w.npy"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto out = readNpy(file("out.npy")), kept = readNpy(file("w.npy"));
  ASSERT_TRUE(out && kept);
  EXPECT_EQ(std::memcmp(kept->bytes.data(), w.data(), w.size() * sizeof(float)), 0);
  for (size_t row = 0; row < 6; ++row)
    for (size_t column = 0; column < 5; ++column) {
      float sum = 0, found = 0;
      for (size_t k = 0; k < 8; ++k)
        sum += x[row * 8 + k] * w[k * 5 + column];
      std::memcpy(&found, out->bytes.data() + (row * 5 + column) * sizeof(float), sizeof(float));
      EXPECT_EQ(found, sum);
    }
  ASSERT_TRUE(writeNpy(file("other.npy"), comm::ElementType::F32, {5, 8}, w.data()));
  outcome = run({"net.plan", "--input", "x=x.npy,param:w=other.npy"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("'other.npy' has shape (5, 8), input 'param:w' takes (8, 5)"), std::string::npos) << outcome.err;
  outcome = run({"net.plan", "--input", "x=x.npy,w=given.npy"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("did you mean 'param:w'?"), std::string::npos) << outcome.err;
}

TEST_F(Msrun, ReportsEveryStep) {
  save(regression(2));
  ASSERT_EQ(run({"net.plan", "--report", "r.json", "--log-every", "epoch"}).code, 0);
  nlohmann::json report = nlohmann::json::parse(contentOf(folder / "r.json"));
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["transport"], "threads");
  EXPECT_EQ(report["device"], "cpu");
  ASSERT_EQ(report["steps"].size(), 12u);
  EXPECT_EQ(report["steps"][5]["epoch"], 2);
  EXPECT_EQ(report["steps"][5]["step"], 2);
  EXPECT_GT(report["steps"][5]["ms"], 0);
  EXPECT_GT(report["throughput"]["samples_per_second"], 0);
  EXPECT_GE(report["peak_bytes_per_rank"], regression(2).plan.arena_bytes());
}

TEST_F(Msrun, CheckpointsResumeOnOtherRanks) {
  auto with = [](int64_t devices) {
    PlanBuilder builder = regression(devices, 3);
    builder.plan.mutable_checkpointing()->set_directory("ckpt");
    builder.plan.mutable_checkpointing()->set_every_epochs(1);
    return builder;
  };
  save(with(2));
  Outcome whole = run({"net.plan"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "ckpt/tiny-3_4/index.json"));
  std::filesystem::remove_all(folder / "ckpt/tiny-2_4");
  std::filesystem::remove_all(folder / "ckpt/tiny-3_4");
  Outcome rest = run({"net.plan", "--resume", "latest"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  // Two epochs, the same bits as without the break.
  EXPECT_NE(whole.out.find(rest.out.substr(rest.out.find("epoch: 2 step: 1"))), std::string::npos) << rest.out;
  EXPECT_EQ(lossesOf(rest.out).size(), 8u);
  save(with(3));
  Outcome other = run({"net.plan", "--resume", "ckpt/tiny-1_4", "--no-checkpoint"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_NEAR(lossesOf(other.out).back() / lossesOf(whole.out).back(), 1, 1e-5);
  Outcome none = run({"net.plan", "--no-checkpoint", "--checkpoint-directory", "nowhere", "--resume", "latest"});
  EXPECT_NE(none.code, 0);
}

TEST_F(Msrun, ResultsNeedAStep) {
  PlanBuilder builder = regression(2);
  builder.plan.mutable_checkpointing()->set_directory("ckpt");
  builder.plan.mutable_checkpointing()->set_every_epochs(1);
  save(builder);
  ASSERT_EQ(run({"net.plan"}).code, 0);
  for (std::vector<std::string> flags : {std::vector<std::string>{"--epochs", "0"}, {"--steps", "0"}, {"--resume", "latest"}}) {
    flags.insert(flags.begin(), "net.plan");
    flags.insert(flags.end(), {"--fetch", "param:w=w.npy"});
    EXPECT_EQ(run(flags).code, 0);
    EXPECT_TRUE(std::filesystem::remove(folder / "w.npy"));
    flags.insert(flags.end(), {"--fetch", "predicted=out.npy"});
    Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("msrun: error: 'predicted' was not computed: no step ran\n"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "out.npy"));
    EXPECT_FALSE(std::filesystem::exists(folder / "w.npy"));
  }
}

TEST_F(Msrun, ItsOwnInputIsNotOverwritten) {
  PlanBuilder builder = matmulAllReduce(2);
  builder.plan.mutable_datasets(0)->set_source("Npy");
  builder.plan.mutable_datasets(0)->set_steps(0);
  builder.plan.mutable_datasets(0)->mutable_columns(0)->set_path("x.npy");
  save(builder);
  std::vector<float> x(48, 1.0f);
  for (const char *name : {"x.npy", "given.npy"})
    ASSERT_TRUE(writeNpy(file(name), comm::ElementType::F32, {6, 8}, x.data()));
  std::filesystem::create_symlink("x.npy", folder / "link.npy");
  auto expect = [&](const std::vector<std::string> &words, const std::string &message) {
    Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "msrun: error: " + message + "\nhelp: choose another name\n");
  };
  std::string plan = contentOf(folder / "net.plan"), array = contentOf(folder / "x.npy");
  expect({"net.plan", "--fetch", "out=./x.npy"}, "--fetch out=./x.npy would overwrite column 'x' of the data set");
  expect({"net.plan", "--fetch", "out=link.npy"}, "--fetch out=link.npy would overwrite column 'x' of the data set");
  expect({"net.plan", "--fetch", "out=net.plan"}, "--fetch out=net.plan would overwrite the plan");
  expect({"net.plan", "--report", "net.plan"}, "--report net.plan would overwrite the plan");
  expect({"net.plan", "--input", "x=given.npy", "--fetch", "out=given.npy"}, "--fetch out=given.npy would overwrite input 'x'");
  EXPECT_EQ(contentOf(folder / "net.plan"), plan);
  EXPECT_EQ(contentOf(folder / "x.npy"), array);
  EXPECT_EQ(run({"net.plan", "--fetch", "out=new.npy", "--fetch", "param:w=./new.npy"}).code, 2); // twice
  EXPECT_EQ(run({"net.plan", "--fetch", "out=new.npy"}).code, 0);
}

TEST_F(Msrun, ALossThatIsNoNumberIsSaidOnce) {
  PlanBuilder builder = regression(2, 3);
  builder.plan.mutable_schedules(0)->set_values(0, 1e30);
  save(builder);
  Outcome outcome = run({"net.plan", "--log-all-ranks"});
  EXPECT_EQ(outcome.code, 0);
  std::regex form("2 ranks: threads, cpu\nmsrun: warning: the loss is (inf|nan) in epoch 1 step [234]: the training has diverged; "
                  "try a smaller learning rate\n");
  EXPECT_TRUE(std::regex_match(outcome.err, form)) << outcome.err;
  EXPECT_NE(outcome.out.find("loss is nan\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("-nan"), std::string::npos) << outcome.out;
}

TEST_F(Msrun, PredictionRunsAllBatchesOfItsFiles) {
  PlanBuilder builder = matmulAllReduce(2);
  builder.plan.mutable_datasets(0)->set_source("Npy");
  builder.plan.mutable_datasets(0)->set_steps(0);
  builder.plan.mutable_datasets(0)->mutable_columns(0)->set_path("x.npy");
  save(builder);
  std::vector<float> x(19 * 8, 1.0f);
  std::fill(x.begin() + 12 * 8, x.end(), 0.0f); // of the third batch
  ASSERT_TRUE(writeNpy(file("x.npy"), comm::ElementType::F32, {19, 8}, x.data()));
  Outcome outcome = run({"net.plan", "--report", "r.json", "--fetch", "out=out.npy"});
  EXPECT_EQ(outcome.err, "2 ranks: threads, cpu\nnote: 1 sample of column 'x' fills no batch of 6 and is left out\n"
                         "note: fetched results are those of the last of 3 batches, 6 of 19 samples\n");
  std::regex form("rank size: 2, rank id: 0\nstep: 1, (out: f32\\[6, 5\\] = .*)\nstep: 2, \\1\n"
                  "step: 3, out: f32\\[6, 5\\] = 0 0 0 0 0 0 0 0 \\.\\.\\.\n");
  EXPECT_TRUE(std::regex_match(outcome.out, form)) << outcome.out;
  Result<NpyArray> out = readNpy(file("out.npy"));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->bytes, std::vector<std::byte>(6 * 5 * 4));
  nlohmann::json report = nlohmann::json::parse(contentOf(folder / "r.json"));
  ASSERT_EQ(report["steps"].size(), 3u);
  double ms = 0;
  for (const nlohmann::json &step : report["steps"]) {
    EXPECT_TRUE(step["loss"].is_null());
    ms += step["ms"].get<double>();
  }
  EXPECT_EQ(report["steps"][2]["step"], 3);
  EXPECT_NEAR(report["throughput"]["samples_per_second"].get<double>() * ms / 18000, 1, 1e-6);
  // One batch has no number.
  ASSERT_TRUE(writeNpy(file("x.npy"), comm::ElementType::F32, {6, 8}, x.data()));
  outcome = run({"net.plan", "--fetch", "out=out.npy"});
  EXPECT_EQ(outcome.err, "2 ranks: threads, cpu\n");
  EXPECT_EQ(outcome.out.find("rank size: 2, rank id: 0\nout: f32[6, 5] = "), 0u) << outcome.out;
}

/// The plan without its training loop: the loss of one batch. The weights stay as they are.
PlanBuilder withoutTraining(PlanBuilder builder) {
  builder.plan.clear_training();
  builder.plan.mutable_schedules(0)->set_values(0, 0);
  return builder;
}

TEST_F(Msrun, AnyRunReadsTheCheckpointsOfTheFolderItIsTold) {
  PlanBuilder builder = regression(2);
  builder.plan.mutable_checkpointing()->set_directory("ckpt");
  builder.plan.mutable_checkpointing()->set_prefix("mine");
  builder.plan.mutable_checkpointing()->set_every_epochs(1);
  for (const char *name : {"moment1", "moment2", "steps"})
    builder.parameter(builder.buffer(name, {2}, builder.cut(1, -1), plan::Buffer::PARAMETER), "zeros", 0);
  save(builder);
  ASSERT_EQ(run({"net.plan", "--fetch", "param:w=w.npy"}).code, 0);
  save(withoutTraining(regression(3)));
  Outcome outcome = run({"net.plan", "--resume", "latest"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "msrun: error: --resume latest does not know the folder: a plan that does not train has no checkpoint block\n"
                         "help: add --checkpoint-directory DIR, the folder of the run that trained\n");
  std::filesystem::create_directory(folder / "ckpt/other");
  outcome = run({"net.plan", "--resume", "latest", "--checkpoint-directory", "ckpt", "--fetch", "param:w=read.npy"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "3 ranks: threads, cpu\nnote: the network has no 'moment1' and 2 other tensors, which the checkpoint holds\n"
                         "resumed from ckpt/mine-3_4 after epoch 3 step 4\n");
  EXPECT_EQ(contentOf(folder / "read.npy"), contentOf(folder / "w.npy"));
  // A file of a checkpoint stands for it, also in its own folder; another file does not.
  for (const char *name : {"index.json", "rank_1.safetensors"}) {
    outcome = run({"net.plan", "--resume", std::string("ckpt/mine-2_4/") + name});
    EXPECT_NE(outcome.err.find("resumed from ckpt/mine-2_4 after epoch 2 step 4\n"), std::string::npos) << outcome.err;
  }
  outcome = finish(startProgram({"sh", "-c", "cd ckpt/mine-2_4 && " MSC_MSRUN " ../../net.plan --resume index.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  outcome = run({"net.plan", "--resume", "w.npy"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("error: 'w.npy' is a file, not the folder of a checkpoint\n"), std::string::npos) << outcome.err;
}

TEST_F(Msrun, OtherBatchesThanThoseOfTheCheckpointAreSaid) {
  PlanBuilder builder = regression(2);
  builder.plan.mutable_checkpointing()->set_directory("ckpt");
  builder.plan.mutable_checkpointing()->set_every_steps(6);
  save(builder);
  ASSERT_EQ(run({"net.plan", "--steps", "6"}).code, 0);
  EXPECT_EQ(run({"net.plan", "--resume", "latest", "--no-checkpoint"}).err.find("note: "), std::string::npos);
  builder.plan.mutable_datasets(0)->set_steps(8);
  save(builder);
  Outcome outcome = run({"net.plan", "--resume", "latest"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("note: an epoch of the checkpoint has 4 batches of 10, here it has 8 batches of 10: the run goes on at "
                             "epoch 1 step 7, and may skip or repeat samples\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("\nepoch: 1 step: 7, "), std::string::npos);
}

TEST_F(Msrun, PrintsThePlan) {
  save(regression(4));
  Outcome outcome = run({"net.plan", "--print-plan"});
  EXPECT_EQ(outcome.code, 0);
  for (const char *part : {"plan 'tiny' for 4 devices", "%0 'x' input f32[10, 4] local [2, 4] sharding (4) [0, -]",
                           "group 0: nccl_world_group = (0, 1, 2, 3)", "   4 AllReduce 'loss_sum' forward: reads (7) writes (8)"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  EXPECT_NE(outcome.out.find("\ntraining: 3 epochs, minimize 'loss'\ndataset: Random, seed 1, 4 steps per epoch\n"), std::string::npos)
      << outcome.out;
  PlanBuilder steps = regression(4);
  steps.plan.mutable_training()->set_steps(7);
  steps.plan.mutable_datasets(0)->set_name("train");
  steps.plan.mutable_datasets(0)->set_source("Npy");
  steps.plan.mutable_datasets(0)->set_steps(0);
  for (plan::Dataset::Column &column : *steps.plan.mutable_datasets(0)->mutable_columns())
    column.set_path("x.npy");
  save(steps);
  outcome = run({"net.plan", "--print-plan"});
  EXPECT_NE(outcome.out.find("\ntraining: 7 steps, minimize 'loss'\ndataset 'train': Npy, seed 1, all batches of the files\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Msrun, SavesWhatEachRankRuns) {
  save(regression(12)); // ten rows: some ranks have none
  ASSERT_EQ(run({"net.plan", "--save-graphs", "--save-graphs-path", "graphs", "--threads-per-rank", "2"}).code, 0);
  for (int rank = 0; rank < 12; ++rank) {
    std::string text = contentOf(folder / ("graphs/rank_" + std::to_string(rank)) / "msrun.txt");
    bool empty = rank == 0 || rank == 6; // [floor(10 r / 12), floor(10 (r + 1) / 12))
    for (std::string part : {"run: rank " + std::to_string(rank) + " of 12, threads, cpu, 2 threads, kernels x86-64-v3\n",
                             std::string("%0 'x' input f32[10, 4] local [") + (empty ? "0" : "1") + ", 4]",
                             std::string("MatMul 'matmul' forward: reads (0, 2) writes (5) ") +
                                 (empty ? "nothing: its results are empty here" : "transpose (false, false)")})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  save(regression(20));
  ASSERT_EQ(run({"net.plan", "--save-graphs", "--steps", "1"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "rank_0/msrun.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "rank_1"));
}

TEST_F(Msrun, TargetsAreOnlyLookedAtBeforeTheRun) {
  save(regression(2));
  std::ofstream(file("old.npy")) << "precious";
  std::filesystem::create_directory(folder / "folder.npy");
  EXPECT_EQ(run({"net.plan", "--fetch", "loss=old.npy,param:w=new.npy", "--report", "folder.npy"}).code, 4);
  EXPECT_EQ(contentOf(folder / "old.npy"), "precious");
  EXPECT_FALSE(std::filesystem::exists(folder / "new.npy"));
}

TEST_F(Msrun, AllRanksHaveOneErrorInResuming) {
  PlanBuilder builder = regression(4);
  builder.plan.mutable_checkpointing()->set_directory("ckpt");
  builder.plan.mutable_checkpointing()->set_every_epochs(1);
  save(builder);
  ASSERT_EQ(run({"net.plan"}).code, 0);
  for (int rank : {2, 3}) {
    std::string damaged = "ckpt/tiny-3_4/rank_" + std::to_string(rank) + ".safetensors";
    std::string bytes = contentOf(folder / damaged);
    std::ofstream(file(damaged), std::ios::binary) << bytes << "x";
  }
  for (int i = 0; i < 8; ++i) {
    Outcome outcome = run({"net.plan", "--resume", "ckpt/tiny-3_4"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.err.find("4 ranks: threads, cpu\nmsrun: error: 'ckpt/tiny-3_4/rank_2.safetensors' has "), 0u) << outcome.err;
  }
}

struct Mistake {
  std::vector<std::string> words;
  int code;
  const char *message;
};

TEST_F(Msrun, MistakesHaveTheirCodesAndTexts) {
  save(regression(2));
  save(matmulAllReduce(2), "predict.plan");
  std::ofstream(file("text.plan")) << "hello, I am not a plan, but long enough to look like a file with some content";
  std::ofstream(file("plain")) << "a file whose name has no dot";
  std::string bytes = contentOf(folder / "net.plan");
  bytes[200] ^= 1;
  std::ofstream(file("damaged.plan"), std::ios::binary) << bytes;
  std::ofstream(file("newer.plan"), std::ios::binary) << plan::encodePlan(regression(2).plan, 4);
  PlanBuilder unsound = regression(2);
  unsound.variant->mutable_steps(2)->mutable_matmul()->set_left(1);
  unsound.variant->mutable_steps(2)->set_reads(0, 1);
  save(unsound, "unsound.plan");
  PlanBuilder cuda = regression(2);
  cuda.plan.set_device_target("cuda");
  save(cuda, "cuda.plan");
  for (const Mistake &mistake : {
           Mistake{{"elsewhere.plan"}, 2, "msrun: error: there is no file 'elsewhere.plan'"},
           Mistake{{}, 2, "msrun: error: "},
           Mistake{{"net.plan", "--ephocs", "3"}, 2, "msrun: error: unknown flag '--ephocs'\nhelp: did you mean '--epochs'?"},
           Mistake{{"nets"}, 2, "msrun: error: unknown command 'nets'\nhelp: did you mean 'net.plan'?"},
           Mistake{{"launch"}, 2, "msrun: error: unknown command 'launch'\nhelp: 'msrun net.plan' runs a plan"},
           Mistake{{"plain"}, 2, "msrun: error: unknown command 'plain'\nhelp: write './plain' for the file of that name"},
           Mistake{{"net.plan", "--fetch", "gain=g.npy"}, 2, "msrun: error: there is no result 'gain' to fetch\nhelp: there are loss, predicted, param:w;"},
           Mistake{{"net.plan", "--fetch", "%los=g.npy"}, 2, "msrun: error: there is no result 'los' to fetch\nhelp: did you mean 'loss'? there are loss, predicted, param:w;"},
           Mistake{{"net.plan", "--fetch", "w=g.npy"}, 2, "msrun: error: there is no result 'w' to fetch\nhelp: did you mean 'param:w'?"},
           Mistake{{"net.plan", "--fetch", "loss=g.npy,param:w=g.npy"}, 2, "msrun: error: 'g.npy' would be written twice"},
           Mistake{{"net.plan", "--print-plan", "--steps", "3"}, 2, "msrun: error: --steps has no effect: --print-plan runs nothing\nhelp: leave out one of them"},
           Mistake{{"net.plan", "--print-plan", "--epochs", "3"}, 2, "msrun: error: --epochs has no effect: --print-plan runs nothing"},
           Mistake{{"net.plan", "--resume", ""}, 2, "msrun: error: --resume has an empty value\nhelp: give it one, or leave it out"},
           Mistake{{"net.plan", "--log-every", ""}, 2, "msrun: error: --log-every has an empty value"},
           Mistake{{"net.plan", "--checkpoint-directory", ""}, 2, "msrun: error: --checkpoint-directory has an empty value"},
           Mistake{{"net.plan", "--report", ""}, 2, "msrun: error: --report has an empty value"},
           Mistake{{"net.plan", "--report", "-"}, 2, "msrun: error: --report -: stdout has the lines of the run\nhelp: name a file"},
           Mistake{{"net.plan", "--resume", "nowhere"}, 2, "msrun: error: there is no checkpoint 'nowhere'"},
           Mistake{{"net.plan", "--save-graphs-path", "d"}, 2, "msrun: error: --save-graphs-path has no effect without --save-graphs"},
           Mistake{{"net.plan", "--save-graphs", "--save-graphs-path", "plain"}, 4, "msrun: error: cannot make the folder 'plain/rank_"},
           Mistake{{"net.plan", "--fetch", "loss=."}, 4, "msrun: error: cannot write '.': it is a folder"},
           Mistake{{"net.plan", "--report", "/no/such/r.json"}, 4, "msrun: error: cannot write '/no/such/r.json': there is no folder '/no/such'"},
           Mistake{{"net.plan", "--fetch", "loss"}, 2, "msrun: error: --fetch loss has no name or no file"},
           Mistake{{"net.plan", "--input", "z=z.npy"}, 2, "msrun: error: the network has no input 'z'\nhelp: its inputs are x, y"},
           Mistake{{"net.plan", "--input", "x=none.npy"}, 2, "none.npy"},
           Mistake{{"net.plan", "--log-every", "often"}, 2, "msrun: error: --log-every often is no number of steps"},
           Mistake{{"net.plan", "--epochs", "-1"}, 2, "msrun: error: --epochs: '-1' is no whole number"},
           Mistake{{"net.plan", "--steps", "99999999999999999999"}, 2, "msrun: error: --steps: '99999999999999999999' is no whole number"},
           Mistake{{"net.plan", "--timeout", "soon"}, 2, "msrun: error: --timeout: 'soon' is no number of seconds"},
           Mistake{{"net.plan", "--threads", "0"}, 2, "msrun: error: unknown flag '--threads'\nhelp: did you mean '--threads-per-rank'?"},
           Mistake{{"net.plan", "--threads-per-rank", "0"}, 2, "msrun: error: --threads-per-rank: "},
           Mistake{{"net.plan", "--device", "tpu"}, 2, "msrun: error: unknown device 'tpu'"},
           Mistake{{"net.plan", "--transport", "pigeon"}, 2, "msrun: error: unknown transport 'pigeon'"},
           Mistake{{"predict.plan", "--epochs", "3"}, 2, "msrun: error: --epochs has no effect: the plan does not train"},
           Mistake{{"net.plan", "--epochs", "3", "--steps", "5"}, 2, "msrun: error: --epochs has no effect: --steps says where the run ends"},
           Mistake{{"net.plan", "--checkpoint-directory", "d"}, 2, "msrun: error: --checkpoint-directory has no effect: the network has no checkpoint block"},
           Mistake{{"text.plan"}, 3, "msrun: error: text.plan is not a plan"},
           Mistake{{"damaged.plan"}, 3, "msrun: error: damaged.plan is damaged: the checksum of its"},
           Mistake{{"newer.plan"}, 3, "msrun: error: newer.plan has format 4, this msrun reads formats 1-3"},
           Mistake{{"unsound.plan"}, 3, "msrun: error: unsound.plan is refused: step 'matmul' (net.mir:4): dimension 1 (size 3)"},
           Mistake{{"net.plan", "--fetch", "loss=/no/such/loss.npy"}, 4, "/no/such/loss.npy"},
           Mistake{{"cuda.plan"}, 3, "msrun: error: cuda.plan holds no code for GPUs\nhelp: compile the network again with --device-target auto"},
           Mistake{{"net.plan", "--device", "cuda", "--matmul-precision", "f16"}, 2, "msrun: error: unknown precision 'f16'\nhelp: choose f32 or tf32"},
           Mistake{{"net.plan", "--device", "cuda", "--threads-per-rank", "2"}, 2, "msrun: error: --threads-per-rank has no effect: the run is on GPUs\nhelp: leave out --threads-per-rank"},
           Mistake{{"net.plan", "--matmul-precision", "f32"}, 2, "msrun: error: --matmul-precision has no effect: the run is on CPUs\nhelp: add --device cuda"},
           Mistake{{"net.plan", "--no-cuda-graph"}, 2, "msrun: error: --no-cuda-graph has no effect: the run is on CPUs\nhelp: add --device cuda"},
       }) {
    Outcome outcome = run(mistake.words);
    EXPECT_EQ(outcome.code, mistake.code) << outcome.err;
    EXPECT_NE(outcome.err.find(mistake.message), std::string::npos) << outcome.err;
    EXPECT_EQ(lossesOf(outcome.out).size(), 0u) << "found after the training: " << outcome.err;
    std::ptrdiff_t lines = 1 + (outcome.err.find("help:") != std::string::npos) + (outcome.err.find("2 ranks: ") == 0);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), lines) << "one error, one help: " << outcome.err;
  }
  EXPECT_EQ(run({"cuda.plan", "--device", "cpu"}).code, 0);
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({"--version"}).out.find("msrun 0."), 0u);
}

TEST_F(Msrun, ADiskThatFailsIsAWarning) {
  PlanBuilder builder = regression(3);
  builder.plan.mutable_checkpointing()->set_directory("/proc/no/such/folder");
  builder.plan.mutable_checkpointing()->set_every_steps(2);
  save(builder);
  // Trouble with the disk is a warning: the training goes on.
  Outcome outcome = run({"net.plan"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lossesOf(outcome.out).size(), 12u);
  EXPECT_NE(outcome.err.find("msrun: warning: no checkpoint after epoch 1 step 2: "), std::string::npos) << outcome.err;
}

TEST_F(Msrun, AFolderForCheckpointsIsCheckedBeforeTheRun) {
  PlanBuilder builder = regression(3);
  builder.plan.mutable_checkpointing()->set_directory("ckpt");
  builder.plan.mutable_checkpointing()->set_every_epochs(1);
  save(builder);
  Outcome outcome = run({"net.plan", "--checkpoint-directory", "net.plan/below"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err.find("msrun: error: cannot make the folder 'net.plan/below': "), 0u) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(run({"net.plan", "--checkpoint-directory", "a/b"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/tiny-3_4/index.json"));
  outcome = run({"net.plan", "--resume", "a/b"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("help: choose one in it, e.g. 'a/b/tiny-3_4'\n"), std::string::npos) << outcome.err;
}

TEST_F(Msrun, ALogThatNobodyReadsEndsTheRun) {
  save(regression(4, 100000000));
  Outcome outcome = finish(startProgram({"sh", "-c", "{ " MSC_MSRUN " net.plan; echo code $? >&2; } | head -1"}));
  EXPECT_EQ(outcome.out, "rank size: 4, rank id: 0\n");
  EXPECT_NE(outcome.err.find("msrun: error: nobody reads what rank 0 prints: the pipe at stdout is closed\n"), std::string::npos);
  EXPECT_NE(outcome.err.find("\ncode 4\n"), std::string::npos) << outcome.err;
}

TEST_F(Msrun, ALogOnAFullDiskIsOneWarning) {
  save(regression(4));
  Outcome outcome = finish(startProgram({"sh", "-c", MSC_MSRUN " net.plan --fetch loss=loss.npy > /dev/full"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "4 ranks: threads, cpu\nmsrun: warning: cannot write to stdout: No space left on device; the run goes on "
                         "without its lines\n");
  EXPECT_TRUE(readNpy(file("loss.npy")));
}

TEST_F(Msrun, AThreadThatCannotStartIsOneError) {
  if (underAddressSanitizer || underThreadSanitizer)
    GTEST_SKIP() << "sanitizers do not start under this limit";
  save(regression(1));
  // Room for the program, not for the stacks of 64 threads.
  Outcome outcome = finish(startProgram({"sh", "-c", "ulimit -s 65536; ulimit -v 2000000; exec " MSC_MSRUN " net.plan --threads-per-rank 64"}));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcome.err.find("1 rank: threads, cpu\nmsrun: error: cannot start a thread: "), 0u) << outcome.err;
}

TEST_F(Msrun, PipesAreNoInputs) {
  save(regression(2));
  std::filesystem::create_directory(folder / "d");
  for (const char *name : {"pipe", "d/index.json"})
    ASSERT_EQ(::mkfifo(file(name).c_str(), 0600), 0);
  for (const char *words : {"net.plan --input x=pipe", "net.plan --resume d", "./pipe"}) {
    Outcome outcome = finish(startProgram({"sh", "-c", std::string("exec timeout 30 " MSC_MSRUN " ") + words}));
    EXPECT_EQ(outcome.code, 3) << words << ": " << outcome.err;
  }
}

TEST_F(Msrun, PipesThatNobodyReadsAreNoTargets) {
  save(regression(2));
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  for (const char *words : {"--report pipe", "--timeline pipe", "--fetch loss=pipe"}) {
    Outcome outcome = finish(startProgram({"sh", "-c", std::string("exec timeout 30 " MSC_MSRUN " net.plan --steps 1 ") + words}));
    EXPECT_EQ(outcome.code, 4) << words << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("error: cannot write 'pipe': it is a pipe that nobody reads"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("help: start its reader first: cat pipe > FILE &"), std::string::npos) << outcome.err;
  }
  // A reader gets all of it, and no end before that.
  Outcome outcome = finish(startProgram({"sh", "-c", "cat pipe > read.json & " MSC_MSRUN " net.plan --steps 1 --report pipe > /dev/null && wait && exec cat read.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"peak_bytes_per_rank\""), std::string::npos) << outcome.out;
}

TEST_F(Msrun, AFileBeyondTheLimitIsAnError) {
  if (underThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer does not start under this limit";
  save(matmulAllReduce(2));
  Outcome outcome = finish(startProgram({"sh", "-c", "ulimit -f 0; exec " MSC_MSRUN " net.plan --report r.json > /dev/null 2>&1"}));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
}

TEST_F(Msrun, APlanThatCannotBePrintedIsAnError) {
  save(regression(2));
  Outcome outcome = finish(startProgram({"sh", "-c", "exec " MSC_MSRUN " net.plan --print-plan > /dev/full"}));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err, "msrun: error: cannot write to stdout: No space left on device\n"
                         "help: free some space or choose another directory\n");
}

TEST_F(Msrun, LinesDoNotLandInFilesWhenStandardFilesAreClosed) {
  save(regression(2, 100000000));
  pid_t child = startProgram({"sh", "-c", "exec " MSC_MSRUN " net.plan --save-graphs <&- >&- 2>&-"});
  for (int i = 0; i < 1000 && !std::filesystem::exists(folder / "rank_1/msrun.txt"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int file : {0, 1, 2})
    EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/fd/" + std::to_string(file)), "/dev/null");
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 143);
}

TEST_F(Msrun, MemoryIsRefusedBeforeTheStart) {
  PlanBuilder builder = matmulAllReduce(2);
  builder.plan.set_arena_bytes(uint64_t{1} << 45);
  save(builder);
  Outcome outcome = run({"net.plan"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err.find("msrun: error: the plan takes 32768.00 GiB per rank"), 0u) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Msrun, SignalsEndTheRunCleanly) {
  save(regression(4, 100000000));
  for (auto [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    pid_t child = start({"net.plan", "--log-every", "100000"});
    EXPECT_TRUE(waitFor("batch num"));
    ::kill(child, signal);
    Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err; // the first line, one error
  }
}

TEST_F(Msrun, NeedsNoCompilerAndNoMpi) {
  std::string command = std::string("ldd ") + MSC_MSRUN + " > " + file("libraries");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string libraries = contentOf(folder / "libraries");
  EXPECT_NE(libraries.find("libdnnl"), std::string::npos);
  for (const char *unwanted : {"MLIR", "LLVM", "libmpi", "cuda", "nccl"})
    EXPECT_EQ(libraries.find(unwanted), std::string::npos) << libraries;
}

} // namespace
