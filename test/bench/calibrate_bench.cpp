// Predicted against measured time of every collective: a model is calibrated as `msrun --calibrate` does, then everything is
// measured again. calibrate_bench [RANKS] on threads (default 8), or mpirun -n 8 build/bench/calibrate_bench
#include "runtime/calibrate/Calibrate.h"
#include "runtime/calibrate/Measure.h"
#include "runtime/comm/mpi/Loader.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/launch/Launch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace msc;

namespace {

constexpr double seconds = 18;

double median(std::vector<double> list) {
  std::nth_element(list.begin(), list.begin() + static_cast<ptrdiff_t>(list.size() / 2), list.end());
  return list[list.size() / 2];
}

void print(const MachineModel &machine, const std::vector<CollectiveSample> &samples) {
  printf("machine %s; times in us\n%-18s %5s %12s %10s %10s %7s\n", machine.name.c_str(), "collective", "group", "bytes",
         "predicted", "measured", "error");
  std::vector<double> all;
  for (size_t kind = 1; kind < moveKinds; ++kind) {
    std::vector<double> errors;
    for (const CollectiveSample &sample : samples) {
      if (static_cast<size_t>(sample.kind) != kind)
        continue;
      double predicted = machine.moveUs(sample.kind, {sample.groupSize, sample.groupSize}, static_cast<double>(sample.bytes));
      errors.push_back(std::abs(predicted / sample.us - 1));
      printf("%-18s %5ld %12ld %10.1f %10.1f %6.0f%%\n", moveKindName(sample.kind), sample.groupSize, sample.bytes,
             predicted, sample.us, 100 * (predicted / sample.us - 1));
    }
    printf("%-18s median error %.1f %%\n", moveKindName(static_cast<MoveKind>(kind)), 100 * median(errors));
    all.insert(all.end(), errors.begin(), errors.end());
  }
  printf("all collectives: median error %.1f %% over %zu samples\n", 100 * median(all), all.size());
}

void run(comm::World &world) {
  Result<Calibration> calibration = calibrate(world, seconds);
  Result<std::vector<CollectiveSample>> samples = calibration
                                                      ? measureCollectives(world, consecutiveGroups(world.size()), seconds)
                                                      : Result<std::vector<CollectiveSample>>(calibration.error());
  if (!samples)
    fprintf(stderr, "error: %s\n", samples.error().message.c_str());
  else if (world.rank() == 0)
    print(calibration->machine, *samples);
}

} // namespace

int main(int argc, char **argv) {
  Result<Launch> launch = detectLaunch(std::nullopt, processEnvironment);
  if (launch && launch->transport == Transport::Mpi) {
    Result<std::unique_ptr<comm::World>> world = comm::loadMpiWorld();
    if (!world)
      return fprintf(stderr, "error: %s\n", world.error().message.c_str()), 1;
    run(**world);
    return 0;
  }
  int64_t ranks = argc > 1 ? atol(argv[1]) : 8;
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { run(*hub->world(rank)); });
  for (std::thread &thread : threads)
    thread.join();
}
