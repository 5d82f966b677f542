// Operations whose working memory is given to them when all are prepared: those of one rank run one after the other, in memory that
// they share or that is free just then.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cpu/WorkerPool.h"

#include <functional>
#include <utility>
#include <vector>

namespace msc::device {

/// Bytes of working memory.
struct ScratchSize {
  size_t worker = 0; ///< for each worker of the pool
  size_t shared = 0; ///< for all tasks together
};

/// Blocks of at least the size that was asked for, aligned to 64 bytes; valid during run(), with any content.
struct Scratch {
  std::vector<std::byte *> workers;
  std::byte *shared = nullptr;
};

class ScratchOperation : public Operation {
public:
  virtual ScratchSize scratchSize() const = 0;
  /// Called once, before the first run().
  virtual void setScratch(const Scratch &scratch) = 0;
};

/// Phases of tasks, one after the other; the tasks of a phase run side by side. What a task does depends on its number
/// alone, so that the number of threads changes no bit.
class TaskOperation final : public ScratchOperation {
public:
  /// `worker` is this worker's block of scratch memory.
  using Body = std::function<void(int64_t task, std::byte *worker, std::byte *shared)>;

  TaskOperation(WorkerPool &pool, int64_t tasks, Body body, ScratchSize size = {}) : pool(pool), size(size) {
    then(tasks, std::move(body));
  }
  /// One more phase behind those so far.
  void then(int64_t tasks, Body body) { phases.push_back({this, tasks, std::move(body)}); }

  Status run() override {
    for (Phase &phase : phases)
      pool.run(
          phase.tasks,
          [](void *self, int64_t task, int worker) {
            auto *phase = static_cast<Phase *>(self);
            const Scratch &scratch = phase->operation->scratch;
            phase->body(task, scratch.workers[worker], scratch.shared);
          },
          &phase);
    return {};
  }
  ScratchSize scratchSize() const override { return size; }
  void setScratch(const Scratch &given) override { scratch = given; }

private:
  struct Phase {
    TaskOperation *operation;
    int64_t tasks;
    Body body;
  };
  WorkerPool &pool;
  ScratchSize size;
  Scratch scratch;
  std::vector<Phase> phases;
};

} // namespace msc::device
