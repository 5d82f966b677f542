// The one function that the NCCL plugin exports.
#pragma once

#include "runtime/comm/StreamCommunicator.h"

/// Grows with every change of StreamCommunicator.h, Communicator.h or Status.h: a plugin of another build is refused.
#define MSC_NCCL_PLUGIN_VERSION 2

/// What the entry point fills in: a transport, or the reason why there is none.
struct MscNcclTransport {
  msc::comm::StreamTransport *transport = nullptr;
  msc::Error error;
};

/// Opens NCCL. `version` is the caller's MSC_NCCL_PLUGIN_VERSION; another one leaves `result` alone and returns the plugin's own.
extern "C" __attribute__((visibility("default"))) int mscCommNcclTransport(int version, MscNcclTransport *result);
