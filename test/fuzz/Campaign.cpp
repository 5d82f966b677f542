// The main of a fuzzer that runs among the tests. Arguments: CASES, changed seeds to run (20 times as many with MSC_LONG=1);
// or a file, to run it again; or a folder, which gets the seeds, a corpus for libFuzzer to begin with.
#include "test/Campaign.h"
#include "test/fuzz/Fuzzer.h"
#include "test/fuzz/Mutation.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

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

/// What the fuzzer calls a change, else changed bytes.
static void change(std::string &input, Random &random) {
  if (!LLVMFuzzerCustomMutator)
    return mutate(input, random);
  constexpr size_t growth = 4096;
  size_t size = input.size();
  input.resize(size + growth);
  input.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t *>(input.data()), size, input.size(), static_cast<unsigned>(random())));
}

int main(int argc, char **argv) {
  std::vector<std::string> seeds = fuzzSeeds();
  if (argc == 2 && std::filesystem::is_directory(argv[1])) {
    for (size_t i = 0; i < seeds.size(); ++i)
      std::ofstream(std::filesystem::path(argv[1]) / ("seed_" + std::to_string(i)), std::ios::binary) << seeds[i];
    return 0;
  }
  if (argc == 2 && std::filesystem::exists(argv[1])) {
    std::ifstream file(argv[1], std::ios::binary);
    runOne({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    return 0;
  }
  std::signal(SIGABRT, keepInput);
  for (const std::string &seed : seeds)
    runOne(seed);
  uint64_t cases = campaignCases(argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 1000);
  for (uint64_t i = 0; i < cases; ++i) {
    Random random(i);
    std::string input = seeds[random() % seeds.size()];
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      change(input, random);
    runOne(std::move(input));
  }
  printCampaign(cases, campaignSummary ? campaignSummary(cases) : "changed inputs");
  return 0;
}
