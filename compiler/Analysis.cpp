#include "compiler/Analysis.h"

#include "compiler/Phases.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetDialect.h"
#include "dialects/net/Repeat.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"
#include "frontend/Types.h"
#include "runtime/messages/Catalogue.h"
#include "runtime/machine/MachineFile.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/SourceMgr.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace msc::compiler {

namespace {

/// "f32[16, 32]".
std::string typeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "";
  std::string text = frontend::elementTypeName(tensor.getElementType()).str() + "[";
  for (auto [index, size] : llvm::enumerate(tensor.getShape()))
    text += (index ? ", " : "") + std::to_string(size);
  return text + "]";
}

class Analyser {
public:
  explicit Analyser(const CompileOptions &options)
      : options(options), context(MLIRContext::Threading::DISABLED), diagnostics(context, sources, llvm::nulls()) {
    DialectRegistry registry;
    net::registerNetDialect(registry);
    registry.insert<dist::DistDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    handler = context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      Finding finding = findingOf(diagnostic);
      bool isNew = llvm::none_of(analysis.findings, [&](const Finding &other) {
        return other.text == finding.text && other.place.line == finding.place.line &&
               other.place.column == finding.place.column && other.place.file == finding.place.file;
      });
      if (isNew && analysis.findings.size() < frontend::shownErrors)
        analysis.findings.push_back(std::move(finding));
      return failure(); // `diagnostics` counts it
    });
  }

  ~Analyser() { context.getDiagEngine().eraseHandler(handler); }

  Analysis run(const std::string &text) {
    size_t mark = llvm::StringRef(text).starts_with("\xEF\xBB\xBF") ? 3 : 0;
    frontend::ParseOptions parse = parseOptionsOf(options);
    parse.mayLackNetwork = true;
    parse.keepRepeats = true;
    parse.onBinding = [&](llvm::SMLoc place, Value value) { addBinding(place, value, mark); };
    OwningOpRef<ModuleOp> module = frontend::parseString(text, options.input, context, parse, sources);
    if (module)
      decideStrategies(*module);
    return std::move(analysis);
  }

private:
  TextPlace placeOf(Location location) const {
    FileLineColLoc file = diagnostics.shownPlace(location);
    if (!file || file.getLine() == 0)
      return {};
    // The text is the first buffer; a dump's remarks may name files that are not there.
    bool isOwn = file.getFilename() == sources.getMemoryBuffer(1)->getBufferIdentifier();
    return {isOwn ? "" : frontend::displayedPath(sources, file.getFilename()), file.getLine(), file.getColumn()};
  }

  Finding findingOf(Diagnostic &diagnostic) const {
    Finding finding;
    finding.kind = diagnostic.getSeverity() == DiagnosticSeverity::Error     ? Finding::Kind::Error
                   : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? Finding::Kind::Warning
                                                                             : Finding::Kind::Remark;
    std::string text = frontend::messageText(diagnostic);
    std::optional<messages::Found> found = messages::find(text);
    finding.code = found ? found->code : 0;
    finding.text = messages::translated(text);
    finding.place = placeOf(diagnostic.getLocation());
    for (Diagnostic &note : diagnostic.getNotes()) {
      std::string said = frontend::messageText(note);
      if (llvm::StringRef help = said; help.consume_front("help: "))
        finding.help += (finding.help.empty() ? "" : "\n") + messages::translated(help.str());
      else
        finding.notes.emplace_back(placeOf(note.getLocation()), messages::translated(said));
    }
    return finding;
  }

  void addBinding(llvm::SMLoc place, Value value, size_t mark) {
    if (sources.FindBufferContainingLoc(place) != 1)
      return; // of an imported file
    size_t offset = mark + static_cast<size_t>(place.getPointer() - sources.getMemoryBuffer(1)->getBufferStart());
    auto [entry, isFirst] = analysis.values.try_emplace(offset);
    ValueFacts &facts = entry->second;
    ++facts.copies;
    if (std::string type = typeText(value.getType()); llvm::find(facts.types, type) == facts.types.end())
      facts.types.push_back(type);
    if (Operation *op = value.getDefiningOp(); isFirst && op && !isa<net::ParamOp>(op)) {
      facts.op = op->getName().stripDialect().str();
      facts.instance = net::getInstanceName(op).str();
      places[op->getLoc()].push_back(offset);
    }
  }

  void decideStrategies(ModuleOp module) {
    if (Result<MachineModel> machine = readMachine(options.machine))
      context.getLoadedDialect<dist::DistDialect>()->setMachine(std::move(*machine));
    FailureOr<net::Config> config = net::readConfig(module, overridesOf(options));
    if (failed(config) || diagnostics.errors() != 0 || module.getOps<net::NetworkOp>().empty())
      return;
    context.getLoadedDialect<dist::DistDialect>()->setOnlyGpus(config->context.deviceTarget == "cuda");
    context.getLoadedDialect<dist::DistDialect>()->setMachine(dist::machineOf(module).amongFirst(config->devices));
    chooseSearchMode(module, *config);
    for (const Phase &phase : strategyPhases(*config, options)) {
      PassManager manager(&context);
      manager.enableVerifier(false); // as in Compiler.cpp
      phase.build(manager);
      if (failed(manager.run(module)))
        return;
    }
    std::map<size_t, int64_t> rounds; // of what is bound at an offset; the parser has seen the body of a repeat once
    module.walk([&](Operation *op) {
      auto found = places.find(op->getLoc());
      for (size_t offset : found == places.end() ? std::vector<size_t>() : found->second) {
        ValueFacts &facts = analysis.values[offset];
        if (facts.op != op->getName().stripDialect())
          continue;
        facts.copies = std::max(facts.copies, rounds[offset] += net::roundsAround(op));
        if (auto strategy = net::getInStrategy(op))
          facts.inStrategy = net::strategyText(*strategy);
        if (auto strategy = net::getOutStrategy(op))
          facts.outStrategy = net::strategyText(*strategy);
        facts.origin = net::getStrategyOrigin(op).str();
      }
    });
  }

  const CompileOptions &options;
  llvm::SourceMgr sources;
  MLIRContext context;
  frontend::Diagnostics diagnostics;
  DiagnosticEngine::HandlerID handler;
  Analysis analysis;
  DenseMap<Location, std::vector<size_t>> places; ///< of the operators that gave the first value of a name
};

} // namespace

Analysis analyse(const std::string &text, const CompileOptions &options) {
  return Analyser(options).run(text);
}

} // namespace msc::compiler
