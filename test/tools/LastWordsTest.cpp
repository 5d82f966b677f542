// Every end that no caller can handle has one line and the exit code of its cause.
#include "tools/LastWords.h"

#include <csignal>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace msc::tools;
using testing::ExitedWithCode;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MSC_OWN_HANDLERS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MSC_OWN_HANDLERS 0
#endif
#endif
#ifndef MSC_OWN_HANDLERS
#define MSC_OWN_HANDLERS 1
#endif

namespace {

class LastWordsTest : public testing::Test {
protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!MSC_OWN_HANDLERS)
      GTEST_SKIP() << "the sanitizer speaks instead";
  }
};

void limit(int resource, rlim_t value) {
  rlimit old{};
  getrlimit(resource, &old);
  old.rlim_cur = value;
  setrlimit(resource, &old);
}

TEST_F(LastWordsTest, AnAllocationThatFails) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        limit(RLIMIT_AS, 256u << 20);
        static std::vector<char> large; // the compiler may not leave it out
        large.resize(1u << 30);
      },
      ExitedWithCode(4), "^prog: error: out of memory[^\n]*\nhelp: take less");
}

TEST_F(LastWordsTest, ManyThreadsSpeakOnce) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
          threads.emplace_back([] { throw std::bad_alloc(); });
        for (std::thread &thread : threads)
          thread.join();
      },
      ExitedWithCode(4), "^prog: error: out of memory[^\n]*\nhelp: [^\n]*\n$");
}

TEST_F(LastWordsTest, AnExceptionNobodyCatches) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        std::thread([] { throw std::runtime_error("odd"); }).join();
      },
      ExitedWithCode(70), "^prog: error: internal error: odd[^\n]*\n");
}

TEST_F(LastWordsTest, ACrash) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        limit(RLIMIT_CORE, 0);
        std::raise(SIGSEGV);
      },
      ExitedWithCode(70), "^prog: error: internal error: SIGSEGV[^\n]*\n");
}

TEST_F(LastWordsTest, ALibraryThatExits) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        std::exit(1);
      },
      ExitedWithCode(4), "^prog: error: a library ended the process");
}

TEST_F(LastWordsTest, TheEndOfMain) {
  EXPECT_EXIT(
      {
        { LastWords lastWords("prog", "take less"); }
        std::exit(3);
      },
      ExitedWithCode(3), "^$");
}

TEST_F(LastWordsTest, ACrashWithoutMemory) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        limit(RLIMIT_AS, 1);
        std::raise(SIGSEGV);
      },
      ExitedWithCode(4), "^prog: error: out of memory[^\n]*\n");
}

TEST_F(LastWordsTest, AStackThatHasRunOver) {
  EXPECT_EXIT(
      {
        LastWords lastWords("prog", "take less");
        limit(RLIMIT_CORE, 0);
        struct Deep {
          static int run(volatile int *depth) {
            volatile int local[1024] = {*depth + 1};
            return *depth < 0 ? 0 : run(local) + local[1];
          }
        };
        volatile int depth = 0;
        _exit(Deep::run(&depth));
      },
      ExitedWithCode(70), "^prog: error: internal error: SIGSEGV[^\n]*\n");
}

} // namespace
