// The dumps as Graphviz: one node per operator, collectives filled, `dot -Tsvg` draws it.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "frontend/PrintValues.h"
#include "frontend/Printer.h"
#include "frontend/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

namespace {
class DotPrinter {
public:
  DotPrinter(net::NetworkOp network, std::optional<int64_t> rank, raw_ostream &os)
      : network(network), rank(rank), os(os) {}

  void run(StringRef title, llvm::function_ref<bool(Operation &)> wanted);

private:
  std::string shapeText(Value value) const;
  void leaf(Value value, StringRef name);
  void node(Operation &op);
  void collective(dist::CollectiveOp op, SmallVectorImpl<std::string> &lines, std::string &look) const;
  void operatorLines(Operation &op, SmallVectorImpl<std::string> &lines) const;
  void edges(Operation &op, StringRef id);
  void results(net::ReturnOp op);
  void write(StringRef id, ArrayRef<std::string> lines, StringRef look);

  net::NetworkOp network;
  std::optional<int64_t> rank;
  raw_ostream &os;
  llvm::DenseMap<Value, std::string> ids; ///< of the node that a value comes from
  int64_t next = 0;
};
} // namespace

/// A double-quoted string of Graphviz; lines are centred below each other.
static std::string dotText(ArrayRef<std::string> lines) {
  std::string text = "\"";
  for (auto [index, line] : enumerate(lines)) {
    text += index ? "\\n" : "";
    for (char c : line) {
      if (c == '"' || c == '\\')
        text += '\\';
      text += c == '\n' ? ' ' : c;
    }
  }
  return text + "\"";
}

void DotPrinter::write(StringRef id, ArrayRef<std::string> lines, StringRef look) {
  os << "  " << id << " [label=" << dotText(lines) << (look.empty() ? "" : ", ") << look << "];\n";
}

std::string DotPrinter::shapeText(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (!rank || !dist::hasSharding(type))
    return typeText(type);
  std::vector<int64_t> local = dist::shardingOf(type).localShape(dist::globalShape(type), *rank);
  return typeText(RankedTensorType::get(local, type.getElementType()));
}

void DotPrinter::leaf(Value value, StringRef name) {
  std::string &id = ids[value] = "n" + std::to_string(next++);
  write(id, {"%" + name.str(), shapeText(value)}, "shape=ellipse");
}

void DotPrinter::collective(dist::CollectiveOp op, SmallVectorImpl<std::string> &lines, std::string &look) const {
  StringRef kind = dist::stringifyCollectiveKind(op.getKind());
  ArrayRef<int64_t> matrix = op.getGroupMatrix();
  std::vector<int64_t> ranks = msc::groupOf({matrix.begin(), matrix.end()},
                                            {op.getGroupAxes().begin(), op.getGroupAxes().end()}, rank.value_or(0));
  std::string text;
  for (int64_t member : ranks)
    text += (text.empty() ? "" : ", ") + std::to_string(member);
  lines.push_back(kind.str());
  lines.push_back("ranks " + text);
  look = "style=filled, fillcolor=" + llvm::StringSwitch<std::string>(kind)
                                          .Case("AllReduce", "salmon")
                                          .Case("ReduceScatter", "orange")
                                          .Case("AllGather", "gold")
                                          .Case("AlltoAll", "lightskyblue")
                                          .Default("plum");
}

void DotPrinter::operatorLines(Operation &op, SmallVectorImpl<std::string> &lines) const {
  StringRef name = isa<dist::SliceOp>(op)     ? "StridedSlice"
                   : isa<dist::ReshardOp>(op) ? "Reshard"
                                              : op.getName().stripDialect();
  lines.push_back(name.str());
  if (auto constant = dyn_cast<net::ConstantOp>(op))
    lines.front() =
        "Fill(" +
        attributeText(FloatAttr::get(Float64Type::get(op.getContext()), constant.getSplat().convertToDouble())) + ")";
  if (StringRef instance = net::getInstanceName(&op); !instance.empty())
    lines.push_back(instance.str());
  if (auto strategy = net::getInStrategy(&op))
    lines.push_back(net::strategyText(*strategy));
  if (StringRef origin = net::getStrategyOrigin(&op); !origin.empty())
    lines.push_back(origin.str());
}

void DotPrinter::edges(Operation &op, StringRef id) {
  for (Value operand : op.getOperands())
    if (auto source = ids.find(operand); source != ids.end())
      os << "  " << source->second << " -> " << id << ";\n";
}

void DotPrinter::node(Operation &op) {
  if (isa<net::ConstantOp>(op) &&
      all_of(op.getUsers(), [&](Operation *user) { return !inlineNumber(user, op.getResult(0)).empty(); }))
    return; // a number in an operand's place
  std::string id = "n" + std::to_string(next++), look;
  SmallVector<std::string> lines;
  if (auto exchange = dyn_cast<dist::CollectiveOp>(op))
    collective(exchange, lines, look);
  else
    operatorLines(op, lines);
  for (Value result : op.getResults()) {
    ids[result] = id;
    lines.push_back(shapeText(result));
  }
  StringRef colour = net::getPhase(&op) == net::Phase::Backward ? "blue"
                     : net::getPhase(&op) == net::Phase::Update ? "darkgreen"
                                                                : "";
  if (!colour.empty())
    look += (look.empty() ? "color=" : ", color=") + colour.str();
  write(id, lines, look);
  edges(op, id);
}

void DotPrinter::results(net::ReturnOp op) {
  for (auto [name, value] : zip(op.getNames().getAsValueRange<StringAttr>(), op.getValues())) {
    std::string id = "n" + std::to_string(next++);
    write(id, {name.str()}, "shape=ellipse, style=bold");
    if (auto source = ids.find(value); source != ids.end())
      os << "  " << source->second << " -> " << id << ";\n";
  }
}

void DotPrinter::run(StringRef title, llvm::function_ref<bool(Operation &)> wanted) {
  os << "digraph " << dotText(network.getSymName().str()) << " {\n  label=" << dotText(title.str())
     << ";\n  node [shape=box, fontname=monospace, fontsize=10];\n";
  Block &block = network.getBody().front();
  for (BlockArgument argument : block.getArguments())
    leaf(argument, net::getValueName(argument));
  for (Operation &op : block) {
    if (auto param = dyn_cast<net::ParamOp>(op))
      leaf(param.getValue(), param.getName());
    else if (auto scalar = dyn_cast<net::ScalarOp>(op))
      leaf(op.getResult(0), scalar.getName());
    else if (auto update = dyn_cast<net::UpdateOp>(op); update && wanted(op))
      os << "  " << ids[update.getNewValue()] << " -> " << ids[update.getParameter()]
         << " [style=dashed, constraint=false];\n";
    else if (auto end = dyn_cast<net::ReturnOp>(op))
      results(end);
    else if (!isa<net::UpdateOp>(op) && wanted(op))
      node(op);
  }
  os << "}\n";
}

void printBeginDot(ModuleOp module, raw_ostream &os) {
  for (net::NetworkOp network : module.getOps<net::NetworkOp>())
    DotPrinter(network, std::nullopt, os).run("step_parallel_begin: global shapes", isForward);
}

void printRankDot(ModuleOp module, int64_t rank, RankDumpKind kind, raw_ostream &os) {
  static const StringRef stages[] = {"step_parallel_end", "18_execute", "19_backend"};
  for (net::NetworkOp network : module.getOps<net::NetworkOp>())
    DotPrinter(network, rank, os)
        .run((stages[static_cast<int>(kind)] + ": local shapes of rank " + Twine(rank)).str(),
             [&](Operation &op) { return kind != RankDumpKind::ParallelEnd || isForward(op); });
}

} // namespace msc::frontend
