#include "runtime/device/cpu/Casts.h"

#include <array>
#include <string_view>

namespace msc::device {

using calls::BFloat16;

bool castsWell(const dnnl::reorder::primitive_desc &reorder) {
  return std::string_view(reorder.impl_info_str()).find("jit") != std::string_view::npos;
}

void widen(const BFloat16 *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]);
}

void narrow(const float *from, BFloat16 *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = BFloat16(from[i]);
}

DenseCast::DenseCast(const dnnl::memory::desc &narrow) {
  const dnnl::memory::dims sizes = narrow.dims();
  dnnl::memory::dims together(sizes.size());
  int64_t elements = 1;
  for (size_t d = sizes.size(); d-- > 0; elements *= sizes[d])
    together[d] = elements;
  wideDesc = dnnl::memory::desc(sizes, dnnl::memory::data_type::f32, together);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1)
      continue;
    const Dim dim{sizes[d], narrow.data.format_desc.blocking.strides[d]};
    if (!outer.empty() && outer.back().stride == dim.size * dim.stride)
      outer.back() = {outer.back().size * dim.size, dim.stride};
    else
      outer.push_back(dim);
  }
  if (!outer.empty() && outer.back().stride == 1) {
    run = outer.back();
    outer.pop_back();
  }
}

template <typename Function> void DenseCast::forRuns(Function f) const {
  int64_t rows = 1;
  for (const Dim &dim : outer)
    rows *= dim.size;
  std::array<int64_t, DNNL_MAX_NDIMS> at{};
  int64_t offset = 0;
  for (int64_t row = 0; row < rows; ++row) {
    f(offset, row * run.size, run.size);
    for (size_t d = outer.size(); d-- > 0;) {
      offset += outer[d].stride;
      if (++at[d] < outer[d].size)
        break;
      offset -= outer[d].size * outer[d].stride;
      at[d] = 0;
    }
  }
}

void DenseCast::toWide(const BFloat16 *from, float *to) const {
  forRuns([&](int64_t element, int64_t wide, int64_t count) { widen(from + element, to + wide, count); });
}

void DenseCast::toNarrow(const float *from, BFloat16 *to) const {
  forRuns([&](int64_t element, int64_t wide, int64_t count) { narrow(from + wide, to + element, count); });
}

} // namespace msc::device
