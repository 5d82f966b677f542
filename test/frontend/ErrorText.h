// One row per mistake: the text that has it, and everything that is said about it.
#pragma once

#include "Reading.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace msc::test {

struct Mistake {
  const char *name;
  std::string text;
  std::string said;
};

inline void PrintTo(const Mistake &mistake, std::ostream *os) { *os << mistake.name; }
inline std::string mistakeName(const testing::TestParamInfo<Mistake> &info) { return info.param.name; }

class ErrorText : public testing::TestWithParam<Mistake> {
protected:
  void check() {
    Reading reading(GetParam().text);
    EXPECT_EQ(reading.said, GetParam().said);
    // One mistake is one error; warnings stand alone.
    EXPECT_EQ(reading.diagnostics->errors() + reading.diagnostics->warnings(), 1u);
    EXPECT_EQ(reading.config == nullptr, reading.diagnostics->errors() == 1);
  }
};

} // namespace msc::test
