// sharding_propagation: rounds outward from what is decided. No names, no hash order: every choice is a comparison of
// numbers, and ties end in the position of an operand.
#include "dialects/net/Repeat.h"
#include "passes/sharding/Problem.h"
#include "passes/sharding/Propagations.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace msc::passes {

using net::FactorKind;
using net::Strategy;

namespace {

/// A tensor that two neighbours share, seen from the one that is being decided.
struct SharedTensor {
  int32_t tensor = 0;
  Sharding decided;       ///< how the decided side holds it (completed) or wants it
  bool isOperand = false; ///< of the operator being decided, else its result
  size_t position = 0;    ///< operand or result number
  int64_t times = 1;      ///< how often a step hands it over
};

/// A decided neighbour, or a dataset input, that asks an operator to follow.
struct Asker {
  std::string name;
  int32_t op = -1; ///< -1: an input
  std::vector<SharedTensor> shared;
};

/// How well a candidate follows an asker; the least is taken.
struct Fit {
  int64_t received = 0; // elements on the shared tensors, maximum over ranks, and within the operator
  int64_t idle = 0;     // devices over pieces
  bool uneven = false;
  int64_t changed = 0;         // split dimensions of the shared tensor whose piece count is not kept
  std::vector<int64_t> spread; // minus the pieces of its dimensions that were not split, last dimension first
  int64_t reduced = 1;         // pieces of reduced factors
  Strategy strategy;
  auto operator<=>(const Fit &) const = default;
};

struct Candidate {
  Pieces pieces;
  Placement placement;
  Strategy strategy;
  bool uneven = false;
  OwnExchange exchange;
};

class Propagation {
public:
  explicit Propagation(const Problem &problem)
      : problem(problem), flow(problem), decided(problem.operators.size()),
        uses(problem, [](size_t) { return true; }) {}

  Choices run() {
    decided.assign(problem.operators.size(), std::nullopt);
    choices.assign(problem.operators.size(), {});
    for (size_t i = 0; i < problem.operators.size(); ++i)
      if (problem.operators[i].configured)
        decide(i, {*problem.operators[i].configured, "user"});
    spread();
    // Operators that no configured one reaches: the inputs ask once, then rounds go on.
    if (round(Askers::Inputs))
      spread();
    for (size_t i = 0; i < problem.operators.size(); ++i)
      if (!decided[i])
        decide(i, {problem.operators[i].among.empty() ? Pieces(problem.operators[i].facts.rule.factors.size(), 1)
                                                      : problem.operators[i].among.front(),
                   "default"});
    return std::move(choices);
  }

private:
  const Problem &problem;
  mutable dist::ReshardPlanner planner{problem.machine};
  mutable std::unordered_map<std::string, int64_t> received;
  mutable std::vector<std::vector<Candidate>> offered = std::vector<std::vector<Candidate>>(problem.operators.size()); ///< empty: nobody asked yet
  ValueFlow flow;
  std::vector<std::optional<Placement>> decided; // before the current round
  Choices choices = Choices(problem.operators.size());
  TensorUses uses;

  void decide(size_t op, Choice choice) {
    decided[op] = placementOf(problem.operators[op], choice.pieces, problem.devices);
    choices[op] = std::move(choice);
  }

  /// Who may ask an operator: what is decided, but nothing behind the border of the repeat around it; that, too; inputs,
  /// too.
  enum class Askers { Near, Outside, Inputs };

  /// Within a repeat its own rounds decide, which are many; what is around it asks where they do not reach.
  void spread() {
    while (round(Askers::Near) || round(Askers::Outside))
      ;
  }

  /// One round: all operators next to a decided one (or to an input), at once.
  bool round(Askers who) {
    std::vector<std::pair<size_t, Choice>> made;
    for (size_t i = 0; i < problem.operators.size(); ++i) {
      if (decided[i])
        continue;
      std::vector<Asker> askers = askersOf(i, who);
      if (askers.empty())
        continue;
      auto [pieces, from] = follow(i, askers);
      Choice choice{std::move(pieces), propagatedFrom(from->name), from->op, from->shared.front().isOperand};
      if (from->op < 0 && arrivesWhole(i, from->name))
        choice.origin = "most pieces, for '" + from->name + "' arrives whole";
      made.emplace_back(i, std::move(choice));
    }
    for (auto &[op, choice] : made)
      decide(op, std::move(choice));
    return !made.empty();
  }

  /// True if an operand of this name is an input that every rank gets whole: any split of it is free.
  bool arrivesWhole(size_t op, const std::string &name) const {
    return std::ranges::any_of(problem.operators[op].operands, [&](int32_t operand) {
      return std::ranges::any_of(flow.sourcesOf(operand), [&](const Handover &source) {
        const ProblemTensor &input = problem.tensors[source.tensor];
        return input.name == name && input.dataset &&
               std::ranges::all_of(input.dataset->dims, [](const auto &axes) { return axes.empty(); });
      });
    });
  }

  /// Number of repeats around both operators.
  size_t sharedRepeats(size_t a, size_t b) const {
    const auto &left = problem.operators[a].repeats, &right = problem.operators[b].repeats;
    return static_cast<size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
  }

  /// What a producer or user of the values of `op` is called where `op` is: of repeats around `other` alone the last round
  /// hands out values, the first one takes them.
  std::string nameFor(size_t op, size_t other, bool isProducer) const {
    std::string name = problem.operators[other].name;
    const auto &repeats = problem.operators[other].repeats;
    for (size_t i = repeats.size(), shared = sharedRepeats(op, other); i-- > shared;) {
      const ProblemRepeat &repeat = problem.repeats[repeats[i]];
      name = net::nameInRound(name, repeat.variable, isProducer ? repeat.lastRound : repeat.firstRound, i == 0);
    }
    return name;
  }

  /// Decided neighbours of an operator: producers by operand, then users of its results; across the rounds of a repeat,
  /// too.
  std::vector<Asker> askersOf(size_t op, Askers who) const {
    const ProblemOperator &self = problem.operators[op];
    std::vector<Asker> askers;
    std::vector<int64_t> ids;
    auto mayAsk = [&](int32_t other, bool crosses) {
      return who != Askers::Near || !crosses || sharedRepeats(op, other) == self.repeats.size();
    };
    auto ask = [&](int64_t id, const std::string &name, SharedTensor shared) {
      auto at = std::find(ids.begin(), ids.end(), id);
      if (at == ids.end()) {
        ids.push_back(id);
        askers.push_back({name, static_cast<int32_t>(std::max<int64_t>(id, -1)), {}});
        at = ids.end() - 1;
      }
      askers[at - ids.begin()].shared.push_back(std::move(shared));
    };
    for (size_t i = 0; i < self.operands.size(); ++i)
      for (auto [tensor, times, crosses] : flow.sourcesOf(self.operands[i])) {
        int32_t from = uses.producer[tensor];
        if (from >= 0 && decided[from] && mayAsk(from, crosses))
          ask(from, nameFor(op, from, true),
              {tensor, resultOf(from, tensor), true, i, std::min(times, problem.operators[from].rounds)});
        if (who == Askers::Inputs && problem.tensors[tensor].dataset)
          ask(-1 - tensor, problem.tensors[tensor].name, {tensor, *problem.tensors[tensor].dataset, true, i});
      }
    for (size_t i = 0; i < self.results.size(); ++i)
      for (auto [tensor, times, crosses] : flow.readersOf(self.results[i]))
        for (int32_t user : uses.readers[tensor])
          if (decided[user] && mayAsk(user, crosses))
            for (size_t at = 0; at < problem.operators[user].operands.size(); ++at)
              if (problem.operators[user].operands[at] == tensor)
                ask(user, nameFor(op, user, false),
                    {self.results[i], decided[user]->operands[at], false, i, std::min(times, self.rounds)});
    return askers;
  }

  Sharding resultOf(int32_t op, int32_t tensor) const {
    const auto &results = problem.operators[op].results;
    return decided[op]->results[std::find(results.begin(), results.end(), tensor) - results.begin()];
  }

  const std::vector<Candidate> &candidatesOf(size_t at) const {
    const ProblemOperator &op = problem.operators[at];
    std::vector<Candidate> &list = offered[at];
    if (!list.empty())
      return list;
    for (Pieces &pieces : op.among.empty() ? candidates(op.facts, problem.devices) : std::vector<Pieces>(op.among)) {
      Candidate &made = list.emplace_back();
      made.placement = placementOf(op.facts, pieces, problem.devices);
      made.strategy = inStrategy(op.facts.rule, pieces);
      if (op.exchange)
        made.exchange = op.exchange(made.placement);
      made.pieces = std::move(pieces);
      for (size_t i = 0; i < op.operands.size(); ++i)
        made.uneven |= !made.placement.operands[i].isEven(op.facts.operandShapes[i]);
      for (size_t i = 0; i < op.results.size(); ++i)
        made.uneven |= !made.placement.results[i].isEven(op.facts.resultShapes[i]);
    }
    return list;
  }

  Fit fitOf(const ProblemOperator &op, const Candidate &candidate, const Asker &asker) const {
    Fit fit{.received = op.rounds * candidate.exchange.received,
            .idle = problem.devices / devicesUsed(candidate.pieces),
            .uneven = candidate.uneven,
            .strategy = candidate.strategy};
    std::vector<std::pair<int32_t, Sharding>> moved; // one redistribution per tensor and target
    for (const SharedTensor &shared : asker.shared) {
      const Sharding &own = sideOf(candidate, shared);
      const Sharding &target = shared.isOperand ? own : shared.decided;
      std::pair move{shared.tensor, target};
      if (std::find(moved.begin(), moved.end(), move) != moved.end())
        continue;
      moved.push_back(move);
      fit.received += shared.times * receivedElements(shared.isOperand ? shared.decided : own, target,
                                                      problem.tensors[shared.tensor].shape);
    }
    const SharedTensor &first = asker.shared.front();
    const Sharding &own = sideOf(candidate, first);
    for (size_t dim = own.dims.size(); dim-- > 0;) {
      int64_t has = first.decided.pieces(dim), gets = own.pieces(dim);
      if (has > 1)
        fit.changed += gets != has;
      else
        fit.spread.push_back(-gets);
    }
    for (size_t f = 0; f < candidate.pieces.size(); ++f)
      if (op.facts.rule.factors[f].kind == FactorKind::Reduction)
        fit.reduced *= candidate.pieces[f];
    return fit;
  }

  /// Layers repeat, and so do the questions.
  int64_t receivedElements(const Sharding &from, const Sharding &to, const Shape &shape) const {
    std::string key = from.str() + to.str();
    for (int64_t size : shape)
      key += " " + std::to_string(size);
    auto [known, added] = received.try_emplace(std::move(key));
    if (added)
      known->second = dist::receivedElements(from, to, shape);
    return known->second;
  }

  static const Sharding &sideOf(const Candidate &candidate, const SharedTensor &shared) {
    return shared.isOperand ? candidate.placement.operands[shared.position]
                            : candidate.placement.results[shared.position];
  }

  /// The pieces that an operator takes and the asker it follows: of those whose wishes take equally long the first producer by operand,
  /// else the user whose wish fits best, in whatever order users stand in the text.
  std::pair<Pieces, const Asker *> follow(size_t op, const std::vector<Asker> &askers) const {
    const ProblemOperator &self = problem.operators[op];
    const std::vector<Candidate> &list = candidatesOf(op);
    const Candidate *best = nullptr;
    const Asker *from = nullptr;
    double bestUs = 0;
    Fit bestFit;
    auto isLess = [&](const Asker &asker, double us, const Fit &fit) {
      const double close = 1e-9 * bestUs; // sums are rounded
      if (us < bestUs - close || us > bestUs + close)
        return us < bestUs;
      return !asker.shared.front().isOperand && !from->shared.front().isOperand && fit < bestFit;
    };
    for (const Asker &asker : askers) {
      std::vector<Fit> fits;
      for (const Candidate &candidate : list)
        fits.push_back(fitOf(self, candidate, asker));
      const auto fit = std::min_element(fits.begin(), fits.end());
      const Candidate *asked = &list[fit - fits.begin()];
      if (asked == best) {
        bestFit = std::min(bestFit, *fit);
        continue;
      }
      double us = askers.size() > 1 ? priceUs(self, *asked, askers) : 0;
      if (!best || isLess(asker, us, *fit)) {
        best = asked;
        from = &asker;
        bestUs = us;
        bestFit = *fit;
      }
    }
    return {best->pieces, from};
  }

  /// Modelled time of the operator, of completing its results and of all moves to and from decided neighbours, in all
  /// rounds.
  double priceUs(const ProblemOperator &op, const Candidate &candidate, const std::vector<Asker> &askers) const {
    auto moveUs = [&](const Sharding &from, const Sharding &to, int32_t tensor) {
      const ProblemTensor &what = problem.tensors[tensor];
      return planner.us(from, to, what.shape, what.elementBytes);
    };
    double us = 0;
    if (op.localUs) {
      std::vector<Shape> operands, results;
      for (size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(candidate.placement.operands[i].capacity(op.facts.operandShapes[i]));
      for (size_t i = 0; i < op.results.size(); ++i)
        results.push_back(candidate.placement.results[i].capacity(op.facts.resultShapes[i]));
      us += static_cast<double>(op.rounds) * op.localUs(operands, results);
    }
    us += static_cast<double>(op.rounds) * candidate.exchange.us;
    for (size_t i = 0; i < op.results.size(); ++i)
      us += static_cast<double>(op.rounds) *
            moveUs(candidate.placement.partialResults[i], candidate.placement.results[i], op.results[i]);
    std::vector<std::pair<int32_t, Sharding>> moved;
    for (const Asker &asker : askers)
      for (const SharedTensor &shared : asker.shared) {
        const Sharding &own = sideOf(candidate, shared);
        std::pair move{shared.tensor, shared.isOperand ? own : shared.decided};
        if (std::find(moved.begin(), moved.end(), move) != moved.end())
          continue;
        moved.push_back(move);
        us += static_cast<double>(shared.times) *
              moveUs(shared.isOperand ? shared.decided : own, move.second, shared.tensor);
      }
    return us;
  }
};

} // namespace

Choices propagate(const Problem &problem) {
  return Propagation(problem).run();
}

struct Propagations::Kept {
  explicit Kept(Problem &&given) : problem(std::move(given)), propagation(problem) {}
  Problem problem;
  Propagation propagation;
};

Propagations::Propagations(Problem problem) : kept(std::make_unique<Kept>(std::move(problem))) {}

Propagations::~Propagations() = default;

Choices Propagations::with(size_t op, const Pieces &pieces) {
  std::optional<Pieces> &configured = kept->problem.operators[op].configured;
  std::optional<Pieces> given = std::exchange(configured, pieces);
  Choices choices = kept->propagation.run();
  configured = std::move(given);
  return choices;
}

} // namespace msc::passes
