#include "runtime/executor/Timeline.h"

#include "runtime/checkpoint/File.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/TraceEvents.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <unistd.h>

namespace msc {
namespace {

namespace fs = std::filesystem;

/// The head of a traced step in the record.
enum Head { Epoch, Step, BatchBegin, PlanBegin, PlanEnd, HeadWords };

constexpr size_t kMeetings = 16;               ///< that align clocks
constexpr int64_t kGathered = int64_t{1} << 20; ///< words that rank 0 takes at a time

/// Pipes and devices are written as they are; what a link points to is replaced, not the link.
bool isReplaced(const std::string &path) {
  std::error_code ignored;
  fs::file_status status = fs::status(path, ignored);
  return !fs::exists(status) || fs::is_regular_file(status);
}
std::string targetOf(const std::string &path) {
  std::error_code ignored;
  fs::path target = path;
  for (int links = 0; links < 40 && fs::is_symlink(target, ignored); ++links)
    target = target.parent_path() / fs::read_symlink(target, ignored);
  return target.string();
}

/// A text file that appears whole or not at all.
class WholeFile {
public:
  static Result<std::unique_ptr<WholeFile>> create(const std::string &path) {
    std::string target = targetOf(path), name = isReplaced(target) ? temporaryName(target, drawRunNumber()) : target;
    Result<OutputFile> file = OutputFile::create(name);
    if (!file)
      return file.error();
    return std::unique_ptr<WholeFile>(new WholeFile(std::move(target), std::move(name), std::move(*file)));
  }
  ~WholeFile() {
    if (name != target)
      unlink(name.c_str());
  }
  Status write(const std::string &text) { return file.write(text.data(), text.size()); }
  Status finish() {
    if (Status status = file.finish(); !status || name == target)
      return status;
    if (std::rename(name.c_str(), target.c_str()) != 0)
      return fileError("write", target, errno);
    name = target;
    return {};
  }

private:
  WholeFile(std::string target, std::string name, OutputFile file)
      : target(std::move(target)), name(std::move(name)), file(std::move(file)) {}
  std::string target, name; ///< they differ until the file is whole
  OutputFile file;
};

/// Microseconds in 1024ths. These have exact sums in double, so that of events one behind the other none begins before the other
/// ends, however a viewer rounds: Perfetto drops events that overlap.
double microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds / 1000 * 1024 + nanoseconds % 1000 * 1024 / 1000) / 1024;
}

/// Writes events, one a line.
class EventWriter {
public:
  explicit EventWriter(const std::string &path) : path(path) {}

  Status open() {
    auto created = WholeFile::create(path);
    if (!created)
      return created.error();
    file = std::move(*created);
    pending = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    return {};
  }
  Status close() {
    pending += "\n]}\n";
    if (Status status = flush(0); !status)
      return status;
    return file->finish();
  }
  void add(const TraceEvent &event) { line(textOf(event)); }
  /// An event of which `opened` is all but the end.
  void add(const std::string &opened, int64_t process, int64_t begin, int64_t end) {
    double ts = microseconds(begin);
    line(fmt::format("{},\"pid\":{},\"ts\":{},\"dur\":{}}}", opened, process, ts, microseconds(end) - ts));
  }
  static std::string textOf(const TraceEvent &event) { return event.dump(-1, ' ', false, TraceEvent::error_handler_t::replace); }
  /// Brings what has come together to the file, if it is more than `most` bytes.
  Status flush(size_t most) {
    if (pending.size() <= most)
      return {};
    Status status = file->write(pending);
    pending.clear();
    return status;
  }

private:
  void line(const std::string &event) {
    pending += isFirst ? "\n" : ",\n";
    pending += event;
    isFirst = false;
  }

  std::string path, pending;
  std::unique_ptr<WholeFile> file;
  bool isFirst = true;
};

/// The part of rank 0: events of one rank after the other.
class TimelineWriter {
public:
  TimelineWriter(const PlanIndex &index, const plan::Program &program, const std::string &path, uint64_t count)
      : index(index), program(program), count(count), out(path) {}

  Status open() { return out.open(); }
  Status close() { return out.close(); }

  /// `record` is that of Timeline; `zero` on rank 0's clock.
  Status addRank(int64_t rank, const int64_t *record, ClockOffset clock, int64_t zero) {
    for (const TraceEvent &event : describeProcess(rank, fmt::format("rank {} (measured)", rank), 1 + rank, Lane::Steps))
      out.add(event);
    if (clock.error != 0)
      out.add({{"name", "process_labels"}, {"ph", "M"}, {"pid", rank}, {"tid", 0},
               {"args", {{"labels", fmt::format("clock within {:.1f} us", static_cast<double>(clock.error) / 1000)}}}});
    const std::vector<std::string> &opened = openedEvents(*PlanIndex::variantOf(program, rank));
    int64_t shift = zero + clock.ahead;
    for (uint64_t traced = 0; traced < count; ++traced, record += HeadWords + 2 * opened.size()) {
      TraceEvent whole{{"name", fmt::format("epoch {} step {}", record[Epoch], record[Step])}, {"cat", "step"}, {"ph", "X"},
                       {"tid", static_cast<int>(Lane::Steps)},
                       {"args", {{"epoch", record[Epoch]}, {"step", record[Step]},
                                 {"batch_us", microseconds(record[PlanBegin] - record[BatchBegin])}}}};
      out.add(withoutEnd(whole), rank, record[PlanBegin] - shift, record[PlanEnd] - shift);
      const int64_t *times = record + HeadWords;
      for (size_t i = 0; i < opened.size(); ++i) {
        out.add(opened[i], rank, times[2 * i] - shift, times[2 * i + 1] - shift);
        if (Status status = out.flush(size_t{1} << 20); !status)
          return status;
      }
    }
    return out.flush(size_t{1} << 20);
  }

private:
  static std::string withoutEnd(const TraceEvent &event) {
    std::string text = EventWriter::textOf(event);
    text.pop_back();
    return text;
  }
  /// The events of a variant's steps but for their ends, which differ between ranks.
  const std::vector<std::string> &openedEvents(const plan::Variant &variant) {
    auto [found, isNew] = opened.try_emplace(&variant);
    for (int i = 0; isNew && i < variant.steps_size(); ++i)
      found->second.push_back(withoutEnd(stepEvent(index.plan(), variant, i)));
    return found->second;
  }

  const PlanIndex &index;
  const plan::Program &program;
  uint64_t count;
  EventWriter out;
  std::map<const plan::Variant *, std::vector<std::string>> opened;
};

/// `words` numbers of each rank in [begin, end), one rank after the other, to rank 0. `sizeOf` is known to all.
Status gatherWords(comm::Group &everyone, const std::vector<int64_t> &own, std::vector<int64_t> &all, int64_t begin, int64_t end,
                   const std::function<int64_t(int64_t)> &sizeOf) {
  comm::ExchangePlan plan;
  plan.type = comm::ElementType::I64;
  int64_t offset = 0;
  for (int64_t rank = begin; rank < end; offset += sizeOf(rank), ++rank) {
    comm::Region from{0, {sizeOf(rank)}, {1}}, to{offset, {sizeOf(rank)}, {1}};
    if (rank == everyone.rank())
      plan.sends.push_back({0, from, to});
    if (everyone.rank() == 0)
      plan.receives.push_back({static_cast<int32_t>(rank), from, to});
  }
  all.resize(everyone.rank() == 0 ? static_cast<size_t>(offset) : 0);
  return everyone.exchange(own.data(), all.data(), plan, {"timeline", ""});
}

} // namespace

Result<std::vector<int64_t>> meetOften(comm::Group &all, size_t meetings, const std::function<int64_t()> &clock) {
  const comm::OperationLabel label{"alignment of clocks", ""};
  std::vector<int64_t> times;
  times.reserve(2 * meetings);
  for (size_t i = 0; i < meetings; ++i) {
    times.push_back(clock());
    if (Status status = all.barrier(label); !status)
      return status.error();
    times.push_back(clock());
  }
  return times;
}

ClockOffset offsetBetween(std::span<const int64_t> own, std::span<const int64_t> ofFirst) {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i + 1 < own.size(); i += 2) {
    least = std::max(least, own[i] - ofFirst[i + 1]);
    most = std::min(most, own[i + 1] - ofFirst[i]);
  }
  return {least + (most - least) / 2, (most - least + 1) / 2};
}

Result<std::unique_ptr<Timeline>> Timeline::create(const PlanIndex &index, const plan::Program &program, comm::World &world,
                                                   const TimelineOptions &options, uint64_t runSteps) {
  if (runSteps == 0)
    return Error{ExitCode::Usage, fmt::format("--timeline {} has nothing to show: no step runs", options.path),
                 "leave out --timeline"};
  std::unique_ptr<Timeline> timeline(new Timeline(index, program, world, options.path));
  timeline->count = std::min(options.count, runSteps);
  timeline->first = std::min(options.first - 1, runSteps - timeline->count);
  timeline->record.resize(static_cast<size_t>(timeline->wordsOf(world.rank())));
  return timeline;
}

int64_t Timeline::wordsOf(int64_t rank) const {
  return static_cast<int64_t>(count) * (HeadWords + 2 * PlanIndex::variantOf(program, rank)->steps_size());
}

bool Timeline::startStep(uint64_t epoch, uint64_t step) {
  uint64_t number = stepsSeen++;
  if (number < first || number >= first + count)
    return false;
  at = record.size() / count * (number - first);
  record[at + Epoch] = static_cast<int64_t>(epoch);
  record[at + Step] = static_cast<int64_t>(step);
  record[at + BatchBegin] = steadyNanoseconds();
  return true;
}

std::span<int64_t> Timeline::startPlan() {
  record[at + PlanBegin] = steadyNanoseconds();
  return std::span(record).subspan(at + HeadWords, record.size() / count - HeadWords);
}

void Timeline::endPlan() { record[at + PlanEnd] = steadyNanoseconds(); }

/// `begin` becomes when the first rank began to run the first traced step, on rank 0's clock. Both only on rank 0.
Result<std::vector<ClockOffset>> Timeline::alignClocks(comm::Group &everyone, int64_t &begin) {
  auto met = meetOften(everyone, world.localSize() == world.size() ? 0 : kMeetings, steadyNanoseconds);
  if (!met)
    return met.error();
  std::vector<int64_t> own{record[PlanBegin]}, all;
  own.insert(own.end(), met->begin(), met->end());
  auto size = static_cast<int64_t>(own.size());
  if (Status status = gatherWords(everyone, own, all, 0, world.size(), [&](int64_t) { return size; }); !status)
    return status.error();
  std::vector<ClockOffset> clocks;
  begin = std::numeric_limits<int64_t>::max();
  for (size_t at = 0; at < all.size(); at += own.size()) {
    auto meetings = [&](size_t rank) { return std::span(all).subspan(rank + 1, own.size() - 1); };
    clocks.push_back(met->empty() || at == 0 ? ClockOffset() : offsetBetween(meetings(at), meetings(0)));
    begin = std::min(begin, all[at] - clocks.back().ahead);
  }
  return clocks;
}

Status Timeline::write(comm::Group &everyone, Status &written) {
  int64_t zero = 0;
  Result<std::vector<ClockOffset>> clocks = alignClocks(everyone, zero);
  if (!clocks)
    return clocks.error();
  TimelineWriter writer(index, program, path, count);
  if (world.rank() == 0)
    written = writer.open();
  std::vector<int64_t> gathered;
  for (int64_t begin = 0, end; begin < world.size(); begin = end) {
    int64_t words = 0;
    for (end = begin; end < world.size() && (end == begin || words + wordsOf(end) <= kGathered); ++end)
      words += wordsOf(end);
    if (Status status = gatherWords(everyone, record, gathered, begin, end, [&](int64_t rank) { return wordsOf(rank); }); !status)
      return status;
    const int64_t *from = gathered.data();
    for (int64_t rank = begin; world.rank() == 0 && written && rank < end; from += wordsOf(rank), ++rank)
      written = writer.addRank(rank, from, (*clocks)[rank], zero);
  }
  if (world.rank() == 0 && written)
    written = writer.close();
  return {};
}

Status checkTimelineFile(const std::string &path) {
  if (Status status = checkWritable(path); !status || !isReplaced(path))
    return status;
  return checkWritable(temporaryName(targetOf(path), drawRunNumber()));
}

} // namespace msc
