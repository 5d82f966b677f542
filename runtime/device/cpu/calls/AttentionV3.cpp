// Compiled for x86-64-v3: 16 registers of 8 floats.
#define MSC_ISA v3
#define MSC_ROWS 4
#define MSC_VECTORS 1
#include "runtime/device/cpu/calls/AttentionTiles.inc"
