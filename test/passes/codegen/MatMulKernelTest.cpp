// The generated matrix product against the sum in the order of the depth, which it has to reproduce exactly.
#include "KernelTestSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace msc::test {
namespace {

using codegen::MatMulShape;

template <typename T> std::vector<T> reference(const MatMulShape &s, const std::vector<T> &left, const std::vector<T> &right) {
  std::vector<T> result(s.batch * s.m * s.n);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        const T *l = left.data() + (s.broadcastLeft ? 0 : b * s.m * s.k), *r = right.data() + (s.broadcastRight ? 0 : b * s.k * s.n);
        T sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          T x = s.transposeLeft ? l[k * s.m + i] : l[i * s.k + k], y = s.transposeRight ? r[j * s.k + k] : r[k * s.n + j];
          if constexpr (std::is_floating_point_v<T>)
            sum = std::fma(x, y, sum);
          else
            sum = T(std::make_unsigned_t<T>(sum) + std::make_unsigned_t<T>(x) * std::make_unsigned_t<T>(y));
        }
        result[(b * s.m + i) * s.n + j] = sum;
      }
  return result;
}

template <typename T> void check(mlir::Type element) {
  codegen::KernelLibrary library;
  std::vector<std::pair<MatMulShape, codegen::CompiledKernel>> kernels;
  std::mt19937_64 random(7);
  auto pick = [&](std::initializer_list<int64_t> list) { return list.begin()[random() % list.size()]; };
  auto location = mlir::UnknownLoc::get(&context());
  for (int i = 0; i < 40; ++i) {
    MatMulShape shape;
    shape.element = element;
    shape.m = pick({0, 1, 3, 4, 5, 17, 64, 70}), shape.n = pick({0, 1, 7, 8, 9, 16, 24, 31, 65});
    shape.k = pick({0, 1, 2, 8, 13, 127, 128, 129, 300});
    shape.transposeLeft = random() & 1, shape.transposeRight = random() & 1;
    shape.batch = pick({1, 1, 2, 3});
    shape.broadcastLeft = shape.batch > 1 && random() % 4 == 0, shape.broadcastRight = shape.batch > 1 && random() % 4 == 0;
    shape.resultRank = random() % 4 == 0 ? 0 : 3;
    kernels.push_back({shape, *library.addMatMul(shape, location)});
  }
  auto objects = library.finish(location);
  ASSERT_TRUE(mlir::succeeded(objects));
  for (const codegen::CodeObject &object : *objects) {
    if (!cpuHas(object.isa))
      continue;
    LoadedObject loaded(object.bytes);
    for (auto &[shape, kernel] : kernels) {
      std::vector<T> left((shape.broadcastLeft ? 1 : shape.batch) * shape.m * shape.k), right((shape.broadcastRight ? 1 : shape.batch) * shape.k * shape.n);
      for (T &x : left)
        x = std::is_floating_point_v<T> ? T(random() % 2001) / 1000 - 1 : T(random());
      for (T &x : right)
        x = std::is_floating_point_v<T> ? T(random() % 2001) / 1000 - 1 : T(random());
      std::vector<T> want = reference(shape, left, right);
      Buffer a(left.size() * sizeof(T)), b(right.size() * sizeof(T)), c(want.size() * sizeof(T));
      std::memcpy(a.data(), left.data(), a.size());
      std::memcpy(b.data(), right.data(), b.size());
      int64_t rows = shape.resultRank ? shape.batch * shape.m : 1, cut = rows / 2 / kernel.unit * kernel.unit;
      void *symbol = loaded.symbol(kernel.symbol);
      callKernel(symbol, {a.data(), b.data(), c.data()}, cut, rows);
      callKernel(symbol, {a.data(), b.data(), c.data()}, 0, cut);
      EXPECT_TRUE(c.guardIntact());
      EXPECT_EQ(std::memcmp(c.data(), want.data(), c.size()), 0)
          << fmt::format("{} x {} x {}, batch {}, transposed {} {}, {}", shape.m, shape.n, shape.k, shape.batch,
                         shape.transposeLeft, shape.transposeRight, object.isa);
    }
  }
}

TEST(MatMulKernel, ReproducesTheSumInOrderOfTheDepth) {
  mlir::Builder builder(&context());
  check<float>(builder.getF32Type());
  check<double>(builder.getF64Type());
  check<int32_t>(builder.getI32Type());
  check<int64_t>(builder.getI64Type());
}

} // namespace
} // namespace msc::test
