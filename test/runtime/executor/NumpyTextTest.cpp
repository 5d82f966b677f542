#include "runtime/executor/NumpyText.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace msc {
namespace {

template <typename T> std::string text(const std::vector<int64_t> &shape, plan::DataType type, const std::vector<T> &values) {
  return numpyText(shape, type, reinterpret_cast<const std::byte *>(values.data()));
}

TEST(NumpyText, NestsDimensions) {
  EXPECT_EQ(text<float>({3}, plan::F32, {0, 1, 2}), "[0. 1. 2.]");
  EXPECT_EQ(text<float>({4, 1}, plan::F32, {0, 1, 2, 3}), "[[0.]\n [1.]\n [2.]\n [3.]]");
  EXPECT_EQ(text<int32_t>({2, 2, 2}, plan::I32, {0, 1, 2, 3, 4, 5, 6, 7}), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(text<int64_t>({0, 3}, plan::I64, {}), "[]");
}

// Expectations below are what print() of NumPy 2.4 shows.

TEST(NumpyText, ShowsScalarsInFull) {
  EXPECT_EQ(text<float>({}, plan::F32, {2}), "2.0");
  EXPECT_EQ(text<float>({}, plan::F32, {1e-5f}), "1e-05");
  EXPECT_EQ(text<double>({}, plan::F64, {1e16}), "1e+16");
  EXPECT_EQ(text<float>({}, plan::F32, {-97238184}), "-9.7238184e+07");
  EXPECT_EQ(text<_Float16>({}, plan::F16, {static_cast<_Float16>(0.1)}), "0.1");
  EXPECT_EQ(text<uint8_t>({}, plan::BOOL, {1}), "True");
}

TEST(NumpyText, RoundsToEightDigits) {
  EXPECT_EQ(text<float>({3}, plan::F32, {0.1f, 0.2f, 1 / 3.0f}), "[0.1        0.2        0.33333334]");
  EXPECT_EQ(text<double>({2}, plan::F64, {1 / 3.0, 2 / 3.0}), "[0.33333333 0.66666667]");
  EXPECT_EQ(text<double>({2}, plan::F64, {0.00012345678912, 0.05}), "[0.00012346 0.05      ]");
}

TEST(NumpyText, WritesExponentsWhereNumbersAreFarApart) {
  EXPECT_EQ(text<float>({2}, plan::F32, {1e-5f, 1500}), "[1.0e-05 1.5e+03]");
  EXPECT_EQ(text<double>({2}, plan::F64, {123456789, 1}), "[1.23456789e+08 1.00000000e+00]");
  EXPECT_EQ(text<double>({2}, plan::F64, {1e100, 1}), "[1.e+100 1.e+000]");
  EXPECT_EQ(text<float>({2}, plan::F32, {1423.1094f, 9990.5f}), "[1423.1094 9990.5   ]");
  EXPECT_EQ(text<float>({2}, plan::F32, {1423.1094f, 1}), "[1.4231094e+03 1.0000000e+00]");
  EXPECT_EQ(text<float>({2}, plan::F32, {1014.35754f, 0.1f}), "[1.01435754e+03 1.00000001e-01]");
  EXPECT_EQ(text<float>({2}, plan::F32, {8792909, 3623609.25f}), "[8.7929090e+06 3.6236092e+06]");
  EXPECT_EQ(text<_Float16>({2}, plan::F16, {static_cast<_Float16>(65504), static_cast<_Float16>(1)}), "[6.55e+04 1.00e+00]");
}

TEST(NumpyText, MakesRoomForWhatIsNoNumber) {
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text<double>({3}, plan::F64, {nan, 1.5, -infinity}), "[ nan  1.5 -inf]");
  EXPECT_EQ(text<double>({2}, plan::F64, {infinity, 1}), "[inf  1.]");
  EXPECT_EQ(text<double>({2}, plan::F64, {nan, nan}), "[nan nan]");
}

TEST(NumpyText, BreaksLongRows) {
  std::vector<float> numbers(30);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  EXPECT_EQ(text<float>({30}, plan::F32, numbers),
            "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. "
            "28. 29.]");
}

TEST(NumpyText, LeavesOutTheMiddleOfMoreThanAThousand) {
  std::vector<int32_t> numbers(2000);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(text<int32_t>({1001}, plan::I32, numbers), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(text<int32_t>({10, 200}, plan::I32, numbers),
            "[[   0    1    2 ...  197  198  199]\n [ 200  201  202 ...  397  398  399]\n [ 400  401  402 ...  597  598  599]\n ...\n"
            " [1400 1401 1402 ... 1597 1598 1599]\n [1600 1601 1602 ... 1797 1798 1799]\n [1800 1801 1802 ... 1997 1998 1999]]");
}

TEST(NumpyText, AlignsNumbersAtTheDot) {
  EXPECT_EQ(text<double>({3}, plan::F64, {0.5, -10, 1.25}), "[  0.5  -10.     1.25]");
  EXPECT_EQ(text<int32_t>({2}, plan::I32, {-7, 10}), "[-7 10]");
  EXPECT_EQ(text<uint8_t>({2}, plan::BOOL, {1, 0}), "[ True False]");
}

} // namespace
} // namespace msc
