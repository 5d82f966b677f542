#include "dialects/net/TotalSum.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace msc::net {

SmallVector<int64_t> innerDimensions(Value value) {
  constexpr int64_t manyElements = 1 << 18, manyRows = 64;
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getNumElements() < manyElements)
    return {};
  int64_t rows = 1, dim = 0;
  for (; dim < type.getRank() && rows < manyRows && rows * type.getDimSize(dim) < type.getNumElements(); ++dim)
    rows *= type.getDimSize(dim);
  if (rows == 1)
    return {};
  return llvm::to_vector(llvm::seq(dim, type.getRank()));
}

} // namespace msc::net
