#include "test/e2e/Differential.h"

#include "compiler/Compiler.h"
#include "test/e2e/ThreadRun.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <unistd.h>

namespace msc::e2e {
using reference::Tensor;

static double toleranceOf(const std::string &type) { return type == "f64" ? 1e-10 : 1e-5; }

/// Largest difference relative to the largest magnitude; infinite if the shapes differ or a number is missing. `noise` is
/// what rounding moves the tensor by, `tolerance` the relative error that is allowed: where terms cancel, noise decides.
static double errorOf(const Tensor &found, const Tensor &expected, double noise, double tolerance) {
  if (found.shape != expected.shape)
    return INFINITY;
  double difference = 0, magnitude = 1e-30;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double distance = std::abs(found.values[i] - expected.values[i]);
    difference = std::isfinite(distance) ? std::max(difference, distance) : INFINITY;
    magnitude = std::max(magnitude, std::abs(expected.values[i]));
  }
  return difference / std::max(magnitude, 16 * noise / tolerance);
}

namespace {

class Comparison {
public:
  Comparison(double tolerance, bool verbose) : tolerance(tolerance), verbose(verbose) {}

  void compare(const std::string &kind, const Tensors &found, const std::map<std::string, Tensor> &expected,
               const std::map<std::string, double> &noise) {
    for (const auto &[name, tensor] : expected) {
      auto own = found.find(name);
      double error = own == found.end() ? INFINITY : errorOf(own->second, tensor, noise.at(name), tolerance);
      verdict.worst = std::max(verdict.worst, error);
      if (verbose)
        std::printf("  %-10s %-16s error %.3g, noise %.3g\n", kind.c_str(), name.c_str(), error, noise.at(name));
      if (error <= tolerance)
        continue;
      std::ostringstream text;
      text << kind << " '" << name << "': " << (own == found.end() ? "missing" : "error " + std::to_string(error / tolerance))
           << (own == found.end() ? "" : " times the tolerance") << "\n";
      verdict.failure += text.str();
    }
  }

  Verdict verdict;

private:
  double tolerance;
  bool verbose;
};

} // namespace

/// Writes the network where a person finds it again; the same path in every run of a seed.
static std::string writeNetwork(const Case &test, const std::string &label) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("msc-differential-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string path = (folder / (label + ".mir")).string();
  std::ofstream(path) << "# " << label << ", " << test.devices << " devices\n" << test.text;
  return path;
}

static std::string describe(const Case &test, const std::string &label, const std::string &problem) {
  std::string again = test.seed == 0 ? "" : "reproduce: differential_test --seed " + std::to_string(test.seed) + "\n";
  return label + " (" + std::to_string(test.devices) + " devices, " + test.mode + ", " + test.type + "): " + problem + "\n" + again +
         test.text;
}

static std::mutex coverageMutex;

Verdict runCase(uint64_t seed, Coverage &coverage, bool verbose) {
  Result<Case> made = makeCase(seed);
  if (!made)
    return {"seed " + std::to_string(seed) + ": " + made.error().message};
  return checkCase(*made, "seed-" + std::to_string(seed), coverage, verbose);
}

Verdict checkCase(const Case &test, const std::string &label, Coverage &coverage, bool verbose) {
  if (verbose)
    std::printf("# %s, %ld devices, %s\n%s", label.c_str(), test.devices, test.mode.c_str(), test.text.c_str());
  Result<ReferenceStep> reference = computeReference(test);
  if (!reference && reference.error().code == ExitCode::Failed) { // no derivative to compare with, e.g. Maximum(x, x)
    std::lock_guard lock(coverageMutex);
    ++coverage.withoutState;
    return {};
  }
  if (!reference)
    return {describe(test, label, reference.error().message)};
  compiler::CompileOptions options;
  options.input = writeNetwork(test, label);
  options.devices = test.devices;
  options.keep = reference->keep;
  options.machineCode = machineCodeOfRuns();
  Result<compiler::CompileOutcome> compiled = compiler::compile(options);
  if (!compiled)
    return {describe(test, label, "does not compile: " + compiled.error().message)};
  Result<StepResult> run = runStep(compiled->plan, reference->given);
  if (!run)
    return {describe(test, label, "does not run: " + run.error().message)};
  Comparison comparison(toleranceOf(test.type), verbose);
  comparison.compare("output", run->outputs, reference->outputs, reference->noise);
  comparison.compare("parameter", run->parameters, reference->updated, reference->noise);
  Verdict verdict = comparison.verdict;
  if (!verdict.failure.empty())
    verdict.failure = describe(test, label, "wrong numbers\n" + verdict.failure);
  else
    std::filesystem::remove(options.input);
  std::lock_guard lock(coverageMutex);
  coverage.add(test, *reference, compiled->plan);
  return verdict;
}

} // namespace msc::e2e
