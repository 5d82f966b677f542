// The pass `msc-mixed-precision`.
#include "passes/infer/Passes.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/Repeat.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"

namespace msc::infer {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/infer/Passes.h.inc"
} // namespace msc::infer

using namespace mlir;
using namespace msc;
using namespace msc::net;

namespace {

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }
bool isNarrow(Value value) { return elementOf(value).isBF16() || elementOf(value).isF16(); }
bool isF32(Value value) { return elementOf(value).isF32(); }

/// What an operator wants its floats to be.
enum class Wish { Narrow, Full, AsTheyAre };

class Precision {
public:
  Precision(StringRef level, Type narrow, bool narrowAttention) : level(level), narrow(narrow), narrowAttention(narrowAttention) {}

  void run(NetworkOp network) {
    run(network.getBody().front());
    markRecomputed();
  }

private:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto repeat = dyn_cast<RepeatOp>(op))
        run(repeat.getBody().front());
      if (!isa<Operator>(op)) // results, carried values, updates: they keep their types
        castOperands(&op, Float32Type::get(op.getContext()), [&](Value value) { return retyped.contains(value); });
      else if (!isa<CastOp>(op))
        give(&op);
    }
  }

  /// One number of many, as a loss that a network writes itself ends: half of its digits would be lost, and a scaled one is infinite in f16.
  static bool makesOneNumber(Operation *op) {
    auto rank = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
    return llvm::all_of(op->getResults(), [&](Value result) { return rank(result) == 0; });
  }

  Wish wishOf(Operation *op) const {
    if (op->hasTrait<IsLoss>() || (makesOneNumber(op) && !op->hasTrait<NarrowOperands>()) || (op->hasTrait<IsNorm>() && level != "O3"))
      return Wish::Full;
    if (op->hasTrait<NarrowOperands>())
      return Wish::Narrow;
    if (level == "O1")
      return Wish::Full;
    bool computed = llvm::any_of(op->getOperands(), [](Value value) {
      return (isF32(value) || isNarrow(value)) && !value.getDefiningOp<ParamOp>() && !value.getDefiningOp<ConstantOp>();
    });
    return computed ? Wish::Narrow : Wish::AsTheyAre;
  }

  void give(Operation *op) {
    Wish wish = wishOf(op);
    Type full = Float32Type::get(op->getContext());
    if (wish == Wish::Narrow) {
      SmallVector<Value> before(op->getOperands());
      castOperands(op, narrow, isF32);
      if (!staysFull(op) && succeeded(retypeResults(op)))
        return;
      op->setOperands(before);
      wish = Wish::Full; // its definition, or its kernels, do not know narrow types
    }
    if (wish == Wish::Full)
      castOperands(op, full, [&](Value value) { return retyped.contains(value); });
  }

  /// Attention in f32, where no kernel takes the narrow type: what it keeps is not rounded then.
  bool staysFull(Operation *op) const {
    return !narrowAttention && isa<ScaledDotProductAttentionOp>(op) && isF32(op->getResult(0));
  }

  void castOperands(Operation *op, Type element, llvm::function_ref<bool(Value)> which) {
    for (OpOperand &operand : op->getOpOperands())
      if (which(operand.get()))
        operand.set(inType(op, operand.get(), element));
  }

  /// One cast per value, type and block, in front of the first operator that wants it.
  Value inType(Operation *op, Value value, Type element) {
    Value &known = casts[{op->getBlock(), value, element}];
    if (!known) {
      OpBuilder builder(op);
      auto constant = value.getDefiningOp<ConstantOp>();
      if (constant) {
        auto type = cast<RankedTensorType>(value.getType()).clone(element);
        known = builder.create<ConstantOp>(constant.getLoc(), type, constant.getSplatAttr());
      } else {
        auto cast = builder.create<CastOp>(op->getLoc(), value, element);
        setScope(cast, getScope(op));
        StringRef name = value.getDefiningOp<RepeatOp>() ? "" : getValueName(value); // those of repeats are patterns
        std::string own = ((name.empty() ? getInstanceName(op) : name) + "." + elementText(element)).str();
        if (op->getParentOfType<RepeatOp>() && !name.empty() && !isa<RepeatOp>(value.getParentBlock()->getParentOp()))
          own = escapedName(own); // it speaks of no round
        for (auto repeat = op->getParentOfType<RepeatOp>(); repeat; repeat = repeat->getParentOfType<RepeatOp>())
          own = nameWithRound(own, repeat.getVariable()); // each round has a cast of its own
        setValueNames(cast, {own});
        setInstanceName(cast, own);
        made.push_back(cast);
        known = cast.getResult();
      }
    }
    return known;
  }

  /// The results have the types that the operands give them.
  LogicalResult retypeResults(Operation *op) {
    SmallVector<Type> types;
    auto inference = cast<InferTypeOpInterface>(op);
    if (failed(inference.inferReturnTypes(op->getContext(), std::nullopt, op->getOperands(), op->getAttrDictionary(),
                                          op->getPropertiesStorage(), op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip(op->getResults(), types))
      if (result.getType() != type) {
        result.setType(type);
        retyped.insert(result);
      }
    return success();
  }

  /// Casts in what is computed again are computed again themselves, or they would be kept in place of what is not.
  void markRecomputed() {
    for (CastOp cast : made) {
      SmallVector<Operation *> readers = readersOf(cast.getResult());
      auto isAgain = [](Operation *reader) { return isRecomputed(reader) || readsRecomputed(reader); };
      // Parameters are there in any case; another source only where nobody else wants the cast kept.
      if (cast.getOperand().getDefiningOp<ParamOp>() ? llvm::any_of(readers, isAgain) : !readers.empty() && llvm::all_of(readers, isAgain))
        setRecomputed(cast);
    }
  }

  /// The operator that makes the result of a marked cell is not marked: what goes from one cell to the next is kept.
  static bool readsRecomputed(Operation *op) {
    return llvm::any_of(op->getOperands(), [](Value operand) {
      while (auto cast = operand.getDefiningOp<CastOp>())
        operand = cast.getOperand();
      return operand.getDefiningOp() && isRecomputed(operand.getDefiningOp());
    });
  }

  /// The operators that read a value, also in the rounds to which a repeat carries it.
  static SmallVector<Operation *> readersOf(Value value) {
    SmallVector<Operation *> readers;
    SetVector<Value> values;
    values.insert(value);
    for (size_t i = 0; i < values.size(); ++i)
      for (OpOperand &use : values[i].getUses()) {
        Operation *user = use.getOwner();
        if (auto repeat = dyn_cast<RepeatOp>(isa<YieldOp>(user) ? user->getParentOp() : user))
          values.insert(repeat.getBody().getArgument(use.getOperandNumber()));
        else
          readers.push_back(user);
      }
    return readers;
  }

  StringRef level;
  Type narrow;
  bool narrowAttention;
  SmallVector<CastOp> made;
  DenseSet<Value> retyped; ///< that were f32
  DenseMap<std::tuple<Block *, Value, Type>, Value> casts;
};

struct MixedPrecision : public infer::impl::MixedPrecisionBase<MixedPrecision> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() override {
    if (level == "O0")
      return;
    MLIRContext *context = &getContext();
    Type narrow = element == "bf16" ? Type(BFloat16Type::get(context)) : Type(Float16Type::get(context));
    for (auto network : getOperation().getOps<NetworkOp>())
      Precision(level, narrow, narrowAttention).run(network);
  }
};

} // namespace
