// The classes of all operators. See Network.h for what every operator has in common.
#pragma once

#include "dialects/net/Network.h"
#include "dialects/net/ops/support/Regions.h"

#define GET_OP_CLASSES
#include "dialects/net/NetOps.h.inc"
