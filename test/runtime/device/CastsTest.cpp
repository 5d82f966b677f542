// Casts of tensors with strides.
#include "runtime/device/cpu/Casts.h"

#include <gtest/gtest.h>

#include <random>

using namespace msc;
using namespace msc::device;
using calls::BFloat16;

/// All elements go there and back, row-major in f32; what lies between them stays as it is.
TEST(Casts, OfTensorsWithStrides) {
  struct Case {
    dnnl::memory::dims sizes, strides;
  };
  const Case cases[] = {{{2, 3, 4, 5}, {60, 20, 5, 1}},   // dense: one run
                        {{2, 3, 4, 5}, {200, 60, 7, 1}},  // cut out of larger planes
                        {{2, 3, 4, 5}, {240, 80, 20, 2}}, // every other element
                        {{1, 3, 1, 5}, {999, 40, 77, 1}}, // strides of single elements say nothing
                        {{4, 6}, {1, 4}},                 // transposed
                        {{1, 1}, {9, 9}},
                        {{3}, {1}}};
  std::mt19937 draw(1);
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.strides));
    const DenseCast cast(dnnl::memory::desc(c.sizes, dnnl::memory::data_type::bf16, c.strides));
    int64_t count = 1, span = 1;
    for (size_t d = 0; d < c.sizes.size(); ++d)
      count *= c.sizes[d], span += (c.sizes[d] - 1) * c.strides[d];
    EXPECT_EQ(cast.wide().get_size(), count * sizeof(float));
    std::vector<BFloat16> given(span), back(span, BFloat16(7.0f));
    for (BFloat16 &element : given)
      element = BFloat16(std::uniform_real_distribution<float>(-1, 1)(draw));
    std::vector<float> wide(count);
    cast.toWide(given.data(), wide.data());
    std::vector<bool> isElement(span);
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0, rest = i;
      for (size_t d = c.sizes.size(); d-- > 0; rest /= c.sizes[d])
        at += rest % c.sizes[d] * c.strides[d];
      isElement[at] = true;
      EXPECT_EQ(wide[i], static_cast<float>(given[at])) << i;
      wide[i] = wide[i] * (1 + 0x1p-10f); // rounds
      given[at] = BFloat16(wide[i]);
    }
    cast.toNarrow(wide.data(), back.data());
    for (int64_t at = 0; at < span; ++at)
      EXPECT_EQ(static_cast<float>(back[at]), isElement[at] ? static_cast<float>(given[at]) : 7.0f) << at;
  }
}
