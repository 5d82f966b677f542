#include "runtime/device/cpu/NarrowProducts.h"

#include <dnnl.hpp>
#include <string_view>

namespace msc::device {

bool multipliesBFloat16() {
  static const bool does = [] {
    using Desc = dnnl::memory::desc;
    constexpr auto bf16 = dnnl::memory::data_type::bf16;
    try {
      const Desc square({64, 64}, bf16, dnnl::memory::format_tag::ab);
      dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(square, square, square), dnnl::engine(dnnl::engine::kind::cpu, 0));
      return std::string_view(chosen.impl_info_str()).find("amx") != std::string_view::npos;
    } catch (const dnnl::error &) {
      return false;
    }
  }();
  return does;
}

} // namespace msc::device
