// Plans with fields changed at random, as if re-sealed: the checker refuses them, or they run inside their arena. The plan
// holds no generated code, which is trusted.
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/PlanChecker.h"
#include "runtime/plan/PlanFile.h"
#include "test/Campaign.h"
#include "test/runtime/PlanBuilder.h"

#include <cstring>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <random>
#include <thread>

using namespace msc;
using namespace msc::test;

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Random = std::mt19937_64;

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
void mutate(plan::Plan &plan, Random &random) {
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
  builder.output(out);
  builder.randomColumn("x", "uniform");
  return builder;
}

constexpr size_t guard = 4096;

/// Runs a plan that the checker accepted; an arena between guards that must stay as they were.
void runGuarded(const plan::Plan &plan, const plan::Program &program) {
  PlanIndex index(plan);
  auto kernels = device::KernelLibrary::load(plan);
  if (!kernels || index.devices() > 16 || plan.arena_bytes() > (1 << 24))
    return;
  auto hub = *comm::ThreadHub::create(index.devices());
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    ranks.emplace_back([&, rank] {
      auto world = hub->world(rank);
      world->setTimeout(std::chrono::seconds(20));
      auto device = device::createCpuDevice(*kernels, {1, {}});
      std::vector<std::byte> memory(plan.arena_bytes() + 2 * guard + 64, std::byte{0x5a});
      std::byte *arena = memory.data() + guard;
      arena += 64 - reinterpret_cast<uintptr_t>(arena) % 64;
      std::memset(arena, 0, plan.arena_bytes());
      auto executor = Executor::create(index, program, *world, *device, arena);
      if (!executor) {
        world->abort(executor.error());
        return;
      }
      Status status = (*executor)->runConstants();
      if (status)
        status = (*executor)->runStep();
      if (!status)
        world->abort(status.error());
      for (std::byte *byte = memory.data(); byte < arena; ++byte)
        ASSERT_EQ(*byte, std::byte{0x5a}) << "wrote before the arena";
      for (std::byte *byte = arena + plan.arena_bytes(); byte < memory.data() + memory.size(); ++byte)
        ASSERT_EQ(*byte, std::byte{0x5a}) << "wrote behind the arena";
    });
  for (std::thread &rank : ranks)
    rank.join();
}

TEST(PlanFuzz, ChangedPlansAreRefusedOrRunInsideTheirArena) {
  plan::Plan original = everything().plan;
  Status sound = plan::checkPlan(original);
  ASSERT_TRUE(sound) << sound.error().message;
  runGuarded(original, original.programs(0));
  const uint64_t cases = campaignCases(2000);
  uint64_t refused = 0, ran = 0;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    plan::Plan plan = original;
    for (uint64_t i = 0; i <= seed % 3; ++i)
      mutate(plan, random);
    // Through the file format: what is run is what a re-sealed file would hold.
    Result<plan::Plan> read = plan::decodePlan(plan::encodePlan(plan), "net.plan");
    ASSERT_TRUE(read) << read.error().message;
    if (Status status = plan::checkPlan(*read); !status) {
      EXPECT_EQ(status.error().code, ExitCode::BadFile);
      EXPECT_FALSE(status.error().message.empty());
      ++refused;
      continue;
    }
    ++ran;
    for (const plan::Program &program : read->programs())
      runGuarded(*read, program);
  }
  printCampaign(cases, "changed plans, " + std::to_string(refused) + " refused, " + std::to_string(ran) + " ran");
  EXPECT_GT(refused, cases / 4);
  EXPECT_GT(ran, cases * 3 / 20);
}

TEST(PlanFuzz, ChangedBytesAreDecodedOrRefused) {
  google::protobuf::LogSilencer silent;
  std::string bytes = everything().plan.SerializeAsString();
  const uint64_t cases = campaignCases(2000);
  for (uint64_t seed = 0; seed < cases; ++seed) {
    Random random(seed);
    std::string changed = bytes;
    for (int i = 0; i < 3; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    plan::Plan plan;
    if (plan.ParseFromString(changed))
      (void)plan::checkPlan(plan).isOk(); // must return
  }
  printCampaign(cases, "plans with changed bytes");
}

} // namespace
