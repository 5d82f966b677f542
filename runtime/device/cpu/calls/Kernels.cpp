#include "runtime/device/cpu/calls/Kernels.h"

namespace msc::device::calls {

const Table &table() {
  static const Table all = [] {
    Table table;
    addAttention(table);
    addConvolution(table);
    addLookup(table);
    addPooling(table);
    addScan(table);
    return table;
  }();
  return all;
}

} // namespace msc::device::calls
