// The main of a fuzzer that runs among the tests: CASES changed seeds (20 times as many with MSC_LONG=1), or one file again.
#include "test/Campaign.h"
#include "test/fuzz/Fuzzer.h"
#include "test/fuzz/Mutation.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace msc::test;

static std::string current;

/// Leaves the input that broke a promise where it can be run again.
static void keepInput(int) {
  std::ofstream("crash.input", std::ios::binary) << current;
  std::fprintf(stderr, "the input is in crash.input: run this program with it\n");
  std::_Exit(1);
}

static void runOne(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(current.data()), current.size());
}

int main(int argc, char **argv) {
  if (argc == 2 && access(argv[1], R_OK) == 0) {
    std::ifstream file(argv[1], std::ios::binary);
    runOne({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    return 0;
  }
  std::signal(SIGABRT, keepInput);
  std::vector<std::string> seeds = fuzzSeeds();
  for (const std::string &seed : seeds)
    runOne(seed);
  uint64_t cases = campaignCases(argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 1000);
  for (uint64_t i = 0; i < cases; ++i) {
    Random random(i);
    std::string input = seeds[random() % seeds.size()];
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      mutate(input, random);
    runOne(std::move(input));
  }
  printCampaign(cases, "changed inputs");
  return 0;
}
