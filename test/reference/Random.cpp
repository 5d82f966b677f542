// Random words by place, and zeros at random.
#include "runtime/data/Philox.h"
#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

/// Word 0 for a counter of a place and a step, and a key.
static uint32_t wordAt(uint64_t place, uint64_t step, uint64_t key) {
  auto low = [](uint64_t value) { return static_cast<uint32_t>(value); };
  auto high = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
  return philox({low(place), high(place), low(step), high(step)}, {low(key), high(key)})[0];
}

static uint64_t wholeOf(double value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }

/// x, and the step where elements are dropped.
static std::vector<Tensor> dropout(DropoutOp op, const std::vector<Tensor> &x) {
  double share = op.getKeepProb().convertToDouble();
  Tensor output = x[0], mask(x[0].shape, 1.0);
  if (!op.getCounter())
    return {output, mask};
  for (size_t i = 0; i < output.values.size(); ++i) {
    mask.values[i] = wordAt(i, wholeOf(x[1].values[0]), static_cast<uint64_t>(op.getStream().value_or(0))) < share * 0x1p32;
    output.values[i] = mask.values[i] != 0 ? output.values[i] / share : 0;
  }
  return {output, mask};
}

void addRandom(Table &table) {
  table["Dropout"] = [](mlir::Operation *op, const std::vector<Tensor> &x) { return dropout(llvm::cast<DropoutOp>(op), x); };
  table["RandomBits"] = [](mlir::Operation *, const std::vector<Tensor> &x) {
    Tensor output = x[0];
    for (double &value : output.values)
      value = wordAt(wholeOf(value), wholeOf(x[1].values[0]), wholeOf(x[2].values[0]));
    return std::vector<Tensor>{output};
  };
}

} // namespace msc::reference
