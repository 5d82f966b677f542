#include "runtime/comm/nccl/Communicator.h"

#include "runtime/Thread.h"
#include "runtime/comm/nccl/Group.h"
#include "runtime/messages/Catalogue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace msc::comm::nccl {
namespace {

/// What rank 0 tells the others: how they find each other, or why they cannot.
struct Announcement {
  UniqueId id;
  int version = 0;
  int code = 0;
  char problem[512] = {};
};

/// Calls that take long are asked for less often.
void pauseBetweenLooks(int round) {
  if (round < 200)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(round < 2000 ? 50 : 1000));
}

Error endedError() {
  return {ExitCode::PeerFailed, "the communication was ended", ""};
}

/// The way out where NCCL hangs: nothing that this process would do next ends, either.
void leaveProcess(const Error &cause) {
  std::string line = "msrun: error: " + messages::translated(cause.message);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::_Exit(static_cast<int>(cause.code));
}

} // namespace

NcclCommunicator::NcclCommunicator(const Table &table, const Options &options, World &world)
    : table(table), options(options), world(world) {}

NcclCommunicator::~NcclCommunicator() {
  abort();
  stopWatch();
  groups.clear();
  for (void *memory : memories)
    table.ncclMemFree(memory);
}

Status NcclCommunicator::open(int version) {
  std::vector<int64_t> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), int64_t{0});
  Result<Group *> group = world.group(everyone);
  if (!group)
    return group.error();
  Announcement announcement;
  if (world.rank() == 0) {
    announcement.version = version;
    if (Code code = table.ncclGetUniqueId(&announcement.id); code != Code::Success) {
      announcement.code = static_cast<int>(code);
      failed("ncclGetUniqueId", code).message.copy(announcement.problem, sizeof(announcement.problem) - 1);
    }
  }
  if (Status sent = (*group)->broadcast(&announcement, sizeof(announcement), 0, {"how to find NCCL", ""}); !sent)
    return sent;
  if (announcement.code != 0)
    return Error{ExitCode::PeerFailed, announcement.problem, ""};
  if (announcement.version != version)
    return Error{ExitCode::PeerFailed,
                 "rank 0 has NCCL " + versionText(announcement.version) + ", rank " + std::to_string(world.rank()) + " has " +
                     versionText(version),
                 "install the same version on all hosts"};
  if (Status started = startWatch(); !started)
    return started;
  Config config;
  config.blocking = 0;
  {
    std::lock_guard lock(calls);
    handles.push_back(nullptr);
  }
  return finish("ncclCommInitRankConfig", [this] { return handles.front(); },
                [&] {
                  return table.ncclCommInitRankConfig(&handles.front(), static_cast<int>(world.size()), announcement.id,
                                                      static_cast<int>(world.rank()), &config);
                });
}

Status NcclCommunicator::finish(const char *const &function, const std::function<Handle()> &handle,
                                const std::function<Code()> &call) {
  Code code = Code::Success;
  for (int round = 0; round == 0 || code == Code::InProgress; ++round) {
    if (round > 0)
      pauseBetweenLooks(round);
    if (Status status = check(); !status)
      return status;
    std::lock_guard lock(calls);
    if (ended)
      return check();
    if (round == 0)
      code = call();
    else if (Code asked = table.ncclCommGetAsyncError(handle(), &code); asked != Code::Success)
      code = asked;
  }
  return code == Code::Success ? Status() : Status(failed(function, code));
}

Status NcclCommunicator::split(int color, int key, Handle &result) {
  Config config;
  config.blocking = 0;
  return finish("ncclCommSplit", [this] { return handles.front(); },
                [&] { return table.ncclCommSplit(handles.front(), color, key, &result, &config); });
}

Result<StreamGroup *> NcclCommunicator::group(const Partition &partition) {
  if (auto found = known.find(partition); found != known.end())
    return found->second;
  int64_t own = partition[static_cast<size_t>(world.rank())];
  auto inGroup = [&](int64_t color) { return color == own; };
  auto size = static_cast<int>(std::count_if(partition.begin(), partition.end(), inGroup));
  auto position = static_cast<int>(std::count_if(partition.begin(), partition.begin() + world.rank(), inGroup));
  // Once all has been ended, there are no handles.
  auto keep = [&](const Handle *made) -> Result<StreamGroup *> {
    std::lock_guard lock(calls);
    if (ended)
      return check().error();
    groups.push_back(std::make_unique<NcclGroup>(*this, made ? *made : handles.front(), position, size));
    return known[partition] = groups.back().get();
  };
  if (size == world.size())
    return keep(nullptr);
  Handle *made = nullptr;
  {
    std::lock_guard lock(calls);
    handles.push_back(nullptr);
    made = &handles.back();
  }
  if (Status status = split(size == 1 ? noColor : static_cast<int>(own), position, *made); !status)
    return status.error();
  if (size == 1) { // it has nobody to talk to
    std::lock_guard lock(calls);
    if (ended)
      return check().error();
    handles.pop_back();
    return known[partition] = nullptr;
  }
  // The parent is done; the new one says so, too.
  if (Status status = finish("ncclCommSplit", [made] { return *made; }, [] { return Code::InProgress; }); !status)
    return status.error();
  return keep(made);
}

Status NcclCommunicator::launch(Handle handle, const std::vector<NamedStep> &steps, StreamHandle stream) {
  const char *name = "ncclGroupEnd";
  return finish(name, [handle] { return handle; },
                [&] {
                  Code first = table.ncclGroupStart();
                  for (const NamedStep &step : steps) {
                    Code code = step.run(table, handle, stream);
                    if (code != Code::Success && code != Code::InProgress && first == Code::Success)
                      first = code, name = step.function;
                  }
                  Code last = table.ncclGroupEnd();
                  return first == Code::Success ? last : first;
                });
}

Result<void *> NcclCommunicator::allocate(size_t bytes) {
  void *memory = nullptr;
  if (table.ncclMemAlloc(&memory, bytes) != Code::Success)
    return static_cast<void *>(nullptr);
  memories.push_back(memory);
  return memory;
}

void NcclCommunicator::setWaiting(bool waiting) {
  waitingSince.store(waiting ? Clock::now().time_since_epoch().count() : 0, std::memory_order_relaxed);
}

Status NcclCommunicator::check() {
  if (!hasFailed)
    return {};
  std::lock_guard lock(state);
  return *failure;
}

Error NcclCommunicator::failed(const char *function, Code code) {
  const char *detail = table.ncclGetLastError(nullptr);
  std::string message = std::string(function) + " returned " + std::to_string(static_cast<int>(code)) + " (" +
                        table.ncclGetErrorString(code) + ")";
  if (detail && *detail)
    message += std::string(": ") + detail;
  return {ExitCode::PeerFailed, message, "NCCL_DEBUG=INFO makes NCCL say more"};
}

bool NcclCommunicator::noteFailure(const Error &error) {
  std::lock_guard lock(state);
  if (failure)
    return false;
  failure = error;
  hasFailed = true;
  return true;
}

Status NcclCommunicator::startWatch() {
  return startThread(watcher, [this] { watch(); });
}

void NcclCommunicator::stopWatch() {
  {
    std::lock_guard lock(state);
    stopping = true;
  }
  changed.notify_all();
  for (std::thread *thread : {&watcher, &ender})
    if (thread->joinable())
      thread->join();
}

std::optional<Error> NcclCommunicator::lookForFailure() {
  if (std::optional<Error> first = world.firstFailure())
    return first;
  auto limit = world.timeout();
  if (Clock::rep since = waitingSince.load(std::memory_order_relaxed); since != 0 && limit.count() > 0)
    if (Clock::now() - Clock::time_point(Clock::duration(since)) > limit)
      return Error{ExitCode::Timeout,
                   step() + "rank " + std::to_string(world.rank()) + " has waited for its GPU for longer than the limit of " +
                       std::to_string(limit.count()) + " ms",
                   "a longer --timeout waits longer"};
  std::unique_lock lock(calls, options.interval); // a call that hangs must not stop this thread
  if (!lock || ended)
    return {};
  for (Handle handle : handles) {
    Code code = Code::Success;
    if (!handle)
      continue;
    if (Code asked = table.ncclCommGetAsyncError(handle, &code); asked != Code::Success)
      code = asked;
    if (code != Code::Success && code != Code::InProgress)
      return where(failed("ncclCommGetAsyncError", code));
  }
  return {};
}

std::string NcclCommunicator::step() const {
  std::string current = world.currentStep();
  return current.empty() ? "" : current + ": ";
}

Error NcclCommunicator::where(Error error) const {
  error.message = step() + "rank " + std::to_string(world.rank()) + " of " + std::to_string(world.size()) + ": " + error.message;
  return error;
}

void NcclCommunicator::watch() {
  std::unique_lock lock(state);
  while (!stopping && !failure) {
    changed.wait_for(lock, options.interval);
    if (stopping || failure)
      break;
    lock.unlock();
    std::optional<Error> found = lookForFailure();
    if (found && noteFailure(*found))
      world.abort(*found); // first: every rank of a communicator has to end it
    lock.lock();
  }
  if (!failure)
    return;
  Error cause = *failure;
  lock.unlock();
  Status started = startThread(ender, [this] { endAll(); });
  lock.lock();
  bool inTime = started && changed.wait_for(lock, options.abortLimit, [&] { return over; });
  lock.unlock();
  if (!inTime)
    (options.onStuck ? options.onStuck : leaveProcess)(cause);
}

void NcclCommunicator::endAll() {
  {
    std::lock_guard lock(calls);
    ended = true;
    // In a group all of them are told to stop before any is waited for: the work of one may wait for that of another.
    table.ncclGroupStart();
    for (Handle handle : handles)
      if (handle)
        table.ncclCommAbort(handle);
    table.ncclGroupEnd();
    handles.clear();
  }
  {
    std::lock_guard lock(state);
    over = true;
  }
  changed.notify_all();
}

void NcclCommunicator::abort() {
  {
    std::lock_guard lock(calls);
    if (handles.empty())
      return;
  }
  noteFailure(endedError());
  changed.notify_all();
  std::unique_lock lock(state);
  changed.wait(lock, [&] { return over; });
}

Status NcclCommunicator::close() {
  for (;;) {
    Handle last = nullptr;
    {
      std::lock_guard lock(calls);
      if (handles.empty())
        break;
      last = handles.back();
    }
    auto finalize = [&] { return table.ncclCommFinalize(last); };
    if (last)
      if (Status status = finish("ncclCommFinalize", [last] { return last; }, finalize); !status)
        return status;
    std::lock_guard lock(calls);
    if (ended)
      return check();
    if (last)
      table.ncclCommDestroy(last);
    handles.pop_back();
  }
  stopWatch();
  return {};
}

} // namespace msc::comm::nccl
