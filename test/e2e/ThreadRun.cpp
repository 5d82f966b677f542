#include "test/e2e/ThreadRun.h"

#include "runtime/executor/Schedule.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "test/Campaign.h"

#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

namespace msc::e2e {
using reference::Tensor;

template <typename T> static void storeAs(std::byte *target, double value) {
  T narrow = static_cast<T>(value);
  std::memcpy(target, &narrow, sizeof narrow);
}
template <typename T> static double loadAs(const std::byte *source) {
  T narrow;
  std::memcpy(&narrow, source, sizeof narrow);
  return static_cast<double>(narrow);
}

static void store(std::byte *target, plan::DataType type, double value) {
  switch (type) {
  case plan::F32: return storeAs<float>(target, value);
  case plan::F64: return storeAs<double>(target, value);
  case plan::I32: return storeAs<int32_t>(target, value);
  case plan::I64: return storeAs<int64_t>(target, value);
  default: return storeAs<uint8_t>(target, value);
  }
}

static double load(const std::byte *source, plan::DataType type) {
  switch (type) {
  case plan::F32: return loadAs<float>(source);
  case plan::F64: return loadAs<double>(source);
  case plan::I32: return loadAs<int32_t>(source);
  case plan::I64: return loadAs<int64_t>(source);
  default: return loadAs<uint8_t>(source);
  }
}

namespace {

/// What all ranks share.
struct Run {
  const PlanIndex &index;
  const plan::Program &program;
  const Tensors &given;
  std::shared_ptr<device::KernelLibrary> kernels;
  std::mutex mutex;
  StepResult result;
  std::optional<Error> failure;

  void fail(const Error &error) {
    std::lock_guard lock(mutex);
    if (!failure || failure->code == ExitCode::PeerFailed)
      failure = error;
  }
};

/// One rank of the run.
class Rank {
public:
  Rank(Run &run, comm::World &world)
      : run(run), world(world), device(device::createCpuDevice(run.kernels, device::CpuOptions{.sharedWorkspace = 0})) {} // all work where the arena is free

  Status step() {
    Result<std::byte *> memory = device->allocateArena(run.index.plan().arena_bytes());
    if (!memory)
      return memory.error();
    arena = *memory;
    Result<std::unique_ptr<Executor>> executor = Executor::create(run.index, run.program, world, *device, arena);
    if (!executor)
      return executor.error();
    if (Status status = (*executor)->runConstants(); !status)
      return status;
    if (Status status = writeState(); !status)
      return status;
    if (Status status = (*executor)->runStep(); !status)
      return status;
    return readResults();
  }

private:
  Status writeState() {
    for (const plan::Parameter &parameter : run.index.plan().parameters())
      if (Status status = write(parameter.buffer(), parameter.name()); !status)
        return status;
    for (const plan::Input &input : run.program.inputs())
      if (Status status = write(input.buffer(), input.name()); !status)
        return status;
    for (const plan::Schedule &schedule : run.index.plan().schedules()) {
      if (Status status = write(schedule.buffer(), Tensor({}, scheduleValue(schedule, 0))); !status)
        return status;
    }
    return Status::ok();
  }

  Status write(uint32_t buffer, const std::string &name) {
    auto tensor = run.given.find(name);
    if (tensor == run.given.end())
      return Error{ExitCode::Internal, "no tensor is given for '" + name + "'", ""};
    return write(buffer, tensor->second);
  }

  Status write(uint32_t buffer, const Tensor &tensor) {
    Tensor part = slice(tensor, run.index.localBox(buffer, world.rank()));
    plan::DataType type = run.index.buffer(buffer).dtype();
    size_t bytes = elementBytes(type);
    std::vector<std::byte> data(part.values.size() * bytes);
    for (size_t i = 0; i < part.values.size(); ++i)
      store(data.data() + i * bytes, type, part.values[i]);
    return device->upload(arena + run.index.buffer(buffer).offset(), data.data(), data.size());
  }

  Status readResults() {
    for (const plan::Output &output : run.program.outputs())
      if (Status status = read(output.buffer(), output.name(), run.result.outputs); !status)
        return status;
    for (const plan::Parameter &parameter : run.index.plan().parameters())
      if (Status status = read(parameter.buffer(), parameter.name(), run.result.parameters); !status)
        return status;
    return Status::ok();
  }

  /// Brings this rank's part into the global tensor. Elements that another rank has brought must be equal.
  Status read(uint32_t buffer, const std::string &name, Tensors &tensors) {
    Box box = run.index.localBox(buffer, world.rank());
    plan::DataType type = run.index.buffer(buffer).dtype();
    size_t bytes = elementBytes(type);
    std::vector<std::byte> data(static_cast<size_t>(elementCount(box)) * bytes);
    Status status = device->download(data.data(), arena + run.index.buffer(buffer).offset(), data.size());
    if (!status)
      return status;
    if (run.index.sharding(buffer).isPartial())
      return Error{ExitCode::Internal, "result '" + name + "' is partial", ""};
    std::vector<double> values;
    for (size_t i = 0; i < data.size(); i += bytes)
      values.push_back(load(data.data() + i, type));
    return merge(name, box, run.index.shape(buffer), values, tensors);
  }

  Status merge(const std::string &name, const Box &box, const std::vector<int64_t> &shape,
               const std::vector<double> &values, Tensors &tensors) {
    std::lock_guard lock(run.mutex);
    auto [entry, added] = tensors.try_emplace(name, shape, std::numeric_limits<double>::infinity());
    Tensor known = slice(entry->second, box);
    for (size_t i = 0; i < values.size(); ++i)
      if (known.values[i] != std::numeric_limits<double>::infinity() && known.values[i] != values[i])
        return Error{ExitCode::Failed, "ranks disagree on '" + name + "'", ""};
    paste(entry->second, box, Tensor(sizes(box), values));
    return Status::ok();
  }

  Run &run;
  comm::World &world;
  std::unique_ptr<device::Device> device;
  std::byte *arena = nullptr;
};

} // namespace

static void runRank(Run &run, comm::ThreadHub &hub, int64_t rank) {
  std::unique_ptr<comm::World> world = hub.world(rank);
  world->setTimeout(std::chrono::seconds(60));
  Status status = Rank(run, *world).step();
  if (!status) {
    run.fail(status.error());
    world->abort(status.error());
  }
}

Result<StepResult> runStep(const plan::Plan &plan, const Tensors &given) {
  PlanIndex index(plan);
  if (plan.programs().empty())
    return Error{ExitCode::Internal, "the plan has no program", ""};
  const plan::Program *program = &plan.programs(0); // one that trains, or one that computes if nothing can be trained
  Result<std::shared_ptr<device::KernelLibrary>> kernels = device::KernelLibrary::load(plan);
  if (!kernels)
    return kernels.error();
  Result<std::shared_ptr<comm::ThreadHub>> hub = comm::ThreadHub::create(index.devices());
  if (!hub)
    return hub.error();
  Run run{index, *program, given, *kernels};
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    threads.emplace_back([&, rank] { runRank(run, **hub, rank); });
  for (std::thread &thread : threads)
    thread.join();
  if (run.failure)
    return *run.failure;
  return std::move(run.result);
}

compiler::MachineCode machineCodeOfRuns() {
  return test::isLongRun() ? compiler::MachineCode::All : compiler::MachineCode::ThisProcessor;
}

} // namespace msc::e2e
