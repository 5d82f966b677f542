#include "compiler/Tables.h"

#include <gtest/gtest.h>

namespace msc::compiler {

TEST(Tables, TimesChangeTheirUnitWhereFiveFiguresBegin) {
  EXPECT_EQ(timeText(0), "0.0 us");
  EXPECT_EQ(timeText(58.04), "58.0 us");
  EXPECT_EQ(timeText(9999.94), "9999.9 us");
  EXPECT_EQ(timeText(9999.96), "10.0 ms");
  EXPECT_EQ(timeText(43'958'399), "44.0 s");
  EXPECT_EQ(timeText(9'999'940), "9999.9 ms");
  EXPECT_EQ(timeText(3.6e9), "3600.0 s");
}

} // namespace msc::compiler
