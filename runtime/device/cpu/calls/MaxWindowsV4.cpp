// Compiled for x86-64-v4.
#define MSC_ISA v4
#include "runtime/device/cpu/calls/MaxWindows.inc"
