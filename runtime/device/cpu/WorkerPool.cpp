#include "runtime/device/cpu/WorkerPool.h"

#include "runtime/Thread.h"

#include <chrono>
#include <pthread.h>
#include <sched.h>

// From libgomp, the OpenMP runtime that oneDNN uses; the setting belongs to the calling thread.
extern "C" void omp_set_num_threads(int);

namespace msc::device {
namespace {

void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // Where pinning is forbidden the threads run where the kernel puts them.
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/// Waits until `value` differs from `old`: yields for about 100 us, because other ranks may share this core, then sleeps.
template <typename T> void awaitChange(std::atomic<T> &value, T old) {
  using Clock = std::chrono::steady_clock;
  auto limit = Clock::now() + std::chrono::microseconds(100);
  while (value.load(std::memory_order_acquire) == old) {
    if (Clock::now() > limit) {
      value.wait(old, std::memory_order_acquire);
      continue;
    }
    sched_yield();
  }
}

} // namespace

void useOneLibraryThread() { omp_set_num_threads(1); }

std::vector<int> usableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> result;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return result;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set))
      result.push_back(i);
  return result;
}

WorkerPool::WorkerPool(int threads, const std::vector<int> &processors) {
  auto processorOf = [&](int worker) {
    return static_cast<size_t>(worker) < processors.size() ? processors[worker] : -1;
  };
  if (processorOf(0) >= 0)
    pin(processorOf(0));
  useOneLibraryThread();
  for (int worker = 1; worker < threads && started; ++worker) {
    std::thread helper;
    started = startThread(helper, [this, worker, processor = processorOf(worker)] { serve(worker, processor); });
    if (started)
      helpers.push_back(std::move(helper));
  }
}

WorkerPool::~WorkerPool() {
  stopping = true;
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (std::thread &helper : helpers)
    helper.join();
}

void WorkerPool::serve(int worker, int processor) {
  if (processor >= 0)
    pin(processor);
  useOneLibraryThread();
  for (uint32_t seen = 0;;) {
    awaitChange(generation, seen);
    seen = generation.load(std::memory_order_acquire);
    if (stopping)
      return;
    for (int64_t t = worker; t < tasks; t += size())
      task(context, t, worker);
    if (working.fetch_sub(1, std::memory_order_acq_rel) == 1)
      working.notify_one();
  }
}

void WorkerPool::run(int64_t count, Task function, void *argument) {
  if (helpers.empty() || count <= 1) {
    for (int64_t t = 0; t < count; ++t)
      function(argument, t, 0);
    return;
  }
  tasks = count;
  task = function;
  context = argument;
  working.store(static_cast<int32_t>(helpers.size()), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (int64_t t = 0; t < count; t += size())
    function(argument, t, 0);
  for (int32_t left = working.load(std::memory_order_acquire); left != 0;
       left = working.load(std::memory_order_acquire))
    awaitChange(working, left);
}

} // namespace msc::device
