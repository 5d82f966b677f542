// What is used of cuDNN 9, the graph of operations of its backend, written down here so that it takes no header of cuDNN to
// build. A test compares it with cudnn_graph.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace msc::device::cuda::cudnn {

struct Context; // of cuDNN
using Handle = Context *;
using Descriptor = void *;

/// The first digit says what kind of failure it is.
enum class Code : int {
  Success = 0,
  NotInitialized = 1001,
  BadParameter = 2000,
  NotSupported = 3000,
  InternalError = 4000,
  ExecutionFailed = 5000,
};

enum class DataType : int { Float = 0, Half = 2, Bfloat16 = 9 };
enum class ConvolutionMode : int { CrossCorrelation = 1 };
enum class HeuristicMode : int { Fallback = 2, A = 3 };

/// How an engine computes.
enum class Note : int {
  TensorCore = 0,
  DownConvertInputs = 1,
  ReducedPrecisionReduction = 2,
  Nondeterministic = 4,
  Winograd = 5,
  WinogradTile13x13 = 8,
};
constexpr int64_t mostNotes = 10; ///< kinds of notes in 9.1 and later

/// What a descriptor describes.
enum class Kind : int {
  Convolution = 1,
  Engine = 2,
  EngineConfig = 3,
  Heuristic = 4,
  ExecutionPlan = 5,
  Forward = 10,
  BackwardFilter = 11,
  BackwardData = 12,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
};

/// The type of an attribute's values.
enum class Type : int {
  Handle = 0,
  DataType = 1,
  Int64 = 3,
  Float = 4,
  VoidPointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  NumericalNote = 11,
  Descriptor = 15,
};

enum class Attribute : int {
  ConvolutionComputeType = 100,
  ConvolutionModeOf = 101,
  ConvolutionDilations = 102,
  ConvolutionStrides = 103,
  ConvolutionPaddingAfter = 104,
  ConvolutionPaddingBefore = 105,
  ConvolutionDimensions = 106,
  HeuristicModeOf = 200,
  HeuristicGraph = 201,
  HeuristicResults = 202,
  ConfigEngine = 300,
  PlanHandle = 400,
  PlanConfig = 401,
  PlanWorkspaceBytes = 402,
  ForwardAlpha = 700,
  ForwardBeta = 701,
  ForwardConvolution = 702,
  ForwardW = 703,
  ForwardX = 704,
  ForwardY = 705,
  BackwardDataAlpha = 706,
  BackwardDataBeta = 707,
  BackwardDataConvolution = 708,
  BackwardDataW = 709,
  BackwardDataX = 710,
  BackwardDataY = 711,
  BackwardFilterAlpha = 712,
  BackwardFilterBeta = 713,
  BackwardFilterConvolution = 714,
  BackwardFilterW = 715,
  BackwardFilterX = 716,
  BackwardFilterY = 717,
  GraphHandle = 800,
  GraphOperations = 801,
  GraphEngines = 802,
  TensorAlignment = 900,
  TensorDataType = 901,
  TensorSizes = 902,
  TensorStrides = 903,
  TensorNumber = 906,
  PackNumbers = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  EngineGraph = 1300,
  EngineNumber = 1301,
  EngineNotes = 1303,
};

// name, parameters; all return a Code unless they are listed apart.
// clang-format off
#define MSC_CUDNN_FUNCTIONS(F) \
  F(cudnnCreate, (Handle *handle)) \
  F(cudnnDestroy, (Handle handle)) \
  F(cudnnSetStream, (Handle handle, void *stream)) \
  F(cudnnBackendCreateDescriptor, (Kind kind, Descriptor *descriptor)) \
  F(cudnnBackendDestroyDescriptor, (Descriptor descriptor)) \
  F(cudnnBackendSetAttribute, (Descriptor descriptor, Attribute attribute, Type type, int64_t count, const void *values)) \
  F(cudnnBackendGetAttribute, (Descriptor descriptor, Attribute attribute, Type type, int64_t wanted, int64_t *count, \
     void *values)) \
  F(cudnnBackendFinalize, (Descriptor descriptor)) \
  F(cudnnBackendExecute, (Handle handle, Descriptor plan, Descriptor pack))
// clang-format on

/// The functions, filled by dlopen or by a test. Without cuDNN all are null.
struct Table {
#define MSC_MEMBER(name, parameters) Code(*name) parameters = nullptr;
  MSC_CUDNN_FUNCTIONS(MSC_MEMBER)
#undef MSC_MEMBER
  size_t (*cudnnGetVersion)() = nullptr;
  const char *(*cudnnGetErrorString)(Code code) = nullptr;
  std::string problem; ///< why there is none

  bool isThere() const { return problem.empty() && cudnnCreate != nullptr; }
};

} // namespace msc::device::cuda::cudnn
