// Plans that are changed and sealed again: the reader or the checker refuses them, or they run inside their arena. The input is
// a serialised plan. Generated kernels, which are trusted, are found and bound, but not called. Whoever can seal a plan can put
// any code into it, so changed machine code is checked, but not loaded: the system's loader believes what it reads.
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/PlanChecker.h"
#include "runtime/plan/PlanFile.h"
#include "test/fuzz/Fuzzer.h"
#include "test/fuzz/Mutation.h"
#include "test/runtime/PlanBuilder.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <openssl/evp.h>
#include <set>
#include <thread>

using namespace msc;
using namespace msc::test;

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// All messages inside a message, itself included.
void collect(Message *message, std::vector<Message *> &all) {
  all.push_back(message);
  std::vector<const FieldDescriptor *> fields;
  message->GetReflection()->ListFields(*message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    const auto *reflection = message->GetReflection();
    if (!field->is_repeated())
      collect(reflection->MutableMessage(message, field), all);
    else
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
        collect(reflection->MutableRepeatedMessage(message, field, i), all);
  }
}

uint64_t number(Random &random) {
  switch (random() % 6) {
  case 0: return random() % 4;
  case 1: return random() % 20;
  case 2: return random() % 1000;
  case 3: return uint64_t{1} << random() % 64;
  case 4: return ~uint64_t{0} - random() % 3;
  default: return 64 * (random() % 50);
  }
}

/// Changes one field of one message: another number, one element more or less, two elements swapped.
void changeField(plan::Plan &plan, Random &random) {
  std::vector<Message *> all;
  collect(&plan, all);
  Message *message = all[random() % all.size()];
  const auto *descriptor = message->GetDescriptor();
  const auto *reflection = message->GetReflection();
  if (descriptor->field_count() == 0)
    return;
  const FieldDescriptor *field = descriptor->field(static_cast<int>(random() % descriptor->field_count()));
  int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
  if (size > 1 && random() % 3 == 0)
    return reflection->SwapElements(message, field, static_cast<int>(random() % size), static_cast<int>(random() % size));
  if (size > 0 && random() % 5 == 0)
    return reflection->RemoveLast(message, field);
  uint64_t value = number(random);
  bool add = field->is_repeated() && (size == 0 || random() % 4 == 0);
  int at = size ? static_cast<int>(random() % size) : 0;
  auto put = [&](auto single, auto repeated, auto added, auto typed) {
    if (!field->is_repeated())
      (reflection->*single)(message, field, typed);
    else if (add)
      (reflection->*added)(message, field, typed);
    else
      (reflection->*repeated)(message, field, at, typed);
  };
  using R = google::protobuf::Reflection;
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_UINT32: return put(&R::SetUInt32, &R::SetRepeatedUInt32, &R::AddUInt32, static_cast<uint32_t>(value));
  case FieldDescriptor::CPPTYPE_UINT64: return put(&R::SetUInt64, &R::SetRepeatedUInt64, &R::AddUInt64, value);
  case FieldDescriptor::CPPTYPE_INT64: return put(&R::SetInt64, &R::SetRepeatedInt64, &R::AddInt64, static_cast<int64_t>(value));
  case FieldDescriptor::CPPTYPE_BOOL: return put(&R::SetBool, &R::SetRepeatedBool, &R::AddBool, value % 2 == 1);
  case FieldDescriptor::CPPTYPE_ENUM: return put(&R::SetEnumValue, &R::SetRepeatedEnumValue, &R::AddEnumValue, static_cast<int>(value % 9));
  default: return;
  }
}

/// Rows by number, their sums, running sums and the largest elements.
void addLookups(PlanBuilder &builder, uint32_t x, uint32_t w) {
  uint32_t numbers = builder.buffer("numbers", {5}, builder.cut(1, 0), plan::Buffer::CONSTANT, plan::I32);
  uint32_t picked = builder.buffer("picked", {5, 4}, builder.cut(2, 0)), sums = builder.buffer("sums", {7, 4}, builder.partial(2));
  uint32_t running = builder.buffer("running", {6, 7}, builder.cut(2, 0)), values = builder.buffer("values", {6, 2}, builder.cut(2, 0));
  uint32_t places = builder.buffer("places", {6, 2}, builder.cut(2, 0), plan::Buffer::ACTIVATION, plan::I32);
  uint32_t again = builder.buffer("again", {6, 2}, builder.cut(2, 0)), spread = builder.buffer("spread", {6, 7}, builder.cut(2, 0));
  builder.constant("numbers", numbers, 3);
  builder.call("picked", "Gather", {w, numbers}, {picked}, {{"axis", {0}}}, 2);
  builder.call("sums", "GatherGrad", {numbers, picked}, {sums}, {{"axis", {0}}, {"size", {7}}}, 3);
  builder.call("running", "CumSumPieces", {x}, {running}, {{"axis", {-1}}, {"pieces", {1}}, {"reverse", {1}}}, 2);
  builder.call("values", "TopKPieces", {running}, {values, places}, {{"k", {2}}, {"pieces", {1}}}, 2);
  builder.call("again", "GatherD", {running, places}, {again}, {{"dim", {1}}}, 2);
  builder.call("spread", "GatherDGrad", {places, values}, {spread}, {{"dim", {1}}, {"size", {7}}}, 2);
}

void addAttention(PlanBuilder &builder) {
  auto whole = builder.cut(3, 0);
  uint32_t tokens = builder.buffer("tokens", {4, 5, 8}, whole, plan::Buffer::CONSTANT), keys = builder.buffer("keys", {4, 6, 4}, whole, plan::Buffer::CONSTANT);
  uint32_t mixed = builder.buffer("mixed", {4, 5, 8}, whole), logs = builder.buffer("logs", {4, 4, 5}, whole);
  uint32_t dquery = builder.buffer("dquery", {4, 5, 8}, whole), dkey = builder.buffer("dkey", {4, 6, 4}, whole), dvalue = builder.buffer("dvalue", {4, 6, 4}, whole);
  builder.constant("tokens", tokens, 0.5);
  builder.constant("keys", keys, 0.25);
  std::vector<std::pair<std::string, std::vector<int64_t>>> heads{{"heads", {4}}, {"causal", {1}}};
  builder.call("mixed", "ScaledDotProductAttention", {tokens, keys, keys}, {mixed, logs}, heads, 3);
  builder.call("dquery", "ScaledDotProductAttentionGrad", {tokens, keys, keys, mixed, logs, tokens}, {dquery, dkey, dvalue}, heads, 3);
}

/// Every kind of step but generated kernels, on three devices, with memory that is shared over time.
PlanBuilder everything() {
  PlanBuilder builder(3, plan::Program::PREDICT);
  std::vector<int64_t> shape{6, 7};
  uint32_t x = builder.buffer("x", shape, builder.cut(2, 0), plan::Buffer::INPUT);
  uint32_t w = builder.buffer("w", {7, 4}, builder.cut(2, -1), plan::Buffer::PARAMETER);
  uint32_t bias = builder.buffer("bias", {4}, builder.cut(1, -1), plan::Buffer::CONSTANT);
  uint32_t h = builder.buffer("h", {6, 4}, builder.cut(2, 0)), flat = builder.viewOf(h, "flat", {24}, builder.cut(1, 0));
  uint32_t columns = builder.buffer("columns", {6, 4}, builder.cut(2, 1)), all = builder.buffer("all", {24}, builder.cut(1, -1));
  uint32_t terms = builder.buffer("terms", {4, 4}, builder.partial(2)), sum = builder.buffer("sum", {4, 4}, builder.cut(2, -1));
  uint32_t image = builder.buffer("image", {4, 1, 5, 6}, builder.cut(4, 0), plan::Buffer::INPUT);
  uint32_t most = builder.buffer("most", {4, 1, 2, 3}, builder.cut(4, 0)), slope = builder.buffer("slope", {4, 1, 5, 6}, builder.cut(4, 0));
  uint32_t average = builder.buffer("average", {4, 1, 2, 4}, builder.cut(4, 0));
  uint32_t rows = builder.buffer("rows", {4, 4}, builder.cut(2, 0)), out = builder.buffer("out", {4, 4}, builder.cut(2, 0), plan::Buffer::OUTPUT);
  builder.input(x);
  builder.parameter(w, "ones", 0);
  builder.constant("bias", bias, 0.5);
  plan::Step *product = builder.matmul("matmul", x, w, h);
  product->mutable_matmul()->set_bias(bias + 1);
  product->mutable_matmul()->set_activation("relu");
  product->add_reads(bias);
  builder.collective("transpose", plan::Collective::ALL_TO_ALL, h, columns);
  builder.collective("gather", plan::Collective::ALL_GATHER, flat, all);
  builder.matmul("gradient", h, h, terms, true);
  plan::Step *start = builder.collective("reduce", plan::Collective::ALL_REDUCE, terms, sum);
  start->mutable_collective()->set_asynchronous(true);
  start->set_stream(1);
  start->add_after(4);
  builder.wait("wait", 5);
  builder.copy("slice", sum, rows);
  builder.collective("scatter", plan::Collective::REDUCE_SCATTER, terms, out);
  std::vector<std::pair<std::string, std::vector<int64_t>>> windows{{"kernel_size", {3, 2}}, {"strides", {2}}};
  builder.call("most", "MaxPool", {image}, {most}, windows, 2);
  builder.call("slope", "MaxPoolGrad", {image, most}, {slope}, windows, 3);
  builder.call("average", "AdaptiveAvgPool2D", {slope}, {average}, {});
  uint32_t filter = builder.buffer("filter", {4, 1, 3, 2}, builder.cut(4, -1), plan::Buffer::CONSTANT);
  uint32_t convolved = builder.buffer("convolved", {4, 4, 2, 3}, builder.cut(4, 0)), back = builder.buffer("back", {4, 1, 5, 6}, builder.cut(4, 0));
  uint32_t filters = builder.buffer("filters", {4, 1, 3, 2}, builder.partial(4));
  builder.constant("filter", filter, 0.25);
  std::vector<std::pair<std::string, std::vector<int64_t>>> strides{{"stride", {2}}, {"group", {1}}, {"dilation", {1}}};
  builder.call("convolved", "Conv2D", {image, filter}, {convolved}, strides, 2);
  builder.call("back", "Conv2DBackpropInput", {convolved, filter}, {back}, strides, 2);
  builder.call("filters", "Conv2DBackpropFilter", {convolved, image}, {filters}, strides, 2);
  // Windows of 4 of 10 rows for each rank.
  uint32_t wide = builder.buffer("wide", {4, 1, 16, 6}, builder.cut(4, 2), plan::Buffer::CONSTANT);
  uint32_t edges = builder.buffer("edges", {4, 4, 8, 5}, builder.cut(4, 2));
  builder.constant("wide", wide, 0.5);
  builder.call("edges", "Conv2D", {wide, filter}, {edges}, {{"halo", {0, 0, 10, 0, 0, 0, 0, 0}}}, 2);
  addLookups(builder, x, w);
  addAttention(builder);
  builder.input(image);
  builder.output(out);
  builder.randomColumn("x", "uniform");
  builder.randomColumn("image", "uniform");
  return builder;
}

/// A CPU whose launches do nothing.
class KernellessDevice : public device::Device {
public:
  explicit KernellessDevice(std::shared_ptr<device::KernelLibrary> kernels)
      : cpu(device::createCpuDevice(std::move(kernels), {.sharedWorkspace = 0})) {}
  const char *name() const override { return cpu->name(); }
  Result<std::byte *> allocateArena(uint64_t bytes) override { return cpu->allocateArena(bytes); }
  Result<std::unique_ptr<device::Operation>> prepareLaunch(const device::LaunchSpec &spec) override {
    struct Nothing : device::Operation {
      Status run() override { return {}; }
    };
    auto launch = cpu->prepareLaunch(spec);
    if (!launch)
      return launch;
    return std::unique_ptr<device::Operation>(new Nothing);
  }
  Result<std::unique_ptr<device::Operation>> prepareMatMul(const device::MatMulSpec &spec) override { return cpu->prepareMatMul(spec); }
  Result<std::unique_ptr<device::Operation>> prepareCall(const CallSpec &spec) override { return cpu->prepareCall(spec); }
  Result<std::unique_ptr<device::Operation>> prepareCopy(const device::CopySpec &spec) override { return cpu->prepareCopy(spec); }
  Result<std::unique_ptr<device::Operation>> prepareFill(const device::FillSpec &spec) override { return cpu->prepareFill(spec); }
  Status finishPreparation(const device::FreeRanges &freeWhile) override { return cpu->finishPreparation(freeWhile); }
  Status upload(std::byte *target, const void *source, size_t bytes) override { return cpu->upload(target, source, bytes); }
  Status download(void *target, const std::byte *source, size_t bytes) override { return cpu->download(target, source, bytes); }
  Status synchronize() override { return cpu->synchronize(); }
  uint64_t allocatedBytes() const override { return cpu->allocatedBytes(); }

private:
  std::unique_ptr<device::Device> cpu;
};

/// An arena of its own allocation, so that AddressSanitizer sees its ends; libraries without instrumentation meet the guards.
class GuardedArena {
public:
  explicit GuardedArena(uint64_t bytes) : bytes(bytes), memory(new(alignment) std::byte[bytes + 2 * guard]) {
    std::memset(memory.get(), 0x5a, guard);
    std::memset(begin(), 0, bytes);
    std::memset(begin() + bytes, 0x5a, guard);
  }
  std::byte *begin() const { return memory.get() + guard; }
  bool guardsHold() const {
    for (size_t i = 0; i < guard; ++i)
      if (memory[i] != std::byte{0x5a} || memory[guard + bytes + i] != std::byte{0x5a})
        return false;
    return true;
  }

private:
  static constexpr size_t guard = 4096;
  static constexpr std::align_val_t alignment{64};
  struct Delete {
    void operator()(std::byte *pointer) const { ::operator delete[](pointer, alignment); }
  };
  uint64_t bytes;
  std::unique_ptr<std::byte[], Delete> memory;
};

/// Constants and one step of a plan that the checker accepted, unless it is large.
void runGuarded(const plan::Plan &plan, const plan::Program &program) {
  constexpr uint64_t mostDevices = 16, mostBytes = 1 << 22;
  PlanIndex index(plan);
  auto kernels = device::KernelLibrary::load(plan);
  if (!kernels || plan.devices() > mostDevices || plan.arena_bytes() > mostBytes)
    return;
  auto hub = *comm::ThreadHub::create(index.devices());
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    ranks.emplace_back([&, rank] {
      auto world = hub->world(rank);
      world->setTimeout(std::chrono::seconds(20));
      KernellessDevice device(*kernels);
      GuardedArena arena(plan.arena_bytes());
      auto executor = Executor::create(index, program, *world, device, arena.begin());
      Status status = executor ? (*executor)->runConstants() : Status(executor.error());
      if (status)
        status = (*executor)->runStep();
      if (!status)
        world->abort(status.error());
      require(arena.guardsHold(), "wrote beside the arena");
    });
  for (std::thread &rank : ranks)
    rank.join();
}

/// A plan file of any content, with a checksum that is right.
std::string sealed(const std::string &content) {
  std::string bytes = "msc-plan";
  bytes += {static_cast<char>(plan::planFormat), 0, 0, 0};
  bytes += content;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  return bytes.append(reinterpret_cast<char *>(digest), length);
}

/// Whether all machine code is that of a seed, byte for byte.
bool hasTrustedCode(const plan::Plan &plan) {
  static const std::set<std::string> trusted = [] {
    std::set<std::string> codes;
    for (const std::string &seed : fuzzSeeds()) {
      plan::Plan original;
      require(original.ParseFromString(seed), "a seed is no plan");
      for (const plan::CodeObject &object : original.objects())
        codes.insert(object.code());
    }
    return codes;
  }();
  return std::all_of(plan.objects().begin(), plan.objects().end(),
                     [](const plan::CodeObject &object) { return trusted.count(object.code()) != 0; });
}

struct {
  uint64_t unreadable = 0, refused = 0, foreign = 0, ran = 0;
} tally;

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silent;
  Result<plan::Plan> read = plan::decodePlan(sealed({reinterpret_cast<const char *>(data), size}), "net.plan");
  Status status = read ? plan::checkPlan(*read) : Status(read.error());
  if (!status) {
    require(status.error().code == ExitCode::BadFile, "refused with another code");
    require(!status.error().message.empty(), "refused without a reason");
    ++(read ? tally.refused : tally.unreadable);
    return 0;
  }
  if (!hasTrustedCode(*read)) {
    ++tally.foreign;
    return 0;
  }
  ++tally.ran;
  for (const plan::Program &program : read->programs())
    runGuarded(*read, program);
  return 0;
}

/// Fields are changed as a rule, bytes now and then: these are seldom a plan.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed) {
  google::protobuf::LogSilencer silent;
  Random random(seed);
  std::string bytes(reinterpret_cast<const char *>(data), size);
  plan::Plan plan;
  if (random() % 4 != 0 && plan.ParseFromString(bytes)) {
    changeField(plan, random);
    bytes = plan.SerializeAsString();
  } else {
    mutate(bytes, random);
  }
  bytes.resize(std::min(bytes.size(), limit));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

std::string msc::test::campaignSummary(uint64_t cases) {
  require(tally.refused > cases / 4, "too few plans reached the checker and were refused");
  require(tally.ran > cases / 10, "too few plans ran");
  return fmt::format("changed plans, {} no plan any more, {} refused, {} with other machine code, {} ran", tally.unreadable, tally.refused,
                     tally.foreign, tally.ran);
}

std::vector<std::string> msc::test::fuzzSeeds() {
  std::vector<std::string> seeds{everything().plan.SerializeAsString()};
#ifdef MSC_COMPILED_PLAN
  Result<plan::Plan> compiled = plan::readPlan(MSC_COMPILED_PLAN);
  require(compiled.isOk(), "there is no compiled plan");
  seeds.push_back(compiled->SerializeAsString());
#endif
  return seeds;
}
