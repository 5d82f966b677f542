#include "frontend/ForeignNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace msc::frontend {

ArrayRef<ForeignName> foreignNames() {
  static const ForeignName names[] = {
      // Products.
      {"Linear", "MatMul + BiasAdd", "Linear"},
      {"Gemm", "MatMul + BiasAdd"},
      {"addmm", "MatMul + BiasAdd"},
      {"mm", "MatMul"},
      {"bmm", "MatMul"},
      {"dot", "MatMul"},
      {"Einsum", "Transpose + MatMul"},
      // One element.
      {"Div", "RealDiv"},
      {"divide", "RealDiv"},
      {"true_divide", "RealDiv"},
      {"Inv", "Reciprocal"},
      {"TensorAdd", "Add"},
      {"Rint", "Round"},
      {"subtract", "Sub"},
      {"multiply", "Mul"},
      {"power", "Pow"},
      {"negative", "Neg"},
      {"absolute", "Abs"},
      {"Swish", "SiLU"},
      {"where", "Select"},
      {"masked_fill", "MaskedFill"},
      {"astype", "Cast"},
      {"to", "Cast"},
      {"gt", "Greater"},
      {"ge", "GreaterEqual"},
      {"lt", "Less"},
      {"le", "LessEqual"},
      {"eq", "Equal"},
      {"ne", "NotEqual"},
      {"clamp", "Maximum + Minimum"},
      {"clip", "Maximum + Minimum"},
      {"Hardtanh", "Maximum + Minimum"},
      // Reductions.
      {"Mean", "ReduceMean"},
      {"Sum", "ReduceSum"},
      {"Max", "ReduceMax"},
      {"amax", "ReduceMax"},
      {"Min", "ReduceMin"},
      {"amin", "ReduceMin"},
      {"prod", "ReduceProd"},
      {"all", "ReduceAll"},
      {"any", "ReduceAny"},
      {"var", "ReduceMean + Sub + Square + ReduceMean"},
      {"std", "ReduceMean + Sub + Square + ReduceMean + Sqrt"},
      {"RMSNorm", "RmsNorm", "RMSNorm"},
      {"CrossEntropyLoss", "SoftmaxCrossEntropyWithLogits"},
      {"cross_entropy", "SoftmaxCrossEntropyWithLogits"},
      {"arange", "Range"},
      // Shapes.
      {"view", "Reshape"},
      {"squeeze", "Squeeze"},
      {"unsqueeze", "ExpandDims"},
      {"expand_dims", "Reshape"},
      {"permute", "Transpose"},
      {"swapaxes", "Transpose"},
      {"expand", "BroadcastTo"},
      {"tile", "Tile"},
      {"repeat_interleave", "Reshape + BroadcastTo + Reshape"},
      {"concat", "Concat"},
      {"concatenate", "Concat"},
      {"cat", "Concat"},
      {"stack", "Stack"},
      {"chunk", "Split"},
      // Images.
      {"ConvTranspose2d", "Conv2DTranspose"},
      {"MaxPool2d", "MaxPool", "MaxPool2d"},
      {"AvgPool2d", "AvgPool", "AvgPool2d"},
      {"BatchNorm2d", "BatchNorm", "BatchNorm2d"},
      // By number.
      {"Embedding", "Gather", "Embedding"},
      {"index_select", "Gather"},
      {"SparseGatherV2", "Gather"},
      {"take_along_axis", "GatherD"},
      {"index_add", "ScatterAdd"},
      {"scatter_add", "ScatterAdd"},
      {"segment_sum", "UnsortedSegmentSum"},
      {"segment_max", "UnsortedSegmentMax"},
      {"gather_nd", "GatherNd"},
      {"tensor_scatter_add", "TensorScatterAdd"},
      {"index_put", "TensorScatterUpdate"},
      {"full", "Fill"},
      {"FillV2", "Fill"},
      // Attention.
      {"FlashAttentionScore", "ScaledDotProductAttention"},
      {"scaled_dot_product_attention", "ScaledDotProductAttention"},
      {"RotaryMul", "RotaryPositionEmbedding", "RotaryEmbedding"},
      {"ApplyRotaryPosEmb", "RotaryPositionEmbedding", "RotaryEmbedding"},
      {"apply_rotary_pos_emb", "RotaryPositionEmbedding", "RotaryEmbedding"},
      {"SwiGLU", "Swiglu", "GatedMLP"},
      {"group_norm", "GroupNorm", "GroupNorm"},
      {"DropoutGenMask", "Dropout"},
      {"DropoutDoMask", "Dropout"},
      // Nothing yet.
      {"Atan2", ""},
      {"Conv1d", ""},
      {"Conv3d", ""},
      {"floor_divide", "FloorDiv"},
      {"fmod", "Mod"},
      {"remainder", "FloorMod"},
      {"logical_and", "LogicalAnd"},
      {"logical_or", "LogicalOr"},
      {"logical_not", "LogicalNot"},
      {"binary_cross_entropy", "BinaryCrossEntropy"},
      {"BCELoss", "BinaryCrossEntropy"},
      {"HardSigmoid", "HSigmoid"},
      {"HardSwish", "HSwish"},
      {"MultiheadAttention", "", "MultiHeadAttention"},
  };
  return names;
}

std::string calledHere(StringRef function) {
  // Those that differ in capitals and underscores alone.
  StringRef capitals = StringSwitch<StringRef>(function)
                           .Case("relu", "ReLU")
                           .Case("gelu", "GeLU")
                           .Case("silu", "SiLU")
                           .Case("tanh", "Tanh")
                           .Case("sigmoid", "Sigmoid")
                           .Case("softmax", "Softmax")
                           .Case("log_softmax", "LogSoftmax")
                           .Case("layer_norm", "LayerNorm")
                           .Case("dropout", "Dropout")
                           .Case("mse_loss", "MSELoss")
                           .Case("matmul", "MatMul")
                           .Case("reshape", "Reshape")
                           .Case("transpose", "Transpose")
                           .Case("flatten", "Flatten")
                           .Default("");
  if (!capitals.empty())
    return capitals.str();
  const auto *foreign = find_if(foreignNames(), [&](const ForeignName &other) { return other.name.equals_insensitive(function); });
  if (foreign == foreignNames().end())
    return function.str();
  const bool isOne = !foreign->ours.empty() && !foreign->ours.contains(' ');
  return (isOne || foreign->layer.empty() ? (isOne ? foreign->ours : function) : foreign->layer).str();
}

} // namespace msc::frontend
