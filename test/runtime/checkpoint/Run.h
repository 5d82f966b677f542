// A run of a few ranks with parameters and states whose every element is known.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/comm/thread/ThreadWorld.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace msc::test {

/// Calls `body` on `ranks` threads with the group of all.
inline void onRanks(int64_t ranks, const std::function<void(comm::World &, comm::Group &)> &body) {
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto world = hub->world(r);
      world->setTimeout(std::chrono::seconds(60));
      std::vector<int64_t> all(ranks);
      std::iota(all.begin(), all.end(), 0);
      body(*world, **world->group(all));
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// The tensors of one rank, with their memory.
struct Memory {
  std::vector<CheckpointTensor> tensors;
  std::vector<std::vector<std::byte>> bytes;
};

/// Byte b of global element i of the tensor with number t.
inline std::byte byteOf(size_t t, int64_t i, size_t b) {
  return static_cast<std::byte>((t * 131 + static_cast<uint64_t>(i) * 2654435761u + b * 17) >> 3);
}

/// Calls `visit(dense index, global index)` for the elements of a box.
inline void forElements(const Box &box, const std::vector<int64_t> &shape,
                        const std::function<void(int64_t, int64_t)> &visit) {
  int64_t count = elementCount(box);
  std::vector<int64_t> extent = sizes(box);
  for (int64_t dense = 0; dense < count; ++dense) {
    int64_t rest = dense, global = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      global += (box[d].begin + rest % extent[d]) * stride;
      rest /= extent[d];
      stride *= shape[d];
    }
    visit(dense, global);
  }
}

/// Shardings for `devices` ranks that differ: rows, columns, blocks, replicated.
inline Sharding shardingFor(int64_t devices, size_t dims, int kind) {
  Sharding sharding = Sharding::replicated(devices, dims);
  if (devices == 1 || dims == 0 || kind == 3)
    return sharding;
  if (kind == 2 && dims > 1 && devices % 2 == 0 && devices > 2) {
    sharding.axes = {2, devices / 2};
    sharding.dims[0] = {1};
    sharding.dims[dims - 1] = {0};
    return sharding;
  }
  if (kind == 4 && devices % 2 == 0) {
    sharding.axes = {devices / 2, 2};
    sharding.dims[0] = {1}; // repeated along axis 0
    return sharding;
  }
  sharding.dims[kind == 1 ? dims - 1 : 0] = {0};
  return sharding;
}

inline Memory memoryOf(int64_t rank, int64_t devices, int kind, bool filled) {
  struct {
    const char *name;
    comm::ElementType type;
    std::vector<int64_t> shape;
    bool isState;
  } list[] = {{"layer.weight", comm::ElementType::F32, {37, 24}, false},
              {"layer.bias", comm::ElementType::F32, {24}, false},
              {"moments/layer.weight", comm::ElementType::F32, {37, 24}, true},
              {"conv", comm::ElementType::F64, {3, 5, 2, 7}, false},
              {"count", comm::ElementType::I64, {}, true},
              {"mask", comm::ElementType::Bool, {11, 3}, true},
              {"nothing", comm::ElementType::I32, {0, 4}, true},
              {"large", comm::ElementType::F32, {263, 270}, false},
              {"long", comm::ElementType::F32, {70001}, false}};
  Memory memory;
  size_t t = 0;
  for (auto &entry : list) {
    Sharding sharding = shardingFor(devices, entry.shape.size(), kind < 0 ? static_cast<int>(t % 5) : kind);
    Box box = sharding.localBox(entry.shape, rank);
    size_t size = comm::elementSize(entry.type);
    std::vector<std::byte> bytes(elementCount(box) * size, std::byte{0xee});
    if (filled)
      forElements(box, entry.shape, [&](int64_t dense, int64_t global) {
        for (size_t b = 0; b < size; ++b)
          bytes[dense * size + b] = byteOf(t, global, b);
      });
    memory.bytes.push_back(std::move(bytes));
    memory.tensors.push_back({entry.name, entry.type, entry.shape, sharding, nullptr, entry.isState});
    ++t;
  }
  for (size_t i = 0; i < memory.tensors.size(); ++i)
    memory.tensors[i].data = memory.bytes[i].data();
  return memory;
}

} // namespace msc::test
