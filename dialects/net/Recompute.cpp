#include "dialects/net/Recompute.h"

#include "dialects/net/NetOps.h"

bool msc::net::isCheap(mlir::Operation *op) { return mlir::isa<AddOp, SubOp, MulOp, SquareOp, CastOp, BroadcastToOp>(op); }
