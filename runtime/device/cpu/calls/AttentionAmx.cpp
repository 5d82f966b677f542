// Compiled for x86-64-v4 with tiles for bf16.
#include <immintrin.h>

#define MSC_ISA amx
#define MSC_ROWS 6
#define MSC_VECTORS 4
#include "runtime/device/cpu/calls/AttentionTiles.inc"
