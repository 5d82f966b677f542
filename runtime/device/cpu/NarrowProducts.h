// What processors can do with narrow numbers.
#pragma once

namespace msc::device {

/// The processor multiplies bf16 several times as fast as f32: by tiles (AMX), which this process may use then. AVX512_BF16 alone takes
/// longer than f32 (decision 13). DNNL_MAX_CPU_ISA can say that there are none.
bool multipliesBFloat16();

} // namespace msc::device
