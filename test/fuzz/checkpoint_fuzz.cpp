// A checkpoint with one file replaced: it is loaded, or refused with a message. The first byte of the input says which file,
// the rest is its content; all checksums are then made right again, so that what is behind them is reached, too.
#include "runtime/checkpoint/Index.h"
#include "runtime/checkpoint/Json.h"
#include "test/fuzz/Fuzzer.h"
#include "test/runtime/checkpoint/Run.h"
#include "test/runtime/checkpoint/TemporaryFolder.h"

using namespace msc;
using namespace msc::test;

namespace {

constexpr const char *kFiles[] = {"index.json", "state.json", "rank_0.safetensors", "rank_1.safetensors"};

/// Three small tensors, cut over two ranks, and their memory between guards.
struct Small {
  explicit Small(int64_t rank, int64_t ranks) {
    struct {
      const char *name;
      comm::ElementType type;
      std::vector<int64_t> shape;
    } list[] = {{"w", comm::ElementType::F32, {5, 3}}, {"moments.w", comm::ElementType::F64, {4}}, {"count", comm::ElementType::I64, {}}};
    for (auto &entry : list) {
      Sharding sharding = shardingFor(ranks, entry.shape.size(), 0);
      size_t bytes = elementCount(sharding.localBox(entry.shape, rank)) * comm::elementSize(entry.type);
      memory.emplace_back(bytes + 128, std::byte{0x5a});
      tensors.push_back({entry.name, entry.type, entry.shape, sharding, nullptr, entry.name[0] != 'w'});
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i].data = memory[i].data() + 64;
  }
  bool guardsHold() const {
    for (const std::vector<std::byte> &bytes : memory)
      for (size_t i = 0; i < 64; ++i)
        if (bytes[i] != std::byte{0x5a} || bytes[bytes.size() - 1 - i] != std::byte{0x5a})
          return false;
    return true;
  }
  std::vector<CheckpointTensor> tensors;
  std::vector<std::vector<std::byte>> memory;
};

/// A good checkpoint, saved once by two ranks.
const TemporaryFolder &original() {
  static TemporaryFolder folder;
  static bool saved = false;
  if (!saved)
    onRanks(2, [&](comm::World &world, comm::Group &all) {
      Small small(world.rank(), 2);
      CheckpointWriter writer({folder.path(), "net", 0, false}, all);
      require(!writer.save(small.tensors, {1, 2, 2, 2, "digest", {{"key", "value"}}})->skipped, "no checkpoint to begin with");
    });
  saved = true;
  return folder;
}

std::string originalFile(const char *name) { return contentOf(original().file(std::string("net-1_2/") + name)); }

/// Puts the right checksum into the text of an index that has one.
void reseal(std::string &index) {
  const std::string key = "\"checksum\": \"", none(32, '0');
  size_t at = index.find(key);
  if (at == std::string::npos || at + key.size() + 32 > index.size())
    return;
  index.replace(at + key.size(), 32, none);
  index.replace(at + key.size(), 32, checksumOf(index.data(), index.size()));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFolder folder;
  static const bool prepared = [] {
    std::filesystem::create_directory(folder.file("net-1_2"));
    return true;
  }();
  (void)prepared;
  if (size == 0)
    return 0;
  size_t changed = data[0] % std::size(kFiles);
  std::string content(reinterpret_cast<const char *>(data) + 1, size - 1), index = originalFile("index.json");
  for (size_t i = 1; i < std::size(kFiles); ++i)
    fill(folder.file(std::string("net-1_2/") + kFiles[i]), i == changed ? content : originalFile(kFiles[i]));
  if (changed == 0)
    index = content;
  else {
    CheckpointIndex read = *readIndex(original().file("net-1_2"));
    IndexedFile &entry = changed == 1 ? read.state : read.files[changed - 2];
    entry = {content.size(), checksumOf(content.data(), content.size())};
    index = writeIndex(read);
  }
  reseal(index);
  fill(folder.file("net-1_2/index.json"), index);
  auto hub = *comm::ThreadHub::create(1);
  auto world = hub->world(0);
  Small small(0, 1);
  CheckpointOptions options{folder.path(), "net", 0, false};
  Result<LoadOutcome> loaded = loadCheckpoint(folder.file("net-1_2"), options, small.tensors, **world->group({0}));
  require(small.guardsHold(), "wrote beside a tensor");
  if (!loaded) {
    require(loaded.error().code == ExitCode::BadFile, "refused with another code");
    require(!loaded.error().message.empty(), "refused without a reason");
  }
  std::vector<std::string> notes;
  require(findLatestCheckpoint(options, notes).isOk() || !notes.empty(), "passed over without a note");
  return 0;
}

std::vector<std::string> msc::test::fuzzSeeds() {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < std::size(kFiles); ++i)
    seeds.push_back(std::string(1, static_cast<char>(i)) + originalFile(kFiles[i]));
  return seeds;
}
