// Any file is read as an array or refused with a message. What is read is written and read back.
#include "runtime/checkpoint/Npy.h"
#include "test/fuzz/Fuzzer.h"
#include "test/runtime/checkpoint/TemporaryFolder.h"

using namespace msc;
using namespace msc::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static TemporaryFolder folder;
  const std::string path = folder.file("a.npy"), copy = folder.file("b.npy");
  fill(path, {reinterpret_cast<const char *>(data), size});
  Result<NpyArray> array = readNpy(path);
  if (!array) {
    require(array.error().code == ExitCode::BadFile, "refused with another code");
    require(array.error().message.find(path) != std::string::npos, "refused without the name of the file");
    return 0;
  }
  require(array->bytes.size() <= size, "more data than the file holds");
  require(static_cast<uint64_t>(elementCount(array->shape)) * comm::elementSize(array->type) == array->bytes.size(),
          "the shape does not fit the data");
  require(writeNpy(copy, array->type, array->shape, array->bytes.data()).isOk(), "what was read cannot be written");
  Result<NpyArray> again = readNpy(copy);
  require(again.isOk() && again->type == array->type && again->shape == array->shape && again->bytes == array->bytes,
          "what was written reads differently");
  return 0;
}

std::vector<std::string> msc::test::fuzzSeeds() {
  TemporaryFolder folder;
  std::vector<std::string> seeds;
  std::vector<std::byte> zeros(512);
  for (auto type : {comm::ElementType::F32, comm::ElementType::F64, comm::ElementType::I32, comm::ElementType::I64, comm::ElementType::Bool})
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{}, {3}, {2, 3, 4}, {0, 7}}) {
      require(writeNpy(folder.file("seed.npy"), type, shape, zeros.data()).isOk(), "no seed");
      seeds.push_back(contentOf(folder.file("seed.npy")));
    }
  return seeds;
}
