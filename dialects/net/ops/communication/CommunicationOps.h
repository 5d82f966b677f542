// The classes of communication operators; apart from NetOps.h, as few speak of single ranks.
#pragma once

#include "dialects/net/Network.h"
#include "dialects/net/ops/communication/RankGroup.h"

#include "dialects/net/ops/communication/CommunicationInterface.h.inc"

#define GET_OP_CLASSES
#include "dialects/net/ops/communication/CommunicationOps.h.inc"
