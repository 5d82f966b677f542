// What is used of NCCL 2.22 and later, written down here so that it takes no header of NCCL to build. A test compares it with
// nccl.h where that is installed.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace msc::comm::nccl {

/// The oldest version that ends several communicators at once (ncclCommAbort in a group).
constexpr int oldestVersion = 22200;

struct Communicator; // of NCCL
using Handle = Communicator *;

enum class Code : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class DataType : int { Uint8 = 1, Int32 = 2, Int64 = 4, Float16 = 6, Float32 = 7, Float64 = 8, Bfloat16 = 9 };

enum class Reduction : int { Sum = 0, Prod = 1, Max = 2, Min = 3 };

struct UniqueId {
  char internal[128] = {};
};

constexpr int noColor = -1;

/// ncclConfig_t as far as version 2.18 has it; later versions take the size for what is given.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN; ///< INT_MIN: as NCCL decides
  int cgaClusterSize = INT_MIN, minCTAs = INT_MIN, maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

// name, parameters; all return a Code unless they are listed apart.
// clang-format off
#define MSC_NCCL_FUNCTIONS(F) \
  F(ncclGetVersion, (int *version)) \
  F(ncclGetUniqueId, (UniqueId *id)) \
  F(ncclCommInitRankConfig, (Handle *communicator, int size, UniqueId id, int rank, Config *config)) \
  F(ncclCommSplit, (Handle communicator, int color, int key, Handle *result, Config *config)) \
  F(ncclCommGetAsyncError, (Handle communicator, Code *error)) \
  F(ncclCommFinalize, (Handle communicator)) \
  F(ncclCommDestroy, (Handle communicator)) \
  F(ncclCommAbort, (Handle communicator)) \
  F(ncclMemAlloc, (void **memory, size_t bytes)) \
  F(ncclMemFree, (void *memory)) \
  F(ncclGroupStart, ()) \
  F(ncclGroupEnd, ()) \
  F(ncclAllReduce, (const void *source, void *target, size_t count, DataType type, Reduction reduction, \
     Handle communicator, void *stream)) \
  F(ncclReduceScatter, (const void *source, void *target, size_t count, DataType type, Reduction reduction, \
     Handle communicator, void *stream)) \
  F(ncclAllGather, (const void *source, void *target, size_t count, DataType type, Handle communicator, void *stream)) \
  F(ncclSend, (const void *source, size_t count, DataType type, int peer, Handle communicator, void *stream)) \
  F(ncclRecv, (void *target, size_t count, DataType type, int peer, Handle communicator, void *stream))
// clang-format on

/// The functions, filled by dlopen or by a test.
struct Table {
#define MSC_MEMBER(name, parameters) Code(*name) parameters = nullptr;
  MSC_NCCL_FUNCTIONS(MSC_MEMBER)
#undef MSC_MEMBER
  const char *(*ncclGetErrorString)(Code code) = nullptr;
  const char *(*ncclGetLastError)(Handle communicator) = nullptr;
};

} // namespace msc::comm::nccl
