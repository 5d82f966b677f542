// Offsets of buffers in one arena, from their sizes and live ranges. Plain data; no IR.
#pragma once

#include <cstdint>
#include <vector>

namespace msc::passes {

/// A block of memory that is needed from step `first` to step `last`, both included.
struct MemoryBlock {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct Packing {
  std::vector<int64_t> offsets; ///< one per block, multiples of the alignment
  int64_t bytes = 0;            ///< size of the arena, a multiple of the alignment
};

/// Places blocks so that two blocks whose live ranges overlap never share memory. Largest first, each at the lowest offset
/// that is free during its range (first fit by decreasing size); of one size the one that is needed longest into the step, as what the
/// backward pass reads. Deterministic. n (log n)^2 where the blocks that are live in the same steps lie beside each other, as those of
/// layers do; O(n^2 log n) in the worst case.
Packing packMemory(const std::vector<MemoryBlock> &blocks, int64_t alignment = 64);

/// As packMemory; where that needs more than `enough`, other orders of the blocks are tried, deterministic ones, from two by size (of one size
/// the last to go is first, or the first to come): one that is on top, or any
/// other, comes earlier or later, and what needs no more is kept. Ends at `enough` or memoryLowerBound, after some thousand orders, or where
/// there are so many blocks that it would take longer than a tenth of a second or so; of more than 2,000 blocks at once.
Packing packTightly(const std::vector<MemoryBlock> &blocks, int64_t enough = 0, int64_t alignment = 64);

/// Largest sum of live bytes over all steps: no packing can be smaller.
int64_t memoryLowerBound(const std::vector<MemoryBlock> &blocks, int64_t alignment = 64);

} // namespace msc::passes
