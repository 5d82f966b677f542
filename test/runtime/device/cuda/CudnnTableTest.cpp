// How cuDNN is found, and whether what we write down of its interface is what its header says.
#include "runtime/device/cuda/Tables.h"

#include <gtest/gtest.h>

#ifdef MSC_HAS_CUDNN_HEADER
#include <cudnn_graph.h>
#include <vector>
#endif

using namespace msc::device::cuda;
using namespace msc::device::cuda::cudnn;

namespace {

#ifdef MSC_HAS_CUDNN_HEADER
#define MSC_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
MSC_SAME(Code::Success, CUDNN_STATUS_SUCCESS);
MSC_SAME(Code::NotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
MSC_SAME(Code::BadParameter, CUDNN_STATUS_BAD_PARAM);
MSC_SAME(Code::NotSupported, CUDNN_STATUS_NOT_SUPPORTED);
MSC_SAME(Code::InternalError, CUDNN_STATUS_INTERNAL_ERROR);
MSC_SAME(Code::ExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
MSC_SAME(DataType::Float, CUDNN_DATA_FLOAT);
MSC_SAME(DataType::Half, CUDNN_DATA_HALF);
MSC_SAME(DataType::Bfloat16, CUDNN_DATA_BFLOAT16);
MSC_SAME(ConvolutionMode::CrossCorrelation, CUDNN_CROSS_CORRELATION);
MSC_SAME(HeuristicMode::Fallback, CUDNN_HEUR_MODE_FALLBACK);
MSC_SAME(HeuristicMode::A, CUDNN_HEUR_MODE_A);
MSC_SAME(Note::TensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
MSC_SAME(Note::DownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
MSC_SAME(Note::ReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
MSC_SAME(Note::Nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
MSC_SAME(Note::Winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
MSC_SAME(Note::WinogradTile13x13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
static_assert(mostNotes <= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
MSC_SAME(Kind::Convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
MSC_SAME(Kind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
MSC_SAME(Kind::EngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
MSC_SAME(Kind::Heuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
MSC_SAME(Kind::ExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
MSC_SAME(Kind::Forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
MSC_SAME(Kind::BackwardFilter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
MSC_SAME(Kind::BackwardData, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
MSC_SAME(Kind::OperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
MSC_SAME(Kind::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
MSC_SAME(Kind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
MSC_SAME(Type::Handle, CUDNN_TYPE_HANDLE);
MSC_SAME(Type::DataType, CUDNN_TYPE_DATA_TYPE);
MSC_SAME(Type::Int64, CUDNN_TYPE_INT64);
MSC_SAME(Type::Float, CUDNN_TYPE_FLOAT);
MSC_SAME(Type::VoidPointer, CUDNN_TYPE_VOID_PTR);
MSC_SAME(Type::ConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
MSC_SAME(Type::HeuristicMode, CUDNN_TYPE_HEUR_MODE);
MSC_SAME(Type::NumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
MSC_SAME(Type::Descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
MSC_SAME(Attribute::ConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
MSC_SAME(Attribute::ConvolutionModeOf, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
MSC_SAME(Attribute::ConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
MSC_SAME(Attribute::ConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
MSC_SAME(Attribute::ConvolutionPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
MSC_SAME(Attribute::ConvolutionPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
MSC_SAME(Attribute::ConvolutionDimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
MSC_SAME(Attribute::HeuristicModeOf, CUDNN_ATTR_ENGINEHEUR_MODE);
MSC_SAME(Attribute::HeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
MSC_SAME(Attribute::HeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
MSC_SAME(Attribute::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
MSC_SAME(Attribute::PlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
MSC_SAME(Attribute::PlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
MSC_SAME(Attribute::PlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
MSC_SAME(Attribute::ForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
MSC_SAME(Attribute::ForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
MSC_SAME(Attribute::ForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
MSC_SAME(Attribute::ForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
MSC_SAME(Attribute::ForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
MSC_SAME(Attribute::ForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
MSC_SAME(Attribute::BackwardDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
MSC_SAME(Attribute::BackwardDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
MSC_SAME(Attribute::BackwardDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
MSC_SAME(Attribute::BackwardDataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
MSC_SAME(Attribute::BackwardDataX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
MSC_SAME(Attribute::BackwardDataY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
MSC_SAME(Attribute::BackwardFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
MSC_SAME(Attribute::BackwardFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
MSC_SAME(Attribute::BackwardFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
MSC_SAME(Attribute::BackwardFilterW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
MSC_SAME(Attribute::BackwardFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
MSC_SAME(Attribute::BackwardFilterY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
MSC_SAME(Attribute::GraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
MSC_SAME(Attribute::GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
MSC_SAME(Attribute::GraphEngines, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
MSC_SAME(Attribute::TensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
MSC_SAME(Attribute::TensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
MSC_SAME(Attribute::TensorSizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
MSC_SAME(Attribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
MSC_SAME(Attribute::TensorNumber, CUDNN_ATTR_TENSOR_UNIQUE_ID);
MSC_SAME(Attribute::PackNumbers, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
MSC_SAME(Attribute::PackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
MSC_SAME(Attribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
MSC_SAME(Attribute::EngineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
MSC_SAME(Attribute::EngineNumber, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
MSC_SAME(Attribute::EngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);

/// Functions have as many parameters, and of the same sizes.
template <typename Function> struct Sizes;
template <typename Result, typename... Parameters> struct Sizes<Result (*)(Parameters...)> {
  static std::vector<size_t> list() { return {sizeof(Result), sizeof(Parameters)...}; }
};

TEST(CudnnTable, FunctionsAreThoseOfTheHeader) {
#define MSC_COMPARE(name, parameters) EXPECT_EQ(Sizes<decltype(Table::name)>::list(), Sizes<decltype(&::name)>::list()) << #name;
  MSC_CUDNN_FUNCTIONS(MSC_COMPARE)
  MSC_COMPARE(cudnnGetVersion, )
  MSC_COMPARE(cudnnGetErrorString, )
}
#endif

TEST(CudnnTable, SaysWhyThereIsNone) {
  Table none = loadCudnn("libmsc-no-such-cudnn.so.9");
  EXPECT_FALSE(none.isThere());
  EXPECT_EQ(none.problem.rfind("libmsc-no-such-cudnn.so.9: ", 0), 0u) << none.problem;
  Table other = loadCudnn("libm.so.6");
  EXPECT_FALSE(other.isThere());
  EXPECT_EQ(other.problem, "libm.so.6 has no function 'cudnnCreate': it is too old");
}

} // namespace
