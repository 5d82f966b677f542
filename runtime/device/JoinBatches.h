// Batches of matrix products that are one product.
#pragma once

#include "runtime/device/Device.h"

namespace msc::device {

/// Rows of all batch entries that multiply one right operand are rows of one product, where they lie together: so are those of activations
/// (batch, sequence, width). Other products stay as they are.
MatMulSpec joinBatches(MatMulSpec spec);

} // namespace msc::device
