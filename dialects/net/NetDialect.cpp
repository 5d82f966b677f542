#include "dialects/net/NetDialect.h"

#include "dialects/net/Documentation.h"
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "dialects/net/ops/print/Print.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Losses.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace msc::net;

#include "dialects/net/NetDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/net/Structure.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/net/NetOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/net/ops/communication/CommunicationOps.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/net/ops/print/Print.cpp.inc"

void NetDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/net/Structure.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/net/NetOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/net/ops/communication/CommunicationOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/net/ops/print/Print.cpp.inc"
      >();
}

namespace {
template <typename Op> void addDocumentation(StringRef mnemonic, std::optional<Documentation> &found) {
  if constexpr (Op::template hasTrait<Operator::Trait>())
    if (Op::getOperationName().drop_front(NetDialect::getDialectNamespace().size() + 1) == mnemonic)
      found = documentationOf<Op>();
}

template <typename... Ops> std::optional<Documentation> findDocumentation(StringRef mnemonic) {
  std::optional<Documentation> found;
  (addDocumentation<Ops>(mnemonic, found), ...);
  return found;
}
} // namespace

std::optional<Documentation> msc::net::documentationOf(StringRef mnemonic) {
  std::optional<Documentation> found = findDocumentation<
#define GET_OP_LIST
#include "dialects/net/NetOps.cpp.inc"
      >(mnemonic);
  if (!found)
    found = findDocumentation<
#define GET_OP_LIST
#include "dialects/net/ops/communication/CommunicationOps.cpp.inc"
        >(mnemonic);
  return found ? found : findDocumentation<
#define GET_OP_LIST
#include "dialects/net/ops/print/Print.cpp.inc"
      >(mnemonic);
}

void msc::net::registerNetDialect(DialectRegistry &registry) {
  registry.insert<NetDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect, tensor::TensorDialect>();
}
