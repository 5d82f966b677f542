#include "runtime/checkpoint/Npy.h"
#include "test/runtime/checkpoint/TemporaryFolder.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace msc;
using namespace msc::test;
using comm::ElementType;

namespace {

std::string npy(const std::string &header, const std::string &data, char major = 1) {
  std::string text = header;
  std::string file = std::string("\x93NUMPY") + major + '\0';
  file += static_cast<char>(text.size() & 255);
  file += static_cast<char>(text.size() >> 8);
  if (major > 1)
    file += std::string(2, '\0');
  return file + text + data;
}

} // namespace

TEST(Npy, RoundTripsEveryTypeAndShape) {
  TemporaryFolder folder;
  for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::I32, ElementType::I64, ElementType::Bool})
    for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{}, {0}, {1}, {7}, {2, 3}, {3, 0, 2}, {2, 1, 3, 2}}) {
      size_t bytes = elementCount(shape) * comm::elementSize(type);
      std::vector<std::byte> data(bytes);
      for (size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(type == ElementType::Bool ? i % 2 : i * 37 + 1);
      std::string path = folder.file("a.npy");
      ASSERT_TRUE(writeNpy(path, type, shape, data.data()).isOk());
      Result<NpyArray> back = readNpy(path);
      ASSERT_TRUE(back.isOk()) << back.error().message;
      EXPECT_EQ(back->type, type);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->bytes, data);
    }
}

TEST(Npy, WritesTheBytesOfNumpySave) {
  // numpy.save(file, numpy.array([[1, 2, 3]], dtype='<i4')) of numpy 1.24.
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3), }";
  expected.append(127 - expected.size(), ' ');
  expected += '\n';
  expected += std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12);
  TemporaryFolder folder;
  int32_t data[] = {1, 2, 3};
  ASSERT_TRUE(writeNpy(folder.file("a.npy"), ElementType::I32, {1, 3}, data).isOk());
  EXPECT_EQ(contentOf(folder.file("a.npy")).size() % 64, 12u);
  Result<NpyArray> back = readNpy(folder.file("a.npy"));
  ASSERT_TRUE(back.isOk());
  fill(folder.file("b.npy"), expected);
  Result<NpyArray> numpys = readNpy(folder.file("b.npy"));
  ASSERT_TRUE(numpys.isOk()) << numpys.error().message;
  EXPECT_EQ(numpys->bytes, back->bytes);
  EXPECT_EQ(numpys->shape, back->shape);
}

TEST(Npy, ReadsOtherVersionsAndSpellings) {
  TemporaryFolder folder;
  std::string four(4, '\1');
  for (char major : {1, 2, 3}) {
    fill(folder.file("a.npy"), npy("{\"shape\": (4,),'fortran_order':False,'descr': '|b1'}\n", four, major));
    Result<NpyArray> array = readNpy(folder.file("a.npy"));
    ASSERT_TRUE(array.isOk()) << array.error().message;
    EXPECT_EQ(array->shape, std::vector<int64_t>{4});
  }
}

TEST(Npy, RefusesWhatIsNotExactlyRight) {
  const std::string eight(8, '\0');
  const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", eight);
  struct Case {
    std::string content, reason;
  } cases[] = {
      {"", "0 bytes"},
      {"hello, this is no array", "does not begin"},
      {good.substr(0, 9), "9 bytes"},
      {good.substr(0, 40), "its header claims"},
      {good.substr(0, good.size() - 1), "takes 8 bytes of data, the file has 7"},
      {good + "x", "takes 8 bytes of data, the file has 9"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", eight, 9), "format version 9"},
      {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", eight), "'>f4'"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (4,), }", eight), "'<c8'"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", eight), "not one word"},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", eight), "column by column"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", eight), "True or False"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", eight), "ends in ','"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", eight), "a size was expected"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", eight), "too large"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", eight), "','"},
      {npy("{'descr': '<f4', 'fortran_order': False, }", eight), "no 'shape'"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", eight), "occurs twice"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", eight), "unknown key 'more'"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", eight), "nothing was expected"},
      {npy("['descr', '<f4']", eight), "a dictionary was expected"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (8,), }", std::string(7, '\1') + '\2'), "neither 0 nor 1"},
  };
  TemporaryFolder folder;
  for (const Case &c : cases) {
    fill(folder.file("bad.npy"), c.content);
    Result<NpyArray> array = readNpy(folder.file("bad.npy"));
    ASSERT_FALSE(array.isOk()) << c.reason;
    EXPECT_EQ(array.error().code, ExitCode::BadFile);
    EXPECT_NE(array.error().message.find(c.reason), std::string::npos) << array.error().message;
    EXPECT_NE(array.error().message.find("bad.npy"), std::string::npos);
  }
}

TEST(Npy, MissingFilesAndFullDisks) {
  TemporaryFolder folder;
  EXPECT_EQ(readNpy(folder.file("none.npy")).error().code, ExitCode::Usage);
  EXPECT_EQ(readNpy(folder.path()).error().code, ExitCode::BadFile);
  std::vector<float> data(1 << 20);
  Status full = writeNpy("/dev/full", ElementType::F32, {1 << 20}, data.data());
  ASSERT_FALSE(full.isOk());
  EXPECT_EQ(full.error().code, ExitCode::NoResource);
  EXPECT_EQ(full.error().message, "cannot write '/dev/full': No space left on device");
}
