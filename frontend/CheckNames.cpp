// Names: every body is read once with its values unknown, whether something calls it or not, and whatever its conditions
// say. Values, operators, attributes and the numbers of operands are checked; types and numbers are left to the expansion.
#include "frontend/Elaborate.h"

#include "dialects/net/Suggest.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

static std::vector<std::string> namesOf(ArrayRef<NamedValue> results) {
  std::vector<std::string> names;
  for (const NamedValue &result : results)
    names.push_back(result.name);
  return names;
}

bool Elaborator::checkNames() {
  int errors = 0;
  ScopedDiagnosticHandler count(context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    reported.insert({diagnostic.getLocation().getAsOpaquePointer(), diagnostic.str()});
    return failure(); // on to the handler that prints
  });
  evaluator.namesOnly = true;
  for (const ast::Graph *graph : graphs)
    checkNames(*graph);
  evaluator.namesOnly = false;
  statementCount = 0;
  return errors == 0;
}

void Elaborator::checkNames(const ast::Graph &graph) {
  Frame frame;
  frame.env.parent = &globals;
  for (const ast::Formal &formal : graph.formals) {
    if (formal.type)
      (void)elaborateType(*formal.type, frame.env);
    if (formal.defaultValue)
      (void)evaluator.evaluate(*formal.defaultValue, frame.env);
    if (formal.isValue)
      bind(formal.name, {}, formal.place, frame.env);
    else
      poison(formal, frame.env);
  }
  openCells.push_back(graph.name);
  std::vector<NamedValue> results;
  runBody(graph.body, frame, results, ast::Return::Kind::Return);
  openCells.pop_back();
  if (graph.isNetwork && !results.empty())
    checkMinimizedName(namesOf(results));
}

/// The values among the arguments of an operator that does not exist.
void Elaborator::checkValues(ArrayRef<ast::Arg> args, Frame &frame) {
  for (const ast::Arg &arg : args) {
    if (arg.value.kind == ast::Expr::Kind::Value)
      (void)evaluator.findValue(arg.value.text, arg.value.place, frame.env);
    else if (arg.value.kind == ast::Expr::Kind::Tuple || arg.value.kind == ast::Expr::Kind::List)
      checkValues(arg.value.items, frame);
  }
}

/// The results of a call, a repeat or an if of which nothing but the names is known.
bool Elaborator::bindUnknown(const ast::Assign &assign, Frame &frame) {
  std::vector<NamedValue> results(assign.results.size());
  return bindResults(assign, results, "", {}, frame);
}

bool Elaborator::checkCall(const ast::Graph &cell, const ast::Call &call, const ast::Assign &assign, Frame &frame) {
  Frame callee;
  callee.env.parent = &globals;
  bindFormals(cell, call, frame, callee);
  if (call.instance)
    (void)evaluator.decodeName(*call.instance, frame.env, call.instancePlace.begin);
  const ast::Statement *end = cell.body.statements.empty() ? nullptr : &cell.body.statements.back();
  const auto *last = end && !end->broken ? std::get_if<ast::Return>(&end->node) : nullptr;
  std::vector<NamedValue> results(last ? last->args.size() : assign.results.size());
  return bindResults(assign, results, "cell '" + cell.name + "'", call.place, frame);
}

bool Elaborator::checkRepeat(const ast::Repeat &repeat, const ast::Assign &assign, Frame &frame) {
  (void)evaluator.evaluateInteger(repeat.from, frame.env, "the first round");
  (void)evaluator.evaluateInteger(repeat.to, frame.env, "the last round");
  Frame inner;
  inner.env.parent = &frame.env;
  inner.env.constants[repeat.variable] = {};
  for (const ast::Carried &value : repeat.carried) {
    (void)evaluator.findValue(value.initial, value.initialPlace, frame.env);
    bind(value.name, {}, value.place, inner.env);
  }
  std::vector<NamedValue> results;
  runBody(repeat.body, inner, results, ast::Return::Kind::Yield);
  return bindUnknown(assign, frame);
}

bool Elaborator::checkIf(const ast::If &branches, const ast::Assign &assign, Frame &frame) {
  for (const ast::Branch &branch : branches.branches) {
    if (branch.condition)
      (void)evaluator.evaluateBool(*branch.condition, frame.env, "the condition");
    Frame inner;
    inner.env.parent = &frame.env;
    std::vector<NamedValue> results;
    runBody(branch.body, inner, results, ast::Return::Kind::Yield);
  }
  return bindUnknown(assign, frame);
}

} // namespace msc::frontend
