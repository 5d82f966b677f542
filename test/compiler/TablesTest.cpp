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

TEST(Tables, WhatATerminalHasNoRoomForGoesBelow) {
  const std::vector<Row> rows = {{"NAME", "STRATEGY", "PLACE", "REASON"},
                                 {"a", "((2, 4), (4, 1))", "net.mir:1", "its sum is needed whole by all of the eight devices, which hold pieces of it"},
                                 {"longer", "((8, 1), (1, 1))", "net.mir:22", "no"},
                                 {"alike"}};
  EXPECT_EQ(table(rows), "  NAME    STRATEGY          PLACE       REASON\n"
                         "  a       ((2, 4), (4, 1))  net.mir:1   its sum is needed whole by all of the eight devices, which hold pieces of it\n"
                         "  longer  ((8, 1), (1, 1))  net.mir:22  no\n"
                         "    ... alike\n");
  EXPECT_EQ(table(rows, 200), table(rows));
  EXPECT_EQ(table(rows, 20), table(rows)); // no terminal is made for tables then
  EXPECT_EQ(table(rows, 60), "  NAME    STRATEGY          PLACE       REASON\n"
                             "  a       ((2, 4), (4, 1))  net.mir:1\n"
                             "      its sum is needed whole by all of the eight devices,\n"
                             "      which hold pieces of it\n"
                             "  longer  ((8, 1), (1, 1))  net.mir:22  no\n"
                             "    ... alike\n");
  // All rows break before the same column.
  EXPECT_EQ(table({{"NAME", "A", "B", "C"}, {"x", std::string(50, 'a'), "b", "c"}, {"y", "a", "bb", "c"}}, 60),
            "  NAME  A\n      B   C\n  x     " + std::string(50, 'a') + "\n      b   c\n  y     a\n      bb  c\n");
}

TEST(Tables, LinesGoOnBelow) {
  const std::string text = "\nheading\n  a line that has so many words that a terminal of sixty columns has no room\n\nlast";
  EXPECT_EQ(wrapped(text, 0), text);
  EXPECT_EQ(wrapped(text, 100), text);
  EXPECT_EQ(wrapped(text, 60), "\nheading\n  a line that has so many words that a terminal of sixty\n    columns has no room\n\nlast");
  EXPECT_EQ(wrapped("no end " + std::string(60, 'x'), 60), "no end\n  " + std::string(60, 'x')); // words are never cut
  EXPECT_EQ(wrapped("", 60), "");
}

} // namespace msc::compiler
