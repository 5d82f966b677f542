#include "frontend/ForeignNames.h"

#include "runtime/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace msc::frontend {

ArrayRef<ForeignName> foreignNames() {
  static const ForeignName names[] = {
      // Products.
      {"Linear", "MatMul + BiasAdd"},
      {"Dense", "MatMul + BiasAdd"},
      {"Gemm", "MatMul + BiasAdd"},
      {"addmm", "MatMul + BiasAdd"},
      {"mm", "MatMul"},
      {"bmm", "MatMul"},
      {"dot", "MatMul"},
      {"BatchMatMul", "MatMul"},
      // One element.
      {"Div", "RealDiv"},
      {"divide", "RealDiv"},
      {"true_divide", "RealDiv"},
      {"reciprocal", "RealDiv"},
      {"subtract", "Sub"},
      {"multiply", "Mul"},
      {"power", "Pow"},
      {"negative", "Neg"},
      {"absolute", "Abs"},
      {"Swish", "SiLU"},
      {"where", "Select"},
      {"masked_fill", "Select"},
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
      {"ReLU6", "Maximum + Minimum"},
      {"Hardtanh", "Maximum + Minimum"},
      {"LeakyReLU", "Mul + Maximum"},
      {"Softplus", "Exp + Add + Log"},
      // Reductions.
      {"Mean", "ReduceMean"},
      {"Sum", "ReduceSum"},
      {"Max", "ReduceMax"},
      {"amax", "ReduceMax"},
      {"Min", "Neg + ReduceMax + Neg"},
      {"amin", "Neg + ReduceMax + Neg"},
      {"ReduceMin", "Neg + ReduceMax + Neg"},
      {"var", "ReduceMean + Sub + Square + ReduceMean"},
      {"std", "ReduceMean + Sub + Square + ReduceMean + Sqrt"},
      {"Softmax", "ReduceMax + Sub + Exp + ReduceSum + RealDiv"},
      {"LogSoftmax", "ReduceMax + Sub + Exp + ReduceSum + Log + Sub"},
      {"LayerNorm", "ReduceMean + Sub + Square + ReduceMean + Add + Rsqrt + Mul"},
      {"RMSNorm", "Square + ReduceMean + Add + Rsqrt + Mul"},
      {"L1Loss", "Sub + Abs + ReduceMean"},
      {"CrossEntropyLoss", "ReduceMax + Sub + Exp + ReduceSum + Log + Sub + Mul + ReduceSum"},
      {"SoftmaxCrossEntropyWithLogits", "ReduceMax + Sub + Exp + ReduceSum + Log + Sub + Mul + ReduceSum"},
      // Shapes.
      {"Flatten", "Reshape"},
      {"view", "Reshape"},
      {"squeeze", "Reshape"},
      {"unsqueeze", "Reshape"},
      {"expand_dims", "Reshape"},
      {"permute", "Transpose"},
      {"swapaxes", "Transpose"},
      {"expand", "BroadcastTo"},
      {"tile", "Reshape + BroadcastTo + Reshape"},
      {"repeat_interleave", "Reshape + BroadcastTo + Reshape"},
      // Nothing yet.
      {"Conv1d", ""},
      {"Conv2d", ""},
      {"Conv3d", ""},
      {"MaxPool2d", ""},
      {"MaxPool", ""},
      {"AvgPool2d", ""},
      {"AvgPool", ""},
      {"BatchNorm", ""},
      {"BatchNorm2d", ""},
      {"Embedding", ""},
      {"Gather", ""},
      {"concat", ""},
      {"cat", ""},
      {"stack", ""},
      {"Split", ""},
      {"chunk", ""},
      {"Slice", ""},
      {"argmax", ""},
      {"TopK", ""},
      {"Dropout", ""},
      {"MultiheadAttention", ""},
      {"ScaledDotProductAttention", ""},
      {"scaled_dot_product_attention", ""},
  };
  return names;
}

std::string helpForOperator(StringRef name, const std::vector<std::string> &known) {
  bool isKnown = any_of(known, [&](StringRef other) { return other.equals_insensitive(name); });
  const auto *foreign = find_if(foreignNames(), [&](const ForeignName &f) { return f.name.equals_insensitive(name); });
  if (!isKnown && foreign != foreignNames().end() && foreign->ours.empty())
    return "this version has no equivalent; 'msc ops' lists the operators";
  if (!isKnown && foreign != foreignNames().end())
    return ("here it is " + foreign->ours + "; 'msc ops " + foreign->ours.split(' ').first + "' shows how to write " +
            (foreign->ours.contains('+') ? "the first" : "it"))
        .str();
  if (std::string near = nearest(std::string_view(name), known); !near.empty())
    return "did you mean '" + near + "'?";
  return "'msc ops' lists the operators";
}

} // namespace msc::frontend
