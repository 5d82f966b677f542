#include "frontend/Shardings.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Repeat.h"
#include "dialects/net/Suggest.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

using net::DimFactors;
using net::Factor;
using net::FactorKind;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

bool Shardings::addAxis(StringRef name, int64_t size, StringRef mesh, const ast::Place &place) {
  return axes.try_emplace(name.str(), Axis{size, mesh.str(), place}).second;
}

const ast::Place *Shardings::findAxis(StringRef name) const {
  auto found = axes.find(name.str());
  return found == axes.end() ? nullptr : &found->second.place;
}

/// A word as written, or the string that a constant of this name holds; axes hide constants.
StringRef Shardings::wordOf(const ast::Expr &expr, const Environment &env) const {
  if (expr.kind != ast::Expr::Kind::Word && expr.kind != ast::Expr::Kind::String)
    return "";
  std::optional<Attribute> constant = axes.count(expr.text) ? std::nullopt : env.findConstant(expr.text);
  auto text = dyn_cast_or_null<StringAttr>(constant.value_or(Attribute()));
  return text ? text.getValue() : StringRef(expr.text);
}

/// `auto`, or the axes of one dimension.
bool Shardings::readDimension(const ast::Expr &expr, const Environment &env,
                              std::optional<std::vector<std::string>> &result) {
  return wordOf(expr, env) == "auto" || readAxes(expr, env, result.emplace());
}

template <typename Axes> static std::vector<std::string> namesOf(const Axes &axes) {
  std::vector<std::string> names;
  for (const auto &[name, axis] : axes)
    names.push_back(name);
  return names;
}

/// `None`, `data`, `data.model`, or a tuple of them.
bool Shardings::readAxes(const ast::Expr &expr, const Environment &env, std::vector<std::string> &result) {
  if (expr.kind == ast::Expr::Kind::Tuple) {
    for (const ast::Arg &item : expr.items)
      if (!readAxes(item.value, env, result))
        return false;
    return true;
  }
  StringRef text = wordOf(expr, env);
  if (text.empty()) {
    InFlightDiagnostic diagnostic = evaluator.error(expr.place) << "expected an axis of the mesh, None or auto";
    std::vector<std::string> words = namesOf(axes);
    words.insert(words.end(), {"None", "auto"});
    net::addHelp(diagnostic, "write one of " + join(words, ", "));
    return false;
  }
  if (text == "None")
    return true;
  SmallVector<StringRef> names;
  text.split(names, '.');
  for (StringRef name : names) {
    if (axes.count(name.str())) {
      result.push_back(name.str());
      continue;
    }
    InFlightDiagnostic diagnostic = evaluator.error(expr.place);
    if (axes.empty()) {
      diagnostic << "'sharding' names the axis '" << name << "', but the file has no mesh";
      net::addHelp(diagnostic, "add 'mesh (" + name + ": devices)' at the top of the file");
      return false;
    }
    diagnostic << "unknown axis '" << name << "'";
    net::addSuggestionOrList(diagnostic, name, namesOf(axes));
    return false;
  }
  return true;
}

/// `partial: (sum: model)`.
bool Shardings::readPartial(const ast::Expr &expr, const Environment &env, GivenSharding &sharding) {
  static constexpr std::pair<StringLiteral, ReduceKind> kinds[] = {
      {"sum", ReduceKind::Sum}, {"max", ReduceKind::Max}, {"min", ReduceKind::Min}};
  const auto *kind = expr.items.size() == 1 && expr.kind == ast::Expr::Kind::Tuple
                         ? find_if(kinds, [&](const auto &k) { return k.first == expr.items[0].key; })
                         : std::end(kinds);
  if (kind == std::end(kinds)) {
    InFlightDiagnostic diagnostic = evaluator.error(expr.place) << "'partial' expects (sum: axis), (max: axis) or (min: axis)";
    net::addHelp(diagnostic, "write partial: (sum: " + (axes.empty() ? "axis" : axes.begin()->first) + ")");
    return false;
  }
  sharding.reduce = kind->second;
  return readAxes(expr.items[0].value, env, sharding.partial);
}

/// An axis cuts one dimension, and all axes belong to one mesh.
bool Shardings::checkAxes(const GivenSharding &sharding) {
  std::vector<std::string> all = sharding.partial;
  for (const auto &dim : sharding.dims)
    if (dim)
      all.insert(all.end(), dim->begin(), dim->end());
  for (auto [index, name] : enumerate(all)) {
    if (is_contained(ArrayRef(all).drop_front(index + 1), name)) {
      InFlightDiagnostic diagnostic = evaluator.error(sharding.place) << "axis '" << name << "' stands twice in this sharding";
      net::addHelp(diagnostic, "write it once, and None for a dimension that is not cut");
      return false;
    }
    const Axis &axis = axes.find(name)->second, &first = axes.find(all.front())->second;
    if (axis.mesh != first.mesh) {
      InFlightDiagnostic diagnostic = evaluator.error(sharding.place) << "'" << all.front() << "' and '" << name << "' are axes of different meshes";
      net::addHelp(diagnostic, "name axes of one mesh");
      return false;
    }
  }
  return true;
}

bool Shardings::take(const ast::Arg &field, Value value, const Environment &env) {
  const ast::Expr &expr = field.value;
  if (!hasMesh)
    return true;
  GivenSharding sharding;
  sharding.place = expr.place;
  if (expr.kind != ast::Expr::Kind::Tuple) {
    InFlightDiagnostic diagnostic = evaluator.error(expr.place) << "'sharding' expects one axis or None per dimension, such as (data, None)";
    net::addHelp(diagnostic, "put the axes in brackets, one entry per dimension");
    return false;
  }
  for (const ast::Arg &item : expr.items) {
    if (item.key.empty()) {
      if (!readDimension(item.value, env, sharding.dims.emplace_back()))
        return false;
    } else if (item.key != "partial") {
      InFlightDiagnostic diagnostic = evaluator.error(item.keyPlace) << "unknown key '" << item.key << "' of a sharding";
      net::addSuggestionOrList(diagnostic, item.key, ArrayRef<StringRef>{"partial"});
      return false;
    } else if (!value.getDefiningOp() || isa<net::ParamOp>(value.getDefiningOp())) {
      InFlightDiagnostic diagnostic = evaluator.error(item.keyPlace)
                                      << "'partial' says how an operator sums, but "
                                      << (value.getDefiningOp() ? "this is a parameter" : "no operator gives this value");
      net::addHelp(diagnostic, "leave it out here, or write it behind the operator whose sum is meant");
      return false;
    } else if (!readPartial(item.value, env, sharding)) {
      return false;
    }
  }
  size_t rank = cast<RankedTensorType>(value.getType()).getRank();
  if (sharding.dims.size() != rank) {
    InFlightDiagnostic diagnostic = evaluator.error(expr.place)
                                    << "'sharding' has " << sharding.dims.size()
                                    << (sharding.dims.size() == 1 ? " entry" : " entries") << ", but the tensor, "
                                    << value.getType() << ", has " << rank << (rank == 1 ? " dimension" : " dimensions");
    net::addHelp(diagnostic, "write one entry per dimension, and None for a dimension that is not cut");
    return false;
  }
  if (!checkAxes(sharding))
    return false;
  return remember(value, std::move(sharding));
}

bool Shardings::remember(Value value, GivenSharding sharding) {
  namesAxes |= !sharding.partial.empty() || any_of(sharding.dims, [](const auto &dim) { return dim.has_value(); });
  auto [entry, added] = given.try_emplace(value, sharding);
  const GivenSharding &first = entry->second;
  if (added || (first.dims == sharding.dims && first.partial == sharding.partial))
    return true;
  InFlightDiagnostic diagnostic = evaluator.error(sharding.place) << "this sharding differs from the one that the value already has";
  diagnostic.attachNote(evaluator.location(first.place)) << "first given here";
  return false;
}

bool Shardings::speakOfAny(ValueRange values) const {
  return any_of(values, [&](Value value) { return given.count(value); });
}

bool Shardings::move(Value from, Value to) {
  auto found = given.find(from);
  if (found == given.end())
    return true;
  GivenSharding sharding = found->second;
  given.erase(found);
  return remember(to, std::move(sharding));
}

int64_t Shardings::piecesOf(ArrayRef<std::string> names) const {
  int64_t pieces = 1;
  for (const std::string &name : names)
    pieces *= axes.find(name)->second.size;
  return pieces;
}

//===----------------------------------------------------------------------===//
// Pinning
//===----------------------------------------------------------------------===//

/// "net.mir:5"
static std::string placeText(Location location) {
  auto at = location->findInstanceOf<FileLineColLoc>();
  return at ? (at.getFilename().getValue() + ":" + Twine(at.getLine())).str() : "";
}

/// One operator: collects how its factors are cut.
class OperatorPin {
public:
  OperatorPin(Shardings &all, Operation *op, int64_t devices)
      : all(all), op(op), devices(devices), rule(cast<net::ShardingRuleInterface>(op).shardingRule()),
        cuts(rule.factors.size()) {}

  bool run() {
    if (!takeGiven())
      return false;
    std::optional<net::Strategy> own = net::getInStrategy(op), out = net::getOutStrategy(op);
    if (own && named)
      return compare(*own);
    if (out && !own)
      takeOutStrategy(*out);
    if (own)
      takeStrategy(*own);
    else
      follow();
    if (named && !isComplete && llvm::any_of(llvm::seq(cuts.size()), [&](size_t factor) { return isOpen(factor); })) {
      fixNamed();
    } else if (named) {
      for (FactorCut &factor : cuts)
        factor.cut = factor.cut ? factor.cut : Cut{};
      net::setInStrategy(op, strategy());
      net::setStrategyOrigin(op, "user");
    }
    remember();
    return true;
  }

private:
  using Cut = Shardings::Cut;
  struct FactorCut {
    std::optional<Cut> cut;
    const GivenSharding *from = nullptr;
  };

  InFlightDiagnostic error(const GivenSharding &sharding) { return all.evaluator.error(sharding.place); }

  bool takeGiven() {
    for (auto [index, result] : enumerate(op->getResults()))
      if (auto found = all.given.find(result); found != all.given.end()) {
        if (!constrain(found->second, rule.results[index]) || !constrainPartial(found->second))
          return false;
        isComplete |= all_of(found->second.dims, [](const auto &names) { return names.has_value(); });
      }
    for (auto [index, operand] : enumerate(op->getOperands()))
      if (auto found = all.given.find(operand); found != all.given.end() && operand.getDefiningOp<net::ParamOp>())
        if (!constrain(found->second, rule.operands[index]))
          return false;
    return true;
  }

  /// The dimensions of one tensor.
  bool constrain(const GivenSharding &sharding, ArrayRef<DimFactors> dims) {
    for (auto [dim, names] : enumerate(sharding.dims)) {
      if (!names)
        continue;
      named = true;
      if (dims[dim].empty() && all.piecesOf(*names) > 1) {
        error(sharding) << "dimension " << dim << " has one element for '" << op->getName().stripDialect()
                        << "' and cannot be cut into " << all.piecesOf(*names);
        return false;
      }
      if (!dims[dim].empty() && !spread(sharding, dims[dim], *names, dim))
        return false;
    }
    return true;
  }

  /// The axes of one dimension over its factors, most major first: a factor that is not the last takes all its elements.
  bool spread(const GivenSharding &sharding, const DimFactors &factors, ArrayRef<std::string> names, size_t dim) {
    size_t next = 0;
    for (auto [index, factor] : enumerate(factors)) {
      Cut cut;
      bool isLast = index + 1 == factors.size();
      while (next < names.size() && (isLast || cut.pieces < rule.factors[factor].size)) {
        cut.axes.push_back(names[next]);
        cut.pieces = all.piecesOf(cut.axes);
        ++next;
      }
      if (!set(sharding, factor, std::move(cut), "dimension " + std::to_string(dim)))
        return false;
    }
    return true;
  }

  bool constrainPartial(const GivenSharding &sharding) {
    if (sharding.partial.empty())
      return true;
    named = true;
    for (auto [index, factor] : enumerate(rule.factors)) {
      if (factor.kind != FactorKind::Reduction || factor.reduce != sharding.reduce)
        continue;
      Cut cut{all.piecesOf(sharding.partial), sharding.partial};
      return set(sharding, static_cast<int32_t>(index), std::move(cut), "what '" + name() + "' reduces");
    }
    error(sharding) << "'" << name() << "' has no partial result of this kind";
    return false;
  }

  bool set(const GivenSharding &sharding, int32_t index, Cut cut, const std::string &what) {
    const Factor &factor = rule.factors[index];
    if (cut.pieces > 1 && factor.kind == FactorKind::Replicated) {
      error(sharding) << "'" << name() << "' cannot cut " << what << ": " << factor.reason;
      return false;
    }
    if (cut.pieces > factor.size) {
      InFlightDiagnostic diagnostic = error(sharding)
                                      << "'sharding' cuts " << what << " into " << cut.pieces << " pieces, its size is " << factor.size;
      net::addHelp(diagnostic, "write None there, or axes that make at most " + std::to_string(factor.size) + " pieces");
      return false;
    }
    FactorCut &slot = cuts[index];
    if (slot.cut && slot.cut->axes != cut.axes) {
      InFlightDiagnostic diagnostic = error(sharding)
                                      << "'" << name() << "' cannot follow both shardings: they cut " << what
                                      << " differently";
      diagnostic.attachNote(all.evaluator.location(slot.from->place)) << "the other one is here";
      diagnostic.attachNote(op->getLoc()) << "the operator is here";
      net::addHelp(diagnostic, "write the same axes in both, or take one of them out; an out_strategy leaves a result cut otherwise than it was computed");
      return false;
    }
    for (const std::string &axis : cut.axes)
      for (auto [other, used] : enumerate(cuts))
        if (other != static_cast<size_t>(index) && used.cut && is_contained(used.cut->axes, axis)) {
          InFlightDiagnostic diagnostic = error(sharding) << "axis '" << axis << "' would cut two dimensions of '"
                                                          << name() << "' that do not belong together";
          diagnostic.attachNote(all.evaluator.location(used.from->place)) << "the other one is named here";
          return false;
        }
    slot = {std::move(cut), &sharding};
    return true;
  }

  /// Factors that nothing names are cut as the first operand that knows holds them, where devices and axes are left. What a sharding leaves open
  /// follows shardings alone: a strategy is one of many for its operator, and what is open is chosen with it.
  void follow() {
    for (auto [index, operand] : enumerate(op->getOperands())) {
      auto found = all.known.find(operand);
      if (found == all.known.end())
        continue;
      for (auto [dim, cut] : enumerate(found->second)) {
        const DimFactors &factors = rule.operands[index][dim];
        if (!cut || (cut->isOfStrategy && named && !isComplete) || factors.size() != 1 || cuts[factors[0]].cut || !mayFollow(factors[0], *cut))
          continue;
        cuts[factors[0]].cut = cut;
      }
    }
  }

  /// Nobody says how the factor is cut, and it may be.
  bool isOpen(size_t factor) const {
    return !cuts[factor].cut && rule.factors[factor].kind != FactorKind::Replicated && rule.factors[factor].size > 1;
  }

  void fixNamed() {
    std::vector<int64_t> pieces;
    const GivenSharding *first = nullptr;
    for (size_t factor = 0; factor < cuts.size(); ++factor) {
      pieces.push_back(isOpen(factor) ? 0 : cuts[factor].cut.value_or(Cut{}).pieces);
      first = first ? first : cuts[factor].from;
    }
    net::setFixedPieces(op, pieces, first ? placeText(all.evaluator.location(first->place)) : "");
  }

  bool mayFollow(int32_t factor, const Cut &cut) const {
    int64_t used = cut.pieces;
    for (const FactorCut &other : cuts) {
      if (!other.cut)
        continue;
      used *= other.cut->pieces;
      if (any_of(cut.axes, [&](const std::string &axis) { return is_contained(other.cut->axes, axis); }))
        return false;
    }
    return rule.factors[factor].kind != FactorKind::Replicated && cut.pieces <= rule.factors[factor].size &&
           devices % used == 0;
  }

  void takeStrategy(const net::Strategy &own) {
    for (auto [index, dims] : enumerate(rule.operands))
      for (auto [dim, factors] : enumerate(dims))
        if (factors.size() == 1 && index < own.size() && dim < own[index].size() && !cuts[factors[0]].from)
          cuts[factors[0]].cut = Cut{own[index][dim], {}, /*isOfStrategy=*/true};
  }

  /// Pieces of the results alone.
  void takeOutStrategy(const net::Strategy &out) {
    named = isComplete = true;
    for (auto [index, dims] : enumerate(rule.results))
      for (auto [dim, factors] : enumerate(dims))
        if (factors.size() == 1 && !cuts[factors[0]].cut && mayBeCut(factors[0], out[index][dim]))
          cuts[factors[0]].cut = Cut{out[index][dim], {}, /*isOfStrategy=*/true};
  }

  /// Otherwise the operator is computed whole there, and its result cut behind it.
  bool mayBeCut(int32_t factor, int64_t pieces) const {
    auto haveElements = [&](ValueRange values, ArrayRef<std::vector<DimFactors>> tensors) {
      for (auto [value, dims] : zip(values, tensors))
        for (auto [size, factors] : zip(cast<RankedTensorType>(value.getType()).getShape(), dims))
          if (is_contained(factors, factor) && size < pieces)
            return false;
      return true;
    };
    const net::Factor &f = rule.factors[factor];
    return f.kind != FactorKind::Replicated && haveElements(op->getOperands(), rule.operands) && haveElements(op->getResults(), rule.results) &&
           net::piecesFit(f, pieces);
  }

  /// A strategy beside a sharding has to say the same; otherwise one of them would be lost.
  bool compare(const net::Strategy &own) {
    for (auto [index, dims] : enumerate(rule.operands))
      for (auto [dim, factors] : enumerate(dims)) {
        if (factors.size() != 1 || !cuts[factors[0]].from || index >= own.size() || dim >= own[index].size() ||
            own[index][dim] == cuts[factors[0]].cut->pieces)
          continue;
        InFlightDiagnostic diagnostic = error(*cuts[factors[0]].from)
                                        << "'in_strategy' of '" << name() << "' cuts dimension " << dim
                                        << " of operand " << index << " into " << own[index][dim]
                                        << (own[index][dim] == 1 ? " piece" : " pieces") << ", the sharding into "
                                        << cuts[factors[0]].cut->pieces;
        diagnostic.attachNote(op->getLoc()) << "the operator is here";
        net::addHelp(diagnostic, "leave one of them away");
        return false;
      }
    takeStrategy(own);
    remember();
    return true;
  }

  net::Strategy strategy() const {
    net::Strategy pieces;
    for (const std::vector<DimFactors> &dims : rule.operands) {
      auto &tuple = pieces.emplace_back();
      for (const DimFactors &factors : dims) {
        int64_t product = 1;
        for (int32_t factor : factors)
          product *= cuts[factor].cut ? cuts[factor].cut->pieces : 1;
        tuple.push_back(product);
      }
    }
    return pieces;
  }

  /// What users of the results may follow.
  void remember() {
    if (none_of(cuts, [](const FactorCut &cut) { return cut.cut && cut.cut->pieces > 1; }))
      return;
    for (auto [index, result] : enumerate(op->getResults())) {
      std::vector<std::optional<Cut>> dims;
      for (const DimFactors &factors : rule.results[index])
        dims.push_back(factors.size() == 1 ? cuts[factors[0]].cut : std::nullopt);
      all.known[result] = std::move(dims);
    }
  }

  /// In the round that is being pinned; repeats within repeats are unrolled by then.
  std::string name() const {
    std::string name = net::getInstanceName(op).str();
    auto repeat = op->getParentOfType<net::RepeatOp>();
    return repeat ? net::nameInRound(name, repeat.getVariable(), all.round, /*isLast=*/true) : name;
  }

  Shardings &all;
  Operation *op;
  int64_t devices;
  net::ShardingRule rule;
  std::vector<FactorCut> cuts; ///< per factor
  bool named = false;          ///< a sharding speaks of this operator
  bool isComplete = false;     ///< and says how all of a result is cut
};

/// What is said of the values of a body holds in the round that is peeled, too.
void Shardings::peelLast(net::RepeatOp repeat, IRMapping &mapping) {
  net::peelLast(repeat, mapping);
  repeat.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (auto found = given.find(result); found != given.end()) {
        GivenSharding sharding = found->second;
        given.try_emplace(mapping.lookup(result), std::move(sharding));
      }
  });
}

/// A sharding of a result of a repeat speaks of the operator in its last round alone, which is peeled.
bool Shardings::moveIntoLastRounds() {
  for (;;) {
    auto found = find_if(given, [](const auto &entry) { return entry.first.template getDefiningOp<net::RepeatOp>(); });
    if (found == given.end())
      return true;
    auto result = cast<OpResult>(found->first);
    auto repeat = cast<net::RepeatOp>(result.getOwner());
    IRMapping mapping;
    Value yielded = repeat.yielded()[result.getResultNumber()];
    if (repeat.rounds() > 1) {
      peelLast(repeat, mapping);
      yielded = mapping.lookupOrDefault(yielded);
    } else {
      auto argument = dyn_cast<BlockArgument>(yielded);
      if (argument && argument.getOwner() == &repeat.getBody().front())
        yielded = repeat.getInitial()[argument.getArgNumber()];
      net::unroll(repeat);
    }
    if (!move(result, yielded))
      return false;
  }
}

bool Shardings::speaksOf(Operation *op) const {
  return isa<net::ShardingRuleInterface>(op) &&
         (namesAxes || (net::getOutStrategy(op) && !net::getInStrategy(op)));
}

/// What shardings make of an operator in one round.
struct Pinned {
  std::optional<net::Strategy> strategy;
  std::vector<int64_t> fixed;
  std::string place; ///< of what is fixed
  bool operator==(const Pinned &) const = default;
};

/// Expands the body's strategies round by round until what is known of the carried values stays the same: then all later
/// rounds are alike. Earlier ones with other strategies are peeled.
bool Shardings::pinRepeat(net::RepeatOp repeat, int64_t devices) {
  if (!repeat.walk([&](Operation *op) { return speaksOf(op) ? WalkResult::interrupt() : WalkResult::advance(); })
           .wasInterrupted())
    return true;
  repeat.getBody().walk([&](net::RepeatOp inner) {
    while (inner.rounds() > 1) {
      IRMapping mapping;
      peelLast(inner, mapping);
    }
    net::unroll(inner);
  });
  Block &body = repeat.getBody().front();
  SmallVector<Operation *> open; // that get their strategies here
  for (Operation &op : body)
    if (speaksOf(&op) && !net::getInStrategy(&op))
      open.push_back(&op);
  auto knownOf = [&](ValueRange values) {
    return map_to_vector(values, [&](Value value) { return known.lookup(value); });
  };
  auto know = [&](ValueRange values, ArrayRef<std::vector<std::optional<Cut>>> cuts) {
    for (auto [value, cut] : zip(values, cuts)) {
      known.erase(value);
      if (!cut.empty())
        known[value] = cut;
    }
  };
  auto strategies = [&] {
    return map_to_vector(open, [](Operation *op) {
      return Pinned{net::getInStrategy(op), net::getFixedPieces(op), net::getFixedPlace(op)};
    });
  };
  auto assign = [&](ArrayRef<Pinned> chosen) {
    for (auto [op, pinned] : zip(open, chosen)) {
      net::clearStrategy(op);
      net::setFixedPieces(op, pinned.fixed, pinned.place);
      if (!pinned.strategy)
        continue;
      net::setInStrategy(op, *pinned.strategy);
      net::setStrategyOrigin(op, "user");
    }
  };
  SmallVector<SmallVector<Pinned>> perRound;
  auto carried = knownOf(repeat.getInitial());
  for (round = repeat.firstRound(); round < repeat.endRound(); ++round) {
    know(body.getArguments(), carried);
    assign(SmallVector<Pinned>(open.size()));
    if (!pinBlock(body, devices))
      return false;
    perRound.push_back(strategies());
    auto next = knownOf(repeat.yielded());
    if (next == carried)
      break;
    carried = std::move(next);
  }
  know(repeat.getResults(), carried);
  size_t first = perRound.size() - 1; // of the rounds that are alike
  while (first > 0 && perRound[first - 1] == perRound.back())
    --first;
  for (size_t i = 0; i < first; ++i) {
    assign(perRound[i]);
    net::peelFirst(repeat);
  }
  assign(perRound.back());
  return true;
}

bool Shardings::pinBlock(Block &block, int64_t devices) {
  bool sound = true;
  for (Operation &op : make_early_inc_range(block)) {
    if (auto repeat = dyn_cast<net::RepeatOp>(op))
      sound = pinRepeat(repeat, devices) && sound;
    else if (speaksOf(&op))
      sound = OperatorPin(*this, &op, devices).run() && sound;
  }
  return sound;
}

bool Shardings::pin(net::NetworkOp network, int64_t devices) {
  if (isAside) {
    given.clear();
    namesAxes = false;
  }
  if (!moveIntoLastRounds())
    return false;
  bool sound = true;
  for (auto &[value, sharding] : given)
    if (isa<BlockArgument>(value)) {
      InFlightDiagnostic diagnostic = evaluator.error(sharding.place) << "this value is an input of the network, which the dataset cuts";
      net::addHelp(diagnostic, "write dataset_strategy in the context block");
      sound = false;
    }
  return pinBlock(network.getBody().front(), devices) && sound;
}

} // namespace msc::frontend
