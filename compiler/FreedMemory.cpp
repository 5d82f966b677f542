#include "compiler/FreedMemory.h"

#include <cstdlib> // defines __GLIBC__
#include <limits>

#ifdef __GLIBC__
#include <malloc.h>
#endif

void msc::compiler::keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}
