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

TEST(Tables, TimesThatAreComparedHaveTheDigitsThatTellThemApart) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(timeTexts({66'130, 66'080}), (Texts{"66.13 ms", "66.08 ms"}));
  EXPECT_EQ(timeTexts({28'301'467, 28'256'400, 28'258'931}), (Texts{"28.301 s", "28.256 s", "28.259 s"}));
  EXPECT_EQ(timeTexts({58'000'000, 58'000'000.1}), (Texts{"58.0000000 s", "58.0000001 s"}));
  EXPECT_EQ(timeTexts({58, 46}), (Texts{"58.0 us", "46.0 us"}));
  EXPECT_EQ(timeTexts({58.04, 58.01}), (Texts{"58.0 us", "58.0 us"})); // less than what is shown
  EXPECT_EQ(timeTexts({12'000, 12'000, 3}), (Texts{"12.0 ms", "12.0 ms", "3.0 us"}));
}

} // namespace msc::compiler
