// Several readers of one value at once.
#include "passes/sharding/search/Blocks.h"
#include "passes/sharding/search/MinPlus.h"
#include "passes/sharding/search/PaidOnce.h"

#include <algorithm>
#include <ranges>

namespace msc::search {

namespace {

/// What each class of a reader's item sets costs the reader itself, over the classes of its neighbours; the classes are
/// the last axis, under the number `ownClasses`.
Factor costOfItemSets(Workspace &workspace, const JointReaders &joint, size_t i, int32_t ownClasses) {
  const size_t axis = joint.readers[i] + 1;
  PartitionRef part = joint.value->parts[axis];
  Factor equal;
  equal.scope = {joint.value->scope[axis], ownClasses};
  equal.parts = {part, workspace.partitions.identity(part->classes())};
  equal.costs = workspace.equality(part->classes());
  FactorRefs factors = joint.otherFactors[i];
  factors.push_back(&equal);
  return reduce(workspace, factors, joint.value->scope[axis], joint.options[i]);
}

/// The value's factor without the readers that are minimised: only to find the context.
Factor remainder(const JointReaders &joint) {
  Factor rest;
  for (size_t a = 0; a < joint.value->scope.size(); ++a)
    if (a == 0 || std::find(joint.readers.begin(), joint.readers.end(), a - 1) == joint.readers.end()) {
      rest.scope.push_back(joint.value->scope[a]);
      rest.parts.push_back(joint.value->parts[a]);
    }
  return rest;
}

/// Items that readers of the context ask for. Axes 1 .. of `rest` are the first axes of the context behind the
/// producer.
std::vector<int32_t> askedInContext(const JointReaders &joint, const Factor &rest, const std::vector<Axis> &context,
                                    const std::vector<int32_t> &at) {
  std::vector<int32_t> asked;
  for (size_t a = 1; a < rest.scope.size(); ++a) {
    const size_t reader = joint.value->axisOf(rest.scope[a]) - 1;
    const int32_t option = context[a].part->first[at[a]];
    const std::vector<int32_t> &items = joint.value->shared->itemsOf[reader][rest.parts[a]->classOf[option]];
    asked.insert(asked.end(), items.begin(), items.end());
  }
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  return asked;
}

/// Goes through the context; in it, through the classes of the inner variable that may be the best.
class JointReduction {
public:
  JointReduction(Workspace &workspace, const JointReaders &joint)
      : workspace(workspace), joint(joint), rest(remainder(joint)), paidOnce(*joint.value->shared, joint.readers) {
    layOut();
  }

  Factor run() {
    size_t size = 1;
    for (const Axis &axis : context)
      size *= axis.part->classes();
    std::vector<double> values;
    values.reserve(size);
    Odometer odometer(context, context.size());
    do {
      if (odometer.changed < rest.scope.size())
        setContext(odometer.at);
      values.push_back(least());
    } while (odometer.next(offsets, refs));
    entries = static_cast<int64_t>(values.size());
    Factor factor = factorOver(workspace, context, std::move(values));
    factor.isBound = isBound;
    return factor;
  }
  /// Additions and minima, about.
  int64_t operations() const {
    constexpr int64_t ofBranch = 8;
    return entries * static_cast<int64_t>(ofInner.size() * (rows.size() + 1)) + priced + ofBranch * branches;
  }

private:
  /// Axes: the context, the inner variable, the item sets of each reader.
  void layOut() {
    const size_t count = joint.readers.size();
    std::vector<int32_t> own, without = {joint.inner};
    std::vector<Factor> ofReader;
    for (size_t i = 0; i < count; ++i) {
      own.push_back(-2 - static_cast<int32_t>(i));
      without.push_back(own[i]);
      ofReader.push_back(costOfItemSets(workspace, joint, i, own[i]));
    }
    FactorRefs all = {&rest}, withInner = joint.innerFactors;
    for (const Factor &factor : ofReader) {
      all.push_back(&factor);
      if (factor.axisOf(joint.inner) < factor.scope.size())
        withInner.push_back(&factor);
    }
    all.insert(all.end(), joint.innerFactors.begin(), joint.innerFactors.end());
    context = contextOf(workspace, all, without);
    PartitionRef innerPart = finest(workspace, withInner, joint.inner, joint.innerOptions);
    ofInner = unaryOfClasses(joint.innerFactors, *innerPart);

    std::vector<Axis> axes = context;
    axes.push_back({joint.inner, innerPart});
    for (size_t i = 0; i < count; ++i)
      axes.push_back({own[i], ofReader[i].parts[ofReader[i].axisOf(own[i])]});
    for (const Factor &factor : ofReader)
      blocks.push_back(expanded(factor, axes));
    for (const Factor *factor : joint.innerFactors)
      if (factor->scope.size() > 1)
        blocks.push_back(expanded(*factor, axes));
    for (const Block &block : blocks) {
      refs.push_back(&block);
      steps.push_back(block.strides[context.size()]);
    }
    if (paidOnce.hubsAreExact())
      for (size_t i = 0; i < count; ++i)
        byClass.push_back(transposed(blocks[i].values, paidOnce.sharedPrices(i).size()));
    for (size_t i = 0; i < count; ++i) {
      const std::vector<std::vector<std::vector<int32_t>>> &items = joint.value->shared->itemsOf;
      alike.push_back(i);
      for (size_t j = i; j-- > 0;)
        if (items[joint.readers[i]] == items[joint.readers[j]] && std::ranges::equal(blocks[i].values, blocks[j].values))
          alike[i] = j;
    }
    offsets.resize(blocks.size());
    bounds.resize(ofInner.size());
    costs.resize(ofInner.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t width = paidOnce.sharedPrices(i).size();
      rowStep.push_back(steps[i] / width);
      leastOfRows.emplace_back(blocks[i].values.size() / width);
      ofHubs.emplace_back(alike[i] == i ? leastOfRows[i].size() * paidOnce.hubPrices().size() : 0);
      rowsInContext.push_back(1);
      for (size_t axis : blocks[i].axes)
        if (axis >= rest.scope.size() && axis < axes.size() - count)
          rowsInContext[i] *= axes[axis].part->classes();
    }
    rowAt.resize(count);
    firstRow.resize(count);
    rows.resize(count);
  }

  /// The producer, or what readers of the context ask for, has changed.
  void setContext(const std::vector<int32_t> &at) {
    const int32_t producer = rest.parts[0]->classOf[context[0].part->first[at[0]]];
    paidOnce.setContext(producer, askedInContext(joint, rest, context, at));
    for (size_t i = 0; i < alike.size(); ++i) {
      const size_t first = offsets[i] / paidOnce.sharedPrices(i).size();
      auto hasSame = [&](size_t other) { return alike[other] == alike[i] && firstRow[other] == first; };
      firstRow[i] = first;
      if (std::ranges::none_of(std::views::iota(size_t(0), i), hasSame))
        priceRows(alike[i], first, rowsInContext[i]);
    }
  }

  /// What a reader pays at least, and with each hub, in some rows of its block.
  void priceRows(size_t i, size_t first, size_t count) {
    const std::vector<double> &prices = paidOnce.sharedPrices(i);
    constexpr size_t rowsAtOnce = 8; // fewer take as long
    priced += static_cast<int64_t>(std::max(count, rowsAtOnce) * (2 * prices.size() + paidOnce.hubPrices().size()));
    if (paidOnce.hubsAreExact())
      paidOnce.hubCosts(i, byClass[i].data(), leastOfRows[i].size(), first, count, ofHubs[i]);
    for (size_t row = first; row < first + count; ++row)
      leastOfRows[i][row] = leastSum(blocks[i].values.data() + row * prices.size(), prices.data(), prices.size());
  }

  static std::vector<double> transposed(std::span<const double> rows, size_t width) {
    std::vector<double> result(rows.size());
    const size_t count = rows.size() / width;
    for (size_t row = 0; row < count; ++row)
      for (size_t c = 0; c < width; ++c)
        result[c * count + row] = rows[row * width + c];
    return result;
  }

  /// The readers' part, in a class of the inner variable.
  double leastOfReaders(size_t e) {
    const size_t count = rows.size();
    if (!paidOnce.hubsAreExact()) {
      for (size_t i = 0; i < count; ++i)
        rows[i] = blocks[i].values.data() + offsets[i] + e * steps[i];
      return leastByBranching();
    }
    const std::vector<double> &prices = paidOnce.hubPrices();
    for (size_t i = 0; i < count; ++i)
      rows[i] = ofHubs[alike[i]].data() + (rowAt[i] + e * rowStep[i]) * prices.size();
    if (count == 2)
      return paidOnce.pricesGiven() + leastSum(prices.data(), rows[0], rows[1], prices.size());
    sums = prices;
    addRow(sums.data(), rows[2], sums.size());
    return paidOnce.pricesGiven() + leastSum(sums.data(), rows[0], rows[1], prices.size());
  }

  double leastByBranching() {
    constexpr int64_t mostAtOnce = int64_t(1) << 20;
    paidOnce.cheapest(rows, nullptr, mostAtOnce);
    branches += paidOnce.branchesTaken();
    isBound |= paidOnce.isCut();
    return paidOnce.bound();
  }

  double least() {
    const size_t count = rows.size(), classes = ofInner.size();
    costs = ofInner;
    for (size_t b = count; b < blocks.size(); ++b)
      for (size_t e = 0; e < classes; ++e)
        costs[e] += blocks[b].values[offsets[b] + e * steps[b]];
    for (size_t e = 0; e < classes; ++e)
      bounds[e] = costs[e] + paidOnce.pricesGiven();
    for (size_t i = 0; i < count; ++i) {
      rowAt[i] = offsets[i] / paidOnce.sharedPrices(i).size();
      const double *row = leastOfRows[alike[i]].data() + rowAt[i];
      for (size_t e = 0; e < classes; ++e)
        bounds[e] += row[e * rowStep[i]];
    }
    double best = infinity;
    if (branches > mostBranches) {
      isBound = true;
      return *std::ranges::min_element(bounds);
    }
    while (true) {
      const size_t e = std::min_element(bounds.begin(), bounds.end()) - bounds.begin();
      if (!(bounds[e] < best))
        return best;
      best = std::min(best, costs[e] + leastOfReaders(e));
      bounds[e] = infinity;
    }
  }

  Workspace &workspace;
  const JointReaders &joint;
  Factor rest;
  PaidOnce paidOnce;
  std::vector<Axis> context;
  std::vector<Block> blocks;                    ///< of the readers, then of the inner factors
  std::vector<const Block *> refs;              ///< to them
  std::vector<size_t> offsets;                  ///< in them, for the context
  std::vector<size_t> steps;                    ///< in them, of the inner variable
  std::vector<size_t> alike;                    ///< of each reader: the first one that asks alike and costs alike
  std::vector<size_t> rowAt, rowStep;           ///< the same in rows of the readers' blocks
  std::vector<size_t> firstRow, rowsInContext;  ///< of those, the ones in which producer and asking readers are as they are now
  std::vector<std::vector<double>> leastOfRows; ///< of each reader, of each row of its block: with shared prices
  std::vector<std::vector<double>> byClass;     ///< of each reader: its block, [class][row]
  std::vector<std::vector<double>> ofHubs;      ///< of each reader: [row][hub]
  std::vector<double> sums;
  std::vector<double> ofInner, costs, bounds; ///< of each class of the inner variable
  std::vector<const double *> rows;
  static constexpr int64_t mostBranches = int64_t(1) << 25; ///< then bounds have to do
  int64_t branches = 0, entries = 0, priced = 0;
  bool isBound = false;
};

} // namespace

Factor reduce(Workspace &workspace, const JointReaders &joint, int64_t &operations) {
  JointReduction reduction(workspace, joint);
  Factor factor = reduction.run();
  operations += reduction.operations();
  return factor;
}

} // namespace msc::search
