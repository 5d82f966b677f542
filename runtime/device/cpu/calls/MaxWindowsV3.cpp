// Compiled for x86-64-v3.
#define MSC_ISA v3
#include "runtime/device/cpu/calls/MaxWindows.inc"
