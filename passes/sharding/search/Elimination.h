// Variable elimination: the network becomes a number, or a table over a few variables, bucket by bucket.
#pragma once

#include "passes/sharding/search/PaidOnce.h"
#include "passes/sharding/search/Reduction.h"

#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace msc::search {

struct EliminationLimits {
  int64_t tableEntries = 0; ///< larger tables are split into parts that are minimised on their own: a lower bound
  int64_t operations = 0;   ///< more: it ends unfinished
  int64_t allEntries = int64_t(1) << 28; ///< of all tables together, 8 bytes each; what is more is split, too
  bool splits = true;                    ///< else it ends unfinished there
};

EliminationLimits all(const SolveLimits &limits);
/// Where only what is exact is of use.
EliminationLimits exactly(EliminationLimits limits);
/// What is worth trying of a network from which options were left out.
EliminationLimits few(const SolveLimits &limits);

/// Eliminates all variables but the kept ones, the one with the least work first (product of the classes of the
/// variable and of its neighbours), ties by number. Readers of one value may go together, see JointReaders.
class Elimination {
public:
  /// `givesUp`: asked where it takes long, with about how many operations that is; if it says so, it ends unfinished.
  Elimination(Workspace &workspace, const Lowered &network, const EliminationLimits &limits,
              std::vector<int32_t> kept = {}, std::function<bool(double)> givesUp = nullptr);

  /// Nothing was split and no limit ran out: values are exact.
  bool isExact() const { return finished && !isSplit; }
  /// False: it gave up, or a limit ran out; nothing else is valid but crowdedFirst().
  bool isFinished() const { return finished; }
  /// Nothing costs less; the minimum where exact. Without kept variables.
  double bound() const { return constant; }
  /// Minimum (or bound) over everything else for all options of the kept variables, row-major in their order.
  std::vector<double> table() const;
  /// Chooses what was eliminated; the kept variables are set. The minimum where exact, else some good choice.
  void decode(Choice &choice) const;

  /// Which buckets look at each variable, without its own.
  std::vector<std::vector<int32_t>> bucketsAround() const;
  /// The same behind a step of decodeOrder(), of what was decoded already, after which the variable of the step took another option: what
  /// is cheapest then. Appends the variables that may have changed. `around`: bucketsAround().
  void decodeBehind(size_t step, const std::vector<std::vector<int32_t>> &around, Choice &choice, std::vector<int32_t> &changed) const;

  /// Where exact, without kept variables, and if the network has no values with several readers: for every option of each of these
  /// variables the least cost of the whole network with it, on a way back over the buckets. Nothing: a limit of the elimination, which
  /// hold for both ways together, ran out. Dawid, "Applications of a general propagation algorithm for probabilistic expert systems", 1992.
  std::optional<std::vector<std::vector<double>>> costsOfAll(const std::vector<int32_t> &variables);

  /// The variables in the order in which decode sets them.
  const std::vector<int32_t> &decodeOrder() const { return order; }
  /// For every option of decodeOrder()[step], the cheapest cost of all factors in its bucket, the variables behind it
  /// in the bucket at their best; earlier ones are set. Where exact: the cost of the whole network but for a constant.
  /// Of options that cost `slack` more than the cheapest one, or more, only something that is so, too.
  std::vector<double> costsAt(size_t step, Choice &choice, double slack = infinity) const;

  /// The variable that is in most of the tables that were too large, weighted by their size.
  int32_t widest() const;
  /// All that are in such tables, that one first; where it ended unfinished, then those that were left.
  std::vector<int32_t> crowdedFirst() const;

  int64_t operations = 0, eliminations = 0, repeated = 0, largestTable = 0, allEntries = 0;

private:
  struct Bucket {
    std::vector<int32_t> variables;
    std::vector<int32_t> factors;
    int32_t value = -1; ///< of several variables: the factor that they share
    int32_t inner = -1; ///< the first of several variables, if it is none of its readers
    int32_t result = -1; ///< the factor that it became, if it became one
  };
  struct Candidate {
    double weight = 0;
    int32_t number = 0; ///< a variable; behind them: factors of shared values
    int32_t version = 0;
    bool operator<(const Candidate &other) const {
      return std::tie(weight, number) > std::tie(other.weight, other.number); // the least on top
    }
  };

  void addFactor(Factor factor);
  void run();
  bool isWorthIt(const Candidate &next);
  void endUnfinished();
  void eliminate(int32_t variable);
  void eliminateReaders(int32_t value);
  void eliminateSplit(int32_t variable, const std::vector<int32_t> &bucket);
  Factor reduceOnce(const FactorRefs &factors, int32_t variable);
  Factor reduceOnce(const JointReaders &joint, const FactorRefs &factors);
  template <typename Reduce> Factor remembered(const FactorRefs &factors, std::vector<int64_t> key, Reduce reduce);
  void close(const std::vector<int32_t> &bucket, std::vector<Factor> results);
  void review(int32_t number);
  std::optional<std::vector<Factor>> minimisedTo(std::vector<Factor> list, const std::vector<int32_t> &left);
  double weightOf(int32_t variable);
  double weightAtLeast(int32_t variable);
  double weightOf(const JointReaders &joint, double &context);
  double pricingOf(const JointReaders &joint);
  double weightOfReadersAround(int32_t variable);
  double contextSize(const FactorRefs &factors, const std::vector<int32_t> &without);
  JointReaders independentReaders(int32_t value) const;
  JointReaders jointReaders(int32_t value, double *weight);
  FactorRefs refs(const std::vector<int32_t> &numbers) const;
  std::vector<Factor> withoutLargeShared(const Factor &factor);
  void decode(const Bucket &bucket, Choice &choice) const;
  std::vector<double> costsAlone(int32_t variable, const std::vector<int32_t> &bucket, int32_t except,
                                 Choice &choice) const;
  class Among;
  std::vector<double> costsOfInner(const Bucket &bucket, Choice &choice, double slack) const;
  std::vector<double> costsAmong(const Bucket &bucket, size_t position, Choice &choice, double slack) const;

  Workspace &workspace;
  std::vector<int32_t> options, kept;
  EliminationLimits limits;
  std::function<bool(double)> givesUp;
  static constexpr double heavy = 1e15; ///< operations: such a candidate is none while there are others
  double patience = 1 << 25; ///< operations; asked where there are more
  std::vector<Factor> factors;
  std::vector<char> alive;                     ///< of each factor
  int32_t valuesAlive = 0;                     ///< of these, shared ones
  std::vector<std::vector<int32_t>> factorsOf; ///< of each variable: those that are alive
  std::vector<char> isGone;                    ///< of each variable: eliminated or kept
  std::priority_queue<Candidate> queue;
  std::vector<int32_t> versions; ///< of each candidate
  std::vector<Bucket> buckets;
  /// All readers of buckets, as far as something was decoded: by number of the bucket.
  mutable std::unordered_map<size_t, std::unique_ptr<PaidOnce>> together;
  std::vector<int32_t> order;                      ///< variables against the order of elimination
  std::vector<std::pair<int32_t, int32_t>> places; ///< of each of them: bucket, position
  std::vector<double> crowded;                     ///< of each variable
  double constant = 0;
  bool finished = true, isSplit = false;
};

/// What an elimination of a network took altogether: its operations, and for each factor what it takes to look at it, however small
/// its tables are; less where equal buckets were known.
int64_t workOf(const Elimination &elimination, const Lowered &network);

} // namespace msc::search
