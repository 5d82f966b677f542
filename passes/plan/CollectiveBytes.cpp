#include "passes/plan/CollectiveBytes.h"

#include <algorithm>

namespace msc::passes {

int64_t receivedElements(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, int64_t groupSize,
                         bool reduces) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < from.devices(); ++rank) {
    Box held = from.localBox(shape, rank), wanted = to.localBox(shape, rank);
    int64_t received;
    if (!reduces) {
      received = elementCount(wanted) - elementCount(intersect(held, wanted));
    } else if (held == wanted) { // all-reduce: owner p of g reduces piece p, then gathers the others
      int64_t count = elementCount(held), piece = (count + groupSize - 1) / groupSize;
      received = (groupSize - 1) * piece + (count - piece);
    } else { // reduce-scatter: the piece that the target wants, from every peer
      received = (groupSize - 1) * elementCount(wanted);
    }
    most = std::max(most, received);
  }
  return most;
}

} // namespace msc::passes
