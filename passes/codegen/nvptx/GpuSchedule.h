// How a scheduled cluster is spread over the threads of a GPU. Depends on nothing but the cluster: any grid gives the same
// bits, since what several threads or blocks compute together is cut and added up in a fixed tree.
#pragma once

#include "passes/codegen/Schedule.h"

namespace msc::codegen {

constexpr int64_t mostSharedBytes = 48 * 1024; ///< that a block may declare

struct GpuSchedule {
  enum Form {
    Elements, ///< pointwise: a thread takes vectors of neighbouring elements, one after the other through the whole grid
    Teams,    ///< one unit of the range (a row, a column) per team of threads, which sweep its inner dimensions together
    Tiles,    ///< pointwise with transposed tensors: 32 x 32 elements at a time through shared memory
  };
  Form form = Elements;
  unsigned block = 256;      ///< threads
  unsigned vector = 1;       ///< neighbouring elements that a thread reads and writes with one access
  unsigned groups = 1;       ///< vectors that a thread holds at the same time
  unsigned team = 1;         ///< Teams: threads per unit of the range, a power of two up to 32 or the whole block
  /// Teams: neighbouring threads belong to neighbouring units, which lie next to each other in memory; at most 32 of them.
  bool strided = false;
  unsigned minBlocks = 1;    ///< that share a processor: the assembler keeps registers free for them
  bool resident = false;     ///< Teams: what a team sweeps stays in its registers
  unsigned ahead = 0;        ///< resident: registers for what is read before its turn
  bool rereads = false;      ///< resident, but for what memory holds: a later sweep reads that again, out of the cache
  /// Teams: blocks that share one unit of the range, or a few side by side, where those alone would leave the GPU idle. Each
  /// sweeps `pieceSize` elements; the block that ends last adds up what all have found, in an order that the sizes decide.
  int64_t pieces = 1, pieceSize = 0;
  unsigned parts = 0;        ///< with pieces: values that a block hands over per unit
  bool wide = false;         ///< positions take 64 bits
  int64_t swept = 1;         ///< elements of the inner dimensions
  /// A launch is well filled with ceil(end * items / blockItems) blocks.
  int64_t items = 1, blockItems = 1;
  int64_t mostRange = 0;     ///< the largest end that positions can count

  unsigned elements() const { return vector * groups; }
  unsigned teams() const { return block / team; }
  /// Memory through which blocks hand over their parts, per unit of the range: 8 bytes for each, and a counter.
  int64_t unitScratch() const { return pieces > 1 ? 8 * (pieces * parts + 1) : 0; }
};

GpuSchedule scheduleForGpu(const Cluster &cluster, const Schedule &schedule);

} // namespace msc::codegen
