#include "test/runtime/device/cuda/RecordingDriver.h"

#include "test/runtime/device/cuda/RecordedState.h"

#include <cstring>

namespace msc::test {

static RecordingDriver::State *current = nullptr;

RecordingDriver::RecordingDriver() : state(std::make_unique<State>(*this)) {
  current = state.get();
  recordBlasIn(current);
  recordCudnnIn(current);
}
RecordingDriver::~RecordingDriver() {
  current = nullptr;
  recordBlasIn(nullptr);
  recordCudnnIn(nullptr);
}

void RecordingDriver::addModule(std::function<bool(const std::string &)> recognises, RecordedModule module) {
  state->known.push_back({std::move(recognises), std::make_shared<RecordedModule>(std::move(module))});
}
void RecordingDriver::failCall(const std::string &function, int number, CUresult result) {
  state->callFailures[function] = {number, result};
}
void RecordingDriver::failKernel(const std::string &entry, int number, CUresult result) {
  state->kernelFailures[entry] = {number, result};
}
uint64_t RecordingDriver::allocationOf(uint64_t address) const {
  return state->allocationOf(address);
}
int RecordingDriver::calls(const std::string &function) const {
  return state->callCounts[function];
}
int RecordingDriver::ran() const {
  return state->executed;
}
const std::vector<std::string> &RecordingDriver::violations() const {
  return state->violations;
}
std::string RecordingDriver::leaks() const {
  return state->leaks();
}
RecordingDriver::State &RecordingDriver::recorded() {
  return *state;
}

namespace {

using State = RecordingDriver::State;

template <typename Handle, typename Object> Handle handleOf(Object *object) {
  return reinterpret_cast<Handle>(object);
}

/// The functions of the driver, each under the lock of the state. ENTER counts the call and leaves with an error that was
/// asked for, or that has happened.
#define ENTER(name)                                                                                                            \
  State &s = *current;                                                                                                         \
  std::lock_guard lock(s.mutex);                                                                                               \
  if (CUresult early = s.enter(name); early != CUDA_SUCCESS)                                                                   \
    return early;

CUresult init(unsigned) {
  ENTER("cuInit")
  return CUDA_SUCCESS;
}
CUresult versionOf(int *version) {
  ENTER("cuDriverGetVersion")
  *version = s.owner.driverVersion;
  return CUDA_SUCCESS;
}
CUresult errorName(CUresult result, const char **name) {
  static const std::map<CUresult, const char *> names{
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"}};
  auto found = names.find(result);
  *name = found == names.end() ? nullptr : found->second;
  return CUDA_SUCCESS;
}
CUresult errorString(CUresult result, const char **text) {
  *text = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "recorded";
  return CUDA_SUCCESS;
}
CUresult deviceCount(int *count) {
  ENTER("cuDeviceGetCount")
  *count = s.owner.gpus;
  return CUDA_SUCCESS;
}
CUresult deviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet")
  *device = ordinal;
  return ordinal < s.owner.gpus ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult deviceName(char *name, int length, CUdevice) {
  ENTER("cuDeviceGetName")
  std::snprintf(name, static_cast<size_t>(length), "recording");
  return CUDA_SUCCESS;
}
CUresult deviceAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  ENTER("cuDeviceGetAttribute")
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = s.owner.computeMajor; break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = s.owner.sharedBytesOfBlock; break;
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult deviceUuid(CUuuid *uuid, CUdevice device) {
  ENTER("cuDeviceGetUuid")
  *uuid = {};
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext *context, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain")
  ++s.live["context"];
  *context = reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device) + 1);
  return CUDA_SUCCESS;
}
CUresult release(CUdevice) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  --s.live["context"];
  return CUDA_SUCCESS;
}
CUresult setCurrent(CUcontext context) {
  ENTER("cuCtxSetCurrent")
  State::currentGpu() = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
  return CUDA_SUCCESS;
}
CUresult memoryInfo(size_t *free, size_t *total) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  *total = s.owner.memoryBytes;
  *free = s.owner.memoryBytes - s.deviceBytes();
  return CUDA_SUCCESS;
}
CUresult allocate(CUdeviceptr *memory, size_t bytes) {
  ENTER("cuMemAlloc")
  s.notWhileCapturing("cuMemAlloc");
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (s.deviceBytes() + bytes > s.owner.memoryBytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = s.allocate(bytes, false);
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult freeMemory(CUdeviceptr memory) {
  return current->release(memory, false);
}
CUresult allocateHost(void **memory, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc")
  s.notWhileCapturing("cuMemHostAlloc");
  *memory = reinterpret_cast<void *>(s.allocate(bytes, true));
  return CUDA_SUCCESS;
}
CUresult freeHost(void *memory) {
  return current->release(reinterpret_cast<uint64_t>(memory), true);
}

CUresult addressRange(CUdeviceptr *begin, size_t *bytes, CUdeviceptr address) {
  ENTER("cuMemGetAddressRange")
  uint64_t found = 0;
  CUresult result = s.rangeOf(address, found, *bytes);
  *begin = found;
  return result;
}
CUresult ipcHandle(CUipcMemHandle *handle, CUdeviceptr memory) {
  ENTER("cuIpcGetMemHandle")
  return s.share(memory, *handle);
}
CUresult openIpc(CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags) {
  ENTER("cuIpcOpenMemHandle")
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t opened = 0;
  CUresult result = s.openShared(handle, opened);
  *memory = opened;
  return result;
}
CUresult closeIpc(CUdeviceptr memory) {
  ENTER("cuIpcCloseMemHandle")
  return s.closeShared(memory);
}

CUresult copy(const char *name, uint64_t target, uint64_t source, size_t bytes, CUstream stream) {
  ENTER(name)
  return s.enqueue(stream, {name, {{source, source + bytes, false}, {target, target + bytes, true}}, [=] {
                              std::memmove(reinterpret_cast<void *>(target), reinterpret_cast<void *>(source), bytes);
                              return CUDA_SUCCESS;
                            }});
}
CUresult toDevice(CUdeviceptr target, const void *source, size_t bytes, CUstream stream) {
  {
    std::lock_guard lock(current->mutex);
    if (RecordedStream *on = current->streamOf(stream); on && on->number != 0)
      ++current->callCounts["uploads on other streams than the first"];
  }
  return copy("cuMemcpyHtoDAsync", target, reinterpret_cast<uint64_t>(source), bytes, stream);
}
CUresult toHost(void *target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoHAsync", reinterpret_cast<uint64_t>(target), source, bytes, stream);
}
CUresult onDevice(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoDAsync", target, source, bytes, stream);
}
template <typename Element> CUresult fill(const char *name, CUdeviceptr target, Element value, size_t count, CUstream stream) {
  ENTER(name)
  return s.enqueue(stream, {name, {{target, target + count * sizeof(Element), true}}, [=] {
                              std::fill_n(reinterpret_cast<Element *>(target), count, value);
                              return CUDA_SUCCESS;
                            }});
}
CUresult fill8(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", target, value, count, stream);
}
CUresult fill16(CUdeviceptr target, unsigned short value, size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", target, value, count, stream);
}
CUresult fill32(CUdeviceptr target, unsigned value, size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", target, value, count, stream);
}

CUresult createStream(CUstream *stream, unsigned) {
  ENTER("cuStreamCreate")
  *stream = handleOf<CUstream>(s.newStream());
  return CUDA_SUCCESS;
}
CUresult destroyStream(CUstream stream) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  s.streams.erase(reinterpret_cast<RecordedStream *>(stream));
  return CUDA_SUCCESS;
}
CUresult synchronizeStream(CUstream handle) {
  ENTER("cuStreamSynchronize")
  RecordedStream *stream = s.streamOf(handle);
  if (stream->capture) {
    s.violations.push_back("cuStreamSynchronize of a stream that is captured");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return s.waitFor(stream->last, stream->clock);
}
CUresult waitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER("cuStreamWaitEvent")
  return s.wait(s.streamOf(stream), s.eventOf(event));
}
CUresult createEvent(CUevent *event, unsigned) {
  ENTER("cuEventCreate")
  *event = handleOf<CUevent>(s.newEvent());
  return CUDA_SUCCESS;
}
CUresult destroyEvent(CUevent event) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  s.events.erase(reinterpret_cast<RecordedEvent *>(event));
  return CUDA_SUCCESS;
}
CUresult recordEvent(CUevent event, CUstream stream) {
  ENTER("cuEventRecord")
  return s.record(s.eventOf(event), s.streamOf(stream));
}
CUresult synchronizeEvent(CUevent handle) {
  ENTER("cuEventSynchronize")
  RecordedEvent *event = s.eventOf(handle);
  if (event->capture) {
    s.violations.push_back("cuEventSynchronize of an event of a capture");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return s.waitFor(event->node, event->clock);
}

CUresult loadModule(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values) {
  ENTER("cuModuleLoadDataEx")
  s.notWhileCapturing("cuModuleLoadDataEx");
  for (auto &[recognises, content] : s.known)
    if (recognises(static_cast<const char *>(image))) {
      *module = handleOf<CUmodule>(content.get());
      ++s.live["module"];
      return CUDA_SUCCESS;
    }
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      std::strcpy(static_cast<char *>(values[i]),
                  "ptxas application ptx input, line 1; fatal   : Missing .version directive\nmore");
  return CUDA_ERROR_INVALID_PTX;
}
CUresult unloadModule(CUmodule) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  --s.live["module"];
  return CUDA_SUCCESS;
}
CUresult getFunction(CUfunction *function, CUmodule handle, const char *name) {
  ENTER("cuModuleGetFunction")
  auto *module = reinterpret_cast<RecordedModule *>(handle);
  if (std::find(module->entries.begin(), module->entries.end(), name) == module->entries.end())
    return CUDA_ERROR_NOT_FOUND;
  s.functions.push_back(std::make_unique<RecordedFunction>(RecordedFunction{module, name}));
  *function = handleOf<CUfunction>(s.functions.back().get());
  return CUDA_SUCCESS;
}
CUresult setAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  ENTER("cuFuncSetAttribute")
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > s.owner.sharedBytesOfBlock)
    return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<RecordedFunction *>(handle)->sharedBytes = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}
CUresult launch(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                unsigned blockZ, unsigned sharedBytes, CUstream stream, void **places, void **) {
  ENTER("cuLaunchKernel")
  auto *function = reinterpret_cast<RecordedFunction *>(handle);
  if (gridX == 0 || gridX > 0x7fffffff || gridY * gridZ * blockY * blockZ != 1 || blockX == 0 || blockX > 1024 ||
      sharedBytes > function->sharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  KernelCall call{function->entry, blockX, gridX, {}};
  for (size_t i = 0; i < function->module->argumentCount(call.entry); ++i) {
    call.arguments.push_back(0);
    std::memcpy(&call.arguments.back(), places[i], sizeof(uint64_t));
  }
  return s.enqueue(stream, {call.entry, function->module->accesses(call), [&s, call, function] {
                              ++s.executed;
                              if (CUresult failure = s.failureOf(s.kernelFailures, s.kernelRuns, call.entry);
                                  failure != CUDA_SUCCESS)
                                return failure;
                              std::string wrong = function->module->run(call);
                              if (wrong.empty())
                                return CUDA_SUCCESS;
                              s.violations.push_back(wrong);
                              return CUDA_ERROR_LAUNCH_FAILED;
                            }});
}

CUresult beginCapture(CUstream stream, CUstreamCaptureMode mode) {
  ENTER("cuStreamBeginCapture")
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    s.violations.push_back("a capture that binds other threads, too");
  return s.beginCapture(s.streamOf(stream));
}
CUresult endCapture(CUstream stream, CUgraph *graph) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  ++s.callCounts["cuStreamEndCapture"];
  return s.endCapture(s.streamOf(stream), graph);
}
CUresult instantiate(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags")
  auto made = std::make_shared<RecordedGraph>(*reinterpret_cast<RecordedGraph *>(graph));
  s.executables[made.get()] = made;
  *executable = handleOf<CUgraphExec>(made.get());
  return CUDA_SUCCESS;
}
CUresult destroyGraph(CUgraph graph) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  s.graphs.erase(reinterpret_cast<RecordedGraph *>(graph));
  return CUDA_SUCCESS;
}
CUresult launchGraph(CUgraphExec executable, CUstream stream) {
  ENTER("cuGraphLaunch")
  return s.launchGraph(s.executables.at(reinterpret_cast<RecordedGraph *>(executable)), stream);
}
CUresult destroyExecutable(CUgraphExec executable) {
  State &s = *current;
  std::lock_guard lock(s.mutex);
  s.executables.erase(reinterpret_cast<RecordedGraph *>(executable));
  return CUDA_SUCCESS;
}

} // namespace

device::cuda::Tables RecordingDriver::tables() const {
  device::cuda::Tables tables;
  device::cuda::DriverTable &t = tables.driver;
  t.cuInit = init, t.cuDriverGetVersion = versionOf, t.cuGetErrorName = errorName, t.cuGetErrorString = errorString;
  t.cuDeviceGetCount = deviceCount, t.cuDeviceGet = deviceGet, t.cuDeviceGetName = deviceName,
  t.cuDeviceGetAttribute = deviceAttribute, t.cuDeviceGetUuid = deviceUuid;
  t.cuDevicePrimaryCtxRetain = retain, t.cuDevicePrimaryCtxRelease = release, t.cuCtxSetCurrent = setCurrent;
  t.cuMemGetInfo = memoryInfo, t.cuMemAlloc = allocate, t.cuMemFree = freeMemory, t.cuMemHostAlloc = allocateHost,
  t.cuMemFreeHost = freeHost;
  t.cuMemGetAddressRange = addressRange, t.cuIpcGetMemHandle = ipcHandle, t.cuIpcOpenMemHandle = openIpc,
  t.cuIpcCloseMemHandle = closeIpc;
  t.cuMemcpyHtoDAsync = toDevice, t.cuMemcpyDtoHAsync = toHost, t.cuMemcpyDtoDAsync = onDevice;
  t.cuMemsetD8Async = fill8, t.cuMemsetD16Async = fill16, t.cuMemsetD32Async = fill32;
  t.cuStreamCreate = createStream, t.cuStreamDestroy = destroyStream, t.cuStreamSynchronize = synchronizeStream,
  t.cuStreamWaitEvent = waitEvent;
  t.cuEventCreate = createEvent, t.cuEventDestroy = destroyEvent, t.cuEventRecord = recordEvent,
  t.cuEventSynchronize = synchronizeEvent;
  t.cuModuleLoadDataEx = loadModule, t.cuModuleUnload = unloadModule, t.cuModuleGetFunction = getFunction,
  t.cuFuncSetAttribute = setAttribute, t.cuLaunchKernel = launch;
  t.cuStreamBeginCapture = beginCapture, t.cuStreamEndCapture = endCapture, t.cuGraphInstantiateWithFlags = instantiate;
  t.cuGraphDestroy = destroyGraph, t.cuGraphLaunch = launchGraph, t.cuGraphExecDestroy = destroyExecutable;
  fillBlasTable(tables.blas);
  if (state->owner.hasCudnn)
    fillCudnnTable(tables.cudnn);
  else
    tables.cudnn.problem = "libcudnn.so.9 is not recorded";
  return tables;
}

} // namespace msc::test
