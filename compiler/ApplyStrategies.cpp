#include "compiler/ApplyStrategies.h"

#include "compiler/Tables.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/Convert.h"
#include "runtime/ControlCharacters.h"
#include "runtime/Nearest.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace msc::compiler {

static bool isNested(net::RepeatOp repeat) {
  return repeat->getParentOfType<net::RepeatOp>() ||
         repeat.getBody().walk([](net::RepeatOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static bool isEqual(const KeptStrategy &a, const KeptStrategy &b) { return a.in == b.in && a.out == b.out; }

static void split(net::RepeatOp repeat, const KeptStrategies &kept) {
  SmallVector<std::vector<std::string>> names; // of each operator in each round
  repeat.getBody().walk([&](net::Operator op) { names.push_back(net::namesInRounds(op, net::getInstanceName(op))); });
  const int64_t start = repeat.firstRound();
  SmallVector<int64_t> borders;
  SmallVector<const KeptStrategy *> now(names.size());
  for (int64_t round = 0; round < repeat.rounds(); ++round) {
    SmallVector<const KeptStrategy *> here(names.size());
    bool differs = false;
    for (auto [list, strategy, before] : llvm::zip(names, here, now)) {
      auto found = kept.find(list[round]);
      strategy = found == kept.end() ? nullptr : &found->second;
      differs |= round > 0 && (strategy && before ? !isEqual(*strategy, *before) : strategy != before);
    }
    if (differs)
      borders.push_back(start + round);
    now = here;
  }
  for (int64_t border : llvm::reverse(borders)) {
    IRMapping mapping;
    net::splitBefore(repeat, border, mapping);
  }
}

void splitRounds(ModuleOp module, const KeptStrategies &kept) {
  module.walk([&](net::RepeatOp repeat) {
    if (!isNested(repeat))
      split(repeat, kept);
  });
}

namespace {

class Applying {
public:
  Applying(const KeptStrategies &kept, const std::string &path, int64_t devices) : kept(kept), path(path), devices(devices) {}

  Status run(ModuleOp module) {
    names = namesOf(module);
    spread(module);
    splitRounds(module, kept);
    if (Status status = checkNames(); !status)
      return status;
    Status status = Status::ok();
    module.walk([&](net::Operator op) {
      if (status && passes::hasRule(op))
        status = apply(op);
    });
    if (!status)
      return status;
    if (devices % needed != 0)
      return forOthers();
    if (!differing.empty())
      emitRemark(first->getLoc()) << differing.size() << (differing.size() == 1 ? " strategy" : " strategies") << " of '" << path << "' "
                                  << (differing.size() == 1 ? "is" : "are") << " not taken: the network has others for " << namesText(differing);
    return Status::ok();
  }

private:
  KeptStrategies kept;
  const size_t inFile = kept.size();
  std::vector<std::string> names;   ///< of all operators, in all rounds
  std::vector<std::string> written; ///< of those in repeats, with the variables
  const std::string &path;
  int64_t devices;         ///< 0: whatever the strategies say is taken
  int64_t needed = 1;      ///< the fewest devices that all strategies fit
  std::string firstNeedy;  ///< the operator whose strategy is the first that does not fit `devices`
  int64_t needyPieces = 0; ///< of it
  std::vector<std::string> differing; ///< names for which the network says otherwise
  Operation *first = nullptr;         ///< of these

  Status apply(Operation *op) {
    const KeptStrategy *strategy = nullptr;
    std::string from;
    std::vector<std::string> all;
    for (std::string &name : net::namesInRounds(op, net::getInstanceName(op))) {
      auto found = kept.find(name);
      if (found == kept.end())
        continue;
      if (strategy && !isEqual(*strategy, found->second))
        return Error{ExitCode::Failed,
                     "'" + from + "' and '" + name + "' have different strategies in '" + path +
                         "', but all rounds of repeats within repeats take one",
                     "give both the same, or write the rounds one after the other"};
      strategy = &found->second;
      all.push_back(name);
      from = std::move(name);
    }
    if (!strategy)
      return Status::ok();
    if (std::optional<net::Strategy> own = net::getInStrategy(op)) {
      if (*own != strategy->in)
        leave(op, all);
      return Status::ok();
    }
    bool keepsFixed = true;
    if (Status status = devices == 0 ? Status::ok() : check(op, from, *strategy, keepsFixed); !status)
      return status;
    keepsFixed ? take(op, *strategy) : leave(op, all);
    return Status::ok();
  }

  Error misfit(Operation *op, const std::string &name, const std::string &text, const std::string &help) const {
    std::string place;
    if (auto at = op->getLoc()->findInstanceOf<FileLineColLoc>())
      place = " (" + at.getFilename().str() + ":" + std::to_string(at.getLine()) + ")";
    return {ExitCode::BadFile, "'" + path + "': the strategy of '" + name + "'" + place + " does not fit: " + text, help};
  }

  /// Notes how many devices a strategy wants.
  void need(int64_t used, const std::string &name) {
    if (devices % used != 0 && firstNeedy.empty()) {
      firstNeedy = name;
      needyPieces = used;
    }
    if (__builtin_mul_overflow(needed / std::gcd(needed, used), used, &needed))
      needed = std::numeric_limits<int64_t>::max();
  }

  /// Does the strategy fit the operator, on as many devices as it wants? That number is noted. `keepsFixed` becomes whether it cuts as
  /// shardings of the network do, where they say something of the operator.
  Status check(Operation *op, const std::string &name, const KeptStrategy &strategy, bool &keepsFixed) {
    int64_t most = 1; // a multiple of what is used, since every factor that is cut stands in the strategy
    for (const std::vector<int64_t> &tensor : strategy.in)
      for (int64_t pieces : tensor)
        if (__builtin_mul_overflow(most, pieces, &most))
          return misfit(op, name, "in_strategy " + net::strategyText(strategy.in) + " cuts more than there can be",
                        "write smaller numbers");
    auto pieces = passes::piecesOfStrategy(passes::factsOf(op), strategy.in, most);
    if (auto *error = std::get_if<passes::StrategyError>(&pieces))
      return misfit(op, name, error->text, error->help);
    bool isLikeResults = strategy.out.size() == op->getNumResults();
    for (auto [tuple, type] : llvm::zip(strategy.out, op->getResultTypes()))
      isLikeResults &= tuple.size() == static_cast<size_t>(cast<RankedTensorType>(type).getRank());
    if (!strategy.out.empty() && !isLikeResults)
      return misfit(op, name, "out_strategy " + net::strategyText(strategy.out) + " has other dimensions than the results",
                    "write one tuple per result, with one value per dimension");
    const passes::Pieces &cuts = std::get<passes::Pieces>(pieces);
    for (auto [fixed, own] : llvm::zip(net::getFixedPieces(op), cuts))
      keepsFixed &= fixed == 0 || fixed == own;
    need(passes::devicesUsed(cuts), name);
    for (const std::vector<int64_t> &tuple : strategy.out) {
      int64_t product = 1;
      for (int64_t dim : tuple)
        if (__builtin_mul_overflow(product, dim, &product))
          return misfit(op, name, "out_strategy " + net::strategyText(strategy.out) + " cuts more than there can be",
                        "write smaller numbers");
      need(product, name);
    }
    return Status::ok();
  }

  /// One error for all of them.
  Error forOthers() const {
    const std::string all = std::to_string(devices);
    std::string help = "save strategies for " + all + ": msc compile NETWORK --devices " + all + " --strategy-save " + newFileLike(path);
    return {ExitCode::BadFile,
            "'" + path + "' holds strategies for another number of devices: that of '" + firstNeedy + "' needs " +
                std::to_string(needyPieces) + ", which does not divide " + all,
            needed <= net::mostDevices ? "pass --devices " + std::to_string(needed) + ", or " + help : help};
  }

  /// The network says otherwise.
  void leave(Operation *op, const std::vector<std::string> &all) {
    llvm::append_range(differing, all);
    first = first ? first : op;
  }

  static void take(Operation *op, const KeptStrategy &strategy) {
    net::setInStrategy(op, strategy.in);
    if (!strategy.out.empty())
      net::setOutStrategy(op, strategy.out);
  }

  static std::vector<std::string> namesOf(ModuleOp module) {
    std::vector<std::string> names;
    llvm::StringSet<> known;
    module.walk([&](net::Operator op) {
      if (passes::hasRule(op))
        for (std::string &name : net::namesInRounds(op, net::getInstanceName(op)))
          if (known.insert(name).second)
            names.push_back(std::move(name));
    });
    return names;
  }

  /// What the file says of 'layers.{i}.up', as the network writes it, goes to all rounds but those that it names.
  void spread(ModuleOp module) {
    const KeptStrategies said = kept;
    const llvm::StringSet<> known(names);
    module.walk([&](net::Operator op) {
      if (!passes::hasRule(op) || !op->getParentOfType<net::RepeatOp>())
        return;
      const std::string name = net::getInstanceName(op).str();
      if (!StringRef(name).contains('{') || known.contains(name))
        return;
      written.push_back(name);
      auto found = said.find(name);
      if (found == said.end())
        return;
      kept.erase(name);
      for (const std::string &round : net::namesInRounds(op, name))
        if (!said.contains(round))
          kept[round] = found->second;
    });
  }

  /// The name that may be meant: of one with a variable also the one that differs in the variable alone.
  std::string near(const std::string &strange) const {
    auto blank = [](StringRef name) {
      std::string text;
      while (name.contains('{')) {
        auto [front, rest] = name.split('{');
        text += front.str() + "{";
        name = rest.drop_front(std::min(rest.size(), rest.find('}')));
      }
      return text + name.str();
    };
    for (const std::string &name : written)
      if (blank(name) == blank(strange))
        return name;
    std::vector<std::string> all = names;
    llvm::append_range(all, written);
    return nearest(strange, all);
  }

  /// Names first: what a file of another network says of equal names is no news.
  Status checkNames() const {
    const llvm::StringSet<> known(names);
    std::vector<std::string> strange;
    for (const auto &[name, strategy] : kept)
      if (!known.contains(name))
        strange.push_back(name);
    if (strange.empty())
      return Status::ok();
    if (strange.size() > 1 && strange.size() * 2 >= inFile)
      return Error{ExitCode::BadFile,
                   "'" + path + "' is of another network: of its " + std::to_string(inFile) + " operators this one lacks " + std::to_string(strange.size()) +
                       ", '" + strange.front() + "' among them",
                   withoutControls("save the strategies of this network, whose operators are " + namesText(names))};
    const std::string near = this->near(strange.front());
    return Error{ExitCode::BadFile, "'" + path + "' has a strategy for '" + strange.front() + "', but the network has no such operator",
                 withoutControls(near.empty() ? "its operators are " + namesText(names) : "did you mean '" + near + "'?")};
  }
};

} // namespace

Status applyStrategies(ModuleOp module, const KeptStrategies &kept, const std::string &path, int64_t devices) {
  return Applying(kept, path, devices).run(module);
}

} // namespace msc::compiler
