// `sharding:` of values, parameters and cell results: axes of a mesh per dimension. They become strategies of the
// operators that make or use those tensors, so everything behind the frontend knows strategies only.
#pragma once

#include "dialects/net/Network.h"
#include "frontend/Evaluate.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace msc::frontend {

/// `sharding: (data, None, a.b)` or `sharding: (data, auto, partial: (sum: model))` as written.
struct GivenSharding {
  /// Axes per dimension, most major first; nothing: `auto`, left to what the operands and the search say.
  std::vector<std::optional<std::vector<std::string>>> dims;
  std::vector<std::string> partial;           ///< axes that cut what the operator reduces
  msc::ReduceKind reduce = msc::ReduceKind::Sum;
  ast::Place place;
};

/// The meshes of a file and the shardings that speak of their axes.
class Shardings {
public:
  explicit Shardings(Evaluator &evaluator) : evaluator(evaluator) {}

  /// Adds an axis of a mesh; false if the name is taken.
  bool addAxis(llvm::StringRef name, int64_t size, llvm::StringRef mesh, const ast::Place &place);
  const ast::Place *findAxis(llvm::StringRef name) const;

  /// Reads the value of `sharding:` for a tensor of the given rank and remembers it for the value; a second, different
  /// one for the same value is an error. Reports what is wrong.
  bool take(const ast::Arg &field, mlir::Value value, const Environment &env);

  /// From now on shardings are read, but nothing follows from them.
  void setAside() { isAside = true; }
  bool areAside() const { return isAside; }
  /// The mesh is wrong: shardings are not even read.
  void giveUp() { hasMesh = false; }

  /// Number of values that a sharding speaks of.
  size_t count() const { return given.size(); }
  bool speakOfAny(mlir::ValueRange values) const;
  /// What is said of `from` is said of `to`; reports it if something else was.
  bool move(mlir::Value from, mlir::Value to);

  /// Gives strategies to the operators of a finished network: where a sharding speaks of their results or parameters, and
  /// where only out_strategy is given. Factors that neither names follow the operands. Where shardings of these say nothing, they stay
  /// open (net::setFixedPieces), unless a sharding of a result or out_strategy says how all of it is cut: then they are whole.
  /// What does not fit is reported.
  /// First rounds of a repeat whose strategies differ from those of the later ones are peeled.
  bool pin(net::NetworkOp network, int64_t devices);

private:
  friend class OperatorPin;
  struct Axis {
    int64_t size = 1;
    std::string mesh;
    ast::Place place;
  };
  /// How a value is cut per dimension, as far as pins say: pieces, and the axes where they are known.
  struct Cut {
    int64_t pieces = 1;
    std::vector<std::string> axes;
    bool isOfStrategy = false; ///< an in_strategy or out_strategy says so, no sharding
    bool operator==(const Cut &) const = default;
  };

  bool readAxes(const ast::Expr &expr, const Environment &env, std::vector<std::string> &axes);
  bool readDimension(const ast::Expr &expr, const Environment &env, std::optional<std::vector<std::string>> &axes);
  llvm::StringRef wordOf(const ast::Expr &expr, const Environment &env) const;
  bool readPartial(const ast::Expr &expr, const Environment &env, GivenSharding &sharding);
  bool checkAxes(const GivenSharding &sharding);
  bool remember(mlir::Value value, GivenSharding sharding);
  bool moveIntoLastRounds();
  void peelLast(net::RepeatOp repeat, mlir::IRMapping &mapping);
  bool speaksOf(mlir::Operation *op) const;
  bool pinBlock(mlir::Block &block, int64_t devices);
  bool pinRepeat(net::RepeatOp repeat, int64_t devices);
  int64_t piecesOf(llvm::ArrayRef<std::string> axes) const;

  Evaluator &evaluator;
  std::map<std::string, Axis> axes;
  llvm::MapVector<mlir::Value, GivenSharding> given;
  bool isAside = false, hasMesh = true;
  bool namesAxes = false; ///< some of them says more than `auto`
  llvm::DenseMap<mlir::Value, std::vector<std::optional<Cut>>> known; ///< per dimension; nothing: it is open
  int64_t round = 0; ///< of the repeat whose body is being pinned
};

} // namespace msc::frontend
