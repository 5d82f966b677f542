// What choosing strategies takes, from the network to a strategy for every operator: all prices, the search and its proof. A transformer
// with its backward pass, and chains in which no operator is like another, on one core.
#include "compiler/Compiler.h"
#include "compiler/Phases.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "frontend/Frontend.h"
#include "passes/infer/Passes.h"
#include "passes/sharding/Passes.h"
#include "runtime/machine/MachineFile.h"
#include "test/bench/Timing.h"

#include "mlir/Pass/PassManager.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace msc;
using namespace msc::bench;

/// With 24 layers GPT-2 medium, at a batch of 64.
static std::string transformer(int64_t layers, const std::string &mesh) {
  return R"(import "nn.mir"
)" + mesh + R"(
cell Block(%x) {
  %n1 = LayerNorm(%x) @ "ln_1"
  %a = MultiHeadAttention(%n1, heads: 16, causal: true) @ "attn"
  %r1 = Add(%x, %a)
  %n2 = LayerNorm(%r1) @ "ln_2"
  %m = MLP(%n2, hidden: 4096, activation: gelu_tanh) @ "mlp"
  %r2 = Add(%r1, %m)
  return %r2
}
network gpt(%ids: i32[64, 1024], %next: i32[64, 1024]) {
  param %wte.weight: f32[50257, 1024] = Normal(0.02)
  param %wpe.weight: f32[1024, 1024] = Normal(0.01)
  %e = Gather(%wte.weight, %ids, 0) @ "wte"
  %h0 = Add(%e, %wpe.weight)
  %h = repeat i in 0..)" +
         std::to_string(layers) + R"( with %x = %h0 {
    %y = Block(%x) @ "h.{i}"
    yield %y
  }
  %n = LayerNorm(%h) @ "ln_f"
  %logits = MatMul(%n, %wte.weight, transpose_b: true) @ "lm_head"
  %loss = SoftmaxCrossEntropyWithLogits(%logits, %next, sparse: true)
  return loss: %loss
}
train {optimizer: Adam(learning_rate: 0.1), minimize: loss}
)";
}

/// Products of matrices of random sizes with an activation behind each: so many operators, all of them different.
static std::string chain(int64_t operators) {
  constexpr int64_t rows = 768, first = 1024;
  uint64_t state = 1;
  auto sizeOf = [&] { // Knuth, "The Art of Computer Programming", volume 2, 3.3.4
    state = state * 6364136223846793005U + 1442695040888963407U;
    return 64 * static_cast<int64_t>(1 + (state >> 33) % 40);
  };
  std::string body, last = "x";
  int64_t columns = first;
  for (int64_t i = 0; i < operators / 2; ++i) {
    const std::string number = std::to_string(i);
    const int64_t next = sizeOf();
    body += "  param %w" + number + ": f32[" + std::to_string(columns) + ", " + std::to_string(next) + "] = Normal(0.02)\n  %m" + number + " = MatMul(%" +
            last + ", %w" + number + ")\n  %r" + number + " = ReLU(%m" + number + ")\n";
    last = "r" + number;
    columns = next;
  }
  return "network chain(%x: f32[" + std::to_string(rows) + ", " + std::to_string(first) + "], %label: f32[" + std::to_string(rows) + ", " +
         std::to_string(columns) + "]) {\n" + body + "  %loss = MSELoss(%" + last + ", %label)\n  return loss: %loss\n}\ntrain {optimizer: Adam(learning_rate: 0.1), minimize: loss}\n";
}

static double processorMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Milliseconds of the strategies phase.
static double measure(const std::string &text, int64_t devices, const MachineModel &machine, const std::string &mode) {
  mlir::DialectRegistry registry;
  net::registerNetDialect(registry);
  registry.insert<dist::DistDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.getOrLoadDialect<dist::DistDialect>()->setMachine(machine);
  llvm::SourceMgr sources;
  auto module = frontend::parseString(text, "net.mir", context,
                                      {.devices = devices, .layerLibrary = compiler::libraryFolder(), .keepRepeats = true}, sources);
  if (!module)
    std::exit(1);
  auto config = net::readConfig(*module);
  if (failed(config))
    std::exit(1);
  config->devices = devices;
  config->context.parallelMode = "auto_parallel";
  config->context.searchMode = mode;
  double took = 0;
  for (const compiler::Phase &phase : compiler::strategyPhases(*config, {.candidates = 1})) {
    mlir::PassManager manager(&context);
    manager.enableVerifier(false);
    phase.build(manager);
    double start = processorMs();
    if (failed(manager.run(*module)))
      std::exit(1);
    took = processorMs() - start;
  }
  return took;
}

static MachineModel machineNamed(const char *name) {
  auto machine = readMachine(name);
  if (!machine) {
    std::fprintf(stderr, "no machine %s\n", name);
    std::exit(1);
  }
  return std::move(*machine);
}

int main(int argc, char **argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::string only = argc > 2 ? argv[2] : "";          // rows that begin so
  const int64_t layers = argc > 3 ? std::atoll(argv[3]) : 0; // and have so many layers, or operators; 0: any
  struct Row {
    const char *what, *machine, *mesh, *mode;
    int64_t devices, layers;
    double aimMs;
  };
  const Row rows[] = {
      {"8 devices, all factorisations", "cpu-local", "", "optimal", 8, 24, 20},
      {"8 devices, all factorisations", "dgx-h100", "", "optimal", 8, 24, 20},
      {"8 devices, all factorisations", "dgx-h100", "", "optimal", 8, 2, 20},
      {"8 devices, all factorisations", "dgx-h100", "", "optimal", 8, 96, 20},
      {"8 devices, all factorisations", "dgx-h100", "", "optimal", 8, 10000, 20},
      {"8 as 2 x 4", "dgx-h100", "mesh (a: 2, b: 4)", "optimal", 8, 24, 20},
      {"16 devices, all factorisations", "dgx-h100", "", "optimal", 16, 24, 2000},
      {"64 devices, all factorisations", "dgx-h100", "", "optimal", 64, 24, 500},
      {"128 devices, all factorisations", "dgx-h100", "", "optimal", 128, 24, 5000},
      {"256 devices, all factorisations", "dgx-h100", "", "optimal", 256, 24, 5000},
      {"16 as 2 x 2 x 2 x 2", "dgx-h100", "mesh (a: 2, b: 2, c: 2, d: 2)", "optimal", 16, 24, 2000},
      {"64 as 2 x 4 x 8", "dgx-h100", "mesh (a: 2, b: 4, c: 8)", "optimal", 64, 24, 500},
      {"1,024 as 16 x 8 x 8", "dgx-h100", "mesh (a: 16, b: 8, c: 8)", "optimal", 1024, 24, 5000},
      {"1,024 devices, one prime at a time", "dgx-h100", "", "recursive_programming", 1024, 96, 5000},
  };
  std::printf("%-36s %-10s %7s | %9s %9s | %s\n", "transformer, processor time", "machine", "layers", "median ms", "best ms", "aim");
  double ofTwoLayers = 0;
  for (const Row &row : rows) {
    if (!llvm::StringRef(row.what).starts_with(only) || (layers > 0 && row.layers != layers))
      continue;
    std::vector<double> took;
    for (int i = 0; i < repetitions; ++i)
      took.push_back(measure(transformer(row.layers, row.mesh), row.devices, machineNamed(row.machine), row.mode));
    std::printf("%-36s %-10s %7lld | %9.1f %9.1f | %.0f\n", row.what, row.machine, (long long)row.layers, median(took),
                *std::min_element(took.begin(), took.end()), row.aimMs);
    if (row.layers == 2)
      ofTwoLayers = median(took);
    else if (ofTwoLayers > 0 && (row.layers == 96 || row.layers == 10000) && row.devices == 8)
      std::printf("%36s times what 2 layers take: %.2f (aim %s)\n", "", median(took) / ofTwoLayers, row.layers == 96 ? "1.1" : "2");
    std::fflush(stdout);
  }
  struct Chain {
    const char *mode;
    int64_t devices, operators;
    double aimMs; ///< 0: none
  };
  const Chain chains[] = {{"optimal", 64, 1000, 0}, {"optimal", 64, 10'000, 10'000}, {"recursive_programming", 8, 10'000, 0}, {"recursive_programming", 8, 100'000, 1000},
                          {"recursive_programming", 8, 600'000, 6000}};
  const std::string title = "different operators, all factorisations";
  if (llvm::StringRef(title).starts_with(only))
    for (const Chain &row : chains) {
      if (layers > 0 && row.operators != layers)
        continue;
      const double ms = measure(chain(row.operators), row.devices, machineNamed("dgx-h100"), row.mode);
      std::printf("%s: %lld, %s, %lld devices: %.0f ms", title.c_str(), (long long)row.operators, row.mode, (long long)row.devices, ms);
      std::printf(row.aimMs > 0 ? " (aim %.0f)\n" : "\n", row.aimMs);
      std::fflush(stdout);
    }
  return 0;
}
