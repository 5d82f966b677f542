// Running sums, the largest elements and look-ups element by element as launches of our own kernels.
#include "runtime/device/cuda/LineCalls.h"

#include "runtime/device/cuda/Kernels.h"
#include "runtime/plan/calls/Lookup.h"
#include "runtime/plan/calls/Scan.h"

#include <cstring>

namespace msc::device::cuda {
namespace {

Prepared addUpAlong(Shared &shared, const CallSpec &spec) {
  const Lines lines = linesOf(spec);
  const std::vector<Range> parts = partsOf(spec, lines);
  const ScanDescriptor made{.length = lines.length,
                            .inner = lines.inner,
                            .parts = static_cast<int64_t>(parts.size()),
                            .exclusive = spec.attributes.flag("exclusive"),
                            .reverse = spec.attributes.flag("reverse")};
  std::vector<int64_t> words(sizeof(made) / sizeof(int64_t));
  std::memcpy(words.data(), &made, sizeof(made));
  for (Range part : parts)
    words.insert(words.end(), {part.begin, part.end});
  Result<CUdeviceptr> descriptor = shared.constant(words.data(), words.size() * sizeof(int64_t));
  if (!descriptor)
    return descriptor.error();
  return launchOwn(shared, numberEntry("scan", spec.results[0].type),
                   {*descriptor, addressOf(spec.results[0].data), addressOf(spec.operands[0].data)}, lines.count);
}

/// `given`: the places of candidates; 0: elements have their own.
Prepared choose(Shared &shared, const CallSpec &spec, const LargestDescriptor &made, uint64_t given) {
  Result<CUdeviceptr> descriptor = shared.constant(&made, sizeof(made));
  if (!descriptor)
    return descriptor.error();
  return launchOwn(shared, numberEntry("largest", spec.results[0].type),
                   {*descriptor, addressOf(spec.results[0].data), addressOf(spec.results[1].data), addressOf(spec.operands[0].data), given},
                   elementCount(spec.results[0].box) / made.k);
}

Prepared chooseOfPieces(Shared &shared, const CallSpec &spec) {
  const CallTensor &x = spec.operands[0];
  const int64_t k = spec.attributes.integer("k", 0);
  const Range held = x.box.back(), own = spec.results[0].box.back();
  return choose(shared, spec,
                {.k = k,
                 .length = held.size(),
                 .held = held.begin,
                 .size = x.shape.back(),
                 .pieces = spec.attributes.integer("pieces", 1),
                 .firstPiece = own.begin / k,
                 .ownPieces = own.size() / k,
                 .sorted = true},
                0);
}

Prepared chooseOfCandidates(Shared &shared, const CallSpec &spec) {
  const int64_t length = spec.operands[0].shape.back();
  return choose(shared, spec,
                {.k = spec.results[0].shape.back(), .length = length, .size = length, .sorted = spec.attributes.flag("sorted", true)},
                addressOf(spec.operands[1].data));
}

LookupDescriptor describe(const CallSpec &spec, const CallTensor &indices) {
  const Lookup lookup = alongsideOf(spec);
  return {.count = lookup.count,
          .inner = lookup.inner,
          .begin = lookup.rows.begin,
          .end = lookup.rows.end,
          .size = lookup.size,
          .wide = indices.type == plan::I64};
}

/// out[o, n, i] = table[o, indices[o, n, i], i].
Prepared lookAlong(Shared &shared, const CallSpec &spec) {
  const CallTensor &indices = spec.operands[1], &out = spec.results[0];
  const LookupDescriptor shape = describe(spec, indices);
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  Result<CUdeviceptr> slot = shared.checkSlot({spec.kernel, addressOf(indices.data), shape.wide != 0, shape.size, -shape.size});
  if (!slot)
    return slot.error();
  return launchOwn(shared, fmt::format("msc_look_along_{}", elementBytes(out.type)),
                   {addressOf(out.data), addressOf(spec.operands[0].data), addressOf(indices.data), *descriptor, *slot},
                   elementCount(out.box));
}

/// sums[o, r, i] = the sum of rows[o, n, i] over all n with indices[o, n, i] == r.
Prepared addRowsAlong(Shared &shared, const CallSpec &spec) {
  const CallTensor &sums = spec.results[0];
  const LookupDescriptor shape = describe(spec, spec.operands[0]);
  Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
  if (!descriptor)
    return descriptor.error();
  return launchOwn(shared, numberEntry("sums_along", sums.type),
                   {addressOf(sums.data), addressOf(spec.operands[1].data), addressOf(spec.operands[0].data), *descriptor},
                   elementCount(sums.box));
}

} // namespace

void addLineCalls(std::map<std::string, PrepareCall> &table) {
  table["CumSumPieces"] = addUpAlong;
  table["TopKPieces"] = chooseOfPieces;
  table["TopKMerge"] = chooseOfCandidates;
  table["GatherD"] = lookAlong;
  table["GatherDGrad"] = addRowsAlong;
}

} // namespace msc::device::cuda
