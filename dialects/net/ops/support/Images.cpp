#include "dialects/net/ops/support/Images.h"

#include "dialects/net/ops/support/Words.h"

using namespace mlir;

namespace msc::net {

LogicalResult checkImage(const Inference &at, unsigned operand, StringRef dataFormat) {
  if (at.rank(operand) != 4)
    return at.error("'" + at.opName + "' takes images of 4 dimensions (N, C, H, W), but " + at.text(operand) + " is given",
                    {operand});
  if (failed(at.checkElement(operand, ElementSet::Float)))
    return failure();
  return checkWord(at, "data_format", dataFormat, kImageFormats);
}

FailureOr<std::array<Window, 2>> windowsOf(const Inference &at, unsigned operand, ArrayRef<int64_t> shape,
                                           const WindowAttributes &attributes) {
  std::string why;
  auto windows = windowsOver(attributes, shape[2], shape[3], why);
  if (windows)
    return *windows;
  (void)at.error("'" + at.opName + "' of " + at.text(operand) + ": " + why, {operand});
  return failure();
}

int32_t addWholeImage(ShardingRule &rule, ArrayRef<int64_t> shape, const char *rows, const char *columns, const char *reason) {
  int32_t first = rule.add({.name = rows, .size = shape[2], .kind = FactorKind::Replicated, .reason = reason});
  rule.add({.name = columns, .size = shape[3], .kind = FactorKind::Replicated, .reason = reason});
  return first;
}

} // namespace msc::net
