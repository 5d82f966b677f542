#include "test/runtime/device/cuda/RecordedState.h"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msc::test {

using State = RecordingDriver::State;

CUresult State::failureOf(const Failures &failures, std::map<std::string, int> &counts, const std::string &name) {
  int count = ++counts[name];
  auto failure = failures.find(name);
  return failure != failures.end() && failure->second.first == count ? failure->second.second : CUDA_SUCCESS;
}

Clock State::everyHost() const {
  Clock all;
  for (const auto &[thread, clock] : hosts)
    all.merge(clock);
  return all;
}

int &State::currentGpu() {
  static thread_local int gpu = -1;
  return gpu;
}

CUresult State::enter(const std::string &function) {
  CUresult wanted = failureOf(callFailures, callCounts, function);
  return broken != CUDA_SUCCESS ? broken : wanted;
}

void State::notWhileCapturing(const char *function) {
  // Captures are begun in the mode that binds the thread which begins them, and no other.
  for (auto &[handle, stream] : streams)
    if (stream->capture && stream->capture->thread == std::this_thread::get_id())
      violations.push_back(std::string(function) + " during a capture");
}

namespace {

struct SharedHead {
  std::atomic<int64_t> opened; ///< by other processes
  uint64_t bytes;
};
constexpr size_t headBytes = 4096;

/// What stands in a handle.
struct SharedFile {
  int64_t process, file;
};

} // namespace

SharedMapping::SharedMapping(int file, void *memory, size_t mapped, bool isForeign)
    : file(file), memory(memory), mapped(mapped), isForeign(isForeign) {
  if (isForeign)
    ++static_cast<SharedHead *>(memory)->opened;
}
SharedMapping::~SharedMapping() {
  if (isForeign)
    --static_cast<SharedHead *>(memory)->opened;
  munmap(memory, mapped);
  ::close(file);
}

std::unique_ptr<SharedMapping> SharedMapping::create(size_t bytes) {
  const int file = memfd_create("device memory", MFD_CLOEXEC);
  const size_t mapped = headBytes + bytes;
  void *memory = file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0
                     ? MAP_FAILED
                     : mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    ::close(file);
    return nullptr;
  }
  static_cast<SharedHead *>(memory)->bytes = bytes;
  return std::unique_ptr<SharedMapping>(new SharedMapping(file, memory, mapped, false));
}

std::unique_ptr<SharedMapping> SharedMapping::open(const CUipcMemHandle &handle) {
  SharedFile shared;
  std::memcpy(&shared, &handle, sizeof(shared));
  const int file = ::open(fmt::format("/proc/{}/fd/{}", shared.process, shared.file).c_str(), O_RDWR | O_CLOEXEC);
  struct stat status = {};
  void *memory = file < 0 || fstat(file, &status) != 0
                     ? MAP_FAILED
                     : mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    ::close(file);
    return nullptr;
  }
  return std::unique_ptr<SharedMapping>(new SharedMapping(file, memory, static_cast<size_t>(status.st_size), true));
}

CUipcMemHandle SharedMapping::handle() const {
  const SharedFile shared{getpid(), file};
  CUipcMemHandle handle = {};
  std::memcpy(&handle, &shared, sizeof(shared));
  return handle;
}
std::byte *SharedMapping::data() const {
  return static_cast<std::byte *>(memory) + headBytes;
}
size_t SharedMapping::bytes() const {
  return static_cast<SharedHead *>(memory)->bytes;
}
bool SharedMapping::isOpenElsewhere() const {
  return static_cast<SharedHead *>(memory)->opened != 0;
}

uint64_t State::allocate(size_t bytes, bool onHost) {
  if (owner.sharesMemory && !onHost) {
    auto mapping = SharedMapping::create(bytes);
    if (!mapping)
      return 0;
    auto address = reinterpret_cast<uint64_t>(mapping->data());
    std::memset(mapping->data(), 0xCD, bytes);
    memories[address] = {bytes, false, nullptr, std::move(mapping)};
    return address;
  }
  constexpr size_t alignment = 256;
  auto data = std::make_unique<std::byte[]>(bytes + alignment);
  std::memset(data.get(), 0xCD, bytes + alignment);
  uint64_t address = (reinterpret_cast<uint64_t>(data.get()) + alignment - 1) / alignment * alignment;
  memories[address] = {bytes, onHost, std::move(data)};
  return address;
}

CUresult State::release(uint64_t memory, bool onHost) {
  std::lock_guard lock(mutex);
  auto found = memories.find(memory);
  if (found == memories.end() || found->second.onHost != onHost || found->second.isForeign) {
    violations.push_back("memory is freed that was not allocated");
    return CUDA_ERROR_INVALID_VALUE;
  }
  notWhileCapturing("cuMemFree");
  if (found->second.mapping && found->second.mapping->isOpenElsewhere())
    violations.push_back("memory is freed that another process has open");
  return forget(found);
}

CUresult State::forget(std::map<uint64_t, Memory>::iterator found) {
  uint64_t end = found->first + found->second.bytes;
  if (std::string what = history.unfinished(found->first, end, everyHost()); !what.empty() && broken == CUDA_SUCCESS)
    violations.push_back("memory is freed that " + what + " may still use");
  history.forget(found->first, end);
  memories.erase(found);
  return CUDA_SUCCESS;
}

CUresult State::rangeOf(uint64_t address, uint64_t &begin, size_t &bytes) const {
  begin = allocationOf(address);
  auto found = memories.find(begin);
  if (found == memories.end() || found->second.onHost)
    return CUDA_ERROR_NOT_FOUND;
  bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

CUresult State::share(uint64_t memory, CUipcMemHandle &handle) {
  auto found = memories.find(memory);
  if (found == memories.end() || !found->second.mapping || found->second.isForeign)
    return CUDA_ERROR_INVALID_VALUE;
  handle = found->second.mapping->handle();
  return CUDA_SUCCESS;
}

CUresult State::openShared(const CUipcMemHandle &handle, uint64_t &memory) {
  SharedFile shared;
  std::memcpy(&shared, &handle, sizeof(shared));
  if (shared.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  auto mapping = SharedMapping::open(handle);
  if (!mapping)
    return CUDA_ERROR_MAP_FAILED;
  memory = reinterpret_cast<uint64_t>(mapping->data());
  const size_t bytes = mapping->bytes();
  memories[memory] = {bytes, false, nullptr, std::move(mapping), true};
  return CUDA_SUCCESS;
}

CUresult State::closeShared(uint64_t memory) {
  auto found = memories.find(memory);
  if (found == memories.end() || !found->second.isForeign) {
    violations.push_back("memory of another process is closed that was not opened");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return forget(found);
}

uint64_t State::deviceBytes() const {
  uint64_t bytes = 0;
  for (const auto &[address, memory] : memories)
    bytes += memory.onHost || memory.isForeign ? 0 : memory.bytes;
  return bytes;
}

uint64_t State::allocationOf(uint64_t address) const {
  auto next = memories.upper_bound(address);
  return next == memories.begin() || address >= std::prev(next)->first + std::prev(next)->second.bytes ? 0
                                                                                                       : std::prev(next)->first;
}

RecordedStream *State::newStream() {
  auto made = std::make_unique<RecordedStream>();
  made->number = streamsMade++;
  RecordedStream *handle = made.get();
  streams[handle] = std::move(made);
  return handle;
}

RecordedEvent *State::newEvent() {
  auto made = std::make_unique<RecordedEvent>();
  RecordedEvent *handle = made.get();
  events[handle] = std::move(made);
  return handle;
}

RecordedStream *State::streamOf(CUstream handle) {
  auto *stream = reinterpret_cast<RecordedStream *>(handle);
  if (!streams.count(stream)) {
    violations.push_back("a stream is used that does not exist");
    stream = newStream();
  }
  return stream;
}

RecordedEvent *State::eventOf(CUevent handle) {
  auto *event = reinterpret_cast<RecordedEvent *>(handle);
  if (!events.count(event)) {
    violations.push_back("an event is used that does not exist");
    event = newEvent();
  }
  return event;
}

void State::checkMemory(const Work &work) {
  for (const Access &access : work.accesses) {
    uint64_t holder = allocationOf(access.begin);
    bool inside = holder != 0 && access.end <= holder + memories.at(holder).bytes;
    if (!inside && access.begin != access.end)
      violations.push_back(fmt::format("{} {} {} bytes that are not allocated", work.what, access.writes ? "writes" : "reads",
                                       access.end - access.begin));
  }
}

void State::append(RecordedStream *stream, Work work, std::vector<NodePointer> before) {
  auto node = std::make_shared<RecordedNode>();
  node->work = std::move(work);
  node->stream = stream->number;
  if (stream->last && !(stream->last->done && !stream->capture))
    before.push_back(stream->last);
  node->before = std::move(before);
  if (stream->capture)
    stream->capture->nodes.push_back(node);
  stream->last = node;
}

CUresult State::enqueue(CUstream handle, Work work) {
  RecordedStream *stream = streamOf(handle);
  checkMemory(work);
  if (!stream->capture)
    stream->clock.merge(host());
  stream->clock.tick(stream->number);
  AccessHistory &accesses = stream->capture ? stream->capture->history : history;
  if (std::string conflict = accesses.add(stream->number, stream->clock, work.accesses, work.what); !conflict.empty())
    violations.push_back(conflict);
  append(stream, std::move(work), {});
  return CUDA_SUCCESS;
}

CUresult State::record(RecordedEvent *event, RecordedStream *stream) {
  event->recorded = true;
  event->clock = stream->clock;
  event->node = stream->last;
  event->capture = stream->capture;
  return CUDA_SUCCESS;
}

CUresult State::wait(RecordedStream *stream, RecordedEvent *event) {
  if (!event->recorded)
    violations.push_back("a stream waits for an event that was never recorded");
  if (stream->capture && stream->capture != event->capture) {
    violations.push_back("a captured stream waits for an event from outside of the capture");
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event->capture && !stream->capture) { // it becomes part of the capture
    stream->clockOutside = stream->clock;
    stream->lastOutside = stream->last;
    stream->capture = event->capture;
    stream->clock = {};
    stream->last = nullptr;
  }
  stream->clock.merge(event->clock);
  append(stream, {}, event->node ? std::vector<NodePointer>{event->node} : std::vector<NodePointer>{});
  return CUDA_SUCCESS;
}

CUresult State::execute(RecordedNode &node) {
  if (node.done || broken != CUDA_SUCCESS)
    return broken;
  node.done = true;
  if (node.work.run)
    broken = node.work.run();
  node.before.clear();
  return broken;
}

CUresult State::waitFor(const NodePointer &node, const Clock &clock) {
  std::vector<NodePointer> stack;
  if (node)
    stack.push_back(node);
  while (!stack.empty()) {
    NodePointer top = stack.back();
    bool ready = true;
    for (const NodePointer &before : top->before)
      if (!before->done && !top->done) {
        stack.push_back(before);
        ready = false;
        break;
      }
    if (!ready)
      continue;
    stack.pop_back();
    if (execute(*top) != CUDA_SUCCESS)
      return broken;
  }
  host().merge(clock);
  return broken;
}

CUresult State::beginCapture(RecordedStream *stream) {
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = std::make_shared<RecordedCapture>();
  stream->capture->thread = std::this_thread::get_id();
  stream->isOrigin = true;
  stream->clockOutside = stream->clock;
  stream->lastOutside = stream->last;
  stream->clock = {};
  stream->last = nullptr;
  return CUDA_SUCCESS;
}

CUresult State::endCapture(RecordedStream *stream, CUgraph *graph) {
  *graph = nullptr;
  if (!stream->capture || !stream->isOrigin)
    return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<RecordedCapture> capture = stream->capture;
  bool joined = true;
  Clock origin = stream->clock;
  for (auto &[handle, other] : streams) {
    if (other->capture != capture)
      continue;
    joined &= origin.covers(other->clock);
    other->capture = nullptr;
    other->isOrigin = false;
    other->clock = other->clockOutside;
    other->last = other->lastOutside;
  }
  if (!joined) {
    violations.push_back("a captured stream is not joined to the one that began the capture");
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  auto made = std::make_shared<RecordedGraph>();
  made->nodes = capture->nodes;
  graphs[made.get()] = made;
  *graph = reinterpret_cast<CUgraph>(made.get());
  return broken;
}

CUresult State::runGraph(const RecordedGraph &graph) {
  std::set<const RecordedNode *> done;
  auto isReady = [&](const NodePointer &node) {
    return !done.count(node.get()) && std::all_of(node->before.begin(), node->before.end(),
                                                  [&](const NodePointer &before) { return done.count(before.get()) != 0; });
  };
  while (done.size() < graph.nodes.size()) {
    // The stream with the largest number first: the opposite of the order of issue.
    const RecordedNode *next = nullptr;
    for (const NodePointer &node : graph.nodes)
      if (isReady(node) && (!next || node->stream > next->stream))
        next = node.get();
    done.insert(next);
    if (CUresult result = next->work.run ? next->work.run() : CUDA_SUCCESS; result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}

CUresult State::launchGraph(const std::shared_ptr<RecordedGraph> &graph, CUstream stream) {
  Work work{"a graph", {}, [this, graph] { return runGraph(*graph); }};
  for (const NodePointer &node : graph->nodes)
    work.accesses.insert(work.accesses.end(), node->work.accesses.begin(), node->work.accesses.end());
  return enqueue(stream, std::move(work));
}

std::string State::leaks() const {
  std::vector<std::string> parts;
  auto add = [&](const char *what, int64_t count) {
    if (count != 0)
      parts.push_back(fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"));
  };
  add("stream", static_cast<int64_t>(streams.size()));
  add("event", static_cast<int64_t>(events.size()));
  add("graph", static_cast<int64_t>(graphs.size() + executables.size()));
  add("allocation", static_cast<int64_t>(memories.size()));
  for (const auto &[what, count] : live)
    add(what.c_str(), count);
  return fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace msc::test
