#include "frontend/MindSporeForms.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace msc::frontend {

/// Of Tile a strategy cuts the multiples: the operand is whole, the result is cut. Where it may as well cut the operand, that is meant.
static std::optional<std::pair<net::Strategy, net::Strategy>> strategiesOfTile(net::TileOp tile, const net::Strategy &in) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getInputX().getType()).getShape(), multiples = tile.getMultiples();
  if (in.size() != 1 || in.front().size() != multiples.size())
    return std::nullopt;
  const size_t added = multiples.size() - shape.size();
  bool cutsOperand = added == 0;
  for (auto [dim, pieces] : llvm::enumerate(in.front())) {
    if (pieces < 1 || multiples[dim] % pieces != 0)
      return std::nullopt;
    cutsOperand = cutsOperand && pieces <= shape[dim - added];
  }
  if (cutsOperand)
    return std::nullopt;
  return std::pair(net::Strategy{std::vector<int64_t>(shape.size(), 1)}, in);
}

std::optional<std::pair<net::Strategy, net::Strategy>> strategiesOfMindSpore(Operation *op, const net::Strategy &in) {
  if (auto tile = dyn_cast<net::TileOp>(op))
    return strategiesOfTile(tile, in);
  auto oneHot = dyn_cast<net::OneHotOp>(op);
  if (!oneHot || in.size() != 3 || !in[1].empty() || !in[2].empty())
    return std::nullopt;
  if (in.front().size() != static_cast<size_t>(cast<RankedTensorType>(oneHot.getOutput().getType()).getRank()))
    return std::nullopt;
  net::Strategy indices{in.front()};
  indices.front().erase(indices.front().begin() + oneHot.dimension());
  return std::pair(indices, net::Strategy{in.front()});
}

bool isDumpNoise(StringRef key) {
  static const StringRef noise[] = {
      "input_names",  "output_names",     "transpose_x1",          "transpose_x2",    "comm_reuse",         "fusion",
      "index",        "no_eliminate",     "gen_strategy",          "primitive_target", "primitive_function", "side_effect_mem",
      "side_effect_io", "side_effect_propagate", "keep_value_node_input", "pri_format",  "IsFeatureMapOutput", "IsFeatureMapInputList"};
  return is_contained(noise, key);
}

/// What an attribute of PyTorch, ONNX, or another of MindSpore's operators is called here; empty: nobody knows.
static StringRef attributeElsewhere(StringRef name) {
  return StringSwitch<StringRef>(name)
      .Cases("transpose_x1", "transA", "trans_a", "transpose_a")
      .Cases("transpose_x2", "transB", "trans_b", "transpose_b")
      .Cases("num_heads", "head_num", "n_heads", "heads")
      .Cases("dim", "axes", "axis")
      .Cases("keepdim", "keepdims", "keep_dims")
      .Case("is_causal", "causal")
      .Case("eps", "epsilon")
      .Default("");
}

void addAttributeHelp(InFlightDiagnostic &diagnostic, StringRef name, ArrayRef<StringRef> own, ArrayRef<StringRef> ofAll) {
  SmallVector<StringRef> known(own);
  llvm::append_range(known, ofAll);
  if (name == "manual_split")
    net::addHelp(diagnostic, "rows are cut into pieces that differ by one at most, however many there are: write in_strategy: ((pieces, 1), (1))");
  else if (name == "padding" && llvm::is_contained(own, "pad_mode"))
    net::addHelp(diagnostic, "write pad_mode: same, or pad_mode: pad and pad: (top, bottom, left, right)");
  else if (name == "p" && llvm::is_contained(own, "keep_prob"))
    net::addHelp(diagnostic, "write keep_prob: 1 - p, or import \"nn.mir\", whose Dropout takes p");
  else if (StringRef ours = attributeElsewhere(name); !ours.empty() && llvm::is_contained(known, ours))
    net::addHelp(diagnostic, "did you mean '" + ours + "'?");
  else if (std::string near = net::nearestKey(name, own); !near.empty())
    net::addHelp(diagnostic, "did you mean '" + near + "'?");
  else if (std::string near = net::nearestKey(name, ofAll); !near.empty())
    net::addHelp(diagnostic, "did you mean '" + near + "'?");
  else
    net::addHelp(diagnostic, "expected one of " + llvm::join(known, ", "));
}

void addListHelp(InFlightDiagnostic diagnostic, StringRef callee) {
  net::addHelp(diagnostic, "a list of operands holds values alone: write " + callee + "([%a, %b])");
}

} // namespace msc::frontend
