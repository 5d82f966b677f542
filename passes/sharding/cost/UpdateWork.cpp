#include "passes/sharding/cost/UpdateWork.h"

#include "dialects/net/NetOps.h"
#include "passes/autodiff/Passes.h"
#include "passes/sharding/Convert.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <set>

using namespace mlir;

namespace msc::passes {

namespace {

/// The update of a parameter of so many elements, beside another one.
struct BuiltUpdate {
  std::vector<net::OperatorCost> costs; ///< of each operator that belongs to it
  std::vector<UpdateKernel> kernels;
  int64_t states = 0, scalars = 0;
};

/// Of which kernel of an update an operator is, as passes/plan/Units.h joins them: what follows from a sum is of a later one, and so is a new
/// value that only holds where that says so. Of the first of two parameters.
class KernelsOfUpdate {
public:
  explicit KernelsOfUpdate(Block &block) : gradient(block.getArgument(0)) {
    std::map<std::pair<std::string, size_t>, size_t> begins; // of kernels of either parameter: operator
    for (Operation &op : block)
      if (op.getNumResults() != 0 && op.getNumOperands() != 0) {
        place(op);
        begins.try_emplace({net::getInstanceName(&op).str(), kernelOf[&op]}, begins.size());
      }
    for (size_t kernel = 1; kernel < kernels.size(); ++kernel) {
      const auto own = begins.find({ofFirst, kernel}), before = begins.find({ofSecond, kernel - 1});
      kernels[kernel].waits |= own != begins.end() && before != begins.end() && before->second < own->second;
    }
    for (Operation &op : block)
      if (const auto at = kernelOf.find(&op); at != kernelOf.end() && net::getInstanceName(&op) == ofFirst)
        for (Value result : op.getResults())
          if (isTensor(result) && llvm::none_of(result.getUsers(), [](Operation *user) { return isa<net::UpdateOp>(user); }))
            keep(result, at->second);
    for (Operation *user : gradient.getUsers())
      kernels[kernelOf.lookup(user)].readsGradient = true;
  }
  std::vector<UpdateKernel> take() && { return std::move(kernels); }

  static constexpr const char *ofFirst = "update.parameter", *ofSecond = "update.other";

private:
  Value gradient;
  llvm::DenseMap<Operation *, size_t> kernelOf;
  std::vector<UpdateKernel> kernels;
  int32_t kept = 0;

  static bool isTensor(Value value) { return cast<RankedTensorType>(value.getType()).getRank() > 0; }
  static bool isSum(Operation *op) { return isTensor(op->getOperand(0)) && !isTensor(op->getResult(0)); }

  /// The first kernel that may read what there is of the operands.
  size_t firstBehind(Operation *op) const {
    size_t first = 0;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && kernelOf.contains(maker))
        first = std::max(first, kernelOf.lookup(maker) + isSum(maker));
    return first;
  }

  void place(Operation &op) {
    size_t kernel = firstBehind(&op);
    for (Operation *user : op.getUsers())
      if (isa<net::SelectOp>(user) && llvm::any_of(user->getUsers(), [](Operation *writer) { return isa<net::UpdateOp>(writer); }))
        kernel = std::max(kernel, firstBehind(user));
    kernelOf[&op] = kernel;
    kernels.resize(std::max(kernels.size(), kernel + 1 + isSum(&op)));
    if (isSum(&op))
      kernels[kernel + 1].waits |= llvm::any_of(op.getUsers(), [](Operation *user) { return net::getInstanceName(user) == "update"; });
  }

  void keep(Value value, size_t kernel) {
    std::set<size_t> readers;
    for (Operation *user : value.getUsers())
      if (const auto at = kernelOf.find(user); at != kernelOf.end() && at->second > kernel)
        readers.insert(at->second);
    if (readers.empty())
      return;
    kernels[kernel].writes.push_back(kept);
    for (size_t reader : readers)
      kernels[reader].reads.push_back(kept);
    ++kept;
  }
};

} // namespace

static BuiltUpdate built(MLIRContext *context, const net::TrainConfig &train, int64_t elements) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  Location location = builder.getUnknownLoc();
  auto network = builder.create<net::NetworkOp>(location, builder.getStringAttr("update"), builder.getStrArrayAttr({"gradient", "other_gradient"}));
  Block &block = network.getBody().emplaceBlock();
  auto type = RankedTensorType::get({elements}, builder.getF32Type());
  autodiff::ParameterGradients gradients;
  builder.setInsertionPointToEnd(&block);
  auto initial = builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr("zeros"))});
  for (StringRef name : {"parameter", "other"}) {
    auto param = builder.create<net::ParamOp>(location, type, builder.getStringAttr(name), initial, builder.getBoolAttr(true),
                                              builder.getStringAttr(""), builder.getStringAttr(""));
    gradients.insert({param.getValue(), block.addArgument(type, location)});
  }
  builder.create<net::ReturnOp>(location, ValueRange(), builder.getArrayAttr({}));
  autodiff::buildUpdate(network, gradients, train);
  BuiltUpdate made;
  auto shapes = [](ValueRange values) {
    std::vector<Shape> list;
    for (Value value : values)
      list.push_back(shapeOf(value));
    return list;
  };
  for (Operation &op : block) {
    if (auto cost = dyn_cast<net::CostInterface>(op); cost && net::getInstanceName(&op) == KernelsOfUpdate::ofFirst)
      made.costs.push_back(cost.cost(shapes(op.getOperands()), shapes(op.getResults())));
    if (auto state = dyn_cast<net::ParamOp>(op); state && state.getValue().getType() != type)
      ++made.scalars;
    else if (state)
      made.states += state.getStateOf() == "parameter";
    made.scalars += isa<net::ScalarOp>(op);
  }
  made.kernels = KernelsOfUpdate(block).take();
  return made;
}

UpdateFacts updateFacts(MLIRContext *context, const net::TrainConfig &train) {
  constexpr int64_t few = 1024, many = 2048;
  const BuiltUpdate ofFew = built(context, train, few), ofMany = built(context, train, many);
  UpdateFacts facts{.work = {}, .kernels = ofFew.kernels, .states = ofFew.states, .scalars = ofFew.scalars};
  for (auto [a, b] : llvm::zip(ofFew.costs, ofMany.costs)) {
    auto perElement = [](double ofFewer, double ofMore) { return (ofMore - ofFewer) / static_cast<double>(many - few); };
    UpdateWork &of = facts.work.emplace_back();
    of.flops = perElement(a.flops, b.flops);
    of.bytesRead = perElement(a.bytesRead, b.bytesRead);
    of.bytesWritten = perElement(a.bytesWritten, b.bytesWritten);
    of.fixed = {a.flops - of.flops * few, a.bytesRead - of.bytesRead * few, a.bytesWritten - of.bytesWritten * few};
  }
  return facts;
}

} // namespace msc::passes
