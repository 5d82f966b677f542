// Attention and its gradient.
#include "runtime/plan/calls/Attention.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace msc {

std::optional<Attention> attentionOf(const CallAttributes &attributes, const CallTensor &query, const CallTensor &key,
                                     std::string &why) {
  auto refuse = [&](const char *reason) {
    why = reason;
    return std::nullopt;
  };
  if (query.shape.size() != 3 || key.shape.size() != 3)
    return refuse("tensors have 3 dimensions");
  int64_t heads = attributes.integer("heads", 0), width = query.shape[2];
  if (heads < 1 || width < 1 || width % heads != 0)
    return refuse("'heads' does not divide the width of the queries");
  Attention made;
  made.size = width / heads;
  if (key.shape[2] < made.size || key.shape[2] % made.size != 0 || heads % (key.shape[2] / made.size) != 0)
    return refuse("the heads of the keys do not divide those of the queries");
  int64_t group = heads / (key.shape[2] / made.size); // heads of the queries per head of the keys
  Range wide = query.box[2], narrow = key.box[2];
  // One head of the keys for all is whole on every rank; others lie where those of the queries do.
  bool together = wide.begin % made.size == 0 && wide.end % made.size == 0 &&
                  (key.shape[2] == made.size ? key.isWhole(2) : wide.begin == narrow.begin * group && wide.end == narrow.end * group);
  if (!together || narrow.begin % made.size != 0)
    return refuse("heads that belong together are not on one rank");
  if (!calls::sameCut(query, 0, key, 0))
    return refuse("batches differ between its tensors");
  if (!key.isWhole(1) || key.shape[1] < 1)
    return refuse("the sequence of keys is whole on every rank");
  made.batch = query.box[0].size();
  made.heads = wide.size() / made.size;
  made.keyHeads = narrow.size() / made.size;
  made.queries = query.box[1].size();
  made.keys = key.shape[1];
  made.firstQuery = query.box[1].begin;
  made.causal = attributes.flag("causal");
  made.scale = attributes.number("scale", 1 / std::sqrt(static_cast<double>(made.size)));
  return made;
}

std::optional<AttentionMask> attentionMaskOf(const Attention &attention, const CallTensor &query, const CallTensor &key,
                                             const CallTensor &mask) {
  if (mask.shape.size() > 4)
    return std::nullopt;
  Range heads{query.box[2].begin / attention.size, query.box[2].end / attention.size};
  const std::array<int64_t, 4> shape{query.shape[0], query.shape[2] / attention.size, query.shape[1], key.shape[1]};
  const std::array<Range, 4> box{query.box[0], heads, query.box[1], key.box[1]};
  AttentionMask made;
  std::array<int64_t *, 4> steps{&made.batch, &made.head, &made.query, &made.key};
  int64_t step = 1;
  for (size_t dim = mask.shape.size(), at = 4; dim-- > 0;) {
    --at;
    bool repeats = mask.shape[dim] == 1 && mask.isWhole(dim);
    if (!repeats && (mask.shape[dim] != shape[at] || mask.box[dim] != box[at]))
      return std::nullopt;
    *steps[at] = repeats ? 0 : step;
    step *= mask.box[dim].size();
  }
  return made;
}

namespace calls {
namespace {

bool alike(const CallTensor &a, const CallTensor &b) { return a.shape == b.shape && a.box == b.box; }

/// `statistics` holds one number per head and query.
bool areStatistics(const CallTensor &statistics, const CallTensor &query, const Attention &attention) {
  if (statistics.shape.size() != 3 || !sameCut(statistics, 0, query, 0) || !sameCut(statistics, 2, query, 1))
    return false;
  return statistics.shape[1] == query.shape[2] / attention.size && statistics.box[1].begin * attention.size == query.box[2].begin &&
         statistics.box[1].end * attention.size == query.box[2].end;
}

/// All tensors are of one type, but for the logarithms where that is narrow. `wide`: what is computed in.
bool typesFit(const CallSpec &spec, size_t own, plan::DataType &wide) {
  const plan::DataType type = spec.operands[0].type;
  wide = type == plan::F64 ? plan::F64 : plan::F32;
  bool fit = type == plan::F32 || type == plan::F64 || type == plan::F16 || type == plan::BF16;
  for (size_t i = 0; i < own; ++i)
    fit = fit && spec.operands[i].type == (i == 4 ? wide : type);
  for (size_t i = 0; i < spec.results.size(); ++i)
    fit = fit && spec.results[i].type == (own == 3 && i == 1 ? wide : type);
  return fit;
}

/// Queries, keys and values fit, and the mask behind `own` tensors, if there is one: bools, or floats that are not narrow.
Status checkOperands(const CallSpec &spec, size_t own, Attention &attention) {
  plan::DataType type;
  if (!typesFit(spec, own, type))
    return refuse("{} takes tensors of one float type, and logarithms of f32 or f64", spec.kernel);
  std::string why;
  auto made = attentionOf(spec.attributes, spec.operands[0], spec.operands[1], why);
  if (!made)
    return refuse("{}: {}", spec.kernel, why);
  attention = *made;
  if (!alike(spec.operands[1], spec.operands[2]))
    return refuse("{}: keys and values differ in shape", spec.kernel);
  if (spec.operands.size() == own)
    return {};
  const CallTensor &mask = spec.operands[own];
  if ((mask.type != type && mask.type != plan::BOOL) || !attentionMaskOf(attention, spec.operands[0], spec.operands[1], mask))
    return refuse("{}: the mask does not repeat to batch, heads, queries and keys", spec.kernel);
  return {};
}

Status checkForward(const CallSpec &spec) {
  Attention attention;
  if (Status status = checkOperands(spec, 3, attention); !status)
    return status;
  if (!alike(spec.results[0], spec.operands[0]) || !areStatistics(spec.results[1], spec.operands[0], attention))
    return refuse("{}: its results differ in shape", spec.kernel);
  return {};
}

Status checkKept(const CallSpec &spec, Attention &attention) {
  if (Status status = checkOperands(spec, 6, attention); !status)
    return status;
  const auto &in = spec.operands;
  if (!alike(in[3], in[0]) || !alike(in[5], in[0]) || !areStatistics(in[4], in[0], attention))
    return refuse("{}: the gradient has another shape than the input", spec.kernel);
  return {};
}

Status checkBackward(const CallSpec &spec) {
  Attention attention;
  if (Status status = checkKept(spec, attention); !status)
    return status;
  for (size_t i = 0; i < 3; ++i)
    if (!alike(spec.results[i], spec.operands[i]))
      return refuse("{}: its results differ in shape", spec.kernel);
  return {};
}

/// The result has the heads and keys, and the batch and the queries unless the mask repeats along those.
Status checkMaskGradient(const CallSpec &spec) {
  Attention attention;
  if (Status status = checkKept(spec, attention); !status)
    return status;
  const CallTensor &result = spec.results[0], &mask = spec.operands[6];
  auto steps = attentionMaskOf(attention, spec.operands[0], spec.operands[1], result);
  bool isFloat = mask.type == result.type, fits = steps && result.shape.size() == 4;
  size_t missing = 4 - mask.shape.size();
  for (size_t dim : {0, 2})
    fits = fits && result.shape[dim] == (dim < missing ? 1 : mask.shape[dim - missing]);
  fits = fits && result.shape[1] == spec.operands[0].shape[2] / attention.size && result.shape[3] == spec.operands[1].shape[1];
  if (!isFloat || !fits)
    return refuse("{}: its results differ in shape", spec.kernel);
  return {};
}

} // namespace

void addAttention(Table &table) {
  table["ScaledDotProductAttention"] = {3, 2, checkForward, 1};
  table["ScaledDotProductAttentionGrad"] = {6, 3, checkBackward, 1};
  table["ScaledDotProductAttentionMaskGrad"] = {7, 1, checkMaskGradient};
}

} // namespace calls
} // namespace msc
