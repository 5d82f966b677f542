#include "runtime/checkpoint/Safetensors.h"
#include "test/runtime/checkpoint/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace msc;
using namespace msc::test;
using comm::ElementType;

namespace {

std::string file(const std::string &header, size_t dataBytes, uint64_t claimed = 0) {
  uint64_t length = claimed ? claimed : header.size();
  std::string content;
  for (int i = 0; i < 8; ++i)
    content += static_cast<char>(length >> (8 * i));
  return content + header + std::string(dataBytes, '\0');
}

} // namespace

TEST(Safetensors, RoundTripsTensorsAndMetadata) {
  TemporaryFolder folder;
  std::vector<float> a(6);
  std::iota(a.begin(), a.end(), 1.5f);
  std::vector<int64_t> b{-1, 1LL << 60};
  uint8_t c[3] = {0, 1, 1};
  uint16_t d = 0x3f80;
  std::vector<TensorBytes> tensors = {{"layer1.0.weight", ElementType::F32, {2, 3}, a.data()},
                                      {"count", ElementType::I64, {2}, b.data()},
                                      {"mask \"quoted\"", ElementType::Bool, {3, 1}, c},
                                      {"empty", ElementType::F64, {0, 4}, nullptr},
                                      {"scalar", ElementType::BF16, {}, &d}};
  std::map<std::string, std::string> notes{{"format", "msc"}, {"epoch", "3"}};
  Result<WrittenFile> written = writeSafetensors(folder.file("a.safetensors"), tensors, notes);
  ASSERT_TRUE(written.isOk()) << written.error().message;
  std::string content = contentOf(folder.file("a.safetensors"));
  EXPECT_EQ(written->bytes, content.size());
  EXPECT_EQ(written->bytes, safetensorsSize(tensors, notes));
  EXPECT_EQ(written->checksum, checksumOf(content.data(), content.size()));
  Result<SafetensorsReader> reader = SafetensorsReader::open(folder.file("a.safetensors"));
  ASSERT_TRUE(reader.isOk()) << reader.error().message;
  EXPECT_EQ(reader->metadata(), notes);
  EXPECT_EQ(*reader->file().checksum(), written->checksum);
  ASSERT_EQ(reader->tensors().size(), tensors.size());
  for (const TensorBytes &tensor : tensors) {
    const StoredTensor *stored = reader->find(tensor.name);
    ASSERT_NE(stored, nullptr) << tensor.name;
    EXPECT_EQ(stored->type, tensor.type);
    EXPECT_EQ(stored->shape, tensor.shape);
    EXPECT_EQ(content.substr(stored->begin, stored->end - stored->begin),
              std::string(static_cast<const char *>(tensor.data), stored->end - stored->begin));
  }
  EXPECT_EQ(reader->find("none"), nullptr);
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  struct Case {
    std::string content, reason;
  } cases[] = {
      {"", "0 bytes"},
      {"1234567", "7 bytes"},
      {file("{}", 0, 100), "claims 100 bytes"},
      {file("{}", 0, uint64_t{1} << 63), "claims 9223372036854775808 bytes"},
      {file("", 0), "does not begin with '{'"},
      {file(" {}", 0), "does not begin with '{'"},
      {file("{\"a\": ", 0), "not valid JSON"},
      {file("{} x", 0), "not valid JSON"},
      {file("{}", 1), "1 bytes follow the last tensor"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "twice"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8), "needs 4 bytes but has 8"},
      {file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4), "lies at bytes 0 to 8 of 4"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), "lies at bytes 4 to 0"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "begins at byte 4, 0 was expected"},
      {file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12), "begins at byte 4, 8 was expected"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12), "begins at byte 8, 4 was expected"},
      {file(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", 8), "type 'C64'"},
      {file(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "does not consist of"},
      {file(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4), "does not consist of"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), "does not consist of"},
      {file(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "does not consist of"},
      {file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4), "does not consist of"},
      {file(R"({"a":[]})", 0), "does not consist of"},
      {file(R"({"a":{"dtype":"F32","shape":[4611686018427387903,4611686018427387903,4611686018427387903],"data_offsets":[0,4]}})", 4), "needs 9223372036854775808 bytes"},
      {file(R"({"__metadata__":{"a":1}})", 0), "not a map of texts"},
      {file(R"({"__metadata__":[["a"]]})", 0), "not a map of texts"},
      {file(R"({"a":)" + std::string(5000, '[') + std::string(5000, ']') + "}", 0), "not valid JSON"},
  };
  TemporaryFolder folder;
  for (const Case &c : cases) {
    fill(folder.file("bad.safetensors"), c.content);
    Result<SafetensorsReader> reader = SafetensorsReader::open(folder.file("bad.safetensors"));
    ASSERT_FALSE(reader.isOk()) << c.reason;
    EXPECT_EQ(reader.error().code, ExitCode::BadFile);
    EXPECT_NE(reader.error().message.find(c.reason), std::string::npos) << reader.error().message;
    EXPECT_NE(reader.error().message.find("bad.safetensors"), std::string::npos);
  }
}

TEST(Safetensors, EveryCutIsFound) {
  TemporaryFolder folder;
  float a[5] = {1, 2, 3, 4, 5};
  ASSERT_TRUE(writeSafetensors(folder.file("a"), {{"w", ElementType::F32, {5}, a}}, {}).isOk());
  std::string content = contentOf(folder.file("a"));
  for (size_t size = 0; size < content.size(); ++size) {
    fill(folder.file("cut"), content.substr(0, size));
    EXPECT_FALSE(SafetensorsReader::open(folder.file("cut")).isOk()) << size;
  }
}
