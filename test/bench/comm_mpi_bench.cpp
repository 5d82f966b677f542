// AllReduce between processes against MPI's own MPI_Allreduce in the same run: mpirun -n 8 build/bench/comm_mpi_bench
#include "runtime/comm/mpi/Loader.h"
#include "test/bench/CommBench.h"

#include <mpi.h>
#include <numeric>

using namespace msc;
using namespace msc::bench;

namespace {

void compare(comm::World &world, comm::Group &group, int64_t bytes) {
  std::vector<float> source(bytes / 4, 1.0f), target(bytes / 4);
  Times ours = timeTogether(group, bytes, [&] {
    (void)group.allReduce(source.data(), target.data(), bytes / 4, comm::ElementType::F32, ReduceKind::Sum, {"bench", ""});
  });
  if (target[0] != static_cast<float>(world.size()))
    printf("wrong sum %f on rank %ld\n", target[0], world.rank());
  Times theirs = timeTogether(group, bytes, [&] {
    MPI_Allreduce(source.data(), target.data(), static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  if (world.rank() == 0)
    printf("%5ld  %8s  %10.1f  %10.1f  %12.1f  %7.2f\n", world.size(), sizeText(bytes).c_str(), ours.median, ours.best,
           theirs.median, theirs.median / ours.median);
}

} // namespace

int main() {
  Result<std::unique_ptr<comm::World>> world = comm::loadMpiWorld();
  if (!world) {
    fprintf(stderr, "error: %s\n", world.error().message.c_str());
    return static_cast<int>(world.error().code);
  }
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  if ((*world)->rank() == 0) {
    printf("AllReduce (f32, sum) on processes; peer: %.*s; times in us\n", static_cast<int>(strcspn(version, ",")), version);
    printf("%5s  %8s  %10s  %10s  %12s  %7s\n", "ranks", "size", "median", "best", "MPI median", "speedup");
  }
  std::vector<int64_t> all((*world)->size());
  std::iota(all.begin(), all.end(), 0);
  comm::Group &group = **(*world)->group(all);
  for (int64_t bytes : kSizes)
    compare(**world, group, bytes);
}
