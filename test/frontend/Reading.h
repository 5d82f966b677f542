// Reads text as a file would be read, and keeps what was said about it.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Config.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetDialect.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <memory>
#include <string>

namespace msc::test {

struct Reading {
  explicit Reading(const std::string &text, frontend::ParseOptions options = {}, const std::string &name = "net.mir",
                   bool withConfig = true, std::vector<net::ConfigOverride> overrides = {})
      : stream(said), diagnostics(std::make_unique<frontend::Diagnostics>(context, sources, stream)) {
    mlir::DialectRegistry registry;
    net::registerNetDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<net::NetDialect, dist::DistDialect>();
    module = frontend::parseString(text, name, context, options, sources);
    if (module && withConfig) {
      auto read = net::readConfig(*module, overrides);
      if (mlir::succeeded(read))
        config = std::make_unique<net::Config>(std::move(*read));
    }
    if (module && mlir::failed(mlir::verify(*module)))
      module = nullptr;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream;
  std::unique_ptr<frontend::Diagnostics> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<net::Config> config;
};

/// "=((2, 4), (4, 1))", the strategy of an operator; "~(2, auto)", the pieces of its factors where some are open; or nothing.
inline std::string cutText(mlir::Operation *op) {
  if (auto strategy = net::getInStrategy(op))
    return "=" + net::strategyText(*strategy);
  std::string text;
  for (int64_t pieces : net::getFixedPieces(op))
    text += (text.empty() ? "~(" : ", ") + (pieces == 0 ? "auto" : std::to_string(pieces));
  return text.empty() ? "" : text + ")";
}

/// A network around some statements: inputs %x: f32[16, 32] and %label: f32[16, 16].
inline std::string networkOf(const std::string &statements) {
  return "network n(%x: f32[16, 32], %label: f32[16, 16]) {\n" + statements + "}\n";
}

inline const char *const quickstart = R"(# a hidden layer, split 2 x 4
network quickstart(%x: f32[16, 32], %label: f32[16, 16]) {
  param %w: f32[32, 16] = Normal(0.01)
  param %w2: f32[16, 16] = Normal(0.01)
  %h = MatMul(%x, %w) @ "matmul" {in_strategy: ((2, 4), (4, 1))}
  %a = ReLU(%h) @ "relu"
  %out = MatMul(%a, %w2) @ "matmul2"
  %loss = MSELoss(%out, %label)
  return loss: %loss, out: %out
}
dataset {source: Random(seed: 1), columns: {x: uniform, label: uniform}, steps: 4, same_batch: true}
train {optimizer: Momentum(learning_rate: 0.2, momentum: 0.1), minimize: loss, epochs: 5}
checkpoint {directory: "ckpt", every_epochs: 1, keep: 5}
context {parallel_mode: auto_parallel, search_mode: sharding_propagation, dataset_strategy: data_parallel}
)";

} // namespace msc::test
