#include "dialects/net/ops/support/Images.h"

#include "dialects/net/ops/support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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
  if (attributes.padMode != "pad" && llvm::any_of(attributes.pad, [](int64_t elements) { return elements != 0; })) {
    std::string pad = llvm::join(llvm::map_range(attributes.pad, [](int64_t elements) { return std::to_string(elements); }), ", ");
    (void)at.error("'pad' of '" + at.opName + "' is (" + pad + "), which has nothing to do with pad_mode " + attributes.padMode, {}, "write pad_mode: pad");
    return failure();
  }
  std::string why;
  auto windows = windowsOver(attributes, shape[2], shape[3], why);
  if (windows)
    return *windows;
  (void)at.error("'" + at.opName + "' of " + at.text(operand) + ": " + why, {operand});
  return failure();
}

bool isPointwise(const Window &window) {
  return window.kernel == 1 && window.stride == 1 && window.before == 0 && window.after == 0;
}

int32_t addImage(ShardingRule &rule, ArrayRef<int64_t> large, ArrayRef<int64_t> small, std::array<bool, 2> reaches,
                 FactorKind kind) {
  auto add = [&](const char *name, size_t d) {
    return rule.add({.name = name, .size = std::min(large[2 + d], small[2 + d]), .kind = kind, .halo = reaches[d]});
  };
  int32_t first = add("h", 0);
  add("w", 1);
  return first;
}

int32_t addWholeKernel(ShardingRule &rule, ArrayRef<int64_t> shape) {
  constexpr const char *reason = "every rank needs all of the kernel";
  int32_t first = rule.add({.name = "s", .size = shape[2], .kind = FactorKind::Replicated, .reason = reason});
  rule.add({.name = "t", .size = shape[3], .kind = FactorKind::Replicated, .reason = reason});
  return first;
}

} // namespace msc::net
