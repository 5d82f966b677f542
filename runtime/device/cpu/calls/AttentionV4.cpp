// Compiled for x86-64-v4: 32 registers of 16 floats.
#define MSC_ISA v4
#define MSC_ROWS 6
#define MSC_VECTORS 4
#include "runtime/device/cpu/calls/AttentionTiles.inc"
