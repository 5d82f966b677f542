// What the recording driver knows: memory, streams with work that waits to be done, events, captures.
#pragma once

#include "test/runtime/device/cuda/HappensBefore.h"
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace msc::test {

/// Work that a call puts on a stream.
struct Work {
  std::string what;
  std::vector<Access> accesses;
  std::function<CUresult()> run;
};

/// Work on a stream, behind other work. Without `run` it only orders.
struct RecordedNode {
  Work work;
  int stream = 0;
  std::vector<std::shared_ptr<RecordedNode>> before;
  bool done = false;
};
using NodePointer = std::shared_ptr<RecordedNode>;

struct RecordedCapture {
  std::thread::id thread; ///< that has begun it
  std::vector<NodePointer> nodes;
  AccessHistory history;
};

/// `clock` and `last` are those of the capture while there is one.
struct RecordedStream {
  int number = 0;
  Clock clock;
  NodePointer last;
  std::shared_ptr<RecordedCapture> capture;
  bool isOrigin = false;
  Clock clockOutside;
  NodePointer lastOutside;
};

struct RecordedEvent {
  bool recorded = false;
  Clock clock;
  NodePointer node;
  std::shared_ptr<RecordedCapture> capture;
};

struct RecordedGraph {
  std::vector<NodePointer> nodes;
};

struct RecordedFunction {
  RecordedModule *module;
  std::string entry;
  unsigned sharedBytes = 48 << 10; ///< that a launch may ask for
};

/// Memory of a device that processes map; whoever has it open is counted in front of it.
class SharedMapping {
public:
  /// Null: the system has none.
  static std::unique_ptr<SharedMapping> create(size_t bytes);
  static std::unique_ptr<SharedMapping> open(const CUipcMemHandle &handle);
  ~SharedMapping();
  SharedMapping(const SharedMapping &) = delete;
  SharedMapping &operator=(const SharedMapping &) = delete;

  CUipcMemHandle handle() const;
  std::byte *data() const;
  size_t bytes() const;
  bool isOpenElsewhere() const;

private:
  SharedMapping(int file, void *memory, size_t mapped, bool isForeign);
  int file;
  void *memory;
  size_t mapped;
  bool isForeign;
};

struct RecordingDriver::State {
  explicit State(RecordingDriver &owner) : owner(owner) {}

  /// Counts the call; an error that the test wants, or an asynchronous one that has happened.
  CUresult enter(const std::string &function);
  void notWhileCapturing(const char *function);
  /// 0: there is no memory.
  uint64_t allocate(size_t bytes, bool onHost);
  CUresult release(uint64_t memory, bool onHost);
  CUresult rangeOf(uint64_t address, uint64_t &begin, size_t &bytes) const;
  CUresult share(uint64_t memory, CUipcMemHandle &handle);
  CUresult openShared(const CUipcMemHandle &handle, uint64_t &memory);
  CUresult closeShared(uint64_t memory);
  uint64_t deviceBytes() const;
  uint64_t allocationOf(uint64_t address) const;

  RecordedStream *newStream();
  RecordedEvent *newEvent();
  /// Handles that were destroyed, or never made, are broken rules.
  RecordedStream *streamOf(CUstream handle);
  RecordedEvent *eventOf(CUevent handle);
  CUresult enqueue(CUstream stream, Work work);
  CUresult record(RecordedEvent *event, RecordedStream *stream);
  CUresult wait(RecordedStream *stream, RecordedEvent *event);
  /// Does what comes before and including `node`; then the host knows `clock`.
  CUresult waitFor(const NodePointer &node, const Clock &clock);
  CUresult beginCapture(RecordedStream *stream);
  CUresult endCapture(RecordedStream *stream, CUgraph *graph);
  CUresult launchGraph(const std::shared_ptr<RecordedGraph> &graph, CUstream stream);

  using Failures = std::map<std::string, std::pair<int, CUresult>>;
  static CUresult failureOf(const Failures &failures, std::map<std::string, int> &counts, const std::string &name);
  std::string leaks() const;

  /// What some thread has waited for: it is over.
  Clock everyHost() const;
  /// What the calling thread knows to be over; or that thread in whose name something is done now.
  Clock &host() { return hosts[acting.value_or(std::this_thread::get_id())]; }
  std::optional<std::thread::id> acting;
  /// The GPU that the calling thread has made current, or -1.
  static int &currentGpu();

  RecordingDriver &owner;
  std::recursive_mutex mutex;
  std::vector<std::pair<std::function<bool(const std::string &)>, std::shared_ptr<RecordedModule>>> known;
  std::vector<std::unique_ptr<RecordedFunction>> functions;
  std::map<RecordedStream *, std::unique_ptr<RecordedStream>> streams;
  std::map<RecordedEvent *, std::unique_ptr<RecordedEvent>> events;
  std::map<RecordedGraph *, std::shared_ptr<RecordedGraph>> graphs, executables;
  std::map<std::string, int> live; ///< of what has no object here
  std::map<std::string, int> callCounts, kernelRuns;
  Failures callFailures, kernelFailures;
  std::vector<std::string> violations;
  int executed = 0;

private:
  struct Memory {
    size_t bytes = 0;
    bool onHost = false;
    std::unique_ptr<std::byte[]> data;
    std::unique_ptr<SharedMapping> mapping; ///< instead of `data`
    bool isForeign = false;                 ///< another process has allocated it
  };
  CUresult forget(std::map<uint64_t, Memory>::iterator found);
  void append(RecordedStream *stream, Work work, std::vector<NodePointer> before);
  void checkMemory(const Work &work);
  CUresult runGraph(const RecordedGraph &graph);
  CUresult execute(RecordedNode &node);

  std::map<uint64_t, Memory> memories;
  AccessHistory history;
  std::map<std::thread::id, Clock> hosts;
  CUresult broken = CUDA_SUCCESS; ///< an asynchronous error: nothing works any more
  int streamsMade = 0;
};

/// cuBLASLt in the same world: once for all threads, before they ask for its functions.
void recordBlasIn(RecordingDriver::State *state);
void fillBlasTable(device::cuda::BlasTable &table);
/// And cuDNN.
void recordCudnnIn(RecordingDriver::State *state);
void fillCudnnTable(device::cuda::cudnn::Table &table);

} // namespace msc::test
