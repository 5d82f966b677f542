// Every math function of kernels against libm in a wider type, over random and special arguments.
#include "ClusterText.h"
#include "KernelTestSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace msc::test {
namespace {

template <typename T> struct Wide { using Type = double; using Bits = uint32_t; static constexpr const char *name = "f32"; };
template <> struct Wide<double> { using Type = long double; using Bits = uint64_t; static constexpr const char *name = "f64"; };

/// A kernel of one operation on vectors of one length, for the best instruction set of this CPU and for v3.
template <typename T> class Function {
public:
  Function(const std::string &operation, unsigned operands, int64_t count) : count(count) {
    ClusterText text("f");
    std::vector<std::string> names, maps(operands + 1, "a");
    std::string list;
    for (unsigned i = 0; i < operands; ++i) {
      names.push_back(fmt::format("a{}", i));
      text.argument(names.back(), {count}, Wide<T>::name);
      list += fmt::format("{}%x{}", i ? ", " : "", i);
    }
    text.generic("r", {count}, Wide<T>::name, "p", names, maps, fmt::format("%y = {} {} : {}", operation, list, Wide<T>::name));
    auto module = parse(text.returns({"r"}).str());
    codegen::KernelLibrary library;
    kernel = *library.add(*module->getOps<mlir::func::FuncOp>().begin());
    auto compiled = library.finish(module->getLoc());
    for (const codegen::CodeObject &object : *compiled)
      if (cpuHas(object.isa))
        objects.emplace_back(object.bytes);
  }

  /// Evaluates on every instruction set; the bits must agree.
  std::vector<T> operator()(const std::vector<std::vector<T>> &arguments) {
    std::vector<std::vector<T>> results;
    for (const LoadedObject &object : objects) {
      std::vector<Buffer> buffers(arguments.size() + 1, Buffer(0));
      std::vector<void *> pointers;
      for (size_t i = 0; i <= arguments.size(); ++i) {
        buffers[i] = Buffer(count * sizeof(T));
        if (i < arguments.size())
          std::memcpy(buffers[i].data(), arguments[i].data(), count * sizeof(T));
        pointers.push_back(buffers[i].data());
      }
      callKernel(object.symbol(kernel.symbol), pointers, 0, count);
      results.emplace_back(count);
      std::memcpy(results.back().data(), buffers.back().data(), count * sizeof(T));
    }
    for (const std::vector<T> &result : results)
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), count * sizeof(T)), 0) << "instruction sets differ";
    return results[0];
  }

private:
  int64_t count;
  codegen::CompiledKernel kernel;
  std::vector<LoadedObject> objects;
};

/// Distance in units in the last place of the type T at the true value.
template <typename T> double ulps(T got, typename Wide<T>::Type want) {
  if (std::isnan(want))
    return std::isnan(got) ? 0 : INFINITY;
  T rounded = T(want);
  if (got == rounded)
    return std::fabs(double((typename Wide<T>::Type)(got) - want)) == 0 || std::isinf(got)
               ? 0 : 0.5; // rounded correctly
  if (std::isinf(got) || std::isinf(rounded)) {
    // The largest finite number counts as neighbour of infinity.
    T largest = std::numeric_limits<T>::max();
    T finite = std::isinf(got) ? rounded : got;
    return std::fabs(finite) == largest ? 1 : INFINITY;
  }
  T magnitude = std::max(std::fabs(rounded), std::numeric_limits<T>::min());
  T next = std::nextafter(magnitude, std::numeric_limits<T>::infinity());
  typename Wide<T>::Type unit = std::isinf(next) ? magnitude - std::nextafter(magnitude, T(0)) : next - magnitude;
  return double(std::fabs((typename Wide<T>::Type)(got) - want) / unit);
}

template <typename T> const std::vector<T> &specials() {
  using L = std::numeric_limits<T>;
  static const std::vector<T> list = {T(0), T(-0.0), 1, -1, T(0.5), T(-0.5), 2, -2, 3, -3, L::infinity(), -L::infinity(),
                                      L::quiet_NaN(), L::min(), -L::min(), L::denorm_min(), -L::denorm_min(), L::max(),
                                      -L::max(), L::min() / 8, L::epsilon(), T(88.72), T(88.73), T(-87.3), T(-88), T(-103.9),
                                      T(-104.1), T(709.7), T(709.8), T(-745.1), T(-745.2), T(0.625), T(0.5625), 4, 6, 9,
                                      T(0.34657), T(0.7071067), T(1.4142135), T(1e10), T(-1e10), 7, -7, T(0.1)};
  return list;
}

/// Random numbers: half in [low, high], half with random bits (all exponents). Finite ones beyond `most` are taken again.
template <typename T>
std::vector<T> samples(double low, double high, size_t count, unsigned seed, double most = INFINITY) {
  std::mt19937_64 random(seed);
  std::vector<T> values = specials<T>();
  std::uniform_real_distribution<double> real(low, high);
  while (values.size() < count) {
    values.push_back(T(real(random)));
    typename Wide<T>::Bits bits = random();
    T any;
    std::memcpy(&any, &bits, sizeof(any));
    values.push_back(any);
  }
  for (T &value : values)
    if (std::isfinite(value) && std::fabs(value) > most)
      value = std::fmod(value, T(most));
  values.resize(count);
  return values;
}

template <typename T> using Reference = typename Wide<T>::Type (*)(typename Wide<T>::Type);

template <typename T>
void checkUnary(const std::string &operation, Reference<T> reference, double low, double high, double limit, double most = INFINITY) {
  constexpr size_t count = 1 << 16;
  Function<T> function(operation, 1, count);
  double worst = 0;
  T worstAt = 0;
  for (unsigned round = 0; round < rounds(16); ++round) {
    std::vector<T> x = samples<T>(low, high, count, round + 1, most), y = function({x});
    for (size_t i = 0; i < count; ++i) {
      double error = ulps<T>(y[i], reference(x[i]));
      if (!(error <= worst))
        worst = error, worstAt = x[i];
      // The sign of zero counts.
      if (x[i] == 0 && y[i] == 0 && reference(x[i]) == 0) {
        EXPECT_EQ(std::signbit(y[i]), std::signbit(reference(x[i]))) << operation;
      }
    }
  }
  fmt::print("  {} {}: {:.3f} ulp at {} of {} arguments\n", operation, Wide<T>::name, worst, worstAt, rounds(16) * count);
  EXPECT_LE(worst, limit) << operation << " of " << Wide<T>::name << " at " << worstAt;
}

template <typename T> typename Wide<T>::Type rsqrtOf(typename Wide<T>::Type x) { return 1 / std::sqrt(x); }

TEST(VectorMath, SingleStaysWithinItsUlps) {
  using W = double;
  checkUnary<float>("math.exp", [](W x) -> W { return std::exp(x); }, -104, 89, 1.3);
  checkUnary<float>("math.exp2", [](W x) -> W { return std::exp2(x); }, -150, 128, 1.3);
  checkUnary<float>("math.expm1", [](W x) -> W { return std::expm1(x); }, -2, 2, 2.5);
  checkUnary<float>("math.log", [](W x) -> W { return std::log(x); }, 0, 3, 1);
  checkUnary<float>("math.log1p", [](W x) -> W { return std::log1p(x); }, -1, 3, 2);
  checkUnary<float>("math.tanh", [](W x) -> W { return std::tanh(x); }, -10, 10, 1.5);
  checkUnary<float>("math.erf", [](W x) -> W { return std::erf(x); }, -4.5, 4.5, 2);
  checkUnary<float>("math.sin", [](W x) -> W { return std::sin(x); }, -50, 50, 0.6, 0x1p31);
  checkUnary<float>("math.cos", [](W x) -> W { return std::cos(x); }, -50, 50, 0.6, 0x1p31);
  checkUnary<float>("math.tan", [](W x) -> W { return std::tan(x); }, -50, 50, 0.6, 0x1p31);
  checkUnary<float>("math.sqrt", [](W x) -> W { return std::sqrt(x); }, 0, 100, 0.5);
  checkUnary<float>("math.rsqrt", rsqrtOf<float>, 0, 100, 1.5);
  checkUnary<float>("math.round", [](W x) -> W { return std::round(x); }, -9, 9, 0);
  checkUnary<float>("math.floor", [](W x) -> W { return std::floor(x); }, -9, 9, 0);
}

TEST(VectorMath, DoubleStaysWithinItsUlps) {
  using W = long double;
  checkUnary<double>("math.exp", [](W x) -> W { return std::exp(x); }, -746, 710, 1.1);
  checkUnary<double>("math.exp2", [](W x) -> W { return std::exp2(x); }, -1075, 1024, 1.1);
  checkUnary<double>("math.expm1", [](W x) -> W { return std::expm1(x); }, -2, 2, 2.5);
  checkUnary<double>("math.log", [](W x) -> W { return std::log(x); }, 0, 3, 1);
  checkUnary<double>("math.log1p", [](W x) -> W { return std::log1p(x); }, -1, 3, 2);
  checkUnary<double>("math.tanh", [](W x) -> W { return std::tanh(x); }, -20, 20, 1.5);
  checkUnary<double>("math.erf", [](W x) -> W { return std::erf(x); }, -6.5, 6.5, 2);
  checkUnary<double>("math.sin", [](W x) -> W { return std::sin(x); }, -50, 50, 1, 0x1p31);
  checkUnary<double>("math.cos", [](W x) -> W { return std::cos(x); }, -50, 50, 1, 0x1p31);
  checkUnary<double>("math.tan", [](W x) -> W { return std::tan(x); }, -50, 50, 3, 0x1p31);
  checkUnary<double>("math.sqrt", [](W x) -> W { return std::sqrt(x); }, 0, 100, 0.5);
  checkUnary<double>("math.rsqrt", rsqrtOf<double>, 0, 100, 1.5);
  checkUnary<double>("math.round", [](W x) -> W { return std::round(x); }, -9, 9, 0);
}

TEST(VectorMath, SinesOfHugeNumbersStayBounded) {
  for (const char *operation : {"math.sin", "math.cos"}) {
    Function<double> function(operation, 1, 64);
    std::vector<double> x(64);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(i % 2 ? -1.7 : 1.3, 31 + 15 * static_cast<int>(i));
    for (double y : function({x}))
      EXPECT_LE(std::fabs(y), 1 + 1e-6) << operation;
  }
}

template <typename T> void checkPow(double limit) {
  constexpr size_t count = 1 << 14;
  Function<T> function("math.powf", 2, count);
  double worst = 0, moderate = 0;
  std::vector<std::vector<T>> at(2);
  // All pairs of special values, then random bases and exponents.
  std::vector<std::vector<T>> pairs(2);
  for (T x : specials<T>())
    for (T y : specials<T>()) {
      pairs[0].push_back(x);
      pairs[1].push_back(y);
    }
  for (unsigned round = 0; round < rounds(16); ++round) {
    std::vector<T> x = samples<T>(0, 10, count, round + 1), y = samples<T>(-30, 30, count, round + 99);
    if (round == 0)
      for (size_t i = 0; i < pairs[0].size(); ++i)
        x[i] = pairs[0][i], y[i] = pairs[1][i];
    if (round % 4 == 3)
      for (size_t i = 0; i < count; ++i)
        x[i] = -std::fabs(x[i]), y[i] = std::round(y[i]);
    std::vector<T> z = function({x, y});
    for (size_t i = 0; i < count; ++i) {
      typename Wide<T>::Type want = std::pow((typename Wide<T>::Type)x[i], (typename Wide<T>::Type)y[i]);
      double error = ulps<T>(z[i], want);
      EXPECT_LE(error, limit) << x[i] << " ^ " << y[i] << " gave " << z[i];
      worst = std::max(worst, error);
      if (std::fabs(std::log(std::fabs(x[i])) * y[i]) < 10)
        moderate = std::max(moderate, error);
    }
  }
  fmt::print("  math.powf {}: {:.3f} ulp, {:.3f} for results near 1, of {} arguments\n", Wide<T>::name, worst, moderate,
             rounds(16) * count);
}

TEST(VectorMath, PowOfSingle) { checkPow<float>(0.6); }
TEST(VectorMath, PowOfDouble) { checkPow<double>(4); }

TEST(VectorMath, NanSurvivesComparisonsAndLimits) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char *operation : {"arith.maximumf", "arith.minimumf"}) {
    Function<float> function(operation, 2, 64);
    std::vector<float> a(64, nan), b(64, 1.0f), none(64, 0.0f);
    EXPECT_TRUE(std::isnan(function({a, b})[3])) << operation;
    EXPECT_TRUE(std::isnan(function({b, a})[63])) << operation;
    EXPECT_FALSE(std::isnan(function({b, none})[5])) << operation;
  }
  for (const char *operation : {"arith.maxnumf", "arith.minnumf"}) {
    Function<float> function(operation, 2, 64);
    std::vector<float> a(64, nan), b(64, 1.0f);
    EXPECT_EQ(function({a, b})[3], 1.0f) << operation;
    EXPECT_EQ(function({b, a})[3], 1.0f) << operation;
  }
}

} // namespace
} // namespace msc::test
