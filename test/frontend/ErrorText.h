// One row per mistake: the text that has it, and everything that is said about it.
#pragma once

#include "Reading.h"
#include "runtime/messages/Catalogue.h"

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

/// The catalogue of messages has what a line says: with a code if it is an error or a warning, and in Chinese.
inline void expectInCatalogue(llvm::StringRef said) {
  for (auto [line, rest] = said.split('\n'); !line.empty() || !rest.empty(); std::tie(line, rest) = rest.split('\n'))
    for (llvm::StringRef kind : {"error: ", "warning: ", "note: ", "help: "}) {
      size_t at = line.find(kind);
      if (at == llvm::StringRef::npos || (at != 0 && !line.take_front(at).ends_with(": ")))
        continue;
      std::string text = line.drop_front(at + kind.size()).str();
      std::optional<messages::Found> found = messages::find(text);
      EXPECT_TRUE(found) << "runtime/messages/*.def lack: " << text;
      if (found) {
        EXPECT_NE(found->chinese, text);
        EXPECT_TRUE(found->code != 0 || kind.starts_with("note") || kind.starts_with("help")) << "no code: " << text;
      }
      break;
    }
}

class ErrorText : public testing::TestWithParam<Mistake> {
protected:
  void check() {
    Reading reading(GetParam().text);
    EXPECT_EQ(reading.said, GetParam().said);
    expectInCatalogue(reading.said);
    // One mistake is one error; warnings stand alone.
    EXPECT_EQ(reading.diagnostics->errors() + reading.diagnostics->warnings(), 1u);
    EXPECT_EQ(reading.config == nullptr, reading.diagnostics->errors() == 1);
  }
};

} // namespace msc::test
