#include "test/runtime/comm/nccl/RecordingNccl.h"

#include "runtime/comm/Reduce.h"
#include "test/runtime/device/cuda/RecordedState.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>

namespace msc::test {
namespace {

using namespace comm::nccl;
using comm::ElementType;

struct Clique;

/// One call between ncclGroupStart and ncclGroupEnd.
struct Call {
  enum Kind { AllReduce, ReduceScatter, AllGather, Send, Receive };
  Kind kind = AllReduce;
  const char *source = nullptr;
  char *target = nullptr;
  size_t count = 0;
  DataType type = DataType::Float32;
  Reduction reduction = Reduction::Sum;
  int peer = -1;
  bool isCollective() const { return kind < Send; }
  bool isLike(const Call &other) const {
    return kind == other.kind && count == other.count && type == other.type && reduction == other.reduction;
  }
};

size_t bytesOf(DataType type) {
  switch (type) {
  case DataType::Uint8: return 1;
  case DataType::Float16:
  case DataType::Bfloat16: return 2;
  case DataType::Int32:
  case DataType::Float32: return 4;
  default: return 8;
  }
}

struct Member {
  Clique *clique = nullptr;
  int rank = 0, rootRank = 0, gpu = -1;
  int looks = 0;
  std::function<bool()> goesOn; ///< true when it is done; empty: nothing is in progress
  Code error = Code::Success;
  int splits = 0, met = 0;
  bool aborted = false, finalized = false, gone = false;
};

struct Split {
  std::map<int, std::pair<int, int>> wishes; ///< rank -> color, key
  std::map<int, Clique *> made;              ///< by color
};

struct Meeting {
  std::map<int, std::vector<Call>> calls; ///< by rank
  bool done = false;
};

struct Clique {
  std::string name;
  size_t size = 0;
  std::map<int, Member *> members;
  std::map<int, Split> splits;
  std::map<int, Meeting> meetings;
};

/// What a thread has between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  struct Part {
    Member *member;
    CUstream stream;
    std::vector<Call> calls;
  };
  std::vector<Part> parts;
};
thread_local Group group;

std::string textOf(const std::vector<Call> &calls) {
  static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather"};
  std::vector<std::string> texts;
  size_t sends = 0, receives = 0;
  for (const Call &call : calls) {
    sends += call.kind == Call::Send, receives += call.kind == Call::Receive;
    if (call.isCollective())
      texts.emplace_back(names[call.kind]);
  }
  if (sends + receives != 0)
    texts.push_back(fmt::format("{} send{}, {} receive{}", sends, sends == 1 ? "" : "s", receives, receives == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(texts, " + "));
}

} // namespace

struct RecordingNccl::State {
  State(RecordingNccl &owner, RecordingDriver::State &driver) : owner(owner), driver(driver) {}

  void violation(const std::string &text) { driver.violations.push_back(text); }

  /// Counts a call; true and the code if a test wants it to fail.
  bool enter(const char *function, Code &code) {
    int number = ++counts[function];
    auto wanted = failures.find(function);
    bool fails = wanted != failures.end() && wanted->second.first == number;
    if (fails)
      code = wanted->second.second;
    return fails;
  }

  /// A communicator that may be used now.
  Member *use(const char *function, Handle handle) {
    auto *member = reinterpret_cast<Member *>(handle);
    if (!members.count(member) || member->gone) {
      violation(fmt::format("{} on a communicator that {}", function,
                            members.count(member) && member->aborted ? "was aborted" : "does not exist"));
      return nullptr;
    }
    if (member->goesOn)
      violation(fmt::format("{} while the communicator is in progress", function));
    return member;
  }

  Code start(Member *member, std::function<bool()> goesOn) {
    member->goesOn = std::move(goesOn);
    member->looks = owner.looks;
    return member->looks > 0 ? Code::InProgress : look(member);
  }
  Code look(Member *member) {
    if (!member->goesOn)
      return Code::Success;
    if (member->looks-- > 0)
      return Code::InProgress;
    if (!member->goesOn())
      return Code::InProgress;
    member->goesOn = nullptr;
    return Code::Success;
  }

  Member *join(Clique *clique, int rank, int rootRank, int gpu) {
    auto made = std::make_unique<Member>();
    Member *member = made.get();
    members[member] = std::move(made);
    member->clique = clique, member->rank = rank, member->rootRank = rootRank, member->gpu = gpu;
    clique->members[rank] = member;
    return member;
  }
  Clique *newClique(std::string name, size_t size) {
    cliques.push_back(std::make_unique<Clique>());
    cliques.back()->name = std::move(name);
    cliques.back()->size = size;
    return cliques.back().get();
  }

  /// All ranks have said what they want: this rank's part of the result.
  Member *splitOff(Member *parent, Split &split) {
    auto [color, key] = split.wishes.at(parent->rank);
    if (color < 0)
      return nullptr;
    std::vector<std::pair<int, int>> order; // key, rank
    for (const auto &[rank, wish] : split.wishes)
      if (wish.first == color)
        order.emplace_back(wish.second, rank);
    std::sort(order.begin(), order.end());
    Clique *&clique = split.made[color];
    if (!clique)
      clique = newClique(fmt::format("{}/{}", parent->clique->name, color), order.size());
    auto at = std::find(order.begin(), order.end(), std::pair(key, parent->rank)) - order.begin();
    return join(clique, static_cast<int>(at), parent->rootRank, parent->gpu);
  }

  void put(Member *member, const std::vector<Call> &calls, CUstream stream) {
    Work work{"nccl " + textOf(calls), {}, [this, member, calls] { return meet(member, calls); }};
    for (const Call &call : calls) {
      auto source = reinterpret_cast<uint64_t>(call.source), target = reinterpret_cast<uint64_t>(call.target);
      size_t bytes = call.count * bytesOf(call.type), all = bytes * member->clique->size;
      if (call.source)
        work.accesses.push_back({source, source + (call.kind == Call::ReduceScatter ? all : bytes), false});
      if (call.target)
        work.accesses.push_back({target, target + (call.kind == Call::AllGather ? all : bytes), true});
    }
    log[member->rootRank].push_back({member->clique, textOf(calls)});
    driver.enqueue(stream, std::move(work));
  }

  /// The work of one member, when its turn has come on its stream.
  CUresult meet(Member *member, const std::vector<Call> &calls) {
    if (member->aborted)
      return CUDA_SUCCESS;
    Meeting &meeting = member->clique->meetings[member->met++];
    auto broken = breaks.find(member->rootRank);
    if (broken != breaks.end() && ++runs[member->rootRank] >= broken->second.first) {
      member->error = broken->second.second;
      changed.wait(driver.mutex, [&] { return member->aborted; });
      return CUDA_SUCCESS;
    }
    meeting.calls[member->rank] = calls;
    if (meeting.calls.size() == member->clique->size) {
      compute(*member->clique, meeting);
      meeting.done = true;
      changed.notify_all();
    }
    changed.wait(driver.mutex, [&] { return meeting.done || member->aborted; });
    return CUDA_SUCCESS;
  }

  void compute(const Clique &clique, Meeting &meeting) {
    std::vector<std::vector<Call>> collectives(clique.size);
    std::map<std::pair<int, int>, std::vector<Call>> sends, receives; // from, to
    for (const auto &[rank, calls] : meeting.calls)
      for (const Call &call : calls) {
        if (call.isCollective())
          collectives[static_cast<size_t>(rank)].push_back(call);
        else if (call.kind == Call::Send)
          sends[{rank, call.peer}].push_back(call);
        else
          receives[{call.peer, rank}].push_back(call);
      }
    for (const std::vector<Call> &calls : collectives)
      if (!std::equal(calls.begin(), calls.end(), collectives[0].begin(), collectives[0].end(),
                      [](const Call &a, const Call &b) { return a.isLike(b); }))
        return violation(fmt::format("members of {} launch different things: {} and {}", clique.name, textOf(collectives[0]),
                                     textOf(calls)));
    for (size_t i = 0; i < collectives[0].size(); ++i) {
      std::vector<Call> calls;
      for (const std::vector<Call> &list : collectives)
        calls.push_back(list[i]);
      collect(calls);
    }
    for (const auto &[pair, list] : sends) {
      const std::vector<Call> &expected = receives[pair];
      if (!std::equal(list.begin(), list.end(), expected.begin(), expected.end(),
                      [](const Call &a, const Call &b) { return a.count == b.count && a.type == b.type; }))
        violation(fmt::format("{} sends {} to {}, which does not expect it", pair.first, textOf(list), pair.second));
      else
        for (size_t i = 0; i < list.size(); ++i)
          std::memmove(expected[i].target, list[i].source, list[i].count * bytesOf(list[i].type));
    }
    for (const auto &[pair, list] : receives)
      if (!list.empty() && !sends.count(pair))
        violation(fmt::format("{} expects {} from {}, which sends nothing", pair.second, textOf(list), pair.first));
  }

  void collect(const std::vector<Call> &calls) {
    const Call &first = calls[0];
    size_t block = first.count * bytesOf(first.type), members = calls.size();
    std::vector<char> result(block * members);
    if (first.kind == Call::AllGather) {
      for (size_t m = 0; m < members; ++m)
        std::memcpy(result.data() + m * block, calls[m].source, block);
      for (const Call &call : calls)
        std::memcpy(call.target, result.data(), result.size());
      return;
    }
    bool scatters = first.kind == Call::ReduceScatter;
    for (size_t m = 0; m < (scatters ? members : 1); ++m) {
      std::vector<const void *> sources;
      for (const Call &call : calls)
        sources.push_back(call.source + m * block);
      reduce(sources, result.data() + m * block, first);
    }
    for (size_t m = 0; m < members; ++m)
      std::memcpy(calls[m].target, result.data() + (scatters ? m * block : 0), block);
  }

  void reduce(const std::vector<const void *> &sources, void *target, const Call &call) {
    static const std::map<DataType, ElementType> types{{DataType::Float32, ElementType::F32},
                                                       {DataType::Float64, ElementType::F64},
                                                       {DataType::Int32, ElementType::I32},
                                                       {DataType::Int64, ElementType::I64},
                                                       {DataType::Uint8, ElementType::Bool}};
    static const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min};
    auto type = types.find(call.type);
    bool isSumOfBytes = call.type == DataType::Uint8 && call.reduction <= Reduction::Prod;
    if (type == types.end() || isSumOfBytes)
      return violation(fmt::format("no reduction {} of type {} is recorded", static_cast<int>(call.reduction),
                                   static_cast<int>(call.type)));
    comm::reduceOrdered(sources, std::vector<void *>{target}, 0, static_cast<int64_t>(call.count), type->second,
                        kinds[static_cast<int>(call.reduction)], false);
  }

  /// The end of a group, or a call outside of one.
  Code launch() {
    std::vector<Group::Part> parts = std::move(group.parts);
    group.parts.clear();
    Code code = Code::Success;
    for (const Group::Part &part : parts) {
      std::thread::id caller = std::this_thread::get_id();
      Code started = start(part.member, [this, part, caller] {
        driver.acting = caller; // whoever looks: the work comes from the thread that launched it
        put(part.member, part.calls, part.stream);
        driver.acting.reset();
        return true;
      });
      code = started == Code::Success ? code : started;
    }
    return code;
  }

  Code add(const char *function, Handle handle, Call call, void *stream) {
    Code failure = Code::Success;
    if (enter(function, failure))
      return failure;
    Member *member = use(function, handle);
    if (!member)
      return Code::InvalidArgument;
    if (State::driverGpu() != member->gpu)
      violation(fmt::format("{} by a thread whose GPU is another one", function));
    if (!call.isCollective() && group.depth == 0)
      violation(fmt::format("{} outside of a group", function));
    if (!call.isCollective() && (call.peer == member->rank || static_cast<size_t>(call.peer) >= member->clique->size))
      violation(fmt::format("{} with peer {} of {}", function, call.peer, member->clique->size));
    auto at = std::find_if(group.parts.begin(), group.parts.end(),
                           [&](const Group::Part &part) { return part.member == member; });
    if (at == group.parts.end())
      at = group.parts.insert(at, {member, static_cast<CUstream>(stream), {}});
    if (at->stream != stream)
      violation("calls of one group and communicator are on different streams");
    at->calls.push_back(call);
    return group.depth == 0 ? launch() : Code::Success;
  }
  static int driverGpu() { return RecordingDriver::State::currentGpu(); }

  RecordingNccl &owner;
  RecordingDriver::State &driver;
  std::condition_variable_any changed;
  std::map<Member *, std::unique_ptr<Member>> members;
  std::vector<std::unique_ptr<Clique>> cliques;
  std::map<uint64_t, Clique *> roots; ///< by unique id
  std::map<int, std::vector<std::pair<Clique *, std::string>>> log;
  std::map<std::string, int> counts;
  std::map<std::string, std::pair<int, Code>> failures;
  std::map<int, std::pair<int, Code>> breaks;
  std::map<int, int> runs; ///< of ranks that break
  uint64_t ids = 0;
  int memories = 0;
  bool holdsAborts = false;
};

namespace {

using State = RecordingNccl::State;
State *current = nullptr;

#define ENTER(function)                                                                                                        \
  State &s = *current;                                                                                                         \
  std::lock_guard lock(s.driver.mutex);                                                                                        \
  if (Code failure = Code::Success; s.enter(function, failure))                                                                \
    return failure;

Code getVersion(int *version) {
  ENTER("ncclGetVersion")
  *version = s.owner.version;
  return Code::Success;
}
Code getUniqueId(UniqueId *id) {
  ENTER("ncclGetUniqueId")
  uint64_t number = ++s.ids;
  std::memcpy(id->internal, &number, sizeof(number));
  return Code::Success;
}

Code initRank(Handle *result, int size, UniqueId id, int rank, Config *config) {
  ENTER("ncclCommInitRankConfig")
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->blocking != 0)
    s.violation("a communicator is not made to be non-blocking");
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  Clique *&clique = s.roots[number];
  if (!clique)
    clique = s.newClique("world", static_cast<size_t>(size));
  if (clique->size != static_cast<size_t>(size) || clique->members.count(rank) != 0)
    s.violation("ranks join a communicator in different sizes, or twice");
  int gpu = State::driverGpu();
  if (gpu < 0)
    s.violation("ncclCommInitRankConfig by a thread without a GPU");
  for (const auto &[peer, member] : clique->members)
    if (member->gpu == gpu && !std::getenv("NCCL_HOSTID"))
      s.violation(fmt::format("ranks {} and {} have the same GPU", peer, rank));
  Member *member = s.join(clique, rank, rank, gpu);
  *result = reinterpret_cast<Handle>(member);
  return s.start(member, [clique] { return clique->members.size() == clique->size; });
}

Code split(Handle handle, int color, int key, Handle *result, Config *config) {
  ENTER("ncclCommSplit")
  Member *parent = s.use("ncclCommSplit", handle);
  if (!parent)
    return Code::InvalidArgument;
  if (config && config->blocking != 0)
    s.violation("a communicator is not made to be non-blocking");
  *result = nullptr;
  Split &split = parent->clique->splits[parent->splits++];
  split.wishes[parent->rank] = {color, key};
  return s.start(parent, [&s, parent, &split, result] {
    if (split.wishes.size() < parent->clique->size)
      return false;
    Member *made = s.splitOff(parent, split);
    *result = reinterpret_cast<Handle>(made);
    if (made)
      s.start(made, [] { return true; });
    return true;
  });
}

Code asyncError(Handle handle, Code *error) {
  ENTER("ncclCommGetAsyncError")
  auto *member = reinterpret_cast<Member *>(handle);
  if (!s.members.count(member) || member->gone) {
    s.violation("ncclCommGetAsyncError on a communicator that does not exist");
    return Code::InvalidArgument;
  }
  *error = member->error != Code::Success ? member->error : s.look(member);
  return Code::Success;
}

Code finalize(Handle handle) {
  ENTER("ncclCommFinalize")
  Member *member = s.use("ncclCommFinalize", handle);
  if (!member)
    return Code::InvalidArgument;
  member->finalized = true;
  return s.start(member, [member] {
    return std::all_of(member->clique->members.begin(), member->clique->members.end(),
                       [](const auto &entry) { return entry.second->finalized; });
  });
}

Code destroy(Handle handle) {
  ENTER("ncclCommDestroy")
  if (Member *member = s.use("ncclCommDestroy", handle)) {
    if (!member->finalized)
      s.violation("ncclCommDestroy before ncclCommFinalize");
    member->gone = true;
  }
  return Code::Success;
}

Code abortOne(Handle handle) {
  ENTER("ncclCommAbort")
  auto *member = reinterpret_cast<Member *>(handle);
  if (!s.members.count(member) || member->gone) {
    s.violation("ncclCommAbort on a communicator that does not exist");
    return Code::InvalidArgument;
  }
  s.changed.wait(s.driver.mutex, [&s] { return !s.holdsAborts; });
  if (group.depth == 0)
    s.violation("ncclCommAbort outside of a group: it waits for work of other communicators");
  member->aborted = member->gone = true;
  member->goesOn = nullptr;
  s.changed.notify_all();
  return Code::Success;
}

Code allocate(void **memory, size_t bytes) {
  ENTER("ncclMemAlloc")
  *memory = reinterpret_cast<void *>(s.driver.allocate(bytes, false));
  ++s.memories;
  return Code::Success;
}
Code freeMemory(void *memory) {
  ENTER("ncclMemFree")
  --s.memories;
  return s.driver.release(reinterpret_cast<uint64_t>(memory), false) == CUDA_SUCCESS ? Code::Success : Code::InvalidArgument;
}

Code groupStart() {
  ENTER("ncclGroupStart")
  ++group.depth;
  return Code::Success;
}
Code groupEnd() {
  State &s = *current;
  std::lock_guard lock(s.driver.mutex);
  if (group.depth == 0) {
    s.violation("ncclGroupEnd without ncclGroupStart");
    return Code::InvalidUsage;
  }
  if (--group.depth > 0)
    return Code::Success;
  if (Code failure = Code::Success; s.enter("ncclGroupEnd", failure)) {
    group.parts.clear();
    return failure;
  }
  return s.launch();
}

Call callOf(Call::Kind kind, const void *source, void *target, size_t count, DataType type) {
  Call call;
  call.kind = kind, call.count = count, call.type = type;
  call.source = static_cast<const char *>(source), call.target = static_cast<char *>(target);
  return call;
}
Code add(const char *function, Handle handle, const Call &call, void *stream) {
  std::lock_guard lock(current->driver.mutex);
  return current->add(function, handle, call, stream);
}

Code allReduce(const void *source, void *target, size_t count, DataType type, Reduction reduction, Handle handle, void *stream) {
  Call call = callOf(Call::AllReduce, source, target, count, type);
  call.reduction = reduction;
  return add("ncclAllReduce", handle, call, stream);
}
Code reduceScatter(const void *source, void *target, size_t count, DataType type, Reduction reduction, Handle handle,
                   void *stream) {
  Call call = callOf(Call::ReduceScatter, source, target, count, type);
  call.reduction = reduction;
  return add("ncclReduceScatter", handle, call, stream);
}
Code allGather(const void *source, void *target, size_t count, DataType type, Handle handle, void *stream) {
  return add("ncclAllGather", handle, callOf(Call::AllGather, source, target, count, type), stream);
}
Code send(const void *source, size_t count, DataType type, int peer, Handle handle, void *stream) {
  Call call = callOf(Call::Send, source, nullptr, count, type);
  call.peer = peer;
  return add("ncclSend", handle, call, stream);
}
Code receive(void *target, size_t count, DataType type, int peer, Handle handle, void *stream) {
  Call call = callOf(Call::Receive, nullptr, target, count, type);
  call.peer = peer;
  return add("ncclRecv", handle, call, stream);
}

const char *errorString(Code code) {
  return code == Code::RemoteError ? "remote process exited or there was a network error" : "recorded error";
}
const char *lastError(Handle) {
  return "";
}

} // namespace

RecordingNccl::RecordingNccl(RecordingDriver &driver) : state(std::make_unique<State>(*this, driver.recorded())) {
  current = state.get();
}
RecordingNccl::~RecordingNccl() {
  current = nullptr;
}

comm::nccl::Table RecordingNccl::table() const {
  comm::nccl::Table t;
  t.ncclGetVersion = getVersion, t.ncclGetUniqueId = getUniqueId, t.ncclCommInitRankConfig = initRank, t.ncclCommSplit = split;
  t.ncclCommGetAsyncError = asyncError, t.ncclCommFinalize = finalize, t.ncclCommDestroy = destroy, t.ncclCommAbort = abortOne;
  t.ncclMemAlloc = allocate, t.ncclMemFree = freeMemory, t.ncclGroupStart = groupStart, t.ncclGroupEnd = groupEnd;
  t.ncclAllReduce = allReduce, t.ncclReduceScatter = reduceScatter, t.ncclAllGather = allGather, t.ncclSend = send;
  t.ncclRecv = receive, t.ncclGetErrorString = errorString, t.ncclGetLastError = lastError;
  return t;
}

void RecordingNccl::failCall(const std::string &function, int number, Code code) {
  state->failures[function] = {number, code};
}
void RecordingNccl::breakRank(int rank, int number, Code code) {
  state->breaks[rank] = {number, code};
}
void RecordingNccl::holdAborts() {
  std::lock_guard lock(state->driver.mutex);
  state->holdsAborts = true;
}
void RecordingNccl::letAbortsGo() {
  std::lock_guard lock(state->driver.mutex);
  state->holdsAborts = false;
  state->changed.notify_all();
}
int RecordingNccl::calls(const std::string &function) const {
  std::lock_guard lock(state->driver.mutex);
  return state->counts[function];
}
std::vector<std::string> RecordingNccl::launches(int rank) const {
  std::vector<std::string> texts;
  for (const auto &[clique, text] : state->log[rank])
    texts.push_back(text);
  return texts;
}

std::string RecordingNccl::finish() {
  State &s = *state;
  auto orderOf = [&](int rank, int peer) { // of the communicators that both are in
    std::vector<std::string> order;
    for (const auto &[clique, text] : s.log[rank])
      if (std::any_of(clique->members.begin(), clique->members.end(),
                      [&](const auto &member) { return member.second->rootRank == peer; }))
        order.push_back(clique->name);
    return order;
  };
  std::vector<int> ranks;
  for (const auto &[rank, list] : s.log)
    ranks.push_back(rank);
  bool anyAborted = std::any_of(s.members.begin(), s.members.end(), [](const auto &entry) { return entry.second->aborted; });
  for (int a : ranks)
    for (int b : ranks)
      if (a < b && !anyAborted && orderOf(a, b) != orderOf(b, a))
        s.violation(fmt::format("ranks {} and {} launch in different orders", a, b));
  int open = 0;
  for (const auto &clique : s.cliques) {
    auto aborted = std::count_if(clique->members.begin(), clique->members.end(),
                                 [](const auto &member) { return member.second->aborted; });
    if (aborted != 0 && static_cast<size_t>(aborted) != clique->members.size())
      s.violation(fmt::format("{} of {} ranks abort {}", aborted, clique->members.size(), clique->name));
  }
  for (const auto &[handle, member] : s.members)
    open += !member->gone;
  std::vector<std::string> left;
  if (open != 0)
    left.push_back(fmt::format("{} communicators", open));
  if (s.memories != 0)
    left.push_back(fmt::format("{} allocations", s.memories));
  return fmt::format("{}", fmt::join(left, ", "));
}

} // namespace msc::test
