#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/comm/GroupCache.h"
#include "runtime/comm/thread/DirectGroup.h"

#include <numeric>
#include <sys/mman.h>

namespace msc::comm {

namespace {

std::vector<int64_t> firstRanks(int64_t count) {
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class ThreadWorld final : public World {
public:
  ThreadWorld(std::shared_ptr<ThreadHub> hub, void *memory, int64_t rank)
      : hub(std::move(hub)), run(memory, firstRanks(this->hub->size()), rank) {
    run.state(rank).presence.store(Presence::Here);
  }
  ~ThreadWorld() override { run.state(run.rank()).presence.store(Presence::Left); }

  int64_t rank() const override { return run.rank(); }
  int64_t size() const override { return hub->size(); }
  int64_t localSize() const override { return hub->size(); }
  int64_t localRank() const override { return run.rank(); }
  const char *transport() const override { return "threads"; }

  Result<Group *> group(const std::vector<int64_t> &ranks) override {
    return groups.get(ranks, rank(), size(), [&]() -> Result<std::unique_ptr<Group>> {
      Result<RendezvousMemory *> shared = run.group(ranks);
      if (!shared)
        return shared.error();
      return std::unique_ptr<Group>(new DirectGroup(run, **shared, ranks));
    });
  }
  void abort(const Error &error) override { run.fail(run.rank(), error); }
  std::optional<Error> firstFailure() override { return run.failure(); }
  bool takeReport() override { return run.takeReport(); }
  void enterStep(uint64_t epoch, uint64_t step) override { run.enterStep(epoch, step); }
  std::string currentStep() override { return run.currentStep(run.rank()); }
  void setTimeout(std::chrono::milliseconds limit) override { run.timeout = limit; }
  std::chrono::milliseconds timeout() const override { return run.timeout; }

private:
  std::shared_ptr<ThreadHub> hub;
  SharedRun run;
  GroupCache groups;
};

} // namespace

Result<std::shared_ptr<ThreadHub>> ThreadHub::create(int64_t ranks) {
  if (ranks < 1 || ranks > 4096)
    return Error{ExitCode::Usage, "a run has 1 to 4096 threads as ranks, not " + std::to_string(ranks), ""};
  size_t bytes = SharedRun::bytesFor(ranks);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Error{ExitCode::NoResource, "no " + std::to_string(bytes) + " bytes of memory for the communication of " +
                                           std::to_string(ranks) + " ranks", ""};
  SharedRun::initialise(memory, ranks);
  return std::shared_ptr<ThreadHub>(new ThreadHub(memory, ranks));
}

ThreadHub::~ThreadHub() { munmap(memory, SharedRun::bytesFor(ranks)); }

std::unique_ptr<World> ThreadHub::world(int64_t rank) {
  return std::make_unique<ThreadWorld>(shared_from_this(), memory, rank);
}

void ThreadHub::abort(const Error &error) { SharedRun(memory, firstRanks(ranks), 0).fail(-1, error); }

std::optional<Error> ThreadHub::firstFailure() const {
  SharedRun run(memory, firstRanks(ranks), 0);
  return run.hasFailed() ? std::optional<Error>(run.firstCause().second) : std::nullopt;
}

} // namespace msc::comm
