// Libraries that are no NCCL that will do: too old to have all functions, or all functions of an old version.
#define EXPORT __attribute__((visibility("default")))

EXPORT int ncclGetVersion(int *version) {
  *version = 21805;
  return 0;
}
EXPORT int ncclGetUniqueId(void *id) { return 0; }
#ifdef MSC_NCCL_Old
#define UNUSED(name)                                                                                                           \
  EXPORT int name(void) { return 3; }
UNUSED(ncclCommInitRankConfig)
UNUSED(ncclCommSplit)
UNUSED(ncclCommGetAsyncError)
UNUSED(ncclCommFinalize)
UNUSED(ncclCommDestroy)
UNUSED(ncclCommAbort)
UNUSED(ncclMemAlloc)
UNUSED(ncclMemFree)
UNUSED(ncclGroupStart)
UNUSED(ncclGroupEnd)
UNUSED(ncclAllReduce)
UNUSED(ncclReduceScatter)
UNUSED(ncclAllGather)
UNUSED(ncclSend)
UNUSED(ncclRecv)
UNUSED(ncclGetErrorString)
UNUSED(ncclGetLastError)
#endif
