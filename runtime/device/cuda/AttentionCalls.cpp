// Attention and its gradient as launches of our own kernels, a set of which is for heads up to a depth.
#include "runtime/device/cuda/AttentionCalls.h"

#include "runtime/device/cuda/AttentionShape.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/RowAttentionCalls.h"

#include <algorithm>
#include <cstring>

namespace msc::device::cuda {
namespace {

using Values = std::vector<uint64_t>;

/// The first set for heads of this size whose tiles this GPU's blocks can keep; null: there is none.
const AttentionKernels *choose(const Shared &shared, plan::DataType type, int64_t size, bool isForward) {
  using Kernels = AttentionKernels;
  const uint32_t most = shared.gpu->sharedBytesOfBlock;
  const char *name = type == plan::F32 ? "f32" : type == plan::F16 ? "f16" : type == plan::BF16 ? "bf16" : "";
  auto fits = [&](const AttentionKernels &kernels) {
    return std::strcmp(kernels.type, name) == 0 && size <= kernels.depth &&
           (isForward ? kernels.sharedBytes(Kernels::Forward) <= most
                      : kernels.sharedBytes(Kernels::OfQueries) <= most && kernels.sharedBytes(Kernels::OfKeys) <= most);
  };
  auto found = std::find_if(attentionKernels.begin(), attentionKernels.end(), fits);
  return found == attentionKernels.end() ? nullptr : &*found;
}

struct AttentionCall {
  Attention shape;
  const AttentionKernels *kernels = nullptr;
  CUdeviceptr descriptor = 0;
  CUdeviceptr mask = 0; ///< null: none

  static Result<AttentionCall> of(Shared &shared, const CallSpec &spec) {
    AttentionCall call;
    AttentionDescriptor made;
    const size_t own = operandsBeforeMask(spec);
    call.shape = describeAttention(spec, made, call.mask);
    call.kernels = choose(shared, spec.results[0].type, call.shape.size, own == 3);
    bool takesMask = spec.operands.size() == own || spec.operands[own].type == plan::BOOL || spec.operands[own].type == plan::F32;
    if (!call.kernels || !takesMask)
      return lacks(spec);
    Result<CUdeviceptr> descriptor = shared.constant(&made, sizeof(made));
    if (!descriptor)
      return descriptor.error();
    call.descriptor = *descriptor;
    return call;
  }

  Values operands(const CallSpec &spec) const {
    return {descriptor, addressOf(spec.operands[0].data), addressOf(spec.operands[1].data), addressOf(spec.operands[2].data), mask};
  }
  /// One block per tile of the `rows` queries or keys of so many heads.
  Prepared launch(Shared &shared, AttentionKernels::Which which, OwnKernel kernel, Values values, int64_t heads, int64_t rows) const {
    const int64_t side = kernels->sides[which], tiles = (rows + side - 1) / side;
    kernel.ptx = kernels->ptx, kernel.block = kernels->threads(), kernel.sharedBytes = kernels->sharedBytes(which);
    return launchOwn(shared, kernel, std::move(values), shape.batch * heads * tiles, Blocks::OnePerItem);
  }
};

Prepared attend(Shared &shared, const CallSpec &spec) {
  if (attendsByRows(spec))
    return attendByRows(shared, spec);
  Result<AttentionCall> call = AttentionCall::of(shared, spec);
  if (!call)
    return call.error();
  Values values = call->operands(spec);
  values.insert(values.end(), {addressOf(spec.results[0].data), addressOf(spec.results[1].data)});
  return call->launch(shared, AttentionKernels::Forward, {.entry = "msc_attention"}, std::move(values), call->shape.heads, call->shape.queries);
}

Prepared attendBack(Shared &shared, const CallSpec &spec) {
  if (attendsByRows(spec))
    return attendBackByRows(shared, spec);
  Result<AttentionCall> call = AttentionCall::of(shared, spec);
  if (!call)
    return call.error();
  const Attention &a = call->shape;
  auto operand = [&](size_t i) { return addressOf(spec.operands[i].data); };
  auto result = [&](size_t i) { return addressOf(spec.results[i].data); };
  // Operands behind keys and values: output, logarithms, the gradient of the output. 0: memory that the kernel of queries writes for that of keys,
  // a number per query.
  Values values = call->operands(spec), forKeys = values;
  values.insert(values.end(), {operand(3), operand(4), operand(5), result(0), 0});
  forKeys.insert(forKeys.end(), {operand(4), operand(5), 0, result(1), result(2)});
  std::vector<Prepared> parts;
  for (bool ofKeys : {false, true}) {
    int64_t heads = ofKeys ? a.keyHeads : a.heads, rows = ofKeys ? a.keys : a.queries;
    if (a.batch * heads * rows == 0)
      continue;
    OwnKernel kernel{.entry = ofKeys ? "msc_attention_keys" : "msc_attention_queries",
                     .workBytes = static_cast<uint64_t>(a.batch * a.heads * a.queries) * sizeof(float),
                     .workArgument = ofKeys ? size_t{7} : size_t{9}};
    parts.push_back(call->launch(shared, ofKeys ? AttentionKernels::OfKeys : AttentionKernels::OfQueries, std::move(kernel),
                                 std::move(ofKeys ? forKeys : values), heads, rows));
  }
  return inTurn(shared, std::move(parts));
}

} // namespace

void addAttentionCalls(std::map<std::string, PrepareCall> &table) {
  table["ScaledDotProductAttention"] = attend;
  table["ScaledDotProductAttentionGrad"] = attendBack;
}

} // namespace msc::device::cuda
