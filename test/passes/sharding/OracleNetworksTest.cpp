// The exact solver against toulbar2 and CBC on what the examples cost on several meshes, all strategies free.
#include "passes/sharding/DatasetStrategy.h"
#include "passes/sharding/cost/BuildStep.h"
#include "runtime/machine/MachineFile.h"
#include "test/frontend/Reading.h"
#include "test/passes/sharding/search/Oracles.h"

#include <filesystem>
#include <regex>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;

namespace {

using Mesh = std::vector<int64_t>;

/// A network of the examples without what it says of strategies.
std::string textOf(const std::string &example) {
  std::ostringstream file;
  file << std::ifstream(std::filesystem::path(EXAMPLES) / example / "net.mir").rdbuf();
  std::string text = file.str();
  for (const char *given : {"\nmesh [^\n]*", ",\\s*(cut|rows|columns): (model|expert|data|rows)\\b", " *\\{(sharding|in_strategy): \\([^}]*\\)\\}"})
    text = std::regex_replace(text, std::regex(given), "");
  return text;
}

/// All rounds of a repeat alike; costs as all solvers see them.
search::CostNetwork costsOf(const std::string &example, const Mesh &mesh) {
  int64_t devices = 1;
  for (int64_t size : mesh)
    devices *= size;
  Reading reading(textOf(example), {.devices = devices, .library = LIBRARY_FOLDER, .keepRepeats = true});
  EXPECT_TRUE(reading.module) << example << ": " << reading.said;
  const MachineModel machine = *readMachine(devices > 8 ? "h100-64" : "h100x8");
  reading.context.getOrLoadDialect<dist::DistDialect>()->setMachine(machine);
  net::NetworkOp network = *reading.module->getOps<net::NetworkOp>().begin();
  auto config = net::readConfig(*reading.module);
  std::vector<Members> members;
  TrainingFacts training{.minimize = config->train ? config->train->minimize : "", .optimizerStates = 1, .inBuckets = true, .train = config->train};
  Problem problem = problemOf(network, devices, /*joinAlike=*/true, members, training);
  problem.meshes = {mesh};
  std::vector<InputFacts> inputs;
  for (size_t i = 0; i < network.getBody().getNumArguments(); ++i)
    inputs.push_back({problem.tensors[i].name, problem.tensors[i].shape});
  auto shardings = datasetShardings(inputs, "full_batch", devices, false);
  for (size_t i = 0; i < inputs.size(); ++i)
    problem.tensors[i].dataset = std::get<std::vector<Sharding>>(shardings)[i];
  dist::ReshardPlanner planner(machine);
  StepModel model = modelOf(problem, members, planner);
  model.makeAllExact();
  return search::test::rounded(model.network());
}

std::vector<search::CostNetwork> networks(const std::vector<Mesh> &meshes) {
  std::vector<search::CostNetwork> all;
  if (std::getenv("MSC_LONG"))
    for (const char *example : {"quickstart", "vgg16", "wide_and_deep", "resnet50", "bert", "gpt2", "gpt3", "llama", "moe", "transformer"})
      for (const Mesh &mesh : meshes)
        all.push_back(costsOf(example, mesh));
  return all;
}

TEST(OracleNetworks, Toulbar2FindsTheSameCost) {
  search::test::compare<search::test::Wcsp>("toulbar2", networks({{2}, {4}, {2, 2}, {8}, {2, 4}, {2, 2, 2}, {4, 4}}), 42);
}

TEST(OracleNetworks, CbcFindsTheSameCost) {
  search::test::compare<search::test::Lp>("cbc", networks({{2}}), 5);
}

} // namespace
