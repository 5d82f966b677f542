// The one function that the MPI plugin exports.
#pragma once

#include "runtime/comm/Communicator.h"

/// Grows with every change of Communicator.h or Status.h: a plugin of another build is refused.
#define MSC_COMM_PLUGIN_VERSION 5

/// What the entry point fills in: a world, or the reason why there is none.
struct MscCommWorld {
  msc::comm::World *world = nullptr;
  msc::Error error;
};

/// Calls MPI_Init_thread and makes the world of this process. `version` is the caller's MSC_COMM_PLUGIN_VERSION; another
/// one leaves `result` alone and returns the plugin's own.
extern "C" __attribute__((visibility("default"))) int mscCommMpiWorld(int version, MscCommWorld *result);
