// Every operator under every legal strategy on 2, 3, 4, 6 and 8 devices, forward and backward, against one device. The sizes
// of the table of operators are small and mostly odd, so most cuts are uneven; those of four times these sizes that operators take are mostly even.
// Without MSC_LONG=1 it runs a sample: at least twelve strategies per operator, all of them where there are fewer.
// `strategies_test --operator NAME` runs all strategies of one operator.
//
// And every operator in f32, bf16 and f16 against f64.
#include "compiler/Compiler.h"
#include "passes/sharding/Convert.h"
#include "test/e2e/Coverage.h"
#include "test/e2e/OperatorNetworks.h"
#include "test/e2e/Reading.h"
#include "test/e2e/ThreadRun.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

using namespace msc;
using namespace msc::e2e;
using msc::test::OperatorCase;

namespace {

constexpr size_t sampleOfOperator = 12;
bool runsAll = false;
std::string onlyOperator;

//===-- networks ----------------------------------------------------------===//

/// Why an operator of the table cannot stand in a network of its own here; empty if it can.
std::string whyLeftOut(const OperatorCase &theCase) {
  if (std::string why = whyNoNetwork(theCase); !why.empty())
    return why;
  if (isMadeByPartition(theCase))
    return "cut in one way alone";
  if (theCase.operands.empty())
    return "nothing to cut";
  std::vector<std::string> types(theCase.operands.begin(), theCase.operands.end());
  types.push_back(theCase.result);
  for (const std::string &type : types)
    if (type.ends_with("f16"))
      return "the test reads no narrow types";
  return "";
}

/// A network of one operator, and what goes into it.
class Subject {
public:
  explicit Subject(const OperatorCase &theCase) : theCase(theCase), network(context) {
    op = test::buildCase(network, theCase);
    std::mt19937_64 random(7);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      given["x" + std::to_string(i)] = test::randomTensor(operand.getType(), theCase.domain, random);
    for (mlir::Value result : op->getResults())
      if (trains() && weighed < 0 && elementOf(result).isF64())
        weighed = llvm::cast<mlir::OpResult>(result).getResultNumber();
    given["dropout.step"] = reference::Tensor({}, 3);
    if (weighed >= 0)
      given["weights"] = test::randomTensor(op->getResult(weighed).getType(), test::Domain::Any, random);
  }

  /// With `strategy` as in_strategy, unless it is empty.
  std::string text(const std::string &strategy) const {
    std::string inputs, params, before, columns, sums;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      std::string name = "x" + std::to_string(i), type = typeText(operand.getType());
      bool isBool = type.starts_with("bool");
      if (weighed >= 0 && isFloat(operand)) {
        params += "  param %" + name + ": " + type + " = Ones()\n";
        sums += "  %s" + name + " = ReduceSum(%" + name + ")\n  %loss" + name + " = Add(%loss" + sumsSofar(i) + ", %s" + name + ")\n";
        continue;
      }
      inputs += (inputs.empty() ? "%" : ", %") + name + ": " + (isBool ? "i32" + type.substr(4) : type);
      columns += (columns.empty() ? "" : ", ") + name + (isFloat(operand) ? ": uniform" : ": integers(0, 2)");
      if (isBool)
        before += "  %b" + std::to_string(i) + " = Cast(%" + name + ", bool)\n";
    }
    if (weighed >= 0)
      inputs += (inputs.empty() ? "%" : ", %") + ("weights: " + typeText(op->getResult(weighed).getType())),
          columns += (columns.empty() ? "" : ", ") + std::string("weights: uniform");
    std::string text = "network strategies(" + inputs + ") {\n" + params + before + "  " + resultsText(op) + " = " + callText(op) +
                       (strategy.empty() ? "" : " {in_strategy: " + strategy + "}") + "\n";
    if (weighed >= 0)
      text += "  %product = Mul(%y" + std::to_string(weighed) + ", %weights)\n  %loss" + firstSum() +
              " = ReduceSum(%product)\n" + sums;
    text += "  return " + (weighed >= 0 ? "loss: %" + lastSum() + ", " : "") + returnedText() + "\n}\n";
    if (weighed >= 0)
      text += "dataset {source: Random(seed: 1), columns: {" + columns + "}, steps: 1}\n"
              "train {optimizer: SGD(learning_rate: 1.0), minimize: loss}\n";
    return text + "context {parallel_mode: semi_auto_parallel, dataset_strategy: full_batch}\n";
  }

  /// Of numbers that were rounded to `element`, in `type`: the loss, the results in f64, and gradients of the numbers.
  std::string textIn(const std::string &element, const std::string &type) const {
    std::string inputs, params, before, columns, results, loss;
    auto addInput = [&](const std::string &name, const std::string &of, const char *values) {
      inputs += (inputs.empty() ? "%" : ", %") + name + ": " + of;
      columns += (columns.empty() ? "" : ", ") + name + ": " + values;
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const std::string number = std::to_string(i), name = "x" + number, of = typeText(operand.getType());
      if (isFloat(operand)) {
        weighed >= 0 ? (void)(params += "  param %" + name + "g: " + of + " = Ones()\n") : addInput(name + "g", of, "uniform");
        before += "  %" + name + "r = Cast(%" + name + "g, " + element + ")\n  %" + name + " = Cast(%" + name + "r, " + type + ")\n";
      } else {
        const bool isBool = of.starts_with("bool");
        addInput(name, isBool ? "i32" + of.substr(4) : of, "integers(0, 2)");
        before += isBool ? "  %b" + number + " = Cast(%" + name + ", bool)\n" : "";
      }
    }
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      const std::string number = std::to_string(i);
      const bool widens = isFloat(result);
      before += i == 0 ? "  " + resultsText(op) + " = " + callText(op) + "\n" : "";
      before += widens ? "  %r" + number + " = Cast(%y" + number + ", f64)\n" : "";
      results += (i ? ", y" : "y") + number + ": %" + (widens ? "r" : "y") + number;
    }
    if (weighed >= 0) {
      addInput("weights", typeText(op->getResult(weighed).getType()), "uniform");
      before += "  %product = Mul(%r" + std::to_string(weighed) + ", %weights)\n  %loss = ReduceSum(%product)\n";
      loss = "loss: %loss, ";
    }
    std::string text = "network narrow(" + inputs + ") {\n" + params + before + "  return " + loss + results + "\n}\n";
    if (weighed >= 0)
      text += "dataset {source: Random(seed: 1), columns: {" + columns + "}, steps: 1}\n"
              "train {optimizer: SGD(learning_rate: 1.0), minimize: loss}\n";
    return text;
  }

  bool hasFloats() const { return llvm::any_of(op->getOperands(), isFloat); }

  /// What such a network takes.
  Tensors givenAlone() const {
    Tensors numbers;
    for (const auto &[name, tensor] : given) {
      const bool isNumber = name.starts_with("x") && isFloat(op->getOperand(std::stoi(name.substr(1))));
      numbers[isNumber ? name + "g" : name] = tensor;
    }
    return numbers;
  }

  const OperatorCase &theCase;
  Tensors given;

private:
  bool trains() const {
    auto holdsF64 = [](mlir::Value value) { return elementOf(value).isF64(); };
    return !test::withoutGradient().contains(theCase.op) && llvm::any_of(op->getOperands(), holdsF64);
  }
  static mlir::Type elementOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType(); }
  static bool isFloat(mlir::Value value) { return llvm::isa<mlir::FloatType>(elementOf(value)); }

  /// The sums of the loss are called %loss after the operand that was added last; `first` after none.
  std::string firstSum() const { return "0"; }
  std::string sumsSofar(size_t operand) const {
    for (size_t i = operand; i-- > 0;)
      if (isFloat(op->getOperand(i)))
        return "x" + std::to_string(i);
    return firstSum();
  }
  std::string lastSum() const { return "loss" + sumsSofar(op->getNumOperands()); }

  /// "y0: %y0, y1: %y1".
  std::string returnedText() const {
    std::string text;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      text += (i ? ", y" : "y") + std::to_string(i) + ": %y" + std::to_string(i);
    return text;
  }

  test::NetContext context;
  test::TestNetwork network;
  mlir::Operation *op = nullptr;
  int weighed = -1; ///< the result that the loss takes; -1: nothing is trained
};

//===-- runs --------------------------------------------------------------===//

Result<StepResult> run(const std::string &text, const Tensors &given, int64_t devices) {
  static std::atomic<int> count{0};
  auto path = std::filesystem::temp_directory_path() /
              ("msc-strategies-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".mir");
  std::ofstream(path) << text;
  compiler::CompileOptions options;
  options.input = path;
  options.devices = devices;
  options.machineCode = machineCodeOfRuns();
  Result<compiler::CompileOutcome> compiled = compiler::compile(options);
  std::filesystem::remove(path);
  if (!compiled)
    return compiled.error();
  return runStep(compiled->plan, given);
}

Result<StepResult> run(const Subject &subject, const std::string &strategy, int64_t devices) {
  return run(subject.text(strategy), subject.given, devices);
}

/// To `tolerance`, relative to the largest number.
bool agree(const reference::Tensor &found, const reference::Tensor &expected, double tolerance) {
  double most = 1;
  for (double value : expected.values)
    most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double a = found.values[i], b = expected.values[i];
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * most;
    if (!same)
      return false;
  }
  return found.shape == expected.shape;
}

/// Names of tensors that differ.
std::string differences(const StepResult &found, const StepResult &expected, double tolerance = 1e-10) {
  std::string names;
  for (auto [own, wanted] : {std::pair(&found.outputs, &expected.outputs), std::pair(&found.parameters, &expected.parameters)})
    for (const auto &[name, tensor] : *wanted)
      if (auto at = own->find(name); at == own->end() || !agree(at->second, tensor, tolerance))
        names += " " + name;
  return names;
}

/// A subject, and its numbers on one device, which are made when the first of its trials asks.
class Compared {
public:
  explicit Compared(const OperatorCase &theCase) : subject(theCase) {}

  const Result<StepResult> &onOneDevice() {
    std::call_once(ran, [this] { found.emplace(run(subject, "", 1)); });
    return *found;
  }

  const Subject subject;

private:
  std::once_flag ran;
  std::optional<Result<StepResult>> found;
};

/// One operator under one strategy.
struct Trial {
  std::shared_ptr<Compared> compared;
  int64_t devices;
  std::string strategy;

  /// Empty if all is as on one device.
  std::string failure() const {
    const Subject &subject = compared->subject;
    const Result<StepResult> &expected = compared->onOneDevice();
    if (!expected)
      return std::string(subject.theCase.op) + " on one device: " + expected.error().message + "\n" + subject.text("");
    Result<StepResult> found = run(subject, strategy, devices);
    std::string wrong = found ? differences(*found, *expected) : " " + found.error().message;
    return wrong.empty() ? "" : std::string(subject.theCase.op) + " on " + std::to_string(devices) + " devices:" + wrong + "\n" +
                                    subject.text(strategy);
  }
};

/// "12x1x16xf64" for "3x1x4xf64".
std::string fourfold(std::string_view type) {
  std::string text;
  while (type.find('x') != std::string_view::npos) {
    const int64_t size = std::stoll(std::string(type));
    text += std::to_string(size == 1 ? 1 : 4 * size) + "x";
    type.remove_prefix(type.find('x') + 1);
  }
  return text + std::string(type);
}

/// The legal strategies of a subject that cut something.
std::vector<std::string> strategiesOf(const Subject &subject, int64_t devices) {
  std::vector<std::string> strategies;
  Reading reading(subject.text(""), devices);
  if (!reading.module)
    return {"no network: " + reading.said};
  for (mlir::Operation &op : reading.network().getBody().front()) {
    if (op.getName().stripDialect() != subject.theCase.op || net::getValueName(op.getResult(0)) != "y0")
      continue;
    passes::OperatorFacts facts = passes::factsOf(&op);
    for (const passes::Pieces &pieces : passes::candidates(facts, devices))
      if (passes::devicesUsed(pieces) > 1)
        strategies.push_back(net::strategyText(passes::inStrategy(facts.rule, pieces)));
  }
  return strategies;
}

/// The table of operators, and its cases with four times their sizes where attributes allow that.
const std::vector<OperatorCase> &oddAndEvenCases() {
  static std::deque<std::string> texts;
  static const std::vector<OperatorCase> cases = [] {
    std::vector<OperatorCase> all = test::operatorCases();
    for (OperatorCase larger : test::operatorCases()) {
      for (const char *&operand : larger.operands)
        operand = texts.emplace_back(fourfold(operand)).c_str();
      larger.result = texts.emplace_back(fourfold(larger.result)).c_str();
      test::NetContext context;
      test::TestNetwork network(context);
      if (mlir::Operation *op = test::buildCase(network, larger); op && !op->getResultTypes().empty())
        all.push_back(larger);
    }
    return all;
  }();
  return cases;
}

/// By operator.
std::map<std::string, std::vector<Trial>> allTrials() {
  std::map<std::string, std::vector<Trial>> trials;
  for (const OperatorCase &theCase : oddAndEvenCases()) {
    if (speaksOfRanks(theCase.op))
      continue; // other numbers on other ranks
    if (!whyLeftOut(theCase).empty() || (!onlyOperator.empty() && onlyOperator != theCase.op))
      continue;
    auto compared = std::make_shared<Compared>(theCase);
    for (int64_t devices : {2, 3, 4, 6, 8})
      for (const std::string &strategy : strategiesOf(compared->subject, devices))
        trials[theCase.op].push_back({compared, devices, strategy});
  }
  return trials;
}

/// All trials, or a sample of every operator.
std::vector<Trial> chosenTrials(std::map<std::string, std::vector<Trial>> trials) {
  std::vector<Trial> chosen;
  std::mt19937 random(1);
  for (auto &[op, list] : trials) {
    std::shuffle(list.begin(), list.end(), random);
    if (!runsAll && list.size() > sampleOfOperator)
      list.resize(sampleOfOperator);
    chosen.insert(chosen.end(), list.begin(), list.end());
  }
  return chosen;
}

/// Adds what is wrong with each of so many trials, on all processors.
template <typename Failure> void addFailures(size_t count, Failure failure, std::vector<std::string> &failures) {
  std::mutex mutex;
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++)
        if (std::string wrong = failure(at); !wrong.empty()) {
          std::lock_guard lock(mutex);
          failures.push_back(wrong);
        }
    });
  for (std::thread &worker : workers)
    worker.join();
}

TEST(Strategies, AllGiveTheNumbersOfOneDevice) {
  std::vector<std::string> failures;
  std::map<std::string, std::vector<Trial>> trials = allTrials();
  size_t operators = trials.size();
  std::vector<Trial> chosen = chosenTrials(std::move(trials));
  std::cout << "trying " << chosen.size() << " strategies" << std::endl; // all of them take hours
  addFailures(chosen.size(), [&](size_t at) { return chosen[at].failure(); }, failures);
  std::cout << operators << " operators, " << chosen.size() << " strategies, failed: " << failures.size() << "\n";
  for (const std::string &failure : failures)
    ADD_FAILURE() << failure;
  EXPECT_GE(operators, onlyOperator.empty() ? 120u : 1u);
}

/// What an operator makes of numbers of a type, in that type and in f64. A gradient is made of several operators, each of which rounds.
std::string differenceIn(const Subject &subject, const std::string &element, double tolerance) {
  const std::string own = subject.textIn(element, element), wide = subject.textIn(element, "f64");
  Result<StepResult> found = run(own, subject.givenAlone(), 1), expected = run(wide, subject.givenAlone(), 1);
  std::string wrong = !found ? " " + found.error().message : !expected ? " " + expected.error().message : differences(*found, *expected, tolerance);
  return wrong.empty() ? "" : std::string(subject.theCase.op) + " in " + element + ":" + wrong + "\n" + own;
}

TEST(Types, NarrowerOnesGiveTheNumbersOfF64) {
  std::vector<std::string> failures;
  std::map<std::string, size_t> cases;
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const OperatorCase &theCase : test::operatorCases()) {
    if (speaksOfRanks(theCase.op) || !whyLeftOut(theCase).empty() || (!onlyOperator.empty() && onlyOperator != theCase.op) ||
        theCase.op == std::string("Print")) // it prints numbers of its own type
      continue;
    auto subject = std::make_unique<Subject>(theCase);
    if (subject->hasFloats() && (cases[theCase.op]++ == 0 || runsAll))
      subjects.push_back(std::move(subject));
  }
  constexpr std::pair<const char *, double> types[] = {{"f32", 2e-5}, {"f16", 4e-3}, {"bf16", 3e-2}};
  auto failure = [&](size_t at) {
    auto [element, tolerance] = types[at % std::size(types)];
    return differenceIn(*subjects[at / std::size(types)], element, tolerance);
  };
  addFailures(subjects.size() * std::size(types), failure, failures);
  std::cout << cases.size() << " operators, failed: " << failures.size() << "\n";
  for (const std::string &failure : failures)
    ADD_FAILURE() << failure;
  EXPECT_GE(cases.size(), onlyOperator.empty() ? 100u : 0u);
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  const char *isLong = std::getenv("MSC_LONG");
  runsAll = isLong && *isLong && std::string(isLong) != "0";
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--operator")
      onlyOperator = argv[i + 1], runsAll = true;
  return RUN_ALL_TESTS();
}
