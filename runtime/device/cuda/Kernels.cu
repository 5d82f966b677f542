// Kernels of the runtime that no plan holds: fills of 8 bytes, strided copies. Compiled by clang without a toolkit's headers.
// Any grid gives the same bits. All arguments have 64 bits.
using int64 = long long;
using uint64 = unsigned long long;

#define KERNEL extern "C" __attribute__((global)) void __attribute__((launch_bounds(256)))
#define DEVICE static inline __attribute__((device))

DEVICE int64 firstOf() {
  return int64(__nvvm_read_ptx_sreg_ctaid_x()) * 256 + __nvvm_read_ptx_sreg_tid_x();
}
DEVICE int64 strideOf() {
  return int64(__nvvm_read_ptx_sreg_nctaid_x()) * 256;
}

KERNEL msc_fill_8(uint64 *target, uint64 bits, int64 count) {
  for (int64 i = firstOf(); i < count; i += strideOf())
    target[i] = bits;
}

/// As CopyDescriptor in Kernels.h.
struct Descriptor {
  int64 dims, sizes[8], from[8], to[8];
};

template <typename Element>
DEVICE void copyStrided(Element *target, const Element *source, const Descriptor *shape, int64 count) {
  for (int64 i = firstOf(); i < count; i += strideOf()) {
    int64 rest = i, from = 0, to = 0;
    for (int64 dim = shape->dims; dim-- > 0;) {
      int64 size = shape->sizes[dim], at;
      if (rest >> 31) {
        at = rest % size, rest /= size;
      } else { // the usual case, in half the registers
        unsigned quotient = unsigned(rest) / unsigned(size);
        at = rest - int64(quotient) * size, rest = quotient;
      }
      from += at * shape->from[dim];
      to += at * shape->to[dim];
    }
    target[to] = source[from];
  }
}

KERNEL msc_copy_1(unsigned char *target, const unsigned char *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_2(unsigned short *target, const unsigned short *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_4(unsigned *target, const unsigned *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
KERNEL msc_copy_8(uint64 *target, const uint64 *source, const Descriptor *shape, int64 count) {
  copyStrided(target, source, shape, count);
}
