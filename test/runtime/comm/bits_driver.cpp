// Prints one checksum over the results of many reductions: bits_driver RANKS on threads, or under mpirun on processes.
#include "runtime/comm/mpi/Loader.h"
#include "runtime/comm/thread/ThreadWorld.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace msc;
using namespace msc::comm;

namespace {

const OperationLabel kLabel{"bits", ""};

uint64_t mix(uint64_t hash, const std::vector<float> &data) {
  for (float value : data) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x100000001b3ull;
  }
  return hash;
}

std::vector<float> valuesOf(int64_t rank, int64_t count) {
  std::vector<float> data(count);
  for (int64_t i = 0; i < count; ++i)
    data[i] = std::sin(static_cast<float>(i * 7 + rank * 1001)) * std::exp2(static_cast<float>((i + rank * 5) % 23) - 11);
  return data;
}

uint64_t bitsOf(World &world) {
  std::vector<int64_t> all(world.size());
  std::iota(all.begin(), all.end(), 0);
  Group &group = **world.group(all);
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int64_t count : {1, 100, 1000, 5003, 300007}) {
    std::vector<float> source = valuesOf(world.rank(), count), sum(count);
    if (!group.allReduce(source.data(), sum.data(), count, ElementType::F32, ReduceKind::Sum, kLabel).isOk())
      return 0;
    hash = mix(hash, sum);
    // The scattered pieces, put together again, must be the same sums.
    std::vector<Region> pieces;
    for (int m = 0; m < group.size(); ++m) {
      Range piece = pieceOf(count, m, group.size());
      pieces.push_back({piece.begin, {piece.size()}, {1}});
    }
    const Region &own = pieces[group.rank()];
    std::vector<float> part(own.count());
    if (!group.reduceScatter(source.data(), part.data(), pieces, ElementType::F32, ReduceKind::Sum, kLabel).isOk())
      return 0;
    if (!part.empty() && memcmp(part.data(), sum.data() + own.offset, part.size() * sizeof(float)) != 0)
      return 0;
  }
  // One rank whose pieces differ spoils the sum of all.
  uint64_t total = hash >> 8;
  if (!group.allReduce(&total, &total, 1, ElementType::I64, ReduceKind::Sum, kLabel).isOk())
    return 0;
  return total == (hash >> 8) * static_cast<uint64_t>(group.size()) ? hash : 0;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t bits = 0;
  bool speaks = true;
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    Result<std::unique_ptr<World>> world = loadMpiWorld();
    if (!world)
      return static_cast<int>(world.error().code);
    bits = bitsOf(**world);
    speaks = (*world)->rank() == 0;
  } else {
    int64_t ranks = argc > 1 ? std::stol(argv[1]) : 1;
    auto hub = *ThreadHub::create(ranks);
    std::vector<std::thread> threads;
    for (int64_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        auto world = hub->world(r);
        uint64_t own = bitsOf(*world);
        if (r == 0)
          bits = own;
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  if (speaks)
    printf("bits %016llx\n", static_cast<unsigned long long>(bits));
  return bits ? 0 : 1;
}
