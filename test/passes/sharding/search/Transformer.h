// A synthetic transformer: forward and backward of layers of 14 operators and 18 values read, with the numbers of
// options that operators with 3 and 4 factors have on 2^n devices.
#pragma once

#include "passes/sharding/search/Repeat.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace msc::search::test {

/// How often each factor of an operator is halved; together at most log2 of the devices.
using Halvings = std::vector<int32_t>;

inline std::vector<Halvings> halvings(size_t factors, int32_t most) {
  if (factors == 0)
    return {{}};
  std::vector<Halvings> all;
  for (int32_t first = 0; first <= most; ++first)
    for (Halvings &rest : halvings(factors - 1, most - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  return all;
}

/// An operator: which of its factors are the dimensions of its operands and of its result.
struct SyntheticOperator {
  std::string name;
  size_t factors = 3;
  std::vector<std::vector<int32_t>> operands; ///< factors of their dimensions
  std::vector<std::string> reads;             ///< producers; "x": the layer before
  std::vector<int32_t> result;
  std::vector<double> sizes; ///< of the factors
  bool hasWeight = false;    ///< of the factors 2 and 3
};

inline std::vector<SyntheticOperator> transformerLayer() {
  const double b = 16, s = 1024, h = 2048, f = 8192, heads = 16;
  const std::vector<int32_t> plain = {0, 1, 2}, out = {0, 1, 3};
  auto matmul = [&](std::string name, std::string from, double in, double to) {
    return SyntheticOperator{std::move(name), 4, {plain}, {std::move(from)}, out, {b, s, in, to}, true};
  };
  auto pointwise = [&](std::string name, std::vector<std::string> from, double width) {
    return SyntheticOperator{std::move(name), 3, std::vector(from.size(), plain), from, plain, {b, s, width}, false};
  };
  return {pointwise("norm1", {"x"}, h),
          matmul("q", "norm1", h, h),
          matmul("k", "norm1", h, h),
          matmul("v", "norm1", h, h),
          {"scores", 4, {{0, 1, 2}, {0, 3, 2}}, {"q", "k"}, {0, 1, 2}, {b, s, heads, s}, false},
          pointwise("softmax", {"scores"}, heads),
          {"context", 4, {{0, 1, 2}, {0, 3, 2}}, {"softmax", "v"}, {0, 1, 2}, {b, s, heads, s}, false},
          matmul("projection", "context", h, h),
          pointwise("add1", {"x", "projection"}, h),
          pointwise("norm2", {"add1"}, h),
          matmul("fc1", "norm2", h, f),
          pointwise("gelu", {"fc1"}, f),
          matmul("fc2", "gelu", f, h),
          pointwise("add2", {"add1", "fc2"}, h)};
}

/// Layers on 2^log2Devices devices; the value between them is that of "add2", before the first one it is free.
class SyntheticTransformer {
public:
  SyntheticTransformer(int64_t layers, int32_t log2Devices) : most(log2Devices), layer(transformerLayer()) {
    Section section;
    section.rounds = layers;
    for (const SyntheticOperator &op : layer) {
      section.variables.push_back(static_cast<int32_t>(numbers.size()));
      numbers[op.name] = section.variables.back();
      options.push_back(halvings(op.factors, most));
      repeated.network.options.push_back(static_cast<int32_t>(options.back().size()));
      section.within.tables.push_back({{section.variables.back()}, computeCosts(op)});
    }
    for (const SyntheticOperator &op : layer)
      if (op.name != "add2")
        section.within.shared.push_back(value(op.name, op, false));
    section.carried.shared.push_back(value("x", layer.back(), true));
    repeated.sections.push_back(std::move(section));
  }

  RepeatedNetwork repeated;

private:
  double pieces(const Halvings &at) const {
    int32_t sum = 0;
    for (int32_t halved : at)
      sum += halved;
    return std::exp2(sum);
  }

  /// us of forward and backward, and of the sum of the weight's gradient.
  std::vector<double> computeCosts(const SyntheticOperator &op) const {
    std::vector<double> costs;
    double work = op.hasWeight ? 6e-6 : 1e-4;
    for (double size : op.sizes)
      work *= size;
    for (const Halvings &at : options.back()) {
      double cost = work / pieces(at) * (1 + 0.01 * at.back());
      if (op.hasWeight)
        cost += op.sizes[2] * op.sizes[3] / std::exp2(at[2] + at[3]) * 4e-5 * (1 - std::exp2(-at[0] - at[1]));
      costs.push_back(cost);
    }
    return costs;
  }

  static Halvings project(const Halvings &at, const std::vector<int32_t> &factors) {
    Halvings result;
    for (int32_t factor : factors)
      result.push_back(at[factor]);
    return result;
  }

  /// What a value costs on its way to its readers, and its gradient on its way back: an item is a sharding of the
  /// operand, or, behind all of these, a sharding with the partial sums that the gradient has.
  SharedCost value(const std::string &name, const SyntheticOperator &producer, bool isCarried) {
    SharedCost shared;
    shared.producer = numbers[producer.name];
    const std::vector<Halvings> shardings = halvings(3, most);
    auto sharding = [&](const Halvings &at) {
      return static_cast<int32_t>(std::lower_bound(shardings.begin(), shardings.end(), at) - shardings.begin());
    };
    for (const Halvings &at : options[shared.producer])
      shared.producerClass.push_back(sharding(project(at, producer.result)));
    const int32_t count = static_cast<int32_t>(shardings.size());
    for (const SyntheticOperator &reader : layer)
      for (size_t i = 0; i < reader.reads.size(); ++i) {
        if (reader.reads[i] != name)
          continue;
        const int32_t variable = numbers[reader.name];
        SharedCost::Reader &asks = shared.readers.emplace_back();
        asks.variable = isCarried ? inNextRound(variable) : variable;
        for (const Halvings &at : options[variable]) {
          const int32_t wanted = sharding(project(at, reader.operands[i]));
          const int32_t partial = reader.hasWeight ? at[3] : 0;
          asks.items.push_back({wanted, count + wanted * (most + 1) + partial});
        }
      }
    double bytes = 4;
    for (int32_t factor : producer.result)
      bytes *= producer.sizes[factor];
    for (const Halvings &made : shardings) {
      std::vector<double> &row = shared.costs.emplace_back();
      for (const Halvings &wanted : shardings)
        row.push_back(moved(bytes, made, wanted));
      for (const Halvings &wanted : shardings)
        for (int32_t partial = 0; partial <= most; ++partial)
          row.push_back(moved(bytes, wanted, made) +
                        (partial ? 10 + bytes / pieces(wanted) * 2e-5 * (1 - std::exp2(-partial)) : 0));
    }
    return shared;
  }

  static double moved(double bytes, const Halvings &from, const Halvings &to) {
    double kept = 1; // part of what is wanted that is there already
    bool changes = false;
    int32_t wanted = 0;
    for (size_t dim = 0; dim < from.size(); ++dim) {
      changes |= from[dim] > to[dim];
      kept *= from[dim] > to[dim] ? std::exp2(to[dim] - from[dim]) : 1;
      wanted += to[dim];
    }
    return changes ? 10 + bytes * std::exp2(-wanted) * 1e-5 * (1 - kept) : 0;
  }

  int32_t most;
  std::vector<SyntheticOperator> layer;
  std::map<std::string, int32_t> numbers;
  std::vector<std::vector<Halvings>> options;
};

} // namespace msc::search::test
