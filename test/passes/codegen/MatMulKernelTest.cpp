// The generated matrix product against the sum in the order of the depth, which it has to reproduce exactly.
#include "KernelTestSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace msc::test {
namespace {

using codegen::BatchDim;
using codegen::MatMulShape;

int64_t batchesOf(const MatMulShape &shape, bool BatchDim::*has = nullptr) {
  int64_t count = 1;
  for (const BatchDim &dim : shape.batch)
    count *= !has || dim.*has ? dim.size : 1;
  return count;
}

/// For every batch of the result the matrix of an operand: positions run like an odometer, the last one fastest.
std::vector<int64_t> matricesOf(const MatMulShape &shape, bool BatchDim::*has) {
  std::vector<int64_t> list, position(shape.batch.size(), 0);
  for (int64_t batch = 0; batch < batchesOf(shape); ++batch) {
    int64_t matrix = 0;
    for (size_t dim = 0; dim < position.size(); ++dim)
      if (shape.batch[dim].*has)
        matrix = matrix * shape.batch[dim].size + position[dim];
    list.push_back(matrix);
    for (size_t dim = position.size(); dim-- > 0 && ++position[dim] == shape.batch[dim].size;)
      position[dim] = 0;
  }
  return list;
}

template <typename T> std::vector<T> reference(const MatMulShape &s, const std::vector<T> &left, const std::vector<T> &right) {
  std::vector<T> result(batchesOf(s) * s.m * s.n);
  std::vector<int64_t> lefts = matricesOf(s, &BatchDim::inLeft), rights = matricesOf(s, &BatchDim::inRight);
  for (int64_t b = 0; b < batchesOf(s); ++b)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        const T *l = left.data() + lefts[b] * s.m * s.k, *r = right.data() + rights[b] * s.k * s.n;
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

std::string textOf(const MatMulShape &shape) {
  std::string text = fmt::format("{} x {} x {}, transposed {} {}, batch", shape.m, shape.n, shape.k, shape.transposeLeft, shape.transposeRight);
  for (const BatchDim &dim : shape.batch)
    text += fmt::format(" {}{}{}", dim.size, dim.inLeft ? "l" : "", dim.inRight ? "r" : "");
  return text;
}

/// Random products of one type.
template <typename T> void check(mlir::Type element, unsigned seed) {
  codegen::KernelLibrary library({.cpu = true, .gpu = true});
  std::vector<std::pair<MatMulShape, codegen::CompiledKernel>> kernels;
  std::mt19937_64 random(seed);
  auto pick = [&](std::initializer_list<int64_t> list) { return list.begin()[random() % list.size()]; };
  auto location = mlir::UnknownLoc::get(&context());
  for (int i = 0; i < 60; ++i) {
    MatMulShape shape;
    shape.element = element;
    shape.m = pick({0, 1, 3, 4, 5, 17, 64, 70}), shape.n = pick({0, 1, 7, 8, 9, 16, 24, 31, 65});
    shape.k = pick({0, 1, 2, 8, 13, 127, 128, 129, 300});
    shape.transposeLeft = random() & 1, shape.transposeRight = random() & 1;
    for (int64_t dims = pick({0, 0, 1, 2, 3, 4}); dims > 0; --dims) {
      int64_t owners = pick({1, 2, 3, 3}); // bit 0: left, bit 1: right
      shape.batch.push_back({pick({1, 2, 3}), (owners & 1) != 0, (owners & 2) != 0});
    }
    kernels.push_back({shape, *library.addMatMul(shape, location)});
  }
  GpuEmulator gpu(library.gpuIrText());
  auto objects = library.finish(location);
  ASSERT_TRUE(mlir::succeeded(objects));
  using Launch = llvm::function_ref<void(const codegen::CompiledKernel &, const std::vector<void *> &, int64_t rows)>;
  auto checkAll = [&](const std::string &target, Launch launch) {
    for (auto &[shape, kernel] : kernels) {
      std::vector<T> left(batchesOf(shape, &BatchDim::inLeft) * shape.m * shape.k);
      std::vector<T> right(batchesOf(shape, &BatchDim::inRight) * shape.k * shape.n);
      for (T &x : left)
        x = std::is_floating_point_v<T> ? T(random() % 2001) / 1000 - 1 : T(random());
      for (T &x : right)
        x = std::is_floating_point_v<T> ? T(random() % 2001) / 1000 - 1 : T(random());
      std::vector<T> want = reference(shape, left, right);
      Buffer a(left.size() * sizeof(T)), b(right.size() * sizeof(T)), c(want.size() * sizeof(T));
      std::copy(left.begin(), left.end(), reinterpret_cast<T *>(a.data())); // not memcpy: both may be empty
      std::copy(right.begin(), right.end(), reinterpret_cast<T *>(b.data()));
      launch(kernel, {a.data(), b.data(), c.data()}, batchesOf(shape) * shape.m);
      EXPECT_TRUE(c.guardIntact());
      EXPECT_TRUE(want.empty() || std::memcmp(c.data(), want.data(), c.size()) == 0) << textOf(shape) << ", " << target;
    }
  };
  for (const codegen::CodeObject &object : *objects) {
    if (!cpuHas(object.isa))
      continue;
    LoadedObject loaded(object.bytes);
    checkAll(object.isa, [&](const codegen::CompiledKernel &kernel, const std::vector<void *> &pointers, int64_t rows) {
      int64_t cut = rows / 2 / kernel.unit * kernel.unit;
      void *symbol = loaded.symbol(kernel.symbol);
      callKernel(symbol, pointers, cut, rows);
      callKernel(symbol, pointers, 0, cut);
    });
  }
  for (auto order : {GpuEmulator::Order::Forward, GpuEmulator::Order::Backward})
    checkAll("emulated GPU", [&](const codegen::CompiledKernel &kernel, const std::vector<void *> &pointers, int64_t rows) {
      callEmulated(gpu, kernel, pointers, rows, order);
    });
}

TEST(MatMulKernel, SharesAKernelBetweenBatchesThatAreReadAlike) {
  codegen::KernelLibrary library;
  auto symbol = [&](std::initializer_list<BatchDim> batch) {
    MatMulShape shape;
    shape.element = mlir::Builder(&context()).getF64Type();
    shape.m = 4, shape.n = 5, shape.k = 6;
    shape.batch.assign(batch);
    return library.addMatMul(shape, mlir::UnknownLoc::get(&context()))->symbol;
  };
  std::string mixed = symbol({{3, true, false}, {2, false, true}});
  EXPECT_EQ(symbol({{7, true, false}, {2, false, true}}), mixed); // the outermost size is only counted
  EXPECT_EQ(symbol({{3, true, false}, {1, true, true}, {5, true, false}, {2, false, true}}), mixed);
  EXPECT_NE(symbol({{3, true, false}, {4, false, true}}), mixed);
  EXPECT_NE(symbol({{3, false, true}, {2, true, false}}), mixed);
  EXPECT_EQ(symbol({{2}, {3}}), symbol({{5}}));
  EXPECT_EQ(symbol({}), symbol({{1}, {1, true, false}}));
}

TEST(MatMulKernel, ReproducesTheSumInOrderOfTheDepth) {
  mlir::Builder builder(&context());
  for (unsigned seed = 1; seed <= rounds(1); ++seed) {
    check<float>(builder.getF32Type(), seed);
    check<double>(builder.getF64Type(), seed);
    check<int32_t>(builder.getI32Type(), seed);
    check<int64_t>(builder.getI64Type(), seed);
  }
  fmt::print("  {} products of each type\n", 60 * rounds(1));
}

} // namespace
} // namespace msc::test
