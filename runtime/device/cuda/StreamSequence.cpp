#include "runtime/device/cuda/StreamSequence.h"

#include <set>

namespace msc::device::cuda {
namespace {

class StreamSequence final : public Sequence {
public:
  StreamSequence(Shared &shared, std::vector<SequenceEntry> entries, bool graphs)
      : shared(shared), driver(shared.driver), entries(std::move(entries)), graphs(graphs) {}
  ~StreamSequence() override {
    if (graph)
      driver.cuGraphExecDestroy(graph);
    for (CUevent event : finished)
      if (event)
        driver.cuEventDestroy(event);
    for (auto &[stream, event] : joined)
      driver.cuEventDestroy(event);
    if (started)
      driver.cuEventDestroy(started);
  }

  /// Events: one behind every entry that another stream waits for, one where streams part and one per stream where they meet.
  Status prepare() {
    finished.resize(entries.size());
    for (const SequenceEntry &entry : entries) {
      if (entry.stream != 0)
        joined.emplace(entry.stream, nullptr);
      for (uint32_t before : entry.after)
        if (!finished[before])
          MSC_CUDA(cuEventCreate, &finished[before], CU_EVENT_DISABLE_TIMING);
    }
    for (auto &[stream, event] : joined)
      MSC_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    if (!joined.empty())
      MSC_CUDA(cuEventCreate, &started, CU_EVENT_DISABLE_TIMING);
    return {};
  }

  Status run(size_t &failed) override {
    if (runs++ == 0 || !graphs)
      return runOneByOne(failed);
    failed = entries.size();
    if (!graph)
      if (Status status = capture(failed); !status)
        return status;
    MSC_CUDA(cuGraphLaunch, graph, shared.streams.at(0).handle);
    shared.runsGraphs = true;
    return {};
  }

private:
  Status start(const SequenceEntry &entry, const Stream &stream) {
    return static_cast<StreamOperation *>(entry.operation)->enqueue(stream);
  }

  Status runOneByOne(size_t &failed) {
    const Stream &stream = shared.streams.at(0);
    for (failed = 0; failed < entries.size(); ++failed) {
      if (Status status = start(entries[failed], stream); !status)
        return status;
      if (Status status = shared.wait(stream.handle); !status)
        return status;
    }
    return {};
  }

  /// A capture that fails midway is ended like any other, with its streams joined: the driver takes all of them out of it.
  Status capture(size_t &failed) {
    CUstream first = shared.streams.at(0).handle;
    MSC_CUDA(cuStreamBeginCapture, first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    Status status = part();
    if (status) {
      status = enqueueAll(failed);
      Status met = meet();
      if (status)
        status = met;
    }
    CUgraph recorded = nullptr;
    CUresult ended = driver.cuStreamEndCapture(first, &recorded);
    if (status)
      status = check(driver, "cuStreamEndCapture", ended);
    if (status)
      status = check(driver, "cuGraphInstantiate", driver.cuGraphInstantiateWithFlags(&graph, recorded, 0));
    if (recorded)
      driver.cuGraphDestroy(recorded);
    return status;
  }

  /// Lets all streams wait for the first one.
  Status part() {
    if (started)
      MSC_CUDA(cuEventRecord, started, shared.streams.at(0).handle);
    for (auto &[number, event] : joined)
      MSC_CUDA(cuStreamWaitEvent, shared.streams.at(number).handle, started, 0);
    return {};
  }

  /// Lets the first stream wait for all others.
  Status meet() {
    for (auto &[number, event] : joined) {
      MSC_CUDA(cuEventRecord, event, shared.streams.at(number).handle);
      MSC_CUDA(cuStreamWaitEvent, shared.streams.at(0).handle, event, 0);
    }
    return {};
  }

  Status enqueueAll(size_t &failed) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (Status status = enqueue(i); !status) {
        failed = i;
        return status;
      }
    return {};
  }

  Status enqueue(size_t i) {
    const SequenceEntry &entry = entries[i];
    const Stream &stream = shared.streams.at(entry.stream);
    for (uint32_t before : entry.after)
      MSC_CUDA(cuStreamWaitEvent, stream.handle, finished[before], 0);
    if (Status status = start(entry, stream); !status)
      return status;
    if (finished[i])
      MSC_CUDA(cuEventRecord, finished[i], stream.handle);
    return {};
  }

  Shared &shared;
  const DriverTable &driver;
  std::vector<SequenceEntry> entries;
  bool graphs;
  uint64_t runs = 0;
  CUgraphExec graph = nullptr;
  std::vector<CUevent> finished;      ///< per entry; null: nobody waits for it
  std::map<uint32_t, CUevent> joined; ///< per stream but the first
  CUevent started = nullptr;
};

} // namespace

Result<std::unique_ptr<Sequence>> makeStreamSequence(Shared &shared, std::vector<SequenceEntry> entries, bool graphs) {
  auto sequence = std::make_unique<StreamSequence>(shared, std::move(entries), graphs);
  if (Status status = sequence->prepare(); !status)
    return status.error();
  return std::unique_ptr<Sequence>(std::move(sequence));
}

} // namespace msc::device::cuda
