// Every case of the table of operators, with the gradients of what it takes, through the CUDA backend on the recording driver, its kernels
// emulated, against CPUs. Nothing here runs on a GPU; `differential_test --write` makes networks of the same cases for tools/test_cuda.sh.
#include "test/e2e/CudaTraining.h"
#include "test/e2e/OperatorNetworks.h"

#include <fmt/ranges.h>

#include <cmath>

using namespace msc;
using namespace msc::e2e;
using test::OperatorCase;

namespace {

class CudaOperators : public CudaTraining {
protected:
  using Cases = std::vector<const OperatorCase *>;

  /// What differs between CPUs and the backend, for all cases in one network; "" if nothing does.
  std::string difference(const Cases &cases, const std::string &element) {
    const Compiled compiled = compileText(lossOfCases(cases, element), 1);
    if (compiled.plan.devices() == 0)
      return "it does not compile";
    PlanIndex index(compiled.plan);
    const Outcome cpu = run(index, nullptr);
    if (cpu.failure)
      return "on CPUs: " + cpu.failure->message;
    test::RecordingDriver driver;
    const Outcome cuda = run(index, open(driver, index, compiled));
    expectClean(driver);
    if (cuda.failure)
      return cuda.failure->message;
    const double most = element == "f64" ? 1e-10 : 1e-5; // of the loss
    bool isNear = !cpu.losses.empty() && cuda.losses.size() == cpu.losses.size();
    for (size_t i = 0; isNear && i < cpu.losses.size(); ++i)
      isNear = std::isfinite(cpu.losses[i]) && std::abs(cuda.losses[i] - cpu.losses[i]) <= most * std::abs(cpu.losses[i]);
    return isNear ? "" : fmt::format("{}, on CPUs {}", fmt::join(cuda.losses, " "), fmt::join(cpu.losses, " "));
  }

  /// Many in a network; where they differ, one by one.
  void compareAll(const std::string &element) {
    constexpr size_t together = 16;
    const Cases all = casesForLoss();
    for (size_t begin = 0; begin < all.size(); begin += together) {
      const Cases cases(all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(std::min(begin + together, all.size())));
      const std::string found = difference(cases, element);
      if (found.empty())
        continue;
      ADD_FAILURE() << element << " cases from '" << cases.front()->name << "' on: " << found;
      for (const OperatorCase *theCase : cases)
        if (const std::string alone = difference({theCase}, element); !alone.empty())
          ADD_FAILURE() << theCase->op << " '" << theCase->name << "': " << alone << "\n" << lossOfCases({theCase}, element);
    }
    fmt::print("  {} cases of {}\n", all.size(), element);
  }
};

TEST_F(CudaOperators, AllGiveTheNumbersOfCpus) { compareAll("f32"); }
TEST_F(CudaOperators, AllGiveTheNumbersOfCpusInDoublePrecision) { compareAll("f64"); }

} // namespace
