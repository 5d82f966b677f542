// LANGUAGE.md knows every word that the code knows: messages that list what is legal say which words those are.
#include "Reading.h"

#include "dialects/net/ContextOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace msc;
using test::Reading;

namespace {

std::string page() {
  auto buffer = llvm::MemoryBuffer::getFile(LANGUAGE_PAGE);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// "a", "b" and "c" of "expected a, b or c", in the first line that has the phrase.
std::vector<std::string> wordsBehind(const std::string &phrase, const std::string &said) {
  size_t from = said.find(phrase);
  if (from == std::string::npos)
    return {};
  std::string list = said.substr(from + phrase.size(), said.find('\n', from) - from - phrase.size());
  std::vector<std::string> words;
  for (const char *separator : {" or ", " and "})
    for (size_t at; (at = list.find(separator)) != std::string::npos;)
      list.replace(at, std::strlen(separator), ", ");
  for (llvm::StringRef word : llvm::split(list, ", "))
    words.push_back(word.trim().str());
  return words;
}

/// One question: the body of the network, the blocks, and the phrase in front of the words of the answer.
struct Question {
  const char *name, *body, *blocks, *phrase;
  size_t least; ///< words that are known at least: fewer means that the question is no longer understood
};

void PrintTo(const Question &question, std::ostream *os) {
  *os << question.name;
}

const std::vector<Question> questions = {
    {"Initializers", "param %p: f32[2] = Zzyzx()", "", "expected one of ", 11},
    {"ElementTypes", "param %p: zzyzx[2] = Ones()", "", "expected one of ", 5},
    {"ParameterAttributes", "param %p: f32[2] = Ones() {zzyzx: 1}", "", "expected one of ", 2},
    {"OperatorAttributes", "%a = ReLU(%x) {zzyzx_zzyzx: 1}", "", "expected one of ", 3},
    {"Blocks", "", "zzyzx_zzyzx {a: 1}", "expected one of ", 4},
    {"Dataset", "", "dataset {source: Npy(), columns: {x: \"x.npy\"}, zzyzx_zzyzx: 1}", "it takes ", 9},
    {"Sources", "", "dataset {source: Zzyzx()}", "expected ", 2},
    {"Distributions", "", "dataset {source: Random(), steps: 1, columns: {x: zzyzx_zzyzx}}", "expected ", 6},
    {"Train", "", "train {optimizer: SGD(0.1), minimize: loss, zzyzx_zzyzx: 1}", "it takes ", 7},
    {"Optimizers", "", "train {optimizer: Zzyzx(0.1), minimize: loss}", "expected ", 2},
    {"Sgd", "", "train {optimizer: SGD(0.1, zzyzx_zzyzx: 1), minimize: loss}", "it takes ", 7},
    {"Momentum", "", "train {optimizer: Momentum(0.1, 0.9, zzyzx_zzyzx: 1), minimize: loss}", "it takes ", 6},
    {"Checkpoint", "", "checkpoint {zzyzx_zzyzx: 1}", "it takes ", 6},
    {"ParallelModes", "", "context {parallel_mode: zzyzx_zzyzx}", "expected ", 4},
    {"SearchModes", "", "context {search_mode: zzyzx_zzyzx}", "expected ", 1},
};

class LanguagePage : public testing::TestWithParam<Question> {};

TEST_P(LanguagePage, KnowsTheWords) {
  std::string text = page();
  Reading reading(std::string("network n(%x: f32[2, 2]) {\n") + GetParam().body +
                  "\n%loss = ReduceMean(%x)\nreturn loss: %loss\n}\n" + GetParam().blocks + "\n");
  std::vector<std::string> words = wordsBehind(GetParam().phrase, reading.said);
  EXPECT_GE(words.size(), GetParam().least) << reading.said;
  for (const std::string &word : words)
    EXPECT_TRUE(text.find('`' + word + '`') != std::string::npos || text.find('`' + word + '(') != std::string::npos)
        << "the page does not say what `" << word << "` is";
}

INSTANTIATE_TEST_SUITE_P(All, LanguagePage, testing::ValuesIn(questions),
                         [](const testing::TestParamInfo<Question> &info) { return info.param.name; });

TEST(LanguagePage, KnowsTheOptionsOfTheContextAndTheirDefaults) {
  std::string text = page();
  for (const net::ContextOption &option : net::contextOptions()) {
    std::string name = "`" + option.name.str() + "`";
    ASSERT_NE(text.find(name), std::string::npos) << name;
    if (option.effect != net::ContextOption::Effect::Works)
      continue;
    size_t row = text.find("\n| " + name);
    ASSERT_NE(row, std::string::npos) << name << " has no row";
    std::string line = text.substr(row + 1, text.find('\n', row + 1) - row);
    EXPECT_NE(line.find("`" + option.value.str()), std::string::npos)
        << line << "does not say the default " << option.value.str();
  }
}

} // namespace
