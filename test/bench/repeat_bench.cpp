// What deep networks cost until strategies are chosen: a transformer of 2 to 1,000 layers, phase by phase. All phases before
// `unroll` should take the same time and memory at any depth.
#include "compiler/Compiler.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "frontend/Frontend.h"
#include "passes/infer/Passes.h"
#include "passes/sharding/Passes.h"
#include "test/bench/Timing.h"

#include "mlir/Pass/PassManager.h"

#include <cstdio>
#include <cstdlib>
#include <malloc.h>

using namespace msc;
using namespace msc::bench;

static std::string transformer(int64_t layers) {
  return R"(import "nn.mir"
mesh (data: 2, model: 4)
network transformer(%x: f32[8, 128, 256], %label: f32[8, 128, 5]) {
  %in = Linear(%x, out: 256) @ "embed" {sharding: (data, None, None)}
  %h = repeat i in 0..)" +
         std::to_string(layers) + R"( with %t = %in {
    %y = TransformerBlock(%t, heads: 8, hidden: 1024, norm_first: true, cut: model) @ "layers.{i}"
    yield %y
  }
  %n = LayerNorm(%h) @ "norm"
  %out = Linear(%n, out: 5) @ "head"
  %loss = MSELoss(%out, %label)
  return loss: %loss
}
train {optimizer: SGD(0.1), minimize: loss}
)";
}

static size_t bytesInUse() {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Milliseconds per phase of one compilation, then KiB before and after `unroll`.
static std::vector<double> measure(const std::string &text) {
  std::vector<double> figures;
  size_t before = bytesInUse();
  mlir::DialectRegistry registry;
  net::registerNetDialect(registry);
  registry.insert<dist::DistDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  figures.push_back(1e3 * secondsOf([&] {
    module = frontend::parseString(text, "net.mir", context,
                                   {.devices = 8, .layerLibrary = compiler::libraryFolder(), .keepRepeats = true}, sources);
  }));
  auto run = [&](std::unique_ptr<mlir::Pass> pass) {
    mlir::PassManager manager(&context);
    manager.enableVerifier(false);
    manager.addPass(std::move(pass));
    figures.push_back(1e3 * secondsOf([&] {
      if (!module || failed(manager.run(*module)))
        std::exit(1);
    }));
  };
  passes::AssignStrategiesPassOptions assign;
  assign.devices = 8;
  run(infer::createCheckNetwork({}));
  run(passes::createAssignStrategiesPass(assign));
  size_t folded = bytesInUse() - before;
  run(passes::createUnrollPass());
  figures.push_back(static_cast<double>(folded) / 1024);
  figures.push_back(static_cast<double>(bytesInUse() - before) / 1024);
  return figures;
}

int main(int argc, char **argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 9;
  const int64_t depths[] = {2, 24, 96, 1000};
  constexpr size_t columns = 6;
  std::vector<std::vector<double>> seen[std::size(depths)];
  for (int i = 0; i < repetitions; ++i) // all depths in turn: they see the same machine
    for (size_t d = 0; d < std::size(depths); ++d)
      seen[d].push_back(measure(transformer(depths[d])));
  std::vector<std::vector<double>> least;
  for (const auto &runs : seen) {
    auto &row = least.emplace_back();
    for (size_t c = 0; c < columns; ++c) // the least: what else runs on the machine only adds to it
      row.push_back((*std::ranges::min_element(runs, {}, [c](const auto &figures) { return figures[c]; }))[c]);
  }
  std::printf("transformer on 8 devices, least of %d\n", repetitions);
  std::printf("%8s %10s %10s %14s %10s %14s %14s\n", "layers", "parse ms", "check ms", "strategies ms", "unroll ms",
              "folded KiB", "unrolled KiB");
  for (size_t i = 0; i < std::size(depths); ++i)
    std::printf("%8lld %10.2f %10.2f %14.2f %10.2f %14.0f %14.0f\n", static_cast<long long>(depths[i]), least[i][0],
                least[i][1], least[i][2], least[i][3], least[i][4], least[i][5]);
  auto upToStrategies = [&](size_t i) { return least[i][0] + least[i][1] + least[i][2]; };
  for (size_t i : {2, 3})
    std::printf("up to strategies, %lld layers against 2: %.2f x the time (aim 1.1), %.2f x the memory\n",
                static_cast<long long>(depths[i]), upToStrategies(i) / upToStrategies(0), least[i][4] / least[0][4]);
  return 0;
}
