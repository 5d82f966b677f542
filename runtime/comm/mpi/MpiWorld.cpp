// The world of the processes that mpirun has started. Ranks of one host meet in memory that all of them map; MPI carries
// what goes between hosts.
#include "runtime/comm/GroupCache.h"
#include "runtime/comm/mpi/NetworkGroup.h"
#include "runtime/comm/mpi/PeerWatcher.h"
#include "runtime/comm/mpi/Plugin.h"
#include "runtime/comm/mpi/StagedGroup.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

namespace msc::comm {

namespace {

/// After a failure the ranks wait so long for each other, so that each can say what it has to.
constexpr std::chrono::milliseconds kLeaveTogether{2000};

/// The memory that the ranks of this host share, and who they are.
struct Host {
  std::vector<int64_t> ranks;
  char *memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

size_t stagingOffset(size_t ranks) { return (SharedRun::bytesFor(ranks) + 4095) & ~size_t{4095}; }

class MpiWorld final : public World {
public:
  MpiWorld(Host shared, int64_t rank, int64_t size)
      : host(std::move(shared)), worldSize(size), run(host.memory, host.ranks, rank),
        staging(host.memory + stagingOffset(host.ranks.size()), host.ranks), connection(run, size) {
    run.state(rank).process.store(getpid());
    run.state(rank).presence.store(Presence::Here);
    MPI_Barrier(host.comm);
    watcher = std::make_unique<PeerWatcher>(run);
    if (static_cast<int64_t>(host.ranks.size()) < size)
      run.idle = [this] { connection.spreadFailure(); };
  }
  ~MpiWorld() override;

  int64_t rank() const override { return run.rank(); }
  int64_t size() const override { return worldSize; }
  int64_t localSize() const override { return static_cast<int64_t>(host.ranks.size()); }
  int64_t localRank() const override {
    return std::lower_bound(host.ranks.begin(), host.ranks.end(), run.rank()) - host.ranks.begin();
  }
  const char *transport() const override { return "mpi"; }
  Result<Group *> group(const std::vector<int64_t> &ranks) override {
    return groups.get(ranks, rank(), size(), [&] { return makeGroup(ranks); });
  }
  void abort(const Error &error) override { run.fail(run.rank(), error); }
  std::optional<Error> firstFailure() override {
    watcher->look();
    return run.failure();
  }
  bool takeReport() override { return run.takeReport(); }
  void enterStep(uint64_t epoch, uint64_t step) override { run.enterStep(epoch, step); }
  std::string currentStep() override { return run.currentStep(run.rank()); }
  void setTimeout(std::chrono::milliseconds limit) override { run.timeout = limit; }
  std::chrono::milliseconds timeout() const override { return run.timeout; }

private:
  Result<std::unique_ptr<Group>> makeGroup(const std::vector<int64_t> &ranks);
  /// Ends all processes with the code of the first cause.
  void abortRun();

  Host host;
  int64_t worldSize;
  SharedRun run;
  Staging staging;
  Connection connection;
  std::unique_ptr<PeerWatcher> watcher;
  GroupCache groups;
};

Result<std::unique_ptr<Group>> MpiWorld::makeGroup(const std::vector<int64_t> &ranks) {
  bool here = std::all_of(ranks.begin(), ranks.end(), [&](int64_t rank) { return run.shares(rank); });
  if (!here)
    return std::unique_ptr<Group>(new NetworkGroup(run, connection, ranks));
  Result<RendezvousMemory *> memory = run.group(ranks);
  if (!memory)
    return memory.error();
  return std::unique_ptr<Group>(new StagedGroup(run, **memory, staging, ranks));
}

MpiWorld::~MpiWorld() {
  groups.clear();
  run.state(run.rank()).presence.store(run.hasFailed() ? Presence::LeftFailed : Presence::Left);
  // No rank is in MPI_Finalize while another may still fail: Open MPI's mpirun does not survive an abort then.
  bool together = connection.leaveTogether(kLeaveTogether);
  // The watcher's memory goes away with MPI.
  watcher.reset();
  if (!together || (run.hasFailed() && connection.wasUsed()))
    abortRun();
  connection.close();
  MPI_Win_free(&host.window);
  MPI_Comm_free(&host.comm);
  MPI_Finalize();
}

void MpiWorld::abortRun() {
  // One rank calls, the others expect to be ended by it: several aborts at once crash mpirun as well.
  auto first = std::find_if(host.ranks.begin(), host.ranks.end(), [&](int64_t rank) {
    Presence presence = run.state(rank).presence.load();
    return presence == Presence::LeftFailed || presence == Presence::Left;
  });
  if (*first != run.rank() || host.ranks.front() != 0)
    usleep(3000000 + 100000 * static_cast<useconds_t>(std::min<int64_t>(run.rank(), 20)));
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(run.firstCause().second.code));
}

/// Memory of `bytes` bytes that the ranks of `comm` map; held by the first of them.
Status shareMemory(Host &host, size_t bytes) {
  int rank = 0, unit = 0;
  MPI_Comm_rank(host.comm, &rank);
  MPI_Comm_set_errhandler(host.comm, MPI_ERRORS_RETURN);
  void *own = nullptr;
  // MPI puts its own words before the window: room to begin at a multiple of 4096, at the same place for all.
  if (MPI_Win_allocate_shared(rank == 0 ? static_cast<MPI_Aint>(bytes + 4096) : 0, 1, MPI_INFO_NULL, host.comm, &own,
                              &host.window) != MPI_SUCCESS)
    return Error{ExitCode::NoResource, "MPI has no " + std::to_string(bytes) + " bytes of shared memory for " +
                                           std::to_string(host.ranks.size()) + " ranks",
                 "make more room in /dev/shm"};
  MPI_Aint size = 0;
  MPI_Win_shared_query(host.window, 0, &size, &unit, &host.memory);
  host.memory += -reinterpret_cast<uintptr_t>(host.memory) & 4095;
  if (rank == 0)
    SharedRun::initialise(host.memory, host.ranks.size());
  MPI_Barrier(host.comm);
  return Status::ok();
}

Result<std::unique_ptr<World>> makeWorld() {
  // Components that Open MPI loads look for its symbols among the global ones.
  dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int ready = 0, level = 0, rank = 0, size = 1, local = 0;
  MPI_Initialized(&ready);
  if (ready)
    return Error{ExitCode::Internal, "MPI is already initialised in this process", ""};
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED)
    return Error{ExitCode::NoResource, "MPI does not start with support for threads", ""};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Host host;
  // MSC_MPI_HOSTS=n treats the ranks as if they ran on n hosts: the tests of the network path.
  const char *hosts = getenv("MSC_MPI_HOSTS");
  if (int count = hosts ? atoi(hosts) : 0; count > 0)
    MPI_Comm_split(MPI_COMM_WORLD, rank % count, rank, &host.comm);
  else
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host.comm);
  MPI_Comm_size(host.comm, &local);
  host.ranks.resize(local);
  int64_t own = rank;
  MPI_Allgather(&own, 1, MPI_INT64_T, host.ranks.data(), 1, MPI_INT64_T, host.comm);
  if (Status shared = shareMemory(host, stagingOffset(local) + Staging::bytesFor(local)); !shared)
    return shared.error();
  return std::unique_ptr<World>(new MpiWorld(std::move(host), rank, size));
}

} // namespace

} // namespace msc::comm

int mscCommMpiWorld(int version, MscCommWorld *result) {
  if (version != MSC_COMM_PLUGIN_VERSION)
    return MSC_COMM_PLUGIN_VERSION;
  msc::Result<std::unique_ptr<msc::comm::World>> world = msc::comm::makeWorld();
  if (world)
    result->world = (*world).release();
  else
    result->error = world.error();
  return MSC_COMM_PLUGIN_VERSION;
}
