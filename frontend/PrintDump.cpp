// Dumps in MindSpore's grammar: step_parallel_begin (global) and the graphs of one rank (local).
#include "dialects/dist/DistDialect.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/FixedPieces.h"
#include "dialects/net/Halo.h"
#include "dialects/net/Network.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/RegionExchange.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "frontend/PrintValues.h"
#include "frontend/Printer.h"
#include "frontend/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

namespace {
class DumpPrinter {
public:
  DumpPrinter(net::NetworkOp network, std::optional<int64_t> rank, raw_ostream &os)
      : network(network), rank(rank), os(os) {}

  /// `stage` goes into #attrs; `wanted` chooses the operators that are printed.
  void run(StringRef stage, llvm::function_ref<bool(Operation &)> wanted);
  /// `parameters {"w": {init: Normal(0.01), requires_grad: true}}`.
  void printParameters();

private:
  // Names and types.
  void declareParameters();
  std::string operandText(Operation &user, Value value);
  std::string typeText(Value value, StringRef refKey = "");
  StringRef refKeyOf(Value value);

  // The file.
  void printHeader(StringRef stage);
  void printNode(Operation &op);
  void printNetOperator(Operation &op);
  void addExchange(Operation &op, std::vector<std::string> &attributes);
  void printCollective(dist::CollectiveOp op);
  void printSlice(dist::SliceOp op);
  void printReinterpret(net::ReinterpretOp op);
  void printReshard(dist::ReshardOp op);
  void printConstant(net::ConstantOp op);
  void printUpdate(net::UpdateOp op);
  void printReturn(net::ReturnOp op);

  // Parts of a node.
  void printResults(Operation &op);
  void printOperands(Operation &op);
  void printInstance(Operation &op);
  void printTail(Operation &op);
  std::string scopeOf(Operation &op);
  std::string optimizerName();

  net::NetworkOp network;
  std::optional<int64_t> rank;
  raw_ostream &os;
  llvm::DenseMap<Value, std::string> names;
  SmallVector<Value> parameters; ///< inputs, parameters, scalars: %para1_x, ...
  int64_t nextNode = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Names and types
//===----------------------------------------------------------------------===//

StringRef DumpPrinter::refKeyOf(Value value) {
  if (auto param = value.getDefiningOp<net::ParamOp>())
    return param.getName();
  if (auto scalar = value.getDefiningOp<net::ScalarOp>())
    return scalar.getName();
  return {};
}

void DumpPrinter::declareParameters() {
  Block &block = network.getBody().front();
  auto add = [&](Value value, StringRef name) {
    parameters.push_back(value);
    names[value] = ("%para" + Twine(parameters.size()) + "_" + name).str();
  };
  for (BlockArgument argument : block.getArguments())
    add(argument, net::getValueName(argument));
  for (Operation &op : block)
    if (isa<net::ParamOp, net::ScalarOp>(op))
      add(op.getResult(0), refKeyOf(op.getResult(0)));
}

std::string DumpPrinter::operandText(Operation &user, Value value) {
  std::string number = names.count(value) ? "" : inlineNumber(&user, value);
  return number.empty() ? names.lookup(value) : number;
}

std::string DumpPrinter::typeText(Value value, StringRef refKey) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!rank || !dist::hasSharding(type))
    return dumpTypeText(type.getElementType(), type.getShape(), refKey);
  std::vector<int64_t> local = dist::shardingOf(type).localShape(dist::globalShape(type), *rank);
  return dumpTypeText(type.getElementType(), local, refKey);
}

//===----------------------------------------------------------------------===//
// Parts of a node
//===----------------------------------------------------------------------===//

void DumpPrinter::printResults(Operation &op) {
  os << "  ";
  interleaveComma(op.getResults(), os, [&](Value value) {
    std::string name = "%" + std::to_string(nextNode++);
    names[value] = name;
    os << name;
    if (StringRef source = net::getValueName(value); !source.empty())
      os << '(' << source << ')';
  });
  os << " = ";
}

void DumpPrinter::printOperands(Operation &op) {
  os << '(';
  interleaveComma(op.getOperands(), os, [&](Value value) { os << operandText(op, value); });
  os << ')';
}

void DumpPrinter::printInstance(Operation &op) {
  StringRef name = net::getInstanceName(&op);
  if (!name.empty() && (op.getNumResults() == 0 || name != net::getValueName(op.getResult(0))))
    os << " {instance name: " << wordText(name) << '}';
}

/// "SGD" or "Momentum": the operator that updates the parameters.
std::string DumpPrinter::optimizerName() {
  for (Operation &op : network.getBody().front()) {
    StringRef name = op.getName().stripDialect();
    if (net::getPhase(&op) == net::Phase::Update && isa<net::Operator>(op)) {
      name.consume_front("Apply");
      return name.str();
    }
  }
  return "SGD";
}

std::string DumpPrinter::scopeOf(Operation &op) {
  StringRef scope = net::getScope(&op);
  switch (net::getPhase(&op)) {
  case net::Phase::Forward: return scope.str();
  case net::Phase::Backward:
    return scope.starts_with("Gradients/") ? scope.str() : ("Gradients/" + (scope.empty() ? "Default" : scope)).str();
  case net::Phase::Update:
    return scope.starts_with("Default/optimizer-") ? scope.str() : "Default/optimizer-" + optimizerName();
  }
  return "";
}

void DumpPrinter::printTail(Operation &op) {
  bool isUpdate = net::getPhase(&op) == net::Phase::Update;
  os << "\n      : (";
  interleaveComma(op.getOperands(), os, [&](Value value) { os << typeText(value, isUpdate ? refKeyOf(value) : ""); });
  os << ") -> (";
  interleaveComma(op.getResults(), os, [&](Value value) { os << typeText(value); });
  os << ")\n";
  if (std::string scope = scopeOf(op); !scope.empty())
    os << "      # scope: (" << scope << ")\n";
  printPlace(op.getLoc(), 6, os);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static std::string tupleText(ArrayRef<int64_t> numbers) {
  std::string text = "(";
  for (auto [index, number] : enumerate(numbers))
    text += (index ? ", " : "") + std::to_string(number);
  return text + ")";
}

/// The group among which an operator that copies regions, or gathers windows, exchanges elements.
void DumpPrinter::addExchange(Operation &op, std::vector<std::string> &attributes) {
  auto lower = dyn_cast<net::Lower>(op);
  bool copies = lower && lower.loweringKind() == net::LoweringKind::Regions;
  if (!rank || (!copies && !isa<net::HaloInterface>(op)))
    return;
  std::vector<msc::Sharding> operands, results;
  for (Value operand : op.getOperands())
    operands.push_back(dist::shardingOf(operand));
  for (Value result : op.getResults())
    results.push_back(dist::shardingOf(result));
  net::RegionExchange exchange = copies ? net::regionExchange(net::regionCopyOf(&op), operands, results)
                                        : net::haloExchange(net::halosOf(&op, operands));
  if (!exchange.communicates())
    return;
  std::vector<int64_t> ranks = msc::groupOf(exchange.groupMatrix, exchange.groupAxes, *rank);
  // Convolutions have an attribute `group` of their own.
  attributes.push_back((copies ? "group: " : "exchange_group: ") + msc::groupName(ranks, operands.front().devices()));
  attributes.push_back("rank_list: " + tupleText(ranks));
}

void DumpPrinter::printNetOperator(Operation &op) {
  std::optional<net::Strategy> in = net::getInStrategy(&op), out = net::getOutStrategy(&op);
  StringRef origin = net::getStrategyOrigin(&op);
  bool byUser = origin == "user" || origin.empty();
  std::vector<std::string> strategies;
  if (in)
    strategies.push_back("in_strategy: " + net::strategyText(*in));
  if (out)
    strategies.push_back("out_strategy: " + net::strategyText(*out));
  std::vector<std::string> attributes;
  for (const auto &[name, value] : userAttributes(&op))
    attributes.push_back(name + ": " + attributeText(value));
  if (net::isRecomputed(&op))
    attributes.push_back("recompute: true");
  if (byUser)
    attributes.insert(attributes.end(), strategies.begin(), strategies.end());
  addExchange(op, attributes);

  printResults(op);
  os << op.getName().stripDialect();
  printOperands(op);
  printInstance(op);
  if (!attributes.empty())
    os << " primitive_attrs: {" << join(attributes, ", ") << '}';
  std::vector<std::string> decided;
  if (!byUser && !strategies.empty()) {
    auto [word, source] = splitOrigin(origin);
    decided.push_back("strategy_origin: " + wordText(word));
    if (!source.empty())
      decided.push_back("strategy_source: " + wordText(source));
  }
  if (const std::vector<int64_t> fixed = net::getFixedPieces(&op); !fixed.empty() && !strategies.empty()) {
    decided.push_back("fixed_pieces: " + tupleText(fixed));
    if (const std::string place = net::getFixedPlace(&op); !place.empty())
      decided.push_back("fixed_by: " + wordText(place));
  }
  if (ArrayRef<int64_t> alike = net::getAlike(&op); !alike.empty() && !rank)
    decided.push_back("alike: " + tupleText(alike));
  if (!decided.empty())
    os << " cnode_attrs: {" << join(decided, ", ") << '}';
  if (!strategies.empty())
    os << " {" << join(strategies, ", ") << '}';
  printTail(op);
}

void DumpPrinter::printCollective(dist::CollectiveOp op) {
  ArrayRef<int64_t> matrix = op.getGroupMatrix();
  int64_t devices = dist::shardingOf(op.getSource()).devices();
  std::vector<int64_t> ranks = msc::groupOf({matrix.begin(), matrix.end()},
                                            {op.getGroupAxes().begin(), op.getGroupAxes().end()}, rank.value_or(0));
  printResults(*op);
  os << dist::stringifyCollectiveKind(op.getKind());
  printOperands(*op);
  printInstance(*op);
  os << " primitive_attrs: {group: " << msc::groupName(ranks, devices);
  auto number = [&](StringRef key, int64_t value) {
    if (value >= 0)
      os << ", " << key << ": " << value;
  };
  switch (op.getKind()) {
  case dist::CollectiveKind::AllReduce: os << ", op: " << msc::reduceKindName(dist::reductionOf(op)); break;
  case dist::CollectiveKind::ReduceScatter:
    os << ", op: " << msc::reduceKindName(dist::reductionOf(op));
    number("axis", op.getDimension());
    break;
  case dist::CollectiveKind::AllGather: number("axis", op.getDimension()); break;
  case dist::CollectiveKind::AlltoAll:
    number("split_dim", op.getSplitDimension());
    number("concat_dim", op.getDimension());
    break;
  case dist::CollectiveKind::CollectivePermute:
  case dist::CollectiveKind::Exchange: break;
  }
  if (std::optional<int64_t> fusion = dist::fusionOf(op))
    number("fusion", *fusion);
  os << ", rank_list: " << tupleText(ranks) << '}';
  printTail(*op);
}

/// Begin and end count from the start of the rank's own source shard.
void DumpPrinter::printSlice(dist::SliceOp op) {
  std::vector<int64_t> shape = dist::globalShape(op.getSource().getType()), begin, end, strides;
  msc::Box source = dist::shardingOf(op.getSource()).localBox(shape, rank.value_or(0));
  msc::Box target = dist::shardingOf(op.getResult()).localBox(shape, rank.value_or(0));
  for (auto [from, to] : zip(source, target)) {
    begin.push_back(to.begin - from.begin);
    end.push_back(to.end - from.begin);
    strides.push_back(1);
  }
  printResults(*op);
  os << "StridedSlice(" << operandText(*op, op.getSource()) << ", " << tupleText(begin) << ", " << tupleText(end)
     << ", " << tupleText(strides) << ')';
  printInstance(*op);
  printTail(*op);
}

/// What a rank holds is the same; only another shape is worth a line.
void DumpPrinter::printReinterpret(net::ReinterpretOp op) {
  auto localShape = [&](Value value) {
    return dist::shardingOf(value).localShape(dist::globalShape(value.getType()), rank.value_or(0));
  };
  if (localShape(op.getSource()) == localShape(op.getResult())) {
    names[op.getResult()] = operandText(*op, op.getSource());
    return;
  }
  printResults(*op);
  os << "Reshape(" << operandText(*op, op.getSource()) << ", " << tupleText(localShape(op.getResult())) << ')';
  printInstance(*op);
  printTail(*op);
}

void DumpPrinter::printReshard(dist::ReshardOp op) {
  printResults(*op);
  os << "Reshard";
  printOperands(*op);
  printInstance(*op);
  os << " primitive_attrs: {from: " << quotedText(dist::shardingOf(op.getSource()).str())
     << ", to: " << quotedText(dist::shardingOf(op.getResult()).str()) << '}';
  printTail(*op);
}

/// Numbers that stand in operands' places were printed there; others become a node.
void DumpPrinter::printConstant(net::ConstantOp op) {
  if (all_of(op->getUsers(), [&](Operation *user) { return !inlineNumber(user, op).empty(); }))
    return;
  printResults(*op);
  os << "Fill(" << net::numberText(op.getSplat().convertToDouble()) << ')';
  printTail(*op);
}

/// An optimizer writes its parameters in place; other new values (running statistics) are assigned.
void DumpPrinter::printUpdate(net::UpdateOp op) {
  Operation *source = op.getNewValue().getDefiningOp();
  if (source && net::getPhase(source) == net::Phase::Update && is_contained(source->getOperands(), op.getParameter()))
    return;
  os << "  %" << nextNode++ << " = Assign(" << operandText(*op, op.getParameter()) << ", "
     << operandText(*op, op.getNewValue()) << ")\n      : (" << typeText(op.getParameter(), refKeyOf(op.getParameter()))
     << ", " << typeText(op.getNewValue()) << ") -> (" << typeText(op.getParameter()) << ")\n      # scope: (Default)\n";
  printPlace(op.getLoc(), 6, os);
}

void DumpPrinter::printReturn(net::ReturnOp op) {
  os << "  Return(";
  interleaveComma(zip(op.getNames().getAsValueRange<StringAttr>(), op.getValues()), os, [&](auto result) {
    os << std::get<0>(result) << ": " << names.lookup(std::get<1>(result));
  });
  os << ")\n      : (";
  interleaveComma(op.getValues(), os, [&](Value value) { os << typeText(value); });
  os << ")\n";
}

void DumpPrinter::printNode(Operation &op) {
  llvm::TypeSwitch<Operation *>(&op)
      .Case<dist::CollectiveOp>([&](auto node) { printCollective(node); })
      .Case<dist::SliceOp>([&](auto node) { printSlice(node); })
      .Case<dist::ReshardOp>([&](auto node) { printReshard(node); })
      .Case<net::ReinterpretOp>([&](auto node) { printReinterpret(node); })
      .Case<net::ConstantOp>([&](auto node) { printConstant(node); })
      .Case<net::UpdateOp>([&](auto node) { printUpdate(node); })
      .Case<net::ReturnOp>([&](auto node) { printReturn(node); })
      .Case<net::ParamOp, net::ScalarOp>([](auto) {})
      .Default([&](Operation *node) { printNetOperator(*node); });
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

void DumpPrinter::printHeader(StringRef stage) {
  os << "#IR entry      : @" << network.getSymName() << "\n#Total subgraph: 1\n\n#attrs         :\nstage : " << stage
     << '\n';
  if (rank)
    os << "rank : " << *rank << '\n';
  os << "\n#Total params  : " << parameters.size() << "\n\n";
  for (Value value : parameters) {
    StringRef key = refKeyOf(value);
    os << names[value] << " : " << typeText(value, key) << (key.empty() ? "\n" : "  :  has_default\n");
    printPlace(value.getLoc(), 4, os);
  }
  os << "\nsubgraph attr:\nsubgraph instance: " << network.getSymName() << "\nsubgraph @" << network.getSymName() << '(';
  interleaveComma(parameters, os, [&](Value value) { os << names[value]; });
  os << ") {\n";
}

void DumpPrinter::run(StringRef stage, llvm::function_ref<bool(Operation &)> wanted) {
  declareParameters();
  printHeader(stage);
  for (Operation &op : network.getBody().front())
    if (wanted(op) || isa<net::ReturnOp>(op))
      printNode(op);
  os << "}\n";
  printPlace(network.getLoc(), 4, os);
}

void DumpPrinter::printParameters() {
  auto params = network.getBody().front().getOps<net::ParamOp>();
  if (params.empty())
    return;
  os << "parameters {";
  interleave(
      params, os,
      [&](net::ParamOp param) {
        os << "\n  " << quotedText(param.getName()) << ": {init: " << initializerText(param.getInitializer())
           << ", requires_grad: " << (param.getTrained() ? "true" : "false");
        if (!param.getDrawName().empty())
          os << ", draw_name: " << quotedText(param.getDrawName());
        os << '}';
      },
      ",");
  os << "\n}\n";
}

void printBeginDump(ModuleOp module, raw_ostream &os) {
  for (net::NetworkOp network : module.getOps<net::NetworkOp>()) {
    DumpPrinter printer(network, std::nullopt, os);
    printer.run("step_parallel_begin", isForward);
    os << '\n';
    printer.printParameters();
  }
  printBlocks(module, /*withPlaces=*/true, os);
}

void printRankDump(ModuleOp module, int64_t rank, RankDumpKind kind, raw_ostream &os) {
  auto devices = module->getAttrOfType<IntegerAttr>("net.devices");
  std::string who = "# rank " + std::to_string(rank) + (devices ? " of " + std::to_string(devices.getInt()) : "");
  for (net::NetworkOp network : module.getOps<net::NetworkOp>()) {
    DumpPrinter printer(network, rank, os);
    switch (kind) {
    case RankDumpKind::ParallelEnd:
      os << who << ": the forward graph on its own shards\n";
      printer.run("step_parallel_end", isForward);
      break;
    case RankDumpKind::Execute:
      os << who << ": forward, backward and update; 19_backend is the graph that runs\n";
      printer.run("18_execute", [](Operation &) { return true; });
      break;
    case RankDumpKind::Backend:
      os << who << ": the graph that runs: 18_execute with its communication optimised\n";
      printer.run("19_backend", [](Operation &) { return true; });
      break;
    }
  }
}

} // namespace msc::frontend
