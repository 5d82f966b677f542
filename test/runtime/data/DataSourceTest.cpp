#include "runtime/checkpoint/Npy.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/Draw.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "test/runtime/PlanBuilder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

using namespace msc;
using namespace msc::test;

namespace {

class DataSourceTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "data-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string &name) const { return (folder / name).string(); }

  /// The input 'x' of a plan on every rank, put together for one batch.
  std::vector<float> batch(const PlanBuilder &builder, uint64_t epoch, uint64_t number,
                           const std::map<std::string, std::string> &files = {}) {
    PlanIndex index(builder.plan);
    std::vector<float> whole(static_cast<size_t>(elementCount(index.shape(0))), -1);
    for (int64_t rank = 0; rank < index.devices(); ++rank) {
      plan::Plan none;
      auto device = device::createCpuDevice(*device::KernelLibrary::load(none), {});
      std::byte *arena = *device->allocateArena(builder.plan.arena_bytes());
      auto source = DataSource::open(index, *builder.program, files, rank);
      if (!source) {
        failure = source.error();
        return {};
      }
      batches = (*source)->batchesPerEpoch();
      note = (*source)->note();
      if (Status connected = (*source)->connect(*device); !connected) {
        failure = connected.error();
        return {};
      }
      if (Status loaded = (*source)->load(arena, epoch, number); !loaded) {
        failure = loaded.error();
        return {};
      }
      Box box = index.localBox(0, rank);
      const float *mine = reinterpret_cast<const float *>(arena + index.buffer(0).offset());
      for (int64_t i = box[0].begin; i < box[0].end; ++i)
        for (int64_t j = box[1].begin; j < box[1].end; ++j)
          whole[i * index.shape(0)[1] + j] = *mine++;
    }
    return whole;
  }

  std::filesystem::path folder;
  Error failure;
  uint64_t batches = 0;
  std::string note;
};

PlanBuilder oneInput(int64_t devices, int dim) {
  PlanBuilder builder(devices);
  builder.input(builder.buffer("x", {4, 3}, builder.cut(2, dim), plan::Buffer::INPUT));
  return builder;
}

PlanBuilder npyInput(int64_t devices, int dim, const std::string &path) {
  PlanBuilder builder = oneInput(devices, dim);
  builder.randomColumn("x", "");
  builder.plan.mutable_datasets(0)->set_source("Npy");
  builder.plan.mutable_datasets(0)->set_steps(0);
  builder.plan.mutable_datasets(0)->mutable_columns(0)->set_path(path);
  return builder;
}

void writeFloats(const std::string &path, const std::vector<int64_t> &shape) {
  std::vector<float> values(static_cast<size_t>(elementCount(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  ASSERT_TRUE(writeNpy(path, comm::ElementType::F32, shape, values.data()));
}

TEST_F(DataSourceTest, RandomBatchesDoNotDependOnTheSharding) {
  auto make = [](int64_t devices, int dim) {
    PlanBuilder builder = oneInput(devices, dim);
    builder.randomColumn("x", "uniform");
    return builder;
  };
  std::vector<float> first = batch(make(1, -1), 0, 0), second = batch(make(1, -1), 0, 1), later = batch(make(1, -1), 1, 0);
  EXPECT_NE(first, second);
  EXPECT_NE(second, later);
  for (auto [devices, dim] : {std::pair{2, 0}, {3, 1}, {8, 0}, {4, -1}}) {
    EXPECT_EQ(batch(make(devices, dim), 0, 0), first);
    EXPECT_EQ(batch(make(devices, dim), 1, 0), later);
  }
  // Batch b continues where batch b - 1 ended: four batches to an epoch.
  PlanBuilder longer = make(1, -1);
  longer.plan.mutable_datasets(0)->set_steps(100);
  EXPECT_EQ(batch(longer, 0, 4), later);
  PlanBuilder same = make(2, 0);
  same.plan.mutable_datasets(0)->set_same_batch(true);
  EXPECT_EQ(batch(same, 3, 2), first);
}

TEST_F(DataSourceTest, NpySamplesComeInOrder) {
  writeFloats(file("x.npy"), {10, 3});
  for (auto [devices, dim] : {std::pair{1, -1}, {3, 0}, {2, 1}}) {
    std::vector<float> second = batch(npyInput(devices, dim, file("x.npy")), 0, 1);
    std::vector<float> expected(12);
    std::iota(expected.begin(), expected.end(), 12.0f);
    EXPECT_EQ(second, expected);
    EXPECT_EQ(batches, 2u);
    EXPECT_EQ(note, "2 samples of column 'x' fill no batch of 4 and are left out");
  }
}

TEST_F(DataSourceTest, ShufflingIsTheSameOnEveryShardingAndNewInEveryEpoch) {
  writeFloats(file("x.npy"), {8, 3});
  auto make = [&](int64_t devices, int dim) {
    PlanBuilder builder = npyInput(devices, dim, file("x.npy"));
    builder.plan.mutable_datasets(0)->set_shuffle(true);
    return builder;
  };
  std::vector<float> a = batch(make(1, -1), 0, 0), b = batch(make(1, -1), 0, 1);
  EXPECT_EQ(batch(make(3, 0), 0, 0), a);
  EXPECT_EQ(batch(make(2, 1), 0, 1), b);
  EXPECT_NE(batch(make(1, -1), 1, 0), a);
  std::vector<float> both = a, expected(24);
  both.insert(both.end(), b.begin(), b.end());
  std::sort(both.begin(), both.end());
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(both, expected);
}

TEST_F(DataSourceTest, PathsTakeTheEnvironment) {
  writeFloats(file("x.npy"), {4, 3});
  ::setenv("MSC_TEST_DATA", folder.c_str(), 1);
  EXPECT_EQ(batch(npyInput(1, -1, "${MSC_TEST_DATA}/x.npy"), 0, 0)[11], 11.0f);
  ::unsetenv("MSC_TEST_DATA");
  batch(npyInput(1, -1, "${MSC_TEST_DATA}/x.npy"), 0, 0);
  EXPECT_EQ(failure.code, ExitCode::Usage);
  EXPECT_EQ(failure.message, "the path '${MSC_TEST_DATA}/x.npy' needs the environment variable 'MSC_TEST_DATA', which is not set");
}

TEST_F(DataSourceTest, FilesThatDoNotFitAreRefused) {
  writeFloats(file("wide.npy"), {10, 4});
  batch(npyInput(1, -1, file("wide.npy")), 0, 0);
  EXPECT_EQ(failure.code, ExitCode::BadFile);
  EXPECT_EQ(failure.message, "'" + file("wide.npy") + "' has shape (10, 4), column 'x' takes batches of shape (4, 3)");
  EXPECT_EQ(failure.help, "save N samples with shape (N, 3)");
  writeFloats(file("short.npy"), {3, 3});
  batch(npyInput(1, -1, file("short.npy")), 0, 0);
  EXPECT_EQ(failure.message, "'" + file("short.npy") + "' has 3 samples, fewer than one batch of 4");
  EXPECT_EQ(failure.help, "compile for batches of 3 at most");
  std::vector<double> doubles(12);
  ASSERT_TRUE(writeNpy(file("f64.npy"), comm::ElementType::F64, {4, 3}, doubles.data()));
  batch(npyInput(1, -1, file("f64.npy")), 0, 0);
  EXPECT_EQ(failure.message, "'" + file("f64.npy") + "' holds f64, the network takes f32");
  writeFloats(file("x.npy"), {4, 3});
  std::filesystem::resize_file(file("x.npy"), 140);
  batch(npyInput(1, -1, file("x.npy")), 0, 0);
  EXPECT_EQ(failure.code, ExitCode::BadFile);
  PlanBuilder many = npyInput(1, -1, file("many.npy"));
  writeFloats(file("many.npy"), {8, 3});
  many.plan.mutable_datasets(0)->set_steps(3);
  batch(many, 0, 0);
  EXPECT_EQ(failure.message, "the data set has 2 batches, the plan wants 3 in an epoch");
}

TEST_F(DataSourceTest, TheHelpOfAWrongFileIsWhatWorks) {
  std::vector<double> doubles(12);
  ASSERT_TRUE(writeNpy(file("f64.npy"), comm::ElementType::F64, {4, 3}, doubles.data()));
  batch(npyInput(1, -1, file("f64.npy")), 0, 0);
  EXPECT_EQ(failure.help, "save array.astype('float32') instead");
  std::vector<int64_t> labels(12);
  ASSERT_TRUE(writeNpy(file("i64.npy"), comm::ElementType::I64, {4, 3}, labels.data()));
  PlanBuilder whole = npyInput(1, -1, file("i64.npy"));
  whole.plan.mutable_buffers(0)->set_dtype(plan::I32);
  batch(whole, 0, 0);
  EXPECT_EQ(failure.help, "save array.astype('int32') instead, or declare the input as i64");
  batch(npyInput(1, -1, "none.npy"), 0, 0);
  EXPECT_EQ(failure.code, ExitCode::Usage);
  EXPECT_EQ(failure.help, "paths of columns are relative to where msrun is started, here '" +
                              std::filesystem::current_path().string() + "'");
  batch(npyInput(1, -1, file("none.npy")), 0, 0);
  EXPECT_EQ(failure.help, "");
}

TEST_F(DataSourceTest, ColumnsOfAnotherLengthAreRefused) {
  auto make = [&](std::vector<int64_t> batchOfY, bool shuffle) {
    PlanBuilder builder = npyInput(2, 0, file("x.npy"));
    builder.input(builder.buffer("y", batchOfY, builder.cut(2, 0), plan::Buffer::INPUT));
    builder.randomColumn("y", "");
    builder.plan.mutable_datasets(0)->mutable_columns(1)->set_path(file("y.npy"));
    builder.plan.mutable_datasets(0)->set_shuffle(shuffle);
    return builder;
  };
  auto refused = [&](const PlanBuilder &builder) {
    failure = Error{};
    batch(builder, 0, 0);
    return failure.message;
  };
  writeFloats(file("x.npy"), {9, 3});
  writeFloats(file("y.npy"), {8, 2});
  for (bool shuffle : {false, true})
    EXPECT_EQ(refused(make({4, 2}, shuffle)), "columns differ in length: x 9, y 8");
  EXPECT_EQ(failure.code, ExitCode::BadFile);
  writeFloats(file("y.npy"), {9, 2});
  EXPECT_EQ(refused(make({4, 2}, true)), "");
  // Two rows of y to each one of x: they pair up in order only.
  writeFloats(file("y.npy"), {18, 2});
  EXPECT_EQ(refused(make({8, 2}, false)), "");
  EXPECT_EQ(note, "1 sample of column 'x' fills no batch of 4 and is left out");
  EXPECT_EQ(refused(make({8, 2}, true)), "columns differ in length: x 9, y 18");
}

TEST_F(DataSourceTest, LabelsAreClassesOrNegative) {
  std::vector<int32_t> labels(24, 1);
  labels[5] = -100;
  labels[19] = 5; // of the second batch
  ASSERT_TRUE(writeNpy(file("label.npy"), comm::ElementType::I32, {8, 3}, labels.data()));
  for (int64_t classes : {0, 6, 5}) {
    PlanBuilder builder(2);
    builder.input(builder.buffer("x", {4, 3}, builder.cut(2, 0), plan::Buffer::INPUT, plan::I32));
    builder.randomColumn("x", "");
    builder.plan.mutable_datasets(0)->set_source("Npy");
    builder.plan.mutable_datasets(0)->set_steps(0);
    plan::Dataset::Column *column = builder.plan.mutable_datasets(0)->mutable_columns(0);
    column->set_path(file("label.npy"));
    column->set_classes(classes);
    failure = {};
    batch(builder, 0, 0);
    EXPECT_EQ(failure.message, "");
    batch(builder, 0, 1);
    EXPECT_EQ(failure.message, classes == 5 ? "'" + file("label.npy") + "': sample 6 has label 5, but classes are 0 to 4" : "");
  }
}

TEST_F(DataSourceTest, BoolsAreZeroOrOne) {
  PlanBuilder builder(1);
  builder.input(builder.buffer("x", {4, 3}, builder.cut(2, -1), plan::Buffer::INPUT, plan::BOOL));
  std::vector<uint8_t> values(12, 1);
  values[7] = 3;
  ASSERT_TRUE(writeNpy(file("mask.npy"), comm::ElementType::Bool, {4, 3}, values.data()));
  batch(builder, 0, 0, {{"x", file("mask.npy")}});
  EXPECT_EQ(failure.code, ExitCode::BadFile);
  EXPECT_EQ(failure.message, "'" + file("mask.npy") + "': bool 7 is 3, neither 0 nor 1");
}

TEST_F(DataSourceTest, ABatchOfNothingIsRefused) {
  PlanBuilder builder(1);
  builder.input(builder.buffer("x", {0, 3}, builder.cut(2, -1), plan::Buffer::INPUT));
  builder.randomColumn("x", "");
  builder.plan.mutable_datasets(0)->set_source("Npy");
  builder.plan.mutable_datasets(0)->mutable_columns(0)->set_path(file("x.npy"));
  writeFloats(file("x.npy"), {8, 3});
  batch(builder, 0, 0);
  EXPECT_EQ(failure.message, "'" + file("x.npy") + "' has shape (8, 3), column 'x' takes batches of shape (0, 3)");
}

TEST_F(DataSourceTest, InputsFromTheCommandLineReplaceColumns) {
  writeFloats(file("x.npy"), {4, 3});
  for (auto [devices, dim] : {std::pair{1, -1}, {3, 0}, {2, 1}})
    EXPECT_EQ(batch(oneInput(devices, dim), 5, 7, {{"x", file("x.npy")}})[7], 7.0f);
  batch(oneInput(1, -1), 0, 0);
  EXPECT_EQ(failure.code, ExitCode::Usage);
  EXPECT_EQ(failure.message, "input 'x' has no data");
  EXPECT_EQ(failure.help, "--input x=x.npy");
}

TEST_F(DataSourceTest, PermutationsArePermutations) {
  for (int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<int64_t> order = permutation(count, 3, 5), sorted = order, expected(static_cast<size_t>(count));
    std::sort(sorted.begin(), sorted.end());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(sorted, expected);
    EXPECT_EQ(order, permutation(count, 3, 5));
  }
  EXPECT_NE(permutation(1000, 3, 5), permutation(1000, 3, 6));
}

} // namespace
