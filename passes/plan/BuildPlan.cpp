// From a partitioned network to a plan: one buffer per value, one step per unit, one kernel per cluster.
#include "dialects/dist/DistDialect.h"
#include "dialects/dist/MachineModel.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/plan/PlanDialect.h"
#include "passes/codegen/KernelLibrary.h"
#include "passes/plan/ClusterFunction.h"
#include "passes/plan/CollectiveBytes.h"
#include "passes/plan/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;

namespace msc::passes {
namespace {

/// Bytes of a kernel's traffic that make one task: small enough to balance, large enough to hide the hand-over.
constexpr int64_t taskBytes = 256 * 1024;
constexpr int64_t mostTasks = 64;
/// Scalar operations of a product that make one task.
constexpr int64_t taskFlops = 16 * 1000 * 1000;

int64_t elementBytes(Type element) { return element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8; }

int64_t capacityBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return elementCount(dist::shardingOf(type).capacity(dist::globalShape(type))) * elementBytes(tensor.getElementType());
}

/// (index into the kernel's pointers, dimension).
using SizeReference = std::pair<int64_t, int64_t>;

class PlanBuilder {
public:
  PlanBuilder(net::NetworkOp network, const BuildPlanOptions &options)
      : network(network), options(options), builder(network.getContext()), library(network.getContext()),
        scratch(ModuleOp::create(network.getLoc())) {}

  LogicalResult run() {
    builder.setInsertionPoint(network);
    auto train = !network.getOps<net::UpdateOp>().empty();
    program = builder.create<plan_ir::ProgramOp>(network.getLoc(), train ? "train" : "predict", network.getSymName(),
                                                 IntegerAttr());
    builder.createBlock(&program.getBody());
    declareValues();
    UnitOptions unitOptions;
    unitOptions.fusion = options.fusion;
    std::vector<Unit> units = formUnits(network, unitOptions, [&](const Unit &unit) { return fits(unit); });
    for (const Unit &unit : units)
      if (failed(emit(unit)))
        return failure();
    finishUpdates();
    declareOutputs();
    if (failed(addObjects()))
      return failure();
    network.erase();
    return success();
  }

private:
  int64_t devices() const {
    for (BlockArgument argument : network.getBody().getArguments())
      return dist::shardingOf(argument).devices();
    for (auto param : network.getBody().front().getOps<net::ParamOp>())
      return dist::shardingOf(param.getValue()).devices();
    return 1;
  }

  /// A kernel is tried with the sizes of the last rank: its pieces are never the smaller ones.
  bool fits(const Unit &unit) {
    ClusterSignature signature = signatureOf(unit);
    FailureOr<func::FuncOp> function = buildClusterFunction(*scratch, unit, signature, devices() - 1);
    if (failed(function))
      return false;
    bool fine = KernelLibrary::whyNot(*function).empty();
    function->erase();
    return fine;
  }

  // Buffers ----------------------------------------------------------------------------------------------------------

  Value declare(Value value, StringRef name, plan_ir::BufferKind kind, Value viewOf = {}) {
    Location loc = value.getLoc();
    auto buffer = builder.create<plan_ir::BufferOp>(loc, name, TypeAttr::get(value.getType()),
                                                    plan_ir::BufferKindAttr::get(builder.getContext(), kind),
                                                    builder.getI64IntegerAttr(capacityBytes(value.getType())),
                                                    IntegerAttr(), viewOf);
    memory[value] = buffer.getMemory();
    return buffer.getMemory();
  }

  void declareValues() {
    for (auto [argument, name] : llvm::zip(network.getBody().getArguments(), network.getInputNames())) {
      StringRef text = cast<StringAttr>(name).getValue();
      Value buffer = declare(argument, text, plan_ir::BufferKind::input);
      builder.create<plan_ir::InputOp>(argument.getLoc(), text, buffer);
    }
    for (Operation &op : network.getBody().front()) {
      if (auto param = dyn_cast<net::ParamOp>(op)) {
        Value buffer = declare(param.getValue(), param.getName(), plan_ir::BufferKind::parameter);
        builder.create<plan_ir::ParameterOp>(param.getLoc(), param.getName(), buffer, param.getInitializer(),
                                             param.getTrained(), param.getStateOf(), param.getDrawName());
      } else if (auto scalar = dyn_cast<net::ScalarOp>(op)) {
        Value buffer = declare(scalar.getValue(), scalar.getName(), plan_ir::BufferKind::scalar);
        builder.create<plan_ir::ScheduleOp>(scalar.getLoc(), scalar.getName(), buffer, scalar.getSchedule());
      }
    }
  }

  StringRef nameOf(Value value) {
    StringRef name = net::getValueName(value);
    return name.empty() && value.getDefiningOp() ? net::getInstanceName(value.getDefiningOp()) : name;
  }

  /// New values of parameters go straight into the parameter where nobody reads the old value any more; the rest is
  /// copied at the end of the step.
  void finishUpdates() {
    for (auto update : network.getBody().front().getOps<net::UpdateOp>()) {
      Value target = memory[update.getParameter()], source = memory[update.getNewValue()];
      if (plan_ir::rootBuffer(source) == plan_ir::rootBuffer(target))
        continue;
      auto copy = builder.create<plan_ir::CopyOp>(update.getLoc(), source, target, "Assign");
      label(copy, update);
      net::setPhase(copy, net::Phase::Update);
    }
  }

  void declareOutputs() {
    auto result = cast<net::ReturnOp>(network.getBody().front().back());
    auto kept = network->getAttrOfType<ArrayAttr>("net.kept");
    for (auto [value, name] : llvm::zip(result.getValues(), result.getNames()))
      builder.create<plan_ir::OutputOp>(result.getLoc(), cast<StringAttr>(name).getValue(), memory[value],
                                        kept && llvm::is_contained(kept, name));
  }

  // Steps ------------------------------------------------------------------------------------------------------------

  /// Instance name and phase of the operator that a step comes from.
  void label(Operation *step, Operation *op) {
    net::setInstanceName(step, net::getInstanceName(op));
    net::setPhase(step, net::getPhase(op));
  }

  LogicalResult emit(const Unit &unit) {
    Operation *op = unit.ops.front();
    switch (unit.kind) {
    case Unit::Kind::View:
      declare(op->getResult(0), nameOf(op->getResult(0)), plan_ir::BufferKind::activation, memory[op->getOperand(0)]);
      return success();
    case Unit::Kind::Constant: {
      Value target = declare(op->getResult(0), "constant", plan_ir::BufferKind::constant);
      label(builder.create<plan_ir::FillOp>(op->getLoc(), target, cast<net::ConstantOp>(op).getSplatAttr(), "Fill"), op);
      return success();
    }
    case Unit::Kind::Slice: {
      Value target = declare(op->getResult(0), nameOf(op->getResult(0)), plan_ir::BufferKind::activation);
      label(builder.create<plan_ir::CopyOp>(op->getLoc(), memory[op->getOperand(0)], target, "StridedSlice"), op);
      return success();
    }
    case Unit::Kind::Collective: return emitCollective(cast<dist::CollectiveOp>(op));
    case Unit::Kind::MatMul: return emitMatMul(unit);
    case Unit::Kind::Cluster: return emitCluster(unit);
    }
    return failure();
  }

  LogicalResult emitCollective(dist::CollectiveOp op) {
    Sharding from = dist::shardingOf(op.getSource()), to = dist::shardingOf(op.getResult());
    bool reduces = op.getKind() == dist::CollectiveKind::AllReduce || op.getKind() == dist::CollectiveKind::ReduceScatter;
    int64_t groupSize = 1;
    for (int32_t axis : op.getGroupAxes())
      groupSize *= op.getGroupMatrix()[axis];
    auto tensor = cast<RankedTensorType>(op.getSource().getType());
    int64_t bytes = receivedElements(from, to, dist::globalShape(tensor), groupSize, reduces) *
                    elementBytes(tensor.getElementType());
    int64_t reduction = reduces && from.isPartial() ? static_cast<int64_t>(from.partial.front().kind) : 0;
    Value target = declare(op.getResult(), nameOf(op.getResult()), plan_ir::BufferKind::activation);
    auto step = builder.create<plan_ir::CollectiveOp>(
        op.getLoc(), dist::stringifyCollectiveKind(op.getKind()), memory[op.getSource()], target, op.getGroupMatrixAttr(),
        op.getGroupAxesAttr(), builder.getI64IntegerAttr(reduction), builder.getBoolAttr(false), op.getReasonAttr(),
        builder.getI64IntegerAttr(bytes), builder.getF64FloatAttr(predictedUs(op, groupSize, bytes)),
        builder.getStringAttr(operatorServed(op)));
    label(step, op);
    return success();
  }

  /// Modelled time on the machine that plans are made for.
  static double predictedUs(dist::CollectiveOp op, int64_t groupSize, int64_t bytes) {
    static const dist::MoveKind kinds[] = {dist::MoveKind::AllReduce,         dist::MoveKind::AllGather,
                                           dist::MoveKind::ReduceScatter,     dist::MoveKind::AlltoAll,
                                           dist::MoveKind::CollectivePermute, dist::MoveKind::Exchange};
    std::vector<int64_t> matrix(op.getGroupMatrix());
    std::vector<int32_t> axes(op.getGroupAxes());
    return dist::MachineModel::cpuLocal().moveUs(kinds[static_cast<int>(op.getKind())], dist::groupShape(matrix, axes),
                                                 static_cast<double>(bytes));
  }

  /// Instance name of the operator that needs a move: whose partial result is completed, or who consumes the value.
  static std::string operatorServed(dist::CollectiveOp op) {
    auto isMove = [](Operation *other) { return isa<dist::CollectiveOp, dist::SliceOp>(other); };
    Operation *at = op;
    if (op.getMove() == "completion") {
      while (at && isMove(at))
        at = at->getOperand(0).getDefiningOp();
    } else {
      while (at && isMove(at))
        at = at->getResult(0).use_empty() ? nullptr : *at->getResult(0).user_begin();
    }
    return at ? net::getInstanceName(at).str() : "";
  }

  LogicalResult emitMatMul(const Unit &unit) {
    auto product = cast<net::MatMulOp>(unit.ops.front());
    Value result = unit.ops.back()->getResult(0), bias;
    StringRef activation;
    for (Operation *op : llvm::drop_begin(unit.ops)) {
      if (op->getNumOperands() == 2)
        bias = memory[op->getOperand(1)];
      else
        activation = "relu";
    }
    Type element = cast<RankedTensorType>(result.getType()).getElementType();
    if (!element.isF32())
      return emitGeneratedMatMul(product);
    RankedTensorType left = localType(product.getOperand(0).getType(), devices() - 1);
    RankedTensorType out = localType(result.getType(), devices() - 1);
    int64_t inner = left.getRank() ? left.getDimSize(product.getTransposeA() ? left.getRank() - 2 : left.getRank() - 1) : 1;
    int64_t rows = out.getRank() ? out.getNumElements() / std::max<int64_t>(1, out.getShape().back()) : 1;
    int64_t tasks = std::clamp<int64_t>(2 * out.getNumElements() * inner / taskFlops, 1, std::clamp<int64_t>(rows / 16, 1, mostTasks));
    Value target = declare(result, nameOf(result), plan_ir::BufferKind::activation);
    auto step = builder.create<plan_ir::MatMulOp>(
        product.getLoc(), memory[product.getOperand(0)], memory[product.getOperand(1)], target, bias,
        product.getTransposeAAttr(), product.getTransposeBAttr(), builder.getStringAttr(activation),
        builder.getI64IntegerAttr(tasks), builder.getStringAttr(unit.name()));
    label(step, unit.ops.front());
    return success();
  }

  // Kernels ----------------------------------------------------------------------------------------------------------

  LogicalResult emitCluster(const Unit &unit) {
    ClusterSignature signature = signatureOf(unit);
    SmallVector<Value> pointers = signature.pointers();
    std::vector<SizeReference> varying = varyingSizes(pointers);
    std::map<std::vector<int64_t>, CompiledKernel> variants;
    std::vector<SizeReference> range;
    for (int64_t rank = 0; rank < devices(); ++rank) {
      std::vector<int64_t> sizes = localSizes(pointers, varying, rank);
      if (variants.contains(sizes) || isIdle(signature, rank))
        continue;
      FailureOr<func::FuncOp> function = buildClusterFunction(*scratch, unit, signature, rank);
      if (failed(function))
        return failure();
      FailureOr<CompiledKernel> kernel = library.add(*function);
      if (failed(kernel))
        return failure();
      range.clear();
      for (unsigned dim : kernel->rangeDims) {
        std::optional<SizeReference> reference = sizeOfLoop(*function, signature, dim);
        if (!reference)
          return unit.ops.front()->emitError("cannot tell which size loop ") << dim << " of cluster '" << unit.name() << "' has";
        range.push_back(*reference);
      }
      variants.emplace(sizes, *kernel);
      function->erase();
    }
    if (variants.empty()) // every rank's part is empty: nothing runs, but the values exist
      return declareClusterOutputs(signature), success();
    return emitLaunch(unit.ops.front(), unit.name(), signature, varying, variants, range);
  }

  void declareClusterOutputs(const ClusterSignature &signature) {
    for (auto [output, input] : llvm::zip(signature.outputs, signature.inPlaceOf)) {
      if (input < 0)
        declare(output, nameOf(output), plan_ir::BufferKind::activation);
      else
        memory[output] = memory[signature.inputs[input]];
    }
  }

  LogicalResult emitLaunch(Operation *op, StringRef name, const ClusterSignature &signature, std::vector<SizeReference> varying,
                           const std::map<std::vector<int64_t>, CompiledKernel> &variants,
                           const std::vector<SizeReference> &range) {
    SmallVector<Attribute> sizes, symbols;
    bool same = llvm::all_of(variants, [&](const auto &v) { return v.second.symbol == variants.begin()->second.symbol; });
    if (same)
      varying.clear();
    for (const auto &[key, kernel] : variants) {
      sizes.push_back(builder.getDenseI64ArrayAttr(same ? ArrayRef<int64_t>() : ArrayRef<int64_t>(key)));
      symbols.push_back(builder.getStringAttr(kernel.symbol));
      if (same)
        break;
    }
    declareClusterOutputs(signature);
    SmallVector<int64_t> writes, updates;
    for (int64_t input : signature.inPlaceOf)
      if (input >= 0)
        updates.push_back(input);
    SmallVector<Value> pointers = signature.pointers();
    for (size_t i = signature.inputs.size(); i < pointers.size(); ++i)
      writes.push_back(i);
    std::string symbol = ("k" + Twine(kernelCount++) + "_" + name).str();
    SmallVector<Value> buffers;
    int64_t traffic = 0;
    for (Value pointer : pointers) {
      buffers.push_back(memory[pointer]);
      traffic += capacityBytes(pointer.getType());
    }
    builder.create<plan_ir::KernelOp>(op->getLoc(), symbol, pointers.size(), builder.getArrayAttr(sizes),
                                      builder.getArrayAttr(symbols));
    int64_t tasks = range.empty() ? 1 : std::clamp<int64_t>(traffic / taskBytes, 1, mostTasks);
    auto launch = builder.create<plan_ir::LaunchOp>(
        op->getLoc(), symbol, buffers, builder.getDenseI64ArrayAttr(writes), builder.getDenseI64ArrayAttr(updates),
        flatten(varying), flatten(range), builder.getI64IntegerAttr(tasks),
        builder.getI64IntegerAttr(variants.begin()->second.unit), builder.getStringAttr(name));
    label(launch, op);
    return success();
  }

  DenseI64ArrayAttr flatten(const std::vector<SizeReference> &references) {
    SmallVector<int64_t> flat;
    for (auto [argument, dim] : references)
      flat.append({argument, dim});
    return builder.getDenseI64ArrayAttr(flat);
  }

  /// f64 and integer products run as generated kernels.
  LogicalResult emitGeneratedMatMul(net::MatMulOp product);

  /// Sizes of the kernel's tensors that differ between ranks.
  std::vector<SizeReference> varyingSizes(ArrayRef<Value> pointers) {
    std::vector<SizeReference> varying;
    for (auto [index, pointer] : llvm::enumerate(pointers)) {
      Sharding sharding = dist::shardingOf(pointer);
      std::vector<int64_t> shape = dist::globalShape(pointer.getType());
      for (size_t dim = 0; dim < shape.size(); ++dim)
        if (shape[dim] % sharding.pieces(dim) != 0)
          varying.push_back({index, dim});
    }
    return varying;
  }

  std::vector<int64_t> localSizes(ArrayRef<Value> pointers, const std::vector<SizeReference> &references, int64_t rank) {
    std::vector<int64_t> sizes;
    for (auto [index, dim] : references)
      sizes.push_back(localType(pointers[index].getType(), rank).getDimSize(dim));
    return sizes;
  }

  /// No element to compute on this rank.
  static bool isIdle(const ClusterSignature &signature, int64_t rank) {
    return llvm::all_of(signature.outputs,
                        [&](Value output) { return localType(output.getType(), rank).getNumElements() == 0; });
  }

  /// The pointer and dimension whose size loop `dim` of the cluster's domain has. The domain is the loops of the first
  /// operator of highest rank; intermediate values are followed to what they were computed from.
  std::optional<SizeReference> sizeOfLoop(func::FuncOp function, const ClusterSignature &signature, unsigned dim) {
    linalg::GenericOp root;
    function.walk([&](linalg::GenericOp op) {
      if (!root || op.getNumLoops() > root.getNumLoops())
        root = op;
    });
    return root ? sizeOfLoop(root, signature, dim) : std::nullopt;
  }

  std::optional<SizeReference> sizeOfLoop(linalg::GenericOp op, const ClusterSignature &signature, unsigned dim) {
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (unsigned position = 0; position < map.getNumResults(); ++position) {
        auto expression = dyn_cast<AffineDimExpr>(map.getResult(position));
        if (!expression || expression.getPosition() != dim)
          continue;
        if (auto found = sizeOfTensor(operand.get(), signature, position))
          return found;
        if (op.isDpsInit(&operand))
          if (auto found = sizeOfResult(op.getTiedOpResult(&operand), signature, position))
            return found;
      }
    }
    return std::nullopt;
  }

  std::optional<SizeReference> sizeOfTensor(Value value, const ClusterSignature &signature, unsigned position) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return SizeReference{argument.getArgNumber(), position};
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op)
      return std::nullopt;
    AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(value));
    auto expression = dyn_cast<AffineDimExpr>(map.getResult(position));
    return expression ? sizeOfLoop(op, signature, expression.getPosition()) : std::nullopt;
  }

  /// A result that the function returns is one of the pointers.
  std::optional<SizeReference> sizeOfResult(Value result, const ClusterSignature &signature, unsigned position) {
    for (OpOperand &use : result.getUses()) {
      if (!isa<func::ReturnOp>(use.getOwner()))
        continue;
      int64_t output = use.getOperandNumber(), pointer = signature.inputs.size();
      if (signature.inPlaceOf[output] >= 0)
        return SizeReference{signature.inPlaceOf[output], position};
      for (int64_t i = 0; i < output; ++i)
        pointer += signature.inPlaceOf[i] < 0;
      return SizeReference{pointer, position};
    }
    return std::nullopt;
  }

  LogicalResult addObjects() {
    FailureOr<SmallVector<CodeObject>> objects = library.finish();
    if (failed(objects))
      return failure();
    for (const CodeObject &object : *objects)
      builder.create<plan_ir::ObjectOp>(network.getLoc(), object.isa,
                                        StringRef(reinterpret_cast<const char *>(object.bytes.data()), object.bytes.size()));
    return success();
  }

  net::NetworkOp network;
  BuildPlanOptions options;
  OpBuilder builder;
  KernelLibrary library;
  OwningOpRef<ModuleOp> scratch; ///< holds cluster functions while they are compiled
  plan_ir::ProgramOp program;
  llvm::DenseMap<Value, Value> memory;
  unsigned kernelCount = 0;
};

class BuildPlan : public PassWrapper<BuildPlan, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BuildPlan)
  BuildPlan() = default;
  explicit BuildPlan(const BuildPlanOptions &options) : options(options) {}
  StringRef getArgument() const override { return "msc-build-plan"; }
  StringRef getDescription() const override { return "partitioned network -> buffers, steps, kernels, machine code"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<plan_ir::PlanDialect, func::FuncDialect, linalg::LinalgDialect, arith::ArithDialect,
                    math::MathDialect, tensor::TensorDialect>();
  }
  void runOnOperation() override {
    for (auto network : llvm::make_early_inc_range(getOperation().getOps<net::NetworkOp>()))
      if (failed(PlanBuilder(network, options).run()))
        return signalPassFailure();
  }

private:
  BuildPlanOptions options;
};

} // namespace

std::unique_ptr<Pass> createBuildPlanPass(const BuildPlanOptions &options) { return std::make_unique<BuildPlan>(options); }

} // namespace msc::passes
