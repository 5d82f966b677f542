// The pass `msc-fuse-collectives`: collectives of one group run together, in buckets: those of gradients, and norms of the update.
#include "passes/optimize/FuseCollectives.h"

#include "passes/optimize/Passes.h"
#include "passes/partition/MoveSteps.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"

#include "llvm/ADT/SetVector.h"

#include <map>
#include <string>
#include <tuple>

using namespace mlir;

namespace msc::passes {
namespace {

/// What collectives that run as one share.
using BucketKey = std::tuple<dist::CollectiveKind, std::vector<int64_t>, std::vector<int32_t>, int64_t, std::string>;

BucketKey keyOf(dist::CollectiveOp op) {
  bool reduces = op.getKind() == dist::CollectiveKind::AllReduce || op.getKind() == dist::CollectiveKind::ReduceScatter;
  std::string element;
  llvm::raw_string_ostream(element) << op.getResult().getType().getElementType();
  return {op.getKind(), op.getGroupMatrix().vec(), op.getGroupAxes().vec(),
          reduces ? static_cast<int64_t>(dist::reductionOf(op)) : 0,
          element};
}

/// On the rank with the largest part.
int64_t partBytes(Value value) {
  return elementCount(dist::shardingOf(value).capacity(shapeOf(value))) * static_cast<int64_t>(elementBytesOf(value));
}

/// Bytes of the larger side: what a limit of a bucket counts.
int64_t tensorBytes(dist::CollectiveOp op) { return std::max(partBytes(op.getSource()), partBytes(op.getResult())); }

/// Bytes of what a collective sums, on the rank with the largest part: of a norm those of the tensor, which is kept until it is known.
int64_t summedBytes(dist::CollectiveOp op) {
  int64_t bytes = tensorBytes(op);
  if (Operation *sum = op.getSource().getDefiningOp())
    for (Value operand : sum->getOperands())
      bytes = std::max(bytes, partBytes(operand));
  return bytes;
}

/// Moves and views compute nothing.
bool onlyMoves(Operation *op) {
  auto lower = dyn_cast<net::Lower>(op);
  return isMoveStep(op) || (lower && lower.loweringKind() == net::LoweringKind::View);
}

/// Moves and views of the backward pass that only the update reads, directly or through others of this kind.
llvm::DenseSet<Operation *> gradientsOfParameters(Block &block) {
  llvm::DenseSet<Operation *> found;
  for (Operation &op : llvm::reverse(block)) {
    bool only = onlyMoves(&op) && net::getPhase(&op) == net::Phase::Backward && !op.use_empty();
    for (Operation *user : op.getUsers())
      only &= found.contains(user) || isa<net::UpdateOp, net::ReturnOp>(user) || net::getPhase(user) == net::Phase::Update;
    if (only)
      found.insert(&op);
  }
  return found;
}

/// Collectives of one kind, in the order in which they become ready.
class Buckets {
public:
  /// `place` is where the rule was written.
  Buckets(Block &block, const FusionRule &rule, Location place, const MachineModel &machine, int64_t &number)
      : block(block), rule(rule), place(place), machine(machine), number(number) {}

  /// Those of gradients.
  void fill(llvm::function_ref<bool(dist::CollectiveKind)> isKind) {
    llvm::DenseSet<Operation *> gradients = gradientsOfParameters(block);
    int64_t count = 0;
    for (auto op : block.getOps<dist::CollectiveOp>())
      if (isKind(op.getKind()) && gradients.contains(op) && !dist::fusionOf(op))
        add({keyOf(op), 0}, op, count++, tensorBytes(op));
    warnOfIdleCuts(count);
    closeAll();
  }

  /// AllReduces of the update, such as those of norms, that do not wait for each other.
  void fillOfUpdate() {
    auto isOfUpdate = [](Operation *op) {
      auto collective = dyn_cast<dist::CollectiveOp>(op);
      return collective && collective.getKind() == dist::CollectiveKind::AllReduce && net::getPhase(op) == net::Phase::Update;
    };
    auto writes = [](Operation *op) { return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<net::UpdateOp>(user); }); };
    llvm::DenseMap<Operation *, int64_t> waits; // for so many of them, one after the other
    auto behind = [&](Operation &op) {
      int64_t before = 0;
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp())
          before = std::max(before, waits.lookup(maker) + isOfUpdate(maker));
      return before;
    };
    int64_t count = 0;
    for (Operation &op : block) {
      int64_t before = behind(op);
      for (Operation *user : op.getUsers())
        if (isa<net::SelectOp>(user) && writes(user)) // what is only taken where something holds is computed behind that
          before = std::max(before, behind(*user));
      waits[&op] = before;
      if (auto collective = dyn_cast<dist::CollectiveOp>(&op); isOfUpdate(&op) && !dist::fusionOf(collective))
        add({keyOf(collective), before}, collective, count++, summedBytes(collective));
    }
    closeAll();
  }

private:
  /// Cuts behind the last collective.
  void warnOfIdleCuts(int64_t count) const {
    for (int64_t cut : rule.indices)
      if (cut >= count) {
        emitWarning(place) << "'comm_fusion' cuts the AllReduces of gradients at " << cut << ", but there are " << count
                           << ", counted from 0";
        return;
      }
  }

  struct Bucket {
    llvm::SetVector<Operation *> ops;
    int64_t bytes = 0, received = 0; ///< sums over `ops`
    int64_t first = 0; ///< number of the first collective among all of the kind
  };

  /// `bytes` count towards the limit.
  void add(const std::pair<BucketKey, int64_t> &key, dist::CollectiveOp op, int64_t index, int64_t bytes) {
    Bucket &bucket = open[key];
    if (!bucket.ops.empty() && !fits(bucket, op, index, bytes))
      full.push_back(std::exchange(bucket, {}));
    if (bucket.ops.empty())
      bucket.first = index;
    bucket.ops.insert(op);
    bucket.bytes += bytes;
    bucket.received += dist::receivedBytes(op);
  }

  void closeAll() {
    for (const Bucket &bucket : full)
      close(bucket);
    for (const auto &[key, bucket] : open)
      close(bucket);
  }

  bool fits(const Bucket &bucket, dist::CollectiveOp op, int64_t index, int64_t bytes) const {
    for (Operation *at = op.getSource().getDefiningOp(); at && onlyMoves(at); at = at->getOperand(0).getDefiningOp())
      if (bucket.ops.contains(at))
        return false;
    switch (rule.mode) {
    case FusionRule::Mode::Off: return false;
    case FusionRule::Mode::Index:
      return llvm::none_of(rule.indices, [&](int64_t cut) { return bucket.first < cut && cut <= index; });
    case FusionRule::Mode::Size: return bucket.bytes + bytes <= rule.megabytes << 20;
    case FusionRule::Mode::Auto: break;
    }
    auto us = [&](int64_t received) {
      const GroupShape group = groupShape(op.getGroupMatrix().vec(), op.getGroupAxes().vec());
      return machine.moveUs(dist::moveKindOf(op), group, static_cast<double>(received));
    };
    const int64_t own = dist::receivedBytes(op);
    return bucket.bytes + bytes <= rule.megabytes << 20 && us(bucket.received + own) < us(bucket.received) + us(own);
  }

  /// All members stand in front of the last one, and what reads them behind it.
  void close(const Bucket &bucket) {
    if (bucket.ops.size() < 2)
      return;
    Operation *last = bucket.ops.back();
    llvm::SetVector<Operation *> readers;
    for (Operation *op : bucket.ops) {
      dist::setFusion(op, number);
      for (Operation *user : op->getUsers())
        readers.insert(user);
    }
    for (size_t i = 0; i < readers.size(); ++i) // grows
      for (Operation *user : readers[i]->getUsers())
        readers.insert(user);
    SmallVector<Operation *> early;
    for (Operation *reader : readers)
      if (reader->isBeforeInBlock(last))
        early.push_back(reader);
    llvm::sort(early, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : bucket.ops.getArrayRef().drop_back())
      op->moveBefore(last);
    for (Operation *reader : llvm::reverse(early))
      reader->moveAfter(last);
    ++number;
  }

  Block &block;
  const FusionRule &rule;
  Location place;
  const MachineModel &machine;
  int64_t &number;
  std::map<std::pair<BucketKey, int64_t>, Bucket> open; ///< by how many of the same kind they wait for
  std::vector<Bucket> full;
};

/// Of `comm_fusion`, in the file or as a flag.
Location placeOfRules(ModuleOp module) {
  for (auto config : module.getOps<net::ConfigOp>())
    if (auto place = config.getLocations().getAs<LocationAttr>("comm_fusion"); place && config.getKind() == "context")
      return place;
  return module.getLoc();
}

struct FuseCollectives : PassWrapper<FuseCollectives, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseCollectives)
  explicit FuseCollectives(const CommFusion &rules) : rules(rules) {}
  StringRef getArgument() const override { return "msc-fuse-collectives"; }
  StringRef getDescription() const override { return "runs collectives of gradients, and norms, of one group together, in buckets"; }

  void runOnOperation() override {
    const MachineModel &machine = dist::machineOf(getOperation());
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      Block &block = network.getBody().front();
      int64_t number = 1;
      auto fuse = [&](const FusionRule &rule, llvm::function_ref<bool(dist::CollectiveKind)> isKind) {
        Buckets(block, rule, placeOfRules(getOperation()), machine, number).fill(isKind);
      };
      using Kind = dist::CollectiveKind;
      fuse(rules.allReduce, [](Kind kind) { return kind == Kind::AllReduce; });
      fuse(rules.reduceScatter, [](Kind kind) { return kind == Kind::ReduceScatter; });
      fuse(rules.allGather, [](Kind kind) { return kind == Kind::AllGather; });
      FusionRule norms = rules.allReduce;
      if (norms.mode == FusionRule::Mode::Index) // numbers are those of gradients
        norms.mode = FusionRule::Mode::Auto;
      Buckets(block, norms, placeOfRules(getOperation()), machine, number).fillOfUpdate();
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }

  CommFusion rules;
};

} // namespace

std::unique_ptr<Pass> createFuseCollectivesPass(const CommFusion &rules) { return std::make_unique<FuseCollectives>(rules); }

} // namespace msc::passes
