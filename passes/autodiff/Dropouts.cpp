// Which random words dropouts draw, and the count of the steps that they draw in.
#include "dialects/net/ops/dropout/Draw.h"
#include "passes/autodiff/UpdateBuilder.h"
#include "runtime/data/Philox.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

static constexpr StringRef kCounter = "dropout.step";

static uint32_t low(int64_t value) { return static_cast<uint32_t>(value); }
static uint32_t high(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32); }

/// A word of 53 bits, which constants of a network hold exactly. Different for dropouts of different seeds or names.
static int64_t streamOf(DropoutOp op, uint64_t seed, const std::string &name) {
  RandomRow row(seed, "dropout:" + name);
  std::array<uint32_t, 4> words = row.words(0);
  std::array<uint32_t, 2> key{words[0], words[1]};
  auto first = static_cast<int64_t>(op.getSeed0()), second = static_cast<int64_t>(op.getSeed1());
  words = philox({low(first), high(first), low(second), high(second)}, key);
  return static_cast<int64_t>((uint64_t{words[0]} << 32 | words[1]) >> 11);
}

void msc::autodiff::beginDropouts(NetworkOp network, uint64_t seed, int64_t ranks) {
  llvm::StringMap<int> uses; // names need not be unique
  for (DropoutOp op : network.getBody().front().getOps<DropoutOp>()) {
    StringRef name = getInstanceName(op);
    int earlier = uses[name]++;
    op.beginTraining(kCounter, streamOf(op, seed, name.str() + (earlier == 0 ? "" : "#" + std::to_string(earlier))));
    if (ranks > 1)
      op->setAttr(kDrawingRanks, Builder(op.getContext()).getI64IntegerAttr(ranks));
  }
}

void msc::autodiff::removeDropouts(NetworkOp network) {
  for (DropoutOp op : llvm::make_early_inc_range(network.getBody().front().getOps<DropoutOp>())) {
    if (!op.getMask().use_empty())
      continue; // its parts give a mask that is true everywhere
    op.getOutput().replaceAllUsesWith(op.getX());
    op.erase();
  }
}

void msc::autodiff::countDraws(UpdateBuilder &update) {
  if (update.network().getBody().front().getOps<DropoutOp>().empty())
    return;
  Type i64 = IntegerType::get(update.network().getContext(), 64);
  Value steps = update.scalarState(kCounter, 0, i64).getValue();
  Value next = update.create<AddOp>(steps, update.constant(1, i64));
  update.create<UpdateOp>(steps, next);
}
