#include "runtime/data/Draw.h"

#include "runtime/plan/Bfloat16.h"

#include "runtime/data/Philox.h"
#include "runtime/plan/PlanIndex.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numbers>

namespace msc {
namespace {

/// The largest value below `high` that the type holds, for draws that round up to it.
double below(double value, double low, double high, bool single) {
  double rounded = single ? static_cast<double>(static_cast<float>(value)) : value;
  if (rounded < high || !(low < high))
    return rounded;
  return single ? static_cast<double>(std::nextafter(static_cast<float>(high), static_cast<float>(low)))
                : std::nextafter(high, low);
}

ElementFunction uniformIn(RandomRow row, double low, double high, bool single) {
  return [=](uint64_t index) { return below(low + (high - low) * row.uniform(index), low, high, single); };
}

/// Incoming and outgoing connections of one element, MindSpore's convention: dimension 0 is out, dimension 1 in, the rest a
/// receptive field.
std::pair<double, double> fans(const std::vector<int64_t> &shape) {
  if (shape.empty())
    return {1, 1};
  if (shape.size() == 1)
    return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (size_t i = 2; i < shape.size(); ++i)
    field *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
}

/// Normal, cut off at two standard deviations, by inversion.
ElementFunction truncatedNormal(RandomRow row, double sigma, double mean) {
  double least = 0.5 * std::erfc(std::numbers::sqrt2); // probability below -2
  return [=](uint64_t index) {
    double value = normalQuantile(least + (1 - 2 * least) * row.uniform(index));
    return mean + sigma * std::fmin(std::fmax(value, -2.0), 2.0);
  };
}

double polynomial(const double (&coefficients)[8], double x) {
  double sum = 0;
  for (int i = 7; i >= 0; --i)
    sum = sum * x + coefficients[i];
  return sum;
}

template <typename T> void store(std::byte *target, double value) {
  T element = static_cast<T>(value);
  std::memcpy(target, &element, sizeof(T));
}

using Store = void (*)(std::byte *, double);

Store storeOf(plan::DataType type) {
  switch (type) {
  case plan::F64: return store<double>;
  case plan::I32: return store<int32_t>;
  case plan::I64: return store<int64_t>;
  case plan::F16: return store<_Float16>;
  case plan::BOOL: return [](std::byte *target, double value) { *target = std::byte{value != 0}; };
  case plan::BF16: return store<Bfloat16>;
  default: return store<float>;
  }
}

} // namespace

double RandomRow::normal(uint64_t index) const {
  std::array<uint32_t, 4> random = words(index);
  // 1 - u lies in (0, 1]: its logarithm is finite.
  double radius = std::sqrt(-2.0 * std::log(1.0 - fraction(random[0], random[1])));
  return radius * std::cos(2.0 * std::numbers::pi * fraction(random[2], random[3]));
}

double normalQuantile(double probability) {
  // Coefficients of AS 241: central region, then the two tails.
  static constexpr double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                  1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double b[8] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,  5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[8] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                  2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[8] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  double q = probability - 0.5;
  if (std::fabs(q) <= 0.425) {
    double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  double r = std::sqrt(-std::log(q < 0 ? probability : 1.0 - probability));
  double value = r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6) : polynomial(e, r - 5) / polynomial(f, r - 5);
  return q < 0 ? -value : value;
}

Result<ElementFunction> initializerFunction(const plan::Initializer &initializer, const std::vector<int64_t> &shape,
                                            uint64_t seed, const std::string &name, bool single) {
  const std::string &kind = initializer.kind();
  double a = initializer.a(), b = initializer.b();
  RandomRow row(seed, name);
  auto [in, out] = fans(shape);
  auto normal = [&](double sigma, double mean) -> ElementFunction {
    return [=](uint64_t index) { return mean + sigma * row.normal(index); };
  };
  auto constant = [](double value) -> ElementFunction { return [=](uint64_t) { return value; }; };
  // He: the gain of a leaky ReLU with negative slope a.
  double he = std::sqrt(2.0 / (1.0 + a * a) / in);
  if (kind == "zeros")
    return constant(0);
  if (kind == "ones")
    return constant(1);
  if (kind == "constant")
    return constant(a);
  if (kind == "normal")
    return normal(a, b);
  if (kind == "truncated_normal")
    return truncatedNormal(row, a, b);
  if (kind == "uniform")
    return uniformIn(row, a, b, single);
  if (kind == "he_normal")
    return normal(he, 0);
  if (kind == "he_uniform")
    return uniformIn(row, -he * std::sqrt(3.0), he * std::sqrt(3.0), single);
  if (kind == "xavier_uniform") {
    double bound = (a == 0 ? 1 : a) * std::sqrt(6.0 / (in + out));
    return uniformIn(row, -bound, bound, single);
  }
  return Error{ExitCode::BadFile, fmt::format("parameter '{}' has an unknown initializer '{}'", name, kind), ""};
}

Result<ElementFunction> columnFunction(const plan::Dataset::Column &column, uint64_t seed, bool single) {
  const std::string &kind = column.distribution();
  auto value = [&](int i, double otherwise) { return i < column.values_size() ? column.values(i) : otherwise; };
  RandomRow row(seed, column.name());
  if (kind == "uniform")
    return uniformIn(row, value(0, 0), value(1, 1), single);
  if (kind == "normal") {
    double mean = value(0, 0), sigma = value(1, 1);
    return ElementFunction([=](uint64_t index) { return mean + sigma * row.normal(index); });
  }
  if (kind == "integers") {
    double low = value(0, 0), high = value(1, 2);
    return ElementFunction([=](uint64_t index) { return std::floor(low + (high - low) * row.uniform(index)); });
  }
  if (kind == "zeros" || kind == "ones" || kind == "constant") {
    double all = kind == "zeros" ? 0 : kind == "ones" ? 1 : value(0, 0);
    return ElementFunction([=](uint64_t) { return all; });
  }
  return Error{ExitCode::BadFile, fmt::format("column '{}' has an unknown distribution '{}'", column.name(), kind), ""};
}

void fillBox(std::byte *target, plan::DataType type, const std::vector<int64_t> &shape, const Box &box, uint64_t first,
             const ElementFunction &function) {
  Store write = storeOf(type);
  size_t bytes = elementBytes(type), dims = shape.size();
  int64_t count = elementCount(box);
  std::vector<int64_t> at(dims);
  std::vector<uint64_t> stride(dims, 1);
  uint64_t index = first;
  for (size_t i = dims; i-- > 0;) {
    at[i] = box[i].begin;
    if (i + 1 < dims)
      stride[i] = stride[i + 1] * static_cast<uint64_t>(shape[i + 1]);
    index += stride[i] * static_cast<uint64_t>(box[i].begin);
  }
  for (int64_t element = 0; element < count; ++element, target += bytes) {
    write(target, function(index));
    for (size_t i = dims; i-- > 0;) {
      index += stride[i];
      if (++at[i] < box[i].end)
        break;
      index -= stride[i] * static_cast<uint64_t>(box[i].size());
      at[i] = box[i].begin;
    }
  }
}

} // namespace msc
