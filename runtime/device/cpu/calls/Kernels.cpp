#include "runtime/device/cpu/calls/Kernels.h"

namespace msc::device::calls {

const Table &table() {
  static const Table all = [] {
    Table table;
    addConvolution(table);
    addPooling(table);
    return table;
  }();
  return all;
}

} // namespace msc::device::calls
