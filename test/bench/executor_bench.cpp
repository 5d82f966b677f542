// What the executor itself costs: time per step of a plan of a thousand kernels on tiny tensors, one rank, against the
// same number of calls through a plain function pointer.
#include "test/bench/OneRank.h"
#include "test/bench/Timing.h"

using namespace msc;

/// A chain of alternating operators, one kernel each without fusion.
static std::string chain(int length) {
  static const char *const ops[] = {"Neg(%v%d)", "Add(%v%d, %v0)", "Abs(%v%d)", "Mul(%v%d, 0.5)"};
  std::string text = "network chain(%v0: f32[4, 4]) {\n";
  for (int i = 0; i < length; ++i) {
    std::string call = ops[i % 4];
    for (size_t at; (at = call.find("%d")) != std::string::npos;)
      call.replace(at, 2, std::to_string(i));
    text += "  %v" + std::to_string(i + 1) + " = " + call + "\n";
  }
  return text + "  return out: %v" + std::to_string(length) + "\n}\n" +
         "dataset {source: Random(seed: 1), columns: {v0: uniform}, steps: 1}\n";
}

static void nothing(void **, long, long) { asm volatile("" ::: "memory"); }

int main() {
  const int length = 1000, repetitions = 200;
  compiler::CompileOptions options;
  options.fusion = false;
  bench::OneRank rank(bench::compileText(chain(length), options));
  std::vector<double> ours, calls;
  void (*volatile function)(void **, long, long) = nothing;
  for (int i = 0; i < repetitions; ++i) {
    ours.push_back(bench::secondsOf([&] { rank.step(); }));
    calls.push_back(bench::secondsOf([&] {
      for (size_t step = 0; step < rank.steps(); ++step)
        function(nullptr, 0, 1);
    }));
  }
  auto steps = static_cast<double>(rank.steps());
  std::printf("executor: %zu steps on f32[4, 4], one kernel each, median of %d: %.3f us per step (aim 0.5 us)\n",
              rank.steps(), repetitions, bench::median(ours) / steps * 1e6);
  std::printf("  a bare call through a pointer: %.4f us\n", bench::median(calls) / steps * 1e6);
  return 0;
}
