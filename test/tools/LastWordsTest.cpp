// Every end that no caller can handle has one line and the exit code of its cause.
#include "tools/LastWords.h"

#include <csignal>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
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

class LastWords : public testing::Test {
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

TEST_F(LastWords, AnAllocationThatFails) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        limit(RLIMIT_AS, 256u << 20);
        std::vector<char> large(1u << 30);
        std::exit(large[1]);
      },
      ExitedWithCode(4), "^prog: error: out of memory\nhelp: raise the limit");
}

TEST_F(LastWords, ManyThreadsSpeakOnce) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
          threads.emplace_back([] { throw std::bad_alloc(); });
        for (std::thread &thread : threads)
          thread.join();
      },
      ExitedWithCode(4), "^prog: error: out of memory\nhelp: [^\n]*\n$");
}

TEST_F(LastWords, AnExceptionNobodyCatches) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        std::thread([] { throw std::runtime_error("odd"); }).join();
      },
      ExitedWithCode(70), "^prog: error: internal error: odd\n");
}

TEST_F(LastWords, ACrash) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        limit(RLIMIT_CORE, 0);
        std::raise(SIGSEGV);
      },
      ExitedWithCode(70), "^prog: error: internal error: SIGSEGV\n");
}

TEST_F(LastWords, ACrashWithoutMemory) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        limit(RLIMIT_AS, 1);
        std::raise(SIGSEGV);
      },
      ExitedWithCode(4), "^prog: error: out of memory\n");
}

TEST_F(LastWords, AStackThatHasRunOver) {
  EXPECT_EXIT(
      {
        installLastWords("prog");
        limit(RLIMIT_CORE, 0);
        struct Deep {
          static int run(volatile int *depth) {
            volatile int local[1024] = {*depth + 1};
            return *depth < 0 ? 0 : run(local) + local[1];
          }
        };
        volatile int depth = 0;
        std::exit(Deep::run(&depth));
      },
      ExitedWithCode(70), "^prog: error: internal error: SIGSEGV\n");
}

} // namespace
