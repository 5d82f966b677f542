// Syntax tree -> `net` dialect. Private to the frontend; the entry points are in Frontend.h.
//
// Cells are expanded where they are called, `if` is decided, rounds of a `repeat` that are alike become one `net.repeat`. A
// mistake is reported once: a value whose definition failed is bound to null, and statements that use it fail silently.
#pragma once

#include "dialects/net/Repeat.h"
#include "frontend/Evaluate.h"
#include "frontend/Frontend.h"
#include "frontend/Parser.h"
#include "frontend/Shardings.h"

#include <memory>
#include <set>

namespace msc::frontend {

/// One body that is being expanded: what it sees and how its things are called.
struct Frame {
  Environment env;
  std::string prefix;    ///< in front of parameters and instance names: "layer1.0."
  std::string scopePath; ///< behind the backbone in scopes: "/layer1.0"
  std::string suffix;    ///< behind names inside a repeat: ".{i}"
  int depth = 0;         ///< nesting of calls and bodies
};

/// A result of a body: `return loss: %loss`.
struct NamedValue {
  std::string name;
  mlir::Value value; ///< null: reported already
  ast::Place place;
};

class Elaborator {
public:
  Elaborator(mlir::MLIRContext &context, llvm::SourceMgr &sources, const ParseOptions &options)
      : context(&context), sources(sources), options(options), evaluator(&context, sources), builder(&context) {}

  mlir::OwningOpRef<mlir::ModuleOp> run(const Parsed &parsed, llvm::StringRef name);

private:
  /// Statements of a network with its cells and repeats expanded: more is a mistake.
  static constexpr int64_t maximumStatements = 1000000;

  // Items (Elaborate.cpp).
  int64_t decideDevices(const ast::File &file);
  std::string whyMeshesAreAside(const ast::File &file);
  bool defineConst(const ast::Const &item, Environment &env, bool isTopLevel);
  bool checkFunction(const ast::Expr &value);
  mlir::FailureOr<mlir::Attribute> evaluateDefine(const std::string &name, const ast::Expr &value, Environment &env);
  bool replaces(mlir::Attribute given, const std::string &text, const ast::Const &item, Environment &env);
  bool import(const ast::Import &item);
  bool importItems(const ast::File &file);
  std::vector<std::string> libraryFiles() const;
  std::string findInLibrary(llvm::StringRef cell) const;
  bool elaborateItems(const ast::File &file);
  int64_t devicesOf(const ast::Mesh &mesh);
  void addDevicesHelp(mlir::InFlightDiagnostic &diagnostic, const ast::Mesh &mesh, int64_t product);
  bool addMesh(const ast::Mesh &mesh, llvm::StringRef whyAside);
  bool addBlock(const ast::Block &block);
  bool takeDeviceNum(const ast::Block &block, mlir::NamedAttrList &fields);
  void addLocations(const ast::Arg &field, const std::string &path, mlir::NamedAttrList &locations);
  bool checkDefines();
  bool checkMinimize();
  bool checkMinimizedName(llvm::ArrayRef<std::string> results);

  // Names (CheckNames.cpp).
  bool checkNames();
  void checkNames(const ast::Graph &graph);
  void checkValues(llvm::ArrayRef<ast::Arg> args, Frame &frame);
  bool checkCall(const ast::Graph &cell, const ast::Call &call, const ast::Assign &assign, Frame &frame);
  bool checkRepeat(const ast::Repeat &repeat, const ast::Assign &assign, Frame &frame);
  bool checkIf(const ast::If &branches, const ast::Assign &assign, Frame &frame);
  bool bindUnknown(const ast::Assign &assign, Frame &frame);

  // Networks and bodies (ElaborateNetwork.cpp).
  bool elaborateNetwork(const ast::Graph &network);
  net::NetworkOp startNetwork(llvm::StringRef name, mlir::Location location, llvm::ArrayRef<std::string> inputs,
                              llvm::ArrayRef<mlir::Type> types);
  bool finishNetwork(llvm::ArrayRef<NamedValue> results, mlir::Location location);
  bool runBody(const ast::Body &body, Frame &frame, std::vector<NamedValue> &results, ast::Return::Kind end);
  bool runReturn(const ast::Return &statement, Frame &frame, std::vector<NamedValue> &results, ast::Return::Kind end);
  bool runAssign(const ast::Assign &assign, Frame &frame);
  /// `names`: what its results are called, for a help.
  bool bindResults(const ast::Assign &assign, llvm::ArrayRef<NamedValue> results, llvm::StringRef what,
                   ast::Place place, Frame &frame, llvm::ArrayRef<llvm::StringRef> names = {});
  bool bind(llvm::StringRef name, mlir::Value value, const ast::Place &place, Environment &env);
  void poison(const ast::Assign &assign, Environment &env);
  void poison(const ast::Formal &formal, Environment &env);
  bool runBroken(const ast::Statement &statement, Environment &env);
  bool tooDeep(const Frame &frame, const ast::Place &place);

  // Types, initializers, parameters (ElaborateParams.cpp).
  bool runParam(const ast::Param &param, Frame &frame);
  mlir::FailureOr<mlir::RankedTensorType> elaborateType(const ast::Type &type, const Environment &env);
  /// Tensors of a network have elements, and as many dimensions as plans know; reports what a call gives otherwise.
  bool mayResult(const ast::Call &call, llvm::StringRef result, mlir::RankedTensorType type);
  mlir::FailureOr<mlir::DictionaryAttr> elaborateInitializer(const ast::Expr &expr, const Environment &env);
  bool claimName(llvm::StringRef name, mlir::Location place, net::RepeatOp repeat = nullptr);
  bool claimNames(net::ParamOp param);
  bool claimNamesBehind(mlir::Operation *before, mlir::Block *block);
  mlir::Value addParam(llvm::StringRef name, mlir::RankedTensorType type, mlir::DictionaryAttr initializer,
                       bool trained, llvm::StringRef drawName, mlir::Location location, const ast::Place &place);

  // Cells, repeat, if (ElaborateCells.cpp).
  bool runCell(const ast::Graph &cell, const ast::Call &call, const ast::Assign &assign, Frame &frame);
  bool bindFormals(const ast::Graph &cell, const ast::Call &call, Frame &caller, Frame &callee);
  bool runRepeat(const ast::Repeat &repeat, const ast::Assign &assign, Frame &frame);
  net::RepeatOp expandRound(const ast::Repeat &repeat, int64_t round, llvm::ArrayRef<NamedValue> carried, Frame &frame,
                            RoundVariable &variable, std::vector<NamedValue> &next);
  llvm::SmallVector<mlir::Value> inlineRepeat(net::RepeatOp repeat);
  std::string nameInThisRound(llvm::StringRef name) const;
  /// A name as it was written, in the form in which this body holds names.
  std::string nameHere(llvm::StringRef name) const { return rounds.empty() ? name.str() : net::escapedName(name); }
  std::string freshVariable(llvm::StringRef name) const;
  bool runIf(const ast::If &branches, const ast::Assign &assign, Frame &frame);
  bool takeCellAttributes(const ast::Call &call, llvm::ArrayRef<NamedValue> results, mlir::Operation *before,
                          const Frame &frame);
  /// The value of `recompute: ...`; nothing after reporting.
  /// The sharding that `field` gives a value, unless it is left out.
  bool takeSharding(const ast::Arg &field, mlir::Value value, const Environment &env);
  const ast::Graph *findCell(llvm::StringRef name) const;

  // Operators (ElaborateOperator.cpp and OperatorBuilder.h).
  bool runOperator(const ast::Call &call, const ast::Assign &assign, Frame &frame);
  bool unknownOperator(const ast::Call &call);
  mlir::Location locationOf(const ast::Place &place, const ast::Origin &origin);

  // Dumps (ElaborateDump.cpp).
  bool checkOperandTypes(const std::optional<ast::Signature> &signature, llvm::ArrayRef<ast::Arg> args,
                         const Frame &frame);
  bool elaborateDump(const ast::File &file);
  bool checkStage(const ast::File &file);
  bool declareDumpParam(const ast::DumpParam &param, const ast::Block &parameters, Frame &frame);
  bool runDumpBody(const ast::Subgraph &graph, Frame &frame, std::vector<NamedValue> &results);
  bool runGraph(const ast::Call &call, const ast::Assign &assign, Frame &frame);
  std::optional<bool> runStructure(const ast::Call &call, const ast::Assign &assign, Frame &frame);
  bool takeValues(const ast::Expr &expr, Frame &frame, llvm::SmallVectorImpl<mlir::Value> &values);
  bool bindTuple(const ast::Assign &assign, llvm::ArrayRef<mlir::Value> values, Frame &frame);
  bool reportMissingOperators();

  mlir::InFlightDiagnostic error(const ast::Place &place) { return evaluator.error(place); }

  friend class OperatorBuilder;

  mlir::MLIRContext *context;
  llvm::SourceMgr &sources;
  const ParseOptions &options;
  Evaluator evaluator;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool isDump = false;
  llvm::StringMap<const ast::Subgraph *> subgraphs;
  /// Operators of a dump that are not there: first place and number of nodes.
  llvm::MapVector<llvm::StringRef, std::pair<const ast::Call *, int64_t>> missingOperators;

  Shardings shardings{evaluator};
  Environment globals; ///< top-level constants and `devices`
  int64_t devices = 1;
  bool devicesAreGiven = false; ///< by the command line or the context
  llvm::StringMap<const ast::Graph *> cells;
  llvm::SmallVector<llvm::StringRef> openCells; ///< whose bodies are being elaborated, outermost first
  std::vector<const ast::Graph *> graphs; ///< the network and all cells, in the order in which they are read
  std::set<std::pair<const void *, std::string>> reported; ///< places and errors of the check of names
  std::vector<std::unique_ptr<ast::File>> imported;
  std::set<std::string> importedPaths;
  std::set<std::string> usedDefines;

  net::NetworkOp network;
  const ast::Graph *networkItem = nullptr;
  mlir::Operation *lastParam = nullptr; ///< behind which the next parameter stands; null: at the start of the body
  llvm::StringMap<mlir::Location> paramNames; ///< within a round: of this round
  llvm::StringMap<llvm::SmallVector<mlir::Location>> callsOfPrefixes; ///< of cells, by what they put in front of names
  llvm::StringSet<> refusedPrefixes; ///< of calls whose parameters were refused because an earlier call has their names
  struct NamesOfKind {
    std::vector<net::ParamOp> folded; ///< whose names are not in paramNames
    std::vector<std::string> written;
  };
  llvm::StringMap<NamesOfKind> namesOfKinds; ///< of parameters that differ in numbers and rounds only
  /// Variables of the repeats that are being expanded, with their rounds; the outermost first.
  llvm::SmallVector<std::pair<std::string, int64_t>> rounds;
  int64_t statementCount = 0;
  bool reportedDepth = false;
};

} // namespace msc::frontend
