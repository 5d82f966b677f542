// Look-ups in a table and the sums of their gradient on one thread, against copies of as many bytes: what a row costs beyond its bytes.
#include "runtime/device/cpu/CpuDevice.h"
#include "test/bench/Timing.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

using namespace msc;
using namespace msc::bench;

namespace {

/// Nanoseconds per row of `width` f32, of `count` rows of a table with `size`.
void row(int64_t size, int64_t count, int64_t width, int64_t tasks) {
  std::vector<float> table(static_cast<size_t>(size * width), 1.0f), rows(static_cast<size_t>(count * width), 1.0f), copy(rows.size());
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::mt19937 random(1);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(random() % static_cast<uint64_t>(size));
  auto tensor = [](auto &data, plan::DataType type, std::vector<int64_t> shape) {
    Box box;
    for (int64_t extent : shape)
      box.push_back({0, extent});
    return CallTensor{type, shape, box, reinterpret_cast<std::byte *>(data.data())};
  };
  CallSpec gather{"Gather", {tensor(table, plan::F32, {size, width}), tensor(ids, plan::I32, {count})}, {tensor(rows, plan::F32, {count, width})}};
  CallSpec sums{"GatherGrad", {tensor(ids, plan::I32, {count}), tensor(rows, plan::F32, {count, width})}, {tensor(table, plan::F32, {size, width})}};
  gather.tasks = sums.tasks = tasks;
  gather.attributes.set("axis", {0});
  sums.attributes.set("axis", {0});
  auto device = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {1, {}});
  auto look = device->prepareCall(gather), add = device->prepareCall(sums);
  if (!look || !add || !device->finishPreparation())
    std::exit(1);
  std::vector<double> looked, added, copied, filled;
  for (int repeat = 0; repeat < 200; ++repeat) {
    looked.push_back(secondsOf([&] { (void)(*look)->run(); }));
    copied.push_back(secondsOf([&] { std::memcpy(copy.data(), rows.data(), rows.size() * sizeof(float)); }));
    added.push_back(secondsOf([&] { (void)(*add)->run(); }));
    filled.push_back(secondsOf([&] { std::fill(table.begin(), table.end(), 1.0f); }));
  }
  auto perRow = [&](std::vector<double> &times) { return median(times) * 1e9 / static_cast<double>(count); };
  printf("%8ld %7ld %6ld %6ld %8.2f %8.2f %8.2f %8.2f\n", size, count, width, tasks, perRow(looked), perRow(copied), perRow(added), perRow(filled));
}

} // namespace

int main() {
  printf("one thread, f32; nanoseconds per row that is looked up, against a copy of the rows, and sums by number, against zeros in the table\n");
  printf("%8s %7s %6s %6s %8s %8s %8s %8s\n", "table", "rows", "width", "tasks", "look-up", "copy", "sums", "zeros");
  for (int64_t width : {1, 2, 4, 8, 16, 64})
    for (int64_t tasks : {1, 8})
      row(10000, 8192, width, tasks);
}
