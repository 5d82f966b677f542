// Windows that kernels gather, and those of narrow tensors. Kernels that gather windows compute in f32, but ranks exchange what is stored, and cast what they got.
#pragma once

#include "dialects/net/Halo.h"
#include "dialects/net/NetOps.h"

namespace msc::passes {

/// A cast of a narrow tensor to f32 of which nobody reads more than windows: the whole of it need not be made.
bool isReadInWindows(net::CastOp cast);

/// What such a cast reads, if it makes `operand`; else null.
mlir::Value storedNarrow(mlir::Value operand);

/// For every dimension of every operand its size where the kernel gets windows of it, else 0; null without any.
mlir::DenseI64ArrayAttr windowedSizes(mlir::Operation *op, llvm::ArrayRef<net::HaloWindows> all);

} // namespace msc::passes
