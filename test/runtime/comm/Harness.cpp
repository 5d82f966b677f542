#include "test/runtime/comm/Harness.h"
#include "runtime/comm/mpi/Loader.h"
#include "runtime/comm/thread/ThreadWorld.h"

#include <cstdlib>
#include <numeric>
#include <thread>

namespace msc::comm::test {

static std::unique_ptr<World> &worldOfProcesses() {
  static std::unique_ptr<World> world;
  return world;
}

World *mpiWorld() { return worldOfProcesses().get(); }

std::vector<int64_t> firstRanks(int64_t n) {
  std::vector<int64_t> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

static Devices *chosenDevices = nullptr;
Devices::Devices() { chosenDevices = this; }
Devices *devices() { return chosenDevices; }

std::vector<int64_t> rankCounts() {
  const char *processes = getenv("OMPI_COMM_WORLD_SIZE");
  if (devices() && processes)
    return {std::atoll(processes)};
  std::vector<int64_t> counts{1, 2, 3, 4, 8};
  std::erase_if(counts, [&](int64_t ranks) { return (devices() && ranks == 1) || (processes && ranks > std::atoll(processes)); });
  return counts;
}

static void runRank(World &hosts, int64_t ranks, const std::function<void(World &, Group &)> &body) {
  std::unique_ptr<World> connected;
  if (devices()) {
    Result<std::unique_ptr<World>> made = devices()->connect(hosts);
    if (!made) {
      fprintf(stderr, "error: %s\nhelp: %s\n", made.error().message.c_str(), made.error().help.c_str());
      hosts.abort(made.error());
    }
    ASSERT_TRUE(made.isOk()) << made.error().message;
    connected = std::move(*made);
  }
  World &world = connected ? *connected : hosts;
  Result<Group *> group = world.group(firstRanks(ranks));
  ASSERT_TRUE(group.isOk()) << group.error().message;
  body(world, **group);
}

void onRanks(int64_t ranks, const std::function<void(World &, Group &)> &body) {
  struct Around {
    explicit Around(int64_t ranks) { devices() ? devices()->begin(ranks) : void(); }
    ~Around() { devices() ? devices()->end() : void(); }
  } around(ranks);
  if (World *world = mpiWorld()) {
    ASSERT_GE(world->size(), ranks) << "mpirun has started too few processes";
    if (world->rank() < ranks)
      runRank(*world, ranks, body);
    return;
  }
  auto hub = *ThreadHub::create(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto world = hub->world(r);
      world->setTimeout(std::chrono::seconds(120));
      runRank(*world, ranks, body);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace msc::comm::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  auto &world = msc::comm::test::worldOfProcesses();
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    msc::Result<std::unique_ptr<msc::comm::World>> made = msc::comm::loadMpiWorld();
    if (!made) {
      fprintf(stderr, "error: %s\nhelp: %s\n", made.error().message.c_str(), made.error().help.c_str());
      return static_cast<int>(made.error().code);
    }
    world = std::move(*made);
    world->setTimeout(std::chrono::seconds(120));
  }
  int failed = RUN_ALL_TESTS();
  if (failed && world)
    world->abort({msc::ExitCode::Failed, "a test failed", ""});
  if (msc::comm::test::devices())
    msc::comm::test::devices()->close();
  world.reset();
  return failed;
}
