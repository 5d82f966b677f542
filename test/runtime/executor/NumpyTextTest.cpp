#include "runtime/executor/NumpyText.h"

#include <gtest/gtest.h>

namespace msc {
namespace {

template <typename T> std::string text(const std::vector<int64_t> &shape, plan::DataType type, const std::vector<T> &values) {
  return numpyText(shape, type, reinterpret_cast<const std::byte *>(values.data()));
}

TEST(NumpyText, NestsDimensions) {
  EXPECT_EQ(text<float>({}, plan::F32, {2}), "2.");
  EXPECT_EQ(text<float>({3}, plan::F32, {0, 1, 2}), "[0. 1. 2.]");
  EXPECT_EQ(text<float>({4, 1}, plan::F32, {0, 1, 2, 3}), "[[0.]\n [1.]\n [2.]\n [3.]]");
  EXPECT_EQ(text<int32_t>({2, 2, 2}, plan::I32, {0, 1, 2, 3, 4, 5, 6, 7}), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(text<int64_t>({0, 3}, plan::I64, {}), "[]");
}

TEST(NumpyText, AlignsNumbersAtTheDot) {
  EXPECT_EQ(text<double>({3}, plan::F64, {0.5, -10, 1.25}), "[  0.5  -10.     1.25]");
  EXPECT_EQ(text<int32_t>({2}, plan::I32, {-7, 10}), "[-7 10]");
  EXPECT_EQ(text<uint8_t>({2}, plan::BOOL, {1, 0}), "[ True False]");
}

} // namespace
} // namespace msc
