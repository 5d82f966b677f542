#include "runtime/executor/FreeMemory.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace msc {
namespace {

constexpr uint32_t never = std::numeric_limits<uint32_t>::max();

FreeMemory::Range rangeOf(const plan::Buffer &buffer) { return {buffer.offset(), buffer.offset() + buffer.bytes()}; }

/// Of each step: the one after which it no longer touches its buffers.
std::vector<uint32_t> endsOf(const plan::Variant &variant) {
  std::vector<uint32_t> ends(static_cast<size_t>(variant.steps_size()));
  for (uint32_t step = 0; step < ends.size(); ++step)
    ends[step] = step;
  for (uint32_t step = 0; step < ends.size(); ++step)
    if (const plan::Step &waiting = variant.steps(static_cast<int>(step)); waiting.has_wait())
      ends[waiting.wait().step()] = step;
  return ends;
}

} // namespace

FreeMemory::FreeMemory(const PlanIndex &index, const plan::Program &program, const plan::Variant &variant) : index(index) {
  std::vector<Life> lives(index.bufferCount());
  std::vector<bool> isAlways(index.bufferCount());
  for (uint32_t buffer = 0; buffer < lives.size(); ++buffer) {
    lives[buffer] = {never, 0, buffer};
    isAlways[buffer] = index.buffer(buffer).kind() != plan::Buffer::ACTIVATION && index.buffer(buffer).kind() != plan::Buffer::INPUT;
  }
  for (const plan::Input &input : program.inputs())
    isAlways[index.root(input.buffer())] = true;
  for (const plan::Output &output : program.outputs())
    isAlways[index.root(output.buffer())] = true;
  const std::vector<uint32_t> ends = endsOf(variant);
  auto forEachTouched = [&](uint32_t step, auto touch) {
    for (const auto *buffers : {&variant.steps(static_cast<int>(step)).reads(), &variant.steps(static_cast<int>(step)).writes()})
      for (uint32_t buffer : *buffers)
        touch(index.root(buffer));
  };
  for (uint32_t step : variant.constants())
    forEachTouched(step, [&](uint32_t root) { isAlways[root] = true; });
  for (uint32_t step = 0; step < ends.size(); ++step)
    forEachTouched(step, [&](uint32_t root) {
      lives[root].first = std::min(lives[root].first, step);
      lives[root].last = std::max(lives[root].last, ends[step]);
    });
  for (const Life &life : lives)
    if (isAlways[life.buffer] && index.root(life.buffer) == life.buffer)
      used.insert(rangeOf(index.buffer(life.buffer)));
    else if (life.first != never)
      byFirst.push_back(life);
  std::ranges::sort(byFirst, {}, &Life::first);
  byLast = byFirst;
  std::ranges::sort(byLast, {}, &Life::last);
}

std::vector<FreeMemory::Range> FreeMemory::at(uint32_t step) {
  assert(step >= asked);
  asked = step;
  for (; begun < byFirst.size() && byFirst[begun].first <= step; ++begun)
    used.insert(rangeOf(index.buffer(byFirst[begun].buffer)));
  for (; ended < byLast.size() && byLast[ended].last < step; ++ended)
    used.erase(used.find(rangeOf(index.buffer(byLast[ended].buffer))));
  std::vector<Range> free;
  uint64_t from = 0;
  for (const Range &taken : used) {
    if (taken.first > from)
      free.emplace_back(from, taken.first);
    from = std::max(from, taken.second);
  }
  if (from < index.plan().arena_bytes())
    free.emplace_back(from, index.plan().arena_bytes());
  return free;
}

} // namespace msc
