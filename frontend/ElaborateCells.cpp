// Cells, repeat and if: bodies within bodies.
#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/Suggest.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

/// Calls that an error is traced back through, together with its other notes.
static constexpr size_t maximumNotes = 6;
/// Rounds of one repeat: more is a mistake.
static constexpr int64_t maximumRounds = 100000;

/// Within a cell its own name means the operator of that name: a cell may wrap one.
const ast::Graph *Elaborator::findCell(StringRef name) const {
  if (!openCells.empty() && openCells.back() == name && RegisteredOperationName::lookup(("net." + name).str(), context))
    return nullptr;
  auto found = cells.find(name);
  return found == cells.end() ? nullptr : found->second;
}

/// A compile-time argument as its formal wants it; null after reporting.
static Attribute convertFormal(Attribute value, const ast::Formal &formal, Builder &builder) {
  value = unwrapTuple(value);
  if (formal.kind == "float" && net::asNumber(value))
    return builder.getF64FloatAttr(*net::asNumber(value));
  bool fits = formal.kind == "int"    ? net::asInteger(value).has_value()
              : formal.kind == "bool" ? isa<BoolAttr>(value)
                                      : formal.kind == "string" && isa<StringAttr>(value);
  return fits ? value : Attribute();
}

/// Behind a name that a cell does not have.
static void suggestName(InFlightDiagnostic &diagnostic, StringRef key, ArrayRef<StringRef> names) {
  if (key == "strategy" || key == "in_strategy" || key == "out_strategy")
    net::addHelp(diagnostic, "the operators in a cell have strategies: --strategy-save FILE writes them by name, --strategy-load FILE reads them");
  else if (std::string near = net::nearestKey(key, names); !near.empty())
    net::addHelp(diagnostic, "did you mean '" + near + "'?");
  else if (!names.empty())
    net::addHelp(diagnostic, "it takes " + join(names, ", "));
}

bool Elaborator::bindFormals(const ast::Graph &cell, const ast::Call &call, Frame &caller, Frame &callee) {
  bool sound = true;
  std::vector<const ast::Arg *> given(cell.formals.size(), nullptr);
  for (auto [index, arg] : enumerate(call.args)) {
    size_t slot = index;
    if (!arg.key.empty())
      slot = find_if(cell.formals, [&, key = StringRef(arg.key)](const ast::Formal &f) { return f.name == key; }) -
             cell.formals.begin();
    if (slot >= given.size() || given[slot]) {
      InFlightDiagnostic diagnostic = error(arg.key.empty() ? arg.value.place : arg.keyPlace);
      if (slot < given.size())
        diagnostic << "'" << cell.formals[slot].name << "' is given twice";
      else if (arg.key.empty())
        diagnostic << "'" << cell.name << "' takes " << given.size() << (given.size() == 1 ? " argument" : " arguments")
                   << ", but more are given";
      else
        diagnostic << "'" << cell.name << "' has no argument '" << arg.key << "'";
      if (slot >= given.size() && !arg.key.empty())
        suggestName(diagnostic, arg.key, map_to_vector(cell.formals, [](const auto &f) { return StringRef(f.name); }));
      diagnostic.attachNote(evaluator.location(cell.place)) << "'" << cell.name << "' is defined here";
      sound = false;
      continue;
    }
    given[slot] = &arg;
  }
  for (auto [formal, arg] : zip(cell.formals, given)) {
    const ast::Expr *expr = arg ? &arg->value : formal.defaultValue ? &*formal.defaultValue : nullptr;
    if (!expr && sound) {
      InFlightDiagnostic diagnostic = error(call.place) << "'" << cell.name << "' needs '" << formal.name << "'";
      diagnostic.attachNote(evaluator.location(formal.place)) << "it is declared here";
    }
    if (!expr) { // without a message where it may be what another argument was meant to be
      poison(formal, callee.env);
      sound = false;
      continue;
    }
    if (formal.isValue) {
      FailureOr<Value> value = failure();
      if (expr->kind == ast::Expr::Kind::Value)
        value = evaluator.findValue(expr->text, expr->place, caller.env);
      else
        error(expr->place) << "'" << formal.name << "' of '" << cell.name << "' expects a value such as %x";
      if (failed(value) || !bind(formal.name, *value, formal.place, callee.env)) {
        poison(formal, callee.env);
        sound = false;
        continue;
      }
      if (!formal.type || !*value)
        continue;
      FailureOr<RankedTensorType> type = elaborateType(*formal.type, callee.env);
      if (failed(type))
        return false;
      if (*type != value->getType()) {
        InFlightDiagnostic diagnostic = error(expr->place) << "'%" << formal.name << "' of '" << cell.name
                                                           << "' has to be " << *type << ", found " << value->getType();
        diagnostic.attachNote(evaluator.location(formal.place)) << "it is declared here";
        sound = false;
      }
      continue;
    }
    FailureOr<Attribute> value = evaluator.evaluate(*expr, arg ? caller.env : callee.env);
    Attribute &converted = callee.env.constants[formal.name];
    if (succeeded(value) && !(converted = convertFormal(*value, formal, builder))) {
      InFlightDiagnostic diagnostic = error(expr->place) << "'" << formal.name << "' of '" << cell.name << "' has to be of kind "
                                                         << formal.kind << ", found '" << net::valueText(*value) << "'";
      diagnostic.attachNote(evaluator.location(cell.place)) << "'" << cell.name << "' is defined here";
      if (arg && arg->key.empty() && net::asNumber(*value))
        net::addHelp(diagnostic, "sizes of what it reads are known: leave them out, and name the others, as in " + formal.name + ": ...");
    }
    sound = sound && converted;
  }
  return sound;
}

/// Marks the operators of a cell that stand behind `before`, but for those that make its results: what goes from one cell
/// to the next is kept, or all cells would be computed again for one.
static void recomputeInside(Block *block, Operation *before, ArrayRef<NamedValue> results) {
  llvm::DenseSet<Operation *> kept;
  for (const NamedValue &result : results)
    if (result.value)
      kept.insert(result.value.getDefiningOp());
  for (Operation *op = before ? before->getNextNode() : &block->front(); op; op = op->getNextNode())
    op->walk([&](Operation *inner) {
      bool isYielded = any_of(inner->getUsers(), [](Operation *user) { return isa<net::YieldOp>(user); });
      if (isa<net::Operator>(inner) && !kept.contains(inner) && !isYielded)
        net::setRecomputed(inner);
    });
}

bool Elaborator::runCell(const ast::Graph &cell, const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  Frame callee;
  callee.env.parent = &globals;
  callee.depth = frame.depth + 1;
  std::string instance = assign.results.front().name + frame.suffix;
  if (call.instance) {
    FailureOr<std::string> decoded = evaluator.decodeName(*call.instance, frame.env, call.instancePlace.begin);
    if (failed(decoded))
      return false;
    instance = *decoded;
    if (std::string name = nameInThisRound(instance); !isValueName(name)) { // it becomes part of other names
      error(call.instancePlace) << "the instance name '" << name
                                << "' of a cell may hold letters, digits, '_' and dots between them";
      return false;
    }
  }
  callee.prefix = frame.prefix + instance + ".";
  callsOfPrefixes[callee.prefix].push_back(evaluator.location(call.place));
  callee.scopePath = frame.scopePath + "/" + instance;
  std::vector<NamedValue> results;
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (!bindFormals(cell, call, frame, callee))
    return false;
  { // what goes wrong in there says how it got there
    ScopedDiagnosticHandler calls(context, [&](Diagnostic &diagnostic) {
      Location here = evaluator.location(call.place);
      size_t notes = std::distance(diagnostic.getNotes().begin(), diagnostic.getNotes().end());
      bool isKnown = diagnostic.getLocation() == here ||
                     any_of(diagnostic.getNotes(), [&](Diagnostic &note) { return note.getLocation() == here; });
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && notes < maximumNotes && !isKnown)
        diagnostic.attachNote(here) << "in this call of '" << cell.name << "'";
      return failure(); // on to the handler that prints
    });
    openCells.push_back(cell.name);
    bool sound = runBody(cell.body, callee, results, ast::Return::Kind::Return);
    openCells.pop_back();
    if (!sound)
      return false;
  }
  if (!takeCellAttributes(call, results, before, frame))
    return false;
  auto isRecompute = [](const ast::Arg &field) { return field.key == "recompute"; };
  const bool isMarked = any_of(call.attributes, [&](const ast::Attributes &list) { return any_of(list.fields, isRecompute); });
  if (options.onCell && !block->empty() &&
      options.onCell({evaluator.location(call.place), cell.name, StringRef(callee.prefix).drop_back(), isMarked}))
    recomputeInside(block, before, results);
  return bindResults(assign, results, "cell '" + cell.name + "'", call.place, frame);
}

/// `{sharding: ...}` behind a call of a cell speaks of its first result, `{recompute: true}` of all operators from `before` on.
bool Elaborator::takeCellAttributes(const ast::Call &call, ArrayRef<NamedValue> results, Operation *before,
                                    const Frame &frame) {
  for (const ast::Attributes &list : call.attributes)
    for (const ast::Arg &field : list.fields) {
      if (field.key == "recompute") {
        FailureOr<bool> wanted = evaluator.evaluateBool(field.value, frame.env, "'recompute'");
        if (failed(wanted))
          return false;
        if (Block *block = builder.getInsertionBlock(); *wanted && !block->empty())
          recomputeInside(block, before, results);
        continue;
      }
      if (field.key != "sharding") {
        InFlightDiagnostic diagnostic = error(field.keyPlace) << "unknown attribute '" << keyText(field.key)
                                                              << "' of a cell's result";
        suggestName(diagnostic, field.key, {"sharding", "recompute"});
        return false;
      }
      if (results.empty() || !takeSharding(field, results.front().value, frame.env))
        return false;
    }
  return true;
}

/// A name within the bodies of repeats as the rounds that are being expanded have it.
std::string Elaborator::nameInThisRound(StringRef name) const {
  std::string text = name.str();
  for (const auto &[variable, round] : reverse(rounds))
    text = net::nameInRound(text, variable, round, variable == rounds.front().first);
  return text;
}

/// A variable for a repeat that no repeat around it has.
std::string Elaborator::freshVariable(StringRef name) const {
  std::string fresh = name.str();
  for (int next = 2; any_of(rounds, [&](const auto &round) { return round.first == fresh; }); ++next)
    fresh = (name + "_" + Twine(next)).str();
  return fresh;
}

/// Expands a body once, as the round `*variable.round`, into the region of a new repeat; null after reporting.
net::RepeatOp Elaborator::expandRound(const ast::Repeat &repeat, int64_t round, ArrayRef<NamedValue> carried,
                                      Frame &frame, RoundVariable &variable, std::vector<NamedValue> &next) {
  std::string fresh = freshVariable(repeat.variable);
  variable = {repeat.variable, "{" + fresh + "}"};
  SmallVector<Value> initial = map_to_vector(carried, [](const NamedValue &value) { return value.value; });
  OperationState state(evaluator.location(repeat.place), net::RepeatOp::getOperationName());
  state.addOperands(initial);
  state.addTypes(TypeRange(ValueRange(initial)));
  state.addAttribute("variable", builder.getStringAttr(fresh));
  state.addAttribute("from", builder.getI64IntegerAttr(round));
  state.addAttribute("to", builder.getI64IntegerAttr(round + 1));
  state.addRegion();
  auto op = cast<net::RepeatOp>(builder.create(state));
  Block &body = op.getBody().emplaceBlock();
  for (auto [value, source] : zip(initial, repeat.carried))
    body.addArgument(value.getType(), evaluator.location(source.place));

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  Frame inner{.prefix = frame.prefix, .scopePath = frame.scopePath,
              .suffix = frame.suffix + "." + variable.placeholder, .depth = frame.depth + 1};
  inner.env.parent = &frame.env;
  inner.env.round = &variable;
  inner.env.constants[repeat.variable] = builder.getI64IntegerAttr(round);
  for (auto [source, argument] : zip(repeat.carried, body.getArguments()))
    if (!bind(source.name, argument, source.place, inner.env))
      return nullptr;
  Operation *outerParam = std::exchange(lastParam, nullptr);
  llvm::StringMap<Location> outerNames = std::exchange(paramNames, {});
  rounds.emplace_back(fresh, round);
  bool wasInRepeat = std::exchange(evaluator.isInRepeat, true);
  bool sound = runBody(repeat.body, inner, next, ast::Return::Kind::Yield);
  evaluator.isInRepeat = wasInRepeat;
  rounds.pop_back();
  paramNames = std::move(outerNames);
  lastParam = outerParam;
  if (!sound)
    return nullptr;
  if (next.size() != carried.size()) {
    error(repeat.place) << "repeat carries " << carried.size() << (carried.size() == 1 ? " value" : " values")
                        << ", but its body yields " << next.size();
    return nullptr;
  }
  OperationState yield(evaluator.location(repeat.place), net::YieldOp::getOperationName());
  yield.addOperands(map_to_vector(next, [](const NamedValue &value) { return value.value; }));
  builder.create(yield);
  return op;
}

/// The rounds of a repeat that is one round of the source: into the body around it; gives what they yield.
SmallVector<Value> Elaborator::inlineRepeat(net::RepeatOp repeat) {
  SmallVector<Value> results(repeat.yielded());
  for (auto [argument, initial] : zip(repeat.getBody().getArguments(), repeat.getInitial()))
    for (Value &result : results)
      if (result == argument)
        result = initial;
  net::unroll(repeat);
  return results;
}

/// True if both are the same but for the rounds: operators, names, attributes, places.
static bool areAlike(net::RepeatOp a, net::RepeatOp b) {
  return a.getVariable() == b.getVariable() && a.endRound() == b.firstRound() &&
         ValueRange(a.getResults()) == b.getInitial() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::None);
}

/// Operators and values of several rounds are told apart by their names, also where these do not hold `{i}`.
static void nameRounds(net::RepeatOp repeat) {
  auto isUnsaid = [&](StringRef name) { return net::nameWithRound(name, repeat.getVariable()) != name; };
  repeat.getBody().walk([&](net::Operator op) {
    SmallVector<std::string> named;
    for (Value value : op->getResults())
      named.push_back(net::nameWithRound(net::getValueName(value), repeat.getVariable()));
    if (any_of(op->getResults(), [&](Value value) { return isUnsaid(net::getValueName(value)); }))
      net::setValueNames(op, SmallVector<StringRef>(named.begin(), named.end()));
    if (StringRef name = net::getInstanceName(op); isUnsaid(name)) // by the user: else it is that of its value
      net::setInstanceName(op, net::nameWithRound(name, repeat.getVariable()));
  });
}

/// Rounds that are alike stay folded in one `net.repeat`: all, where nothing but names depends on the variable; otherwise
/// each is expanded and compared with the one before. A round that changes the type of a carried value stands alone.
bool Elaborator::runRepeat(const ast::Repeat &repeat, const ast::Assign &assign, Frame &frame) {
  FailureOr<int64_t> from = evaluator.evaluateInteger(repeat.from, frame.env, "the first round");
  FailureOr<int64_t> to = evaluator.evaluateInteger(repeat.to, frame.env, "the last round");
  if (failed(from) || failed(to))
    return false;
  if (*to < *from) {
    InFlightDiagnostic diagnostic = error(repeat.place) << "repeat ends at " << *to << ", before it begins at " << *from;
    net::addHelp(diagnostic, "write " + std::to_string(*to) + ".." + std::to_string(*from) + ", the first round and the one behind the last");
    return false;
  }
  std::optional<int64_t> count = checkedSub(*to, *from);
  if (!count || *count > maximumRounds) {
    InFlightDiagnostic diagnostic = error(repeat.place) << "repeat has more than " << maximumRounds << " rounds";
    net::addHelp(diagnostic, "take fewer rounds, or write several into one body");
    return false;
  }
  std::vector<NamedValue> carried;
  for (const ast::Carried &value : repeat.carried) {
    FailureOr<Value> initial = evaluator.findValue(value.initial, value.initialPlace, frame.env);
    if (failed(initial))
      return false;
    carried.push_back({value.name, *initial, value.place});
  }
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  net::RepeatOp last; // rounds that are alike, right before this one
  auto carry = [&](ValueRange values) {
    for (auto [value, next] : zip(carried, values))
      value.value = next;
  };
  auto finishLast = [&] {
    if (last)
      nameRounds(last);
    if (last && last.rounds() == 1)
      carry(inlineRepeat(last));
    last = nullptr;
  };
  for (int64_t round = *from; round < *to;) {
    RoundVariable variable;
    std::vector<NamedValue> next;
    int64_t counted = statementCount;
    size_t pinned = shardings.count();
    net::RepeatOp op = expandRound(repeat, round, carried, frame, variable, next);
    if (!op)
      return false;
    bool isPinned = shardings.count() > pinned;
    bool mayFold = TypeRange(op.yielded()) == op.getResultTypes() && !(isPinned && variable.isUsed) &&
                   !shardings.speakOfAny(op.getBody().getArguments());
    if (!mayFold) {
      finishLast();
      for (auto [argument, initial] : zip(op.getBody().getArguments(), op.getInitial()))
        if (!shardings.move(argument, initial))
          return false;
      nameRounds(op);
      carry(inlineRepeat(op));
      ++round;
      continue;
    }
    if (!variable.isUsed) {
      op.setTo(*to);
      statementCount += (statementCount - counted) * (*to - round - 1);
      if (statementCount > maximumStatements) {
        InFlightDiagnostic diagnostic = error(repeat.body.close) << "the network has more than " << maximumStatements << " statements after expansion";
        net::addHelp(diagnostic, "take fewer rounds of its repeats");
        return false;
      }
    }
    if (last && areAlike(last, op)) {
      last.setTo(op.endRound());
      op.erase();
    } else {
      finishLast();
      last = op;
    }
    carry(last.getResults());
    round = last.endRound();
  }
  finishLast();
  lastParam = block->empty() ? nullptr : &block->back();
  return (!rounds.empty() || claimNamesBehind(before, block)) &&
         bindResults(assign, carried, "repeat", repeat.place, frame);
}

bool Elaborator::runIf(const ast::If &branches, const ast::Assign &assign, Frame &frame) {
  for (const ast::Branch &branch : branches.branches) {
    if (branch.condition) {
      FailureOr<bool> holds = evaluator.evaluateBool(*branch.condition, frame.env, "the condition");
      if (failed(holds))
        return false;
      if (!*holds)
        continue;
    }
    Frame inner{.prefix = frame.prefix, .scopePath = frame.scopePath, .suffix = frame.suffix, .depth = frame.depth + 1};
    inner.env.parent = &frame.env;
    std::vector<NamedValue> results;
    return runBody(branch.body, inner, results, ast::Return::Kind::Yield) &&
           bindResults(assign, results, "this if", branches.place, frame);
  }
  return false;
}

bool Elaborator::takeSharding(const ast::Arg &field, Value value, const Environment &env) {
  const bool isLeftOut = options.onStrategy && value && options.onStrategy(evaluator.location(field.keyPlace), net::getValueName(value));
  return isLeftOut || shardings.take(field, value, env);
}

} // namespace msc::frontend
