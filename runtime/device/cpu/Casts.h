// Casts between f32 and bf16 beside oneDNN's reorders. The library casts while it brings tensors into other orders, but on processors without
// AVX-512 one element at a time, which takes longer than the products behind it.
#pragma once

#include "runtime/device/cpu/calls/Elements.h"

#include <dnnl.hpp>
#include <vector>

namespace msc::device {

/// Does the library cast while it reorders by kernels of its own?
bool castsWell(const dnnl::reorder::primitive_desc &reorder);

/// As f32.
void widen(const calls::BFloat16 *from, float *to, int64_t count);
/// To the nearest number of bf16, ties to even.
void narrow(const float *from, calls::BFloat16 *to, int64_t count);

/// Casts of a tensor that lies in memory with strides, to f32 that lies together, and back; what lies between its elements is neither read
/// nor written.
class DenseCast {
public:
  /// Of bf16, with strides and no blocks.
  explicit DenseCast(const dnnl::memory::desc &narrow);

  /// The tensor in f32, row-major.
  const dnnl::memory::desc &wide() const { return wideDesc; }
  void toWide(const calls::BFloat16 *from, float *to) const;
  void toNarrow(const float *from, calls::BFloat16 *to) const;

private:
  struct Dim {
    int64_t size, stride;
  };
  /// Calls f(element of the tensor, element of the wide one, how many lie together in both).
  template <typename Function> void forRuns(Function f) const;

  dnnl::memory::desc wideDesc;
  std::vector<Dim> outer; ///< from the outermost on
  Dim run{1, 1};          ///< the innermost dimensions, as far as they are one
};

} // namespace msc::device
