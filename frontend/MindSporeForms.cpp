#include "frontend/MindSporeForms.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace msc::frontend {

std::optional<std::pair<net::Strategy, net::Strategy>> strategiesOfMindSpore(Operation *op, const net::Strategy &in) {
  auto oneHot = dyn_cast<net::OneHotOp>(op);
  if (!oneHot || in.size() != 3 || !in[1].empty() || !in[2].empty())
    return std::nullopt;
  if (in.front().size() != static_cast<size_t>(cast<RankedTensorType>(oneHot.getOutput().getType()).getRank()))
    return std::nullopt;
  net::Strategy indices{in.front()};
  indices.front().erase(indices.front().begin() + oneHot.dimension());
  return std::pair(indices, net::Strategy{in.front()});
}

void addAttributeHelp(InFlightDiagnostic &diagnostic, StringRef name, ArrayRef<StringRef> known) {
  if (name == "manual_split")
    net::addHelp(diagnostic, "rows are cut into pieces that differ by one at most, however many there are: write in_strategy: ((pieces, 1), (1))");
  else
    net::addSuggestionOrList(diagnostic, name, known);
}

} // namespace msc::frontend
