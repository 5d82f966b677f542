#include "runtime/executor/Session.h"

#include "runtime/messages/Catalogue.h"
#include "runtime/checkpoint/Agreement.h"
#include "runtime/checkpoint/Npy.h"
#include "runtime/data/Draw.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Fetch.h"
#include "runtime/executor/FloatValue.h"
#include "runtime/executor/NumpyText.h"
#include "runtime/executor/Schedule.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanText.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <numeric>

namespace msc {

using Clock = std::chrono::steady_clock;

static double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Keys of TrainingState::extra: how the run that wrote a checkpoint counted.
constexpr const char *kBatchesPerEpoch = "batches_per_epoch", *kSamplesPerBatch = "samples_per_batch";

Session::~Session() {
  if (device) // nothing is left to give up behind a success
    device->abandonGroups();
}

Status Session::run() {
  if (Status status = prepare(); !status)
    return status;
  if (Status status = runProgram(); !status)
    return status;
  executor.reset(); // graphs hold calls of the communication
  if (Status status = device->closeGroups(); !status)
    return status;
  return timelineWritten;
}

Status Session::prepare() {
  const RunOptions &options = shared.options;
  program = programToRun(index);
  if (!program)
    return Error{ExitCode::BadFile, fmt::format("{} has no program", options.planPath), ""};
  std::vector<int64_t> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  Result<comm::Group *> group = world.group(ranks);
  if (!group)
    return group.error();
  everyone = *group;
  if (Status status = checkAgreement(); !status)
    return status;
  device::CpuOptions share = device::shareOfHost(options.threadsPerRank, world.localRank(), world.localSize());
  if (shared.backend) {
    auto made = shared.backend->create({world.rank(), world.localRank(), world.localSize(), &world});
    if (!made)
      return made.error();
    device = std::move(*made);
  } else {
    device = device::createCpuDevice(shared.kernels, share);
  }
  Result<std::byte *> memory = device->allocateArena(index.plan().arena_bytes());
  if (!memory)
    return memory.error();
  arena = *memory;
  auto source = DataSource::open(index, *program, options.inputs, world.rank());
  if (!source)
    return source.error();
  data = std::move(*source);
  if (Status status = data->connect(*device); !status)
    return status;
  if (!data->note().empty())
    note("note: " + data->note());
  auto bound = Executor::create(index, *program, world, *device, arena);
  if (!bound)
    return bound.error();
  executor = std::move(*bound);
  if (std::string remark = device->note(); !remark.empty())
    note("note: " + remark);
  // Workspaces are known now, and no rank has touched its arena: the last moment for this question.
  Status fits = shared.backend ? Status() : device::checkHostMemory(device->allocatedBytes(), world.localSize());
  if (Status status = agree(*everyone, fits, {"memory check", ""}).status(); !status)
    return status;
  if (Status status = saveGraphs(share.threads); !status)
    return status;
  if (Status status = initializeParameters(); !status)
    return status;
  if (Status status = resume(); !status)
    return status;
  return takeParameters();
}

Status Session::checkAgreement() {
  if (std::strcmp(world.transport(), "threads") == 0) // they share it all
    return {};
  if (Status status = checkAlike(plan::checksumOf(index.plan()),
                                 {ExitCode::BadFile, fmt::format("{} of rank {} is another plan than that of rank 0", shared.options.planPath, world.rank()),
                                  "give all hosts the same file"});
      !status)
    return status;
  std::string inputs;
  for (const auto &[name, path] : shared.options.inputs) { // files of hosts may have paths of their own
    std::error_code unknown;
    inputs += fmt::format("{} {}\n", name, std::filesystem::file_size(path, unknown));
  }
  const uint64_t hash = std::hash<std::string>()(inputs);
  return checkAlike({reinterpret_cast<const char *>(&hash), sizeof(hash)},
                    {ExitCode::Usage, fmt::format("rank {} was given another --input than rank 0", world.rank()), "give all ranks the same --input"});
}

Status Session::checkAlike(const std::string &own, const Error &otherwise) {
  std::string first = own;
  if (Status status = everyone->broadcast(first.data(), first.size(), 0, {"plan check", ""}); !status)
    return status;
  int64_t differs = own == first ? world.size() : world.rank(), firstThatDiffers = 0;
  Status found = everyone->allReduce(&differs, &firstThatDiffers, 1, comm::ElementType::I64, ReduceKind::Min, {"plan check", ""});
  if (!found)
    return found;
  if (firstThatDiffers == world.size())
    return {};
  if (firstThatDiffers == world.rank())
    return otherwise;
  return everyone->barrier({"plan check", ""}); // ends by the failure of that rank, which alone says it
}

Status Session::saveGraphs(int threads) {
  constexpr int64_t fewRanks = 16;
  auto firstOfVariant = [&](const plan::Program::RankRange &range) { return range.first() == world.rank(); };
  bool chosen = world.size() <= fewRanks || std::any_of(program->ranges().begin(), program->ranges().end(), firstOfVariant);
  if (shared.options.saveGraphs.empty() || !chosen)
    return {};
  std::filesystem::path folder = std::filesystem::path(shared.options.saveGraphs) / fmt::format("rank_{}", world.rank());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fileError("make the folder", folder.string(), error.value());
  auto file = OutputFile::create((folder / "msrun.txt").string());
  if (!file)
    return file.error();
  std::string text = fmt::format("run: rank {} of {}, {}, {}, {} {}{}\n", world.rank(), world.size(), world.transport(),
                                 device->name(), threads, threads == 1 ? "thread" : "threads",
                                 !shared.kernels || shared.kernels->isa().empty() ? "" : ", kernels " + shared.kernels->isa()) +
                     planText(index, world.rank());
  if (Status status = file->write(text.data(), text.size()); !status)
    return status;
  return file->finish();
}

Status Session::initializeParameters() {
  for (const plan::Parameter &parameter : index.plan().parameters()) {
    plan::DataType type = index.buffer(parameter.buffer()).dtype();
    const std::vector<int64_t> &shape = index.shape(parameter.buffer());
    const std::string &name = parameter.draw_name().empty() ? parameter.name() : parameter.draw_name();
    auto function = initializerFunction(parameter.initializer(), shape, index.plan().seed(), name, type == plan::F32);
    if (!function)
      return function.error();
    Box box = index.localBox(parameter.buffer(), world.rank());
    std::vector<std::byte> values(static_cast<size_t>(elementCount(box)) * elementBytes(type));
    fillBox(values.data(), type, shape, box, 0, *function);
    std::byte *target = arena + index.buffer(parameter.buffer()).offset();
    if (Status status = device->upload(target, values.data(), values.size()); !status)
      return status;
  }
  return executor->runConstants();
}

Status Session::takeParameters() {
  for (const plan::Parameter &parameter : index.plan().parameters()) {
    auto file = shared.options.inputs.find(fetchName(parameter));
    if (file == shared.options.inputs.end())
      continue;
    auto column = fixedColumn(file->second, file->first, index.buffer(parameter.buffer()).dtype(), index.shape(parameter.buffer()));
    if (!column)
      return column.error();
    std::vector<std::byte> values(parameterBytes(parameter));
    if (Status status = (*column)->fill(values.data(), index.localBox(parameter.buffer(), world.rank()), 0, 0); !status)
      return status;
    if (Status status = device->upload(arena + index.buffer(parameter.buffer()).offset(), values.data(), values.size()); !status)
      return status;
  }
  return {};
}

std::vector<CheckpointTensor> Session::tensors() {
  std::vector<CheckpointTensor> result;
  size_t at = 0;
  for (const plan::Parameter &parameter : index.plan().parameters()) {
    uint32_t buffer = parameter.buffer();
    std::byte *data = arena + index.buffer(buffer).offset();
    if (!device->sharesHostMemory()) {
      hostCopies.resize(static_cast<size_t>(index.plan().parameters_size()));
      hostCopies[at].resize(parameterBytes(parameter));
      data = hostCopies[at++].data();
    }
    result.push_back({parameter.name(), static_cast<comm::ElementType>(index.buffer(buffer).dtype()),
                      index.shape(buffer), index.sharding(buffer), data, !parameter.trained()});
  }
  return result;
}

size_t Session::parameterBytes(const plan::Parameter &parameter) const {
  uint32_t buffer = parameter.buffer();
  return static_cast<size_t>(index.localCount(buffer, world.rank())) * elementBytes(index.buffer(buffer).dtype());
}

Status Session::copyParameters(bool toHost) {
  for (size_t i = 0; i < hostCopies.size(); ++i) {
    std::byte *data = arena + index.buffer(index.plan().parameters(static_cast<int>(i)).buffer()).offset();
    std::vector<std::byte> &copy = hostCopies[i];
    Status status = toHost ? device->download(copy.data(), data, copy.size()) : device->upload(data, copy.data(), copy.size());
    if (!status)
      return status;
  }
  return {};
}

Status Session::resume() {
  const CheckpointFlags &flags = shared.options.checkpoint;
  const plan::Checkpointing &wanted = index.plan().checkpointing();
  CheckpointOptions where;
  where.directory = flags.directory;
  if (flags.directory.empty() && ((index.plan().has_checkpointing() && !flags.off) || flags.resume == "latest")) {
    Result<std::string> directory = expandPath(wanted.directory());
    if (!directory)
      return directory.error();
    where.directory = *directory;
  }
  // A network without a checkpoint block takes those of any network in the folder.
  if (index.plan().has_checkpointing())
    where.prefix = wanted.prefix().empty() ? index.plan().network() : wanted.prefix();
  where.keep = wanted.keep();
  where.perRank = wanted.per_rank() || flags.perRank;
  if (index.plan().has_checkpointing() && !flags.off)
    writer = std::make_unique<CheckpointWriter>(where, *everyone);
  if (flags.resume.empty())
    return {};
  // Tensors that a checkpoint lacks keep their initial values.
  std::vector<CheckpointTensor> parameters = tensors();
  if (Status status = copyParameters(true); !status)
    return status;
  auto loaded = loadCheckpoint(flags.resume, where, parameters, *everyone);
  if (!loaded)
    return loaded.error();
  if (Status status = copyParameters(false); !status)
    return status;
  for (const std::string &remark : loaded->notes)
    note("note: " + remark);
  // A network that only predicts has no use for what its training keeps.
  if (const std::vector<std::string> &unused = index.plan().has_training() ? loaded->unused : loaded->unusedParameters; !unused.empty())
    note(fmt::format("note: the network has no '{}'{}, which the checkpoint holds", unused.front(),
                     unused.size() == 1   ? ""
                     : unused.size() == 2 ? " and 1 other tensor"
                                          : fmt::format(" and {} other tensors", unused.size() - 1)));
  firstStep = static_cast<uint64_t>(std::max<int64_t>(0, loaded->state.globalStep));
  note(fmt::format("resumed from {} after epoch {} step {}", loaded->path, loaded->state.epoch, loaded->state.step));
  noteOtherBatches(loaded->state);
  return {};
}

void Session::noteOtherBatches(const TrainingState &state) const {
  auto batches = state.extra.find(kBatchesPerEpoch), samples = state.extra.find(kSamplesPerBatch);
  if (!index.plan().has_training() || batches == state.extra.end() || samples == state.extra.end())
    return;
  std::string before = fmt::format("{} batches of {}", batches->second, samples->second);
  std::string now = fmt::format("{} batches of {}", data->batchesPerEpoch(), data->samplesPerBatch());
  if (before != now)
    note(fmt::format("note: an epoch of the checkpoint has {}, here it has {}: the run goes on at epoch {} step {}, and "
                     "may skip or repeat samples",
                     before, now, epochOf(firstStep) + 1, stepOf(firstStep) + 1));
}

Status Session::print(const std::string &line) {
  std::string text = shared.options.log.prefix ? fmt::format("rank {}: {}\n", world.rank(), line) : line + "\n";
  if (mute || (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0))
    return {};
  if (errno == EPIPE)
    return Error{ExitCode::NoResource, "nobody reads what rank " + std::to_string(world.rank()) + " prints: the pipe at stdout is closed",
                 "write to a file: msrun net.plan > log.txt"};
  mute = true;
  std::string lost = fmt::format("msrun: warning: cannot write to stdout: {}; the run goes on without its lines", std::strerror(errno));
  std::fprintf(stderr, "%s\n", messages::translatedLine(lost).c_str());
  return {};
}

void Session::note(const std::string &line) const {
  if (world.rank() == 0)
    std::fprintf(stderr, "%s\n", messages::translatedLine(line).c_str());
}

void Session::setSchedules(uint64_t step) {
  const auto &schedules = index.plan().schedules();
  scheduled.resize(static_cast<size_t>(schedules.size()), std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < scheduled.size(); ++i) {
    const plan::Schedule &schedule = schedules[static_cast<int>(i)];
    const plan::Buffer &buffer = index.buffer(schedule.buffer());
    double value = scheduleValue(schedule, step);
    if (value == scheduled[i]) // it still has it: nothing else writes this memory
      continue;
    scheduled[i] = value;
    auto single = static_cast<float>(value);
    bool isDouble = buffer.dtype() == plan::F64;
    const void *bytes = isDouble ? static_cast<const void *>(&value) : &single;
    // Host to device copies of eight bytes fail only with the device, and then its next operation says so.
    (void)device->upload(arena + buffer.offset(), bytes, isDouble ? sizeof(value) : sizeof(single)).isOk();
  }
}

bool Session::logs(uint64_t step) const {
  if (logEvery == "epoch")
    return stepOf(step) + 1 == data->batchesPerEpoch() || step + 1 == lastStep;
  uint64_t every = logEvery.empty() ? 1 : std::strtoull(logEvery.c_str(), nullptr, 10);
  return every != 0 && (step + 1) % every == 0;
}

Status Session::runProgram() {
  bool trains = program->purpose() == plan::Program::TRAIN && index.plan().has_training();
  if (speaks())
    if (Status status = print(fmt::format("rank size: {}, rank id: {}", world.size(), world.rank())); !status)
      return status;
  Status status = trains ? train() : predict();
  if (status)
    status = fetchAll();
  if (status && !shared.options.report.empty())
    status = report();
  return status;
}

Status Session::train() {
  const RunOptions &options = shared.options;
  const plan::Training &training = index.plan().training();
  for (const plan::Output &output : program->outputs())
    if (output.name() == training.loss())
      loss = &output;
  logEvery = options.log.every.empty() ? training.log_every() : options.log.every;
  uint64_t epochs = options.epochs.value_or(training.epochs()), batches = data->batchesPerEpoch();
  bool stepsCount = options.steps || (!options.epochs && training.steps() != 0);
  lastStep = stepsCount ? options.steps.value_or(training.steps()) : epochs * batches;
  if (speaks())
    if (Status status = print(fmt::format("train dataset batch num: {}", batches)); !status)
      return status;
  if (firstStep >= lastStep && firstStep != 0)
    note(fmt::format("note: the checkpoint is from step {}, and the run ends at step {}: nothing to train", firstStep, lastStep));
  else if (lastStep == 0 && options.fetches.empty())
    note("note: the run ends at step 0: nothing is trained");
  if (firstStep >= lastStep && fetchedResult())
    return Error{ExitCode::Usage, fmt::format("'{}' was not computed: no step ran", *fetchedResult()),
                 "without a step, only param:NAME and state:NAME have values"};
  if (world.rank() == 0 && !options.report.empty())
    records.reserve(lastStep > firstStep ? std::min<uint64_t>(lastStep - firstStep, 1u << 20) : 0);
  if (Status status = startTimeline(lastStep - std::min(firstStep, lastStep)); !status)
    return status;
  for (uint64_t step = firstStep; step < lastStep; ++step) {
    if (Status status = trainStep(step); !status)
      return status;
    if (Status status = finishTimeline(); !status)
      return status;
  }
  return {};
}

Status Session::startTimeline(uint64_t steps) {
  if (shared.options.timeline.path.empty())
    return {};
  auto created = Timeline::create(index, *program, world, shared.options.timeline, steps);
  if (!created)
    return created.error();
  timeline = std::move(*created);
  const TimelineOptions &wanted = shared.options.timeline, usual;
  const bool isUsual = wanted.first == usual.first && wanted.count == usual.count; // of a run of one step, that one
  if (wanted.count > steps || (wanted.first != usual.first && wanted.first > steps - wanted.count + 1))
    if (!isUsual)
      note(fmt::format("note: the run has {} step{}, and --timeline-steps asks for later ones: the last {} are shown", steps,
                       steps == 1 ? "" : "s", std::min(wanted.count, steps)));
  return {};
}

Status Session::finishTimeline() {
  if (!timeline || !timeline->isComplete())
    return {};
  Status status = timeline->write(*everyone, timelineWritten);
  timeline.reset();
  return status;
}

const std::string *Session::fetchedResult() const {
  for (const plan::Output &output : program->outputs())
    if (shared.options.fetches.count(output.name()) != 0)
      return &output.name();
  return nullptr;
}

Status Session::trainStep(uint64_t step) {
  Clock::time_point begin = Clock::now();
  if (Status status = computeStep(step); !status)
    return status;
  if (speaks()) {
    double value = floatValue(index.buffer(loss->buffer()).dtype(), lossBytes);
    double ms = millisecondsSince(begin);
    std::string text = lossText(value, index.buffer(loss->buffer()).dtype());
    if (logs(step))
      if (Status status = print(fmt::format("epoch: {} step: {}, loss is {}", epochOf(step) + 1, stepOf(step) + 1, text)); !status)
        return status;
    if (!std::isfinite(value) && !diverged && step == 0)
      note(fmt::format("msrun: warning: the loss is {} in epoch {} step {}, before anything was trained: look at the inputs, the initial values "
                       "and the numbers of the network",
                       text, epochOf(step) + 1, stepOf(step) + 1));
    else if (!std::isfinite(value) && !diverged)
      note(fmt::format("msrun: warning: the loss is {} in epoch {} step {}: the training has diverged; try a smaller "
                       "learning rate",
                       text, epochOf(step) + 1, stepOf(step) + 1));
    diverged |= !std::isfinite(value);
    if (world.rank() == 0 && !shared.options.report.empty())
      records.push_back({epochOf(step) + 1, stepOf(step) + 1, value, ms});
  }
  return checkpointAfter(step);
}

Status Session::computeStep(uint64_t step) {
  if (int code = shared.stop.load(std::memory_order_relaxed))
    return Error{static_cast<ExitCode>(code), "interrupted", ""};
  world.enterStep(epochOf(step) + 1, stepOf(step) + 1);
  bool isTraced = timeline && timeline->startStep(epochOf(step) + 1, stepOf(step) + 1);
  setSchedules(step);
  Status status = data->load(arena, epochOf(step), stepOf(step));
  if (status)
    status = isTraced ? executor->runStep(timeline->startPlan()) : executor->runStep();
  if (status && loss && speaks())
    status = device->fetch(lossBytes, arena + index.buffer(loss->buffer()).offset(), elementBytes(index.buffer(loss->buffer()).dtype()));
  if (status && !device->sharesHostMemory() && step + 1 < lastStep) // while it runs
    data->prepare(epochOf(step + 1), stepOf(step + 1));
  if (status)
    if (Status done = device->synchronize(); !done)
      status = executor->ofRank(done.error());
  if (isTraced)
    timeline->endPlan();
  if (!status)
    return Error{status.error().code,
                 fmt::format("epoch {} step {}: {}", epochOf(step) + 1, stepOf(step) + 1, status.error().message),
                 status.error().help};
  return printAsked();
}

Status Session::checkpointAfter(uint64_t step) {
  if (!writer)
    return {};
  const plan::Checkpointing &wanted = index.plan().checkpointing();
  bool endOfEpoch = stepOf(step) + 1 == data->batchesPerEpoch();
  bool due = (wanted.every_steps() != 0 && (step + 1) % wanted.every_steps() == 0) ||
             (wanted.every_epochs() != 0 && endOfEpoch && (epochOf(step) + 1) % wanted.every_epochs() == 0);
  if (!due)
    return {};
  TrainingState state;
  state.epoch = static_cast<int64_t>(epochOf(step)) + 1;
  state.step = static_cast<int64_t>(stepOf(step)) + 1;
  state.globalStep = static_cast<int64_t>(step) + 1;
  state.datasetPosition = state.step;
  state.planDigest = index.plan().digest();
  state.extra = {{kBatchesPerEpoch, std::to_string(data->batchesPerEpoch())},
                 {kSamplesPerBatch, std::to_string(data->samplesPerBatch())}};
  std::vector<CheckpointTensor> parameters = tensors();
  if (Status status = copyParameters(true); !status)
    return status;
  Result<SaveOutcome> saved = writer->save(parameters, state);
  if (!saved)
    return saved.error();
  if (saved->skipped)
    note(fmt::format("msrun: warning: no checkpoint after epoch {} step {}: {}", state.epoch, state.step,
                     saved->skipped->message));
  return {};
}

Status Session::predict() {
  uint64_t batches = data->samples() == 0 ? 1 : data->batchesPerEpoch();
  if (data->drawsSeveralBatches())
    note(fmt::format("note: evaluated on the first of {} batches that the data set draws; on data from files it is on all of them",
                     data->batchesPerEpoch()));
  if (Status status = startTimeline(batches); !status)
    return status;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    if (Status status = predictBatch(batch, batches); !status)
      return status;
    if (Status status = finishTimeline(); !status)
      return status;
  }
  if (batches > 1 && fetchedResult())
    note(fmt::format("note: fetched results are those of the last of {} batches, {} of {} samples", batches,
                     data->samplesPerBatch(), data->samples()));
  return {};
}

Status Session::predictBatch(uint64_t batch, uint64_t batches) {
  Clock::time_point begin = Clock::now();
  if (Status status = computeStep(batch); !status)
    return status;
  if (world.rank() == 0 && !shared.options.report.empty())
    records.push_back({1, batch + 1, std::numeric_limits<double>::quiet_NaN(), millisecondsSince(begin)});
  if (hasOwnTensors())
    return printOwnResults();
  std::string number = batches == 1 ? "" : fmt::format("step: {}, ", batch + 1);
  for (const plan::Output &output : program->outputs()) {
    if (output.printed())
      continue;
    auto value = gather(index, output.buffer(), world, *device, arena);
    if (!value)
      return value.error();
    if (world.rank() == 0)
      if (Status status = print(number + valueText(index, output.buffer(), output.name(), *value)); !status)
        return status;
  }
  return {};
}

Status Session::printOwn(const plan::Output &output, const std::string &title) {
  const plan::Buffer &buffer = index.buffer(output.buffer());
  std::vector<std::byte> value(static_cast<size_t>(index.localCount(output.buffer(), world.rank())) * elementBytes(buffer.dtype()));
  if (Status status = device->download(value.data(), arena + buffer.offset(), value.size()); !status)
    return status;
  std::string text = title + numpyText(index.localShape(output.buffer(), world.rank()), buffer.dtype(), value.data());
  for (int64_t turn = 0; turn < world.size(); ++turn) {
    Status printed = turn == world.rank() ? print(text) : Status();
    if (Status status = agree(*everyone, printed, {"turn to print", ""}).status(); !status)
      return status;
  }
  return {};
}

Status Session::printOwnResults() {
  auto isResult = [](const plan::Output &output) { return !output.printed(); };
  auto results = std::count_if(program->outputs().begin(), program->outputs().end(), isResult);
  for (const plan::Output &output : program->outputs())
    if (isResult(output))
      if (Status status = printOwn(output, results == 1 ? "" : output.name() + ":\n"); !status)
        return status;
  return {};
}

Status Session::printAsked() {
  for (const plan::Output &output : program->outputs()) {
    if (!output.printed())
      continue;
    std::string title = output.message().empty() ? "" : output.message() + "\n";
    if (hasOwnTensors()) {
      if (Status status = printOwn(output, title); !status)
        return status;
      continue;
    }
    auto value = gather(index, output.buffer(), world, *device, arena);
    if (!value)
      return value.error();
    if (world.rank() == 0)
      if (Status status = print(title + numpyText(index.shape(output.buffer()), index.buffer(output.buffer()).dtype(), value->data())); !status)
        return status;
  }
  return {};
}

Status Session::fetchAll() {
  Status written;
  for (const auto &[name, file] : shared.options.fetches) {
    Result<uint32_t> buffer = findFetch(index, *program, name);
    if (!buffer)
      return buffer.error();
    auto value = gather(index, *buffer, world, *device, arena);
    if (!value)
      return value.error();
    if (world.rank() == 0 && written)
      written = writeNpy(file, static_cast<comm::ElementType>(index.buffer(*buffer).dtype()), index.shape(*buffer),
                         value->data());
  }
  return written;
}

Status Session::report() {
  auto bytes = static_cast<int64_t>(device->allocatedBytes());
  Status status = everyone->allReduce(&bytes, &bytes, 1, comm::ElementType::I64, ReduceKind::Max, {"memory report", ""});
  if (!status || world.rank() != 0)
    return status;
  RunReport result;
  result.ranks = world.size();
  result.transport = world.transport();
  result.device = device->name();
  result.planDigest = index.plan().digest();
  result.steps = records;
  if (!program->inputs().empty() && !index.shape(program->inputs(0).buffer()).empty())
    result.samplesPerStep = index.shape(program->inputs(0).buffer())[0];
  result.peakBytesPerRank = static_cast<uint64_t>(bytes);
  return writeReport(shared.options.report, result);
}

} // namespace msc
