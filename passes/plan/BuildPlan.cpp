// From a partitioned network to a plan: one buffer per value, one step per unit, one kernel per cluster.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetOps.h"
#include "dialects/net/Recompute.h"
#include "dialects/net/ops/communication/CommunicationOps.h"
#include "dialects/net/ops/print/Print.h"
#include "dialects/plan/PlanDialect.h"
#include "passes/codegen/KernelLibrary.h"
#include "passes/partition/Widen.h"
#include "passes/plan/ClusterFunction.h"
#include "passes/plan/KernelVariants.h"
#include "passes/plan/NarrowWindows.h"
#include "passes/plan/Passes.h"
#include "passes/plan/Reasons.h"
#include "passes/plan/Tasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;

namespace msc::passes {
namespace {

/// Bytes of a kernel's traffic from which its results go around the caches. The last level of a processor holds less, so
/// a result would be evicted before its reader comes; written around, its lines are not fetched first. With 32 MiB of
/// last level both ways are equally fast at 32 to 40 MiB (test/bench/codegen_bench.cpp).
constexpr int64_t streamBytes = 48 * 1024 * 1024;
/// Pointers that a kernel may take; plan checks know the same bound.
constexpr size_t mostPointers = 48;

class PlanBuilder {
public:
  PlanBuilder(net::NetworkOp network, const BuildPlanOptions &options)
      : network(network), options(options), builder(network.getContext()),
        library({options.cpu, options.gpu, options.thisProcessor}), scratch(ModuleOp::create(network.getLoc())) {}

  LogicalResult run() {
    builder.setInsertionPoint(network);
    auto train = !network.getOps<net::UpdateOp>().empty();
    program = builder.create<plan_ir::ProgramOp>(network.getLoc(), train ? "train" : "predict", network.getSymName(),
                                                 IntegerAttr());
    builder.createBlock(&program.getBody());
    for (Operation &op : network.getBody().front())
      if (std::optional<int64_t> id = net::getId(&op); id && net::getPhase(&op) == net::Phase::Forward)
        forwardById[*id] = &op;
    declareValues();
    for (const Unit &unit : formUnits(network, {.fusion = options.fusion, .castsFollowReaders = isForGpusAlone(network)},
                                      [&](const Unit &candidate) { return fits(candidate); }))
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
  /// A kernel is tried with all sizes that occur: operators that share no value may run together by their sizes alone.
  bool fits(const Unit &unit) {
    ClusterSignature signature = signatureOf(unit);
    if (signature.pointers().size() > mostPointers || !pointersShowSizes(unit, signature))
      return false;
    SmallVector<func::FuncOp> functions;
    bool built = true;
    for (int64_t rank : ranksWithOwnSizes(signature)) {
      FailureOr<func::FuncOp> function = buildClusterFunction(*scratch, unit, signature, rank);
      built &= succeeded(function);
      if (built)
        functions.push_back(*function);
    }
    bool fine = built && codegen::KernelLibrary::whyNot(functions).empty();
    for (func::FuncOp function : functions)
      function.erase();
    return fine;
  }

  // Buffers ----------------------------------------------------------------------------------------------------------

  Value declare(Value value, StringRef name, plan_ir::BufferKind kind, Value viewOf = {}) {
    return memory[value] = declareBuffer(value.getLoc(), value.getType(), name, kind, viewOf);
  }

  /// A view of a view is one of what that shows.
  Value declareBuffer(Location loc, Type type, StringRef name, plan_ir::BufferKind kind, Value viewOf = {}) {
    if (viewOf)
      viewOf = plan_ir::rootBuffer(viewOf).getMemory();
    auto buffer = builder.create<plan_ir::BufferOp>(loc, plan_ir::BufferType::get(builder.getContext()), builder.getStringAttr(name),
                                                    TypeAttr::get(type), plan_ir::BufferKindAttr::get(builder.getContext(), kind),
                                                    builder.getI64IntegerAttr(capacityBytes(type)), IntegerAttr(), viewOf);
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
      auto copy = createCopy(update.getLoc(), source, target, "Assign");
      label(copy, update);
      net::setPhase(copy, net::Phase::Update);
    }
  }

  void declareOutputs() {
    auto result = cast<net::ReturnOp>(network.getBody().front().back());
    auto kept = network->getAttrOfType<ArrayAttr>("net.kept");
    for (auto [value, name] : llvm::zip(result.getValues(), result.getNames()))
      builder.create<plan_ir::OutputOp>(result.getLoc(), cast<StringAttr>(name), fetchable(value),
                                        builder.getBoolAttr(kept && llvm::is_contained(kept, name)), net::messageOf(network, name));
  }

  /// A result that shows the memory of a parameter is copied before the step: what is fetched is the value that the
  /// network computed with, not the updated one.
  Value fetchable(Value value) {
    Value shown = memory[value];
    if (plan_ir::rootBuffer(shown).getKind() != plan_ir::BufferKind::parameter || !isUpdated(shown))
      return shown;
    Block &body = program.getBody().front();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(&*llvm::find_if(body, [](Operation &op) { return plan_ir::isStep(&op); }));
    if (auto view = shown.getDefiningOp<plan_ir::BufferOp>(); view.getViewOf())
      view->moveBefore(&body, builder.getInsertionPoint());
    Value copy = declare(value, nameOf(value), plan_ir::BufferKind::activation);
    memory[value] = shown;
    createCopy(value.getLoc(), shown, copy, "Copy");
    return copy;
  }

  bool isUpdated(Value shown) {
    return llvm::any_of(network.getBody().front().getOps<net::UpdateOp>(), [&](net::UpdateOp update) {
      return plan_ir::rootBuffer(memory[update.getParameter()]) == plan_ir::rootBuffer(shown);
    });
  }

  plan_ir::CopyOp createCopy(Location location, ValueRange sources, Value target, StringRef what, ArrayAttr regions = {},
                             FloatAttr fill = {}) {
    return builder.create<plan_ir::CopyOp>(location, sources, target, builder.getStringAttr(what), regions, fill);
  }

  // Steps ------------------------------------------------------------------------------------------------------------

  /// Instance name and phase of the operator that a step comes from.
  void label(Operation *step, Operation *op) {
    net::setInstanceName(step, net::getInstanceName(op));
    net::setPhase(step, net::getPhase(op));
    lastStep = step;
  }

  LogicalResult emit(const Unit &unit) {
    lastStep = nullptr;
    if (failed(emitStep(unit)))
      return failure();
    double us = 0;
    for (Operation *op : unit.ops)
      us += operatorUs(op, dist::machineOf(op));
    if (lastStep && us > 0 && unit.kind != Unit::Kind::Constant) // these are filled once, before the first step
      plan_ir::setComputeUs(lastStep, us);
    return success();
  }

  LogicalResult emitStep(const Unit &unit) {
    Operation *op = unit.ops.front();
    switch (unit.kind) {
    case Unit::Kind::View:
      declare(op->getResult(0), nameOf(op->getResult(0)), plan_ir::BufferKind::activation, memory[op->getOperand(0)]);
      return success();
    case Unit::Kind::Constant: {
      Value target = declare(op->getResult(0), "constant", plan_ir::BufferKind::constant);
      label(builder.create<plan_ir::FillOp>(op->getLoc(), target, cast<net::ConstantOp>(op).getSplatAttr(), builder.getStringAttr("Fill")), op);
      return success();
    }
    case Unit::Kind::Slice: {
      Value target = declare(op->getResult(0), nameOf(op->getResult(0)), plan_ir::BufferKind::activation);
      label(createCopy(op->getLoc(), memory[op->getOperand(0)], target, "StridedSlice"), op);
      return success();
    }
    case Unit::Kind::Regions: return emitRegions(op);
    case Unit::Kind::Collective: return emitCollective(unit);
    case Unit::Kind::MatMul: return emitMatMul(unit);
    case Unit::Kind::Call: return emitCall(op);
    case Unit::Kind::Cluster: return emitCluster(unit);
    case Unit::Kind::Windowed: return success();
    }
    return failure();
  }

  /// A sum of terms that nobody else reads lies where they did.
  Value termsOf(dist::CollectiveOp op) {
    Value source = op.getSource();
    return op.getKind() == dist::CollectiveKind::AllReduce && isReadOnce(source) ? memory[source] : Value();
  }

  /// By one operator alone, like all values whose memory it shows.
  bool isReadOnce(Value value) {
    for (;; value = value.getDefiningOp()->getOperand(0)) {
      auto buffer = memory[value].getDefiningOp<plan_ir::BufferOp>();
      if (!value.hasOneUse() || buffer.getKind() != plan_ir::BufferKind::activation)
        return false;
      if (!buffer.getViewOf())
        return true;
    }
  }

  LogicalResult emitCollective(const Unit &unit) {
    auto first = cast<dist::CollectiveOp>(unit.ops.front());
    bool reduces = first.getKind() == dist::CollectiveKind::AllReduce || first.getKind() == dist::CollectiveKind::ReduceScatter;
    auto reduction = reduces ? static_cast<int64_t>(dist::reductionOf(first)) : 0;
    SmallVector<Value> sources, targets;
    SmallVector<Attribute> reasons, operators;
    SmallVector<int64_t> bytes;
    for (Operation *member : unit.ops) {
      auto op = cast<dist::CollectiveOp>(member);
      sources.push_back(memory[op.getSource()]);
      targets.push_back(declare(op.getResult(), nameOf(op.getResult()), plan_ir::BufferKind::activation, termsOf(op)));
      reasons.push_back(op.getReasonAttr());
      operators.push_back(builder.getStringAttr(nameOfServed(op)));
      bytes.push_back(dist::receivedBytes(op));
    }
    auto step = builder.create<plan_ir::CollectiveOp>(
        first.getLoc(), builder.getStringAttr(dist::stringifyCollectiveKind(first.getKind())), sources, targets,
        first.getGroupMatrixAttr(), first.getGroupAxesAttr(), builder.getI64IntegerAttr(reduction), builder.getBoolAttr(false),
        builder.getArrayAttr(reasons), builder.getDenseI64ArrayAttr(bytes),
        builder.getF64FloatAttr(dist::stepsUs(unit.ops, dist::machineOf(first))), builder.getArrayAttr(operators), ArrayAttr(),
        FloatAttr());
    label(step, first);
    return success();
  }

  //===-- regions ---------------------------------------------------------===//

  LogicalResult emitRegions(Operation *op) {
    std::vector<Sharding> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(dist::shardingOf(operand));
    for (Value result : op->getResults()) {
      results.push_back(dist::shardingOf(result));
      declare(result, nameOf(result), plan_ir::BufferKind::activation);
    }
    net::RegionExchange exchange = net::regionExchange(net::regionCopyOf(op), operands, results);
    if (exchange.communicates())
      emitExchange(op, exchange);
    else
      for (unsigned result = 0; result < op->getNumResults(); ++result)
        emitRegionCopy(op, exchange, result);
    return success();
  }

  Attribute numbersOf(const CopyRegions &regions) { return builder.getDenseI64ArrayAttr(flattened(regions)); }

  /// The value of what no region writes; null if there is nothing.
  FloatAttr fillOf(Operation *op, bool fills) {
    return fills ? builder.getF64FloatAttr(cast<net::RegionsInterface>(op).fillValue()) : FloatAttr();
  }

  void emitRegionCopy(Operation *op, const net::RegionExchange &exchange, unsigned result) {
    SmallVector<Value> sources;
    SmallVector<Attribute> regions;
    for (const net::RegionTensor &tensor : exchange.tensors)
      if (tensor.result == result) {
        sources.push_back(memory[op->getOperand(tensor.operand)]);
        regions.push_back(numbersOf(tensor.ends.regions));
      }
    label(createCopy(op->getLoc(), sources, memory[op->getResult(result)], op->getName().stripDialect(),
                     builder.getArrayAttr(regions), fillOf(op, exchange.fills[result])),
          op);
  }

  void emitExchange(Operation *op, const net::RegionExchange &exchange) {
    ExchangeTensors tensors;
    Operation *forward = forwardOf(op);
    for (const net::RegionTensor &tensor : exchange.tensors)
      tensors.add(memory[op->getOperand(tensor.operand)], memory[op->getResult(tensor.result)], numbersOf(tensor.ends.regions),
                  builder.getStringAttr(exchangeReason(op, forward, exchange, tensor)));
    emitExchange(op, exchange, tensors, fillOf(op, llvm::is_contained(exchange.fills, true)), op->getResult(0).getType());
  }

  /// Buffers of an exchange, with what is copied between them and why.
  struct ExchangeTensors {
    SmallVector<Value> sources, targets;
    SmallVector<Attribute> regions, reasons;

    void add(Value source, Value target, Attribute copied, Attribute reason) {
      sources.push_back(source);
      targets.push_back(target);
      regions.push_back(copied);
      reasons.push_back(reason);
    }
  };

  /// `type` is of any tensor with the elements of all.
  void emitExchange(Operation *op, const net::RegionExchange &exchange, const ExchangeTensors &tensors, FloatAttr fill, Type type) {
    Operation *forward = forwardOf(op);
    SmallVector<Attribute> operators(tensors.sources.size(), builder.getStringAttr(net::getUserName(forward ? forward : op)));
    SmallVector<int64_t> bytes;
    auto elementBytes = static_cast<size_t>(net::elementBytes(type));
    for (const net::RegionTensor &tensor : exchange.tensors)
      bytes.push_back(tensor.received * static_cast<int64_t>(elementBytes));
    auto step = builder.create<plan_ir::CollectiveOp>(
        op->getLoc(), builder.getStringAttr("Exchange"), tensors.sources, tensors.targets, builder.getDenseI64ArrayAttr(exchange.groupMatrix),
        builder.getDenseI32ArrayAttr(exchange.groupAxes), builder.getI64IntegerAttr(0), builder.getBoolAttr(false),
        builder.getArrayAttr(tensors.reasons), builder.getDenseI64ArrayAttr(bytes),
        builder.getF64FloatAttr(net::exchangeUs(exchange, elementBytes, dist::machineOf(op))), builder.getArrayAttr(operators),
        builder.getArrayAttr(tensors.regions), fill);
    label(step, op);
    lastStep = nullptr; // its time is that of the exchange
  }

  //===-- halos -----------------------------------------------------------===//

  /// Puts windows in the place of operands of which a rank needs more than it has; attribute `halo` tells the kernel. Windows
  /// that an operator in front gathered (a convolution, for the gradient of its weights) are taken as they are.
  DenseI64ArrayAttr emitHalos(Operation *op, MutableArrayRef<Value> inputs) {
    std::vector<Sharding> shardings;
    for (Value operand : op->getOperands())
      shardings.push_back(dist::shardingOf(operand));
    std::vector<net::HaloWindows> all = net::halosOf(op, shardings);
    std::map<unsigned, std::vector<net::HaloWindows>> missing; // by the width of what is stored: an exchange has one type
    for (const net::HaloWindows &windows : all)
      if (Value known = gatheredWindows(op, windows))
        inputs[windows.operand] = known;
      else
        missing[storedElement(op, windows).getIntOrFloatBitWidth()].push_back(windows);
    for (const auto &[width, windows] : missing)
      gatherWindows(op, windows, inputs);
    return windowedSizes(op, all);
  }

  /// Of an operand of which windows are gathered.
  static Type storedElement(Operation *op, const net::HaloWindows &windows) {
    Value operand = op->getOperand(windows.operand), narrow = storedNarrow(operand);
    return cast<RankedTensorType>((narrow ? narrow : operand).getType()).getElementType();
  }

  /// One exchange of windows that are stored in one type; where kernels take another, they are cast behind it.
  void gatherWindows(Operation *op, ArrayRef<net::HaloWindows> missing, MutableArrayRef<Value> inputs) {
    ExchangeTensors tensors;
    Type element = storedElement(op, missing.front());
    for (const net::HaloWindows &windows : missing) {
      Value narrow = storedNarrow(op->getOperand(windows.operand));
      tensors.add(narrow ? memory[narrow] : inputs[windows.operand], declareWindows(op, windows, element), numbersOf(windows.regions()),
                  builder.getStringAttr(haloReason(op, forwardOf(op), windows)));
    }
    net::RegionExchange exchange = net::haloExchange(missing);
    emitExchange(op, exchange, tensors, llvm::is_contained(exchange.fills, true) ? builder.getF64FloatAttr(0) : FloatAttr(),
                 RankedTensorType::get({}, element));
    for (auto [windows, gatheredNow] : llvm::zip(missing, tensors.targets)) {
      Value operand = op->getOperand(windows.operand);
      inputs[windows.operand] = storedNarrow(operand) ? castWindows(op, windows, gatheredNow) : gatheredNow;
      gathered[contentOf(operand)].push_back({windows, inputs[windows.operand], op});
    }
  }

  /// What a kernel takes of windows in a narrow type.
  Value castWindows(Operation *op, const net::HaloWindows &windows, Value buffer) {
    auto whole = op->getOperand(windows.operand).getDefiningOp<net::CastOp>();
    auto typeOf = [&](Value like) -> Type {
      Type element = cast<RankedTensorType>(like.getType()).getElementType();
      return dist::withSharding(RankedTensorType::get(windows.windowShape, element), windows.sharding);
    };
    OpBuilder network(op); // operators that stand for the windows; the last one reads the cast, so that it has a result
    Value stored = network.create<net::ReinterpretOp>(op->getLoc(), typeOf(whole->getOperand(0)), whole->getOperand(0));
    auto wide = network.create<net::CastOp>(op->getLoc(), stored, whole.getDstType());
    wide.getResult().setType(cast<RankedTensorType>(typeOf(whole.getResult())));
    network.create<net::ReinterpretOp>(op->getLoc(), wide.getResult().getType(), wide.getResult());
    net::setInstanceName(wide, net::getInstanceName(op));
    net::setPhase(wide, net::getPhase(op));
    net::setValueNames(wide, {nameOf(op->getOperand(windows.operand))});
    memory[stored] = buffer;
    Unit unit;
    unit.ops = {wide};
    return succeeded(emit(unit)) ? memory[wide.getResult()] : Value();
  }

  /// What a value holds: operators that compute in f32 for narrow types cast the same value each for itself.
  static std::pair<Value, Type> contentOf(Value value) {
    auto cast = value.getDefiningOp<net::CastOp>();
    return {cast ? cast->getOperand(0) : value, cast ? value.getType() : Type()};
  }

  /// Where the operator in front reads a narrow type as it is, what it gathered is cast.
  Value gatheredWindows(Operation *op, const net::HaloWindows &wanted) {
    Value operand = op->getOperand(wanted.operand), narrow = storedNarrow(operand);
    Value known = gatheredWindows(op, wanted, contentOf(operand));
    if (known || !narrow)
      return known;
    known = gatheredWindows(op, wanted, contentOf(narrow));
    return known ? castWindows(op, wanted, known) : Value();
  }

  /// What an operator gathered that is computed again in the backward pass is not kept until then.
  Value gatheredWindows(Operation *op, net::HaloWindows wanted, const std::pair<Value, Type> &content) {
    for (const GatheredWindows &known : gathered[content]) {
      wanted.operand = known.windows.operand;
      if (known.windows == wanted && (!net::isRecomputed(known.by) || net::getPhase(op) == net::getPhase(known.by)))
        return known.buffer;
    }
    return {};
  }

  Value declareWindows(Operation *op, const net::HaloWindows &windows, Type element) {
    Value operand = op->getOperand(windows.operand), narrow = storedNarrow(operand);
    Type type = dist::withSharding(RankedTensorType::get(windows.windowShape, element), windows.sharding);
    return declareBuffer(operand.getLoc(), type, (nameOf(narrow ? narrow : operand) + ".windows").str(), plan_ir::BufferKind::activation);
  }

  /// The forward operator whose gradient an operator belongs to, or null.
  Operation *forwardOf(Operation *op) {
    std::optional<int64_t> id = net::getPhase(op) == net::Phase::Forward ? std::nullopt : net::getForwardId(op);
    return id ? forwardById.lookup(*id) : nullptr;
  }

  /// Instance name of the operator that needs a move. Gradients count for the forward operator that they belong to.
  StringRef nameOfServed(dist::CollectiveOp move) {
    Operation *served = operatorServed(move);
    if (!served)
      return "";
    std::optional<int64_t> id = net::getForwardId(served);
    Operation *forward = id ? forwardById.lookup(*id) : nullptr;
    return net::getUserName(forward ? forward : served);
  }

  LogicalResult emitMatMul(const Unit &unit) {
    auto product = cast<net::MatMulOp>(unit.ops.front());
    Value result = unit.ops.back()->getResult(0), bias;
    StringRef activation;
    for (Operation *op : llvm::drop_begin(unit.ops)) {
      if (const auto kind = cast<net::Lower>(op).epilogueKind(); kind == net::EpilogueKind::Bias)
        bias = memory.lookup(unit.stored(op->getOperand(1)));
      else if (kind == net::EpilogueKind::ReLU)
        activation = "relu";
    }
    if (!cast<RankedTensorType>(result.getType()).getElementType().isF32() && !computesNarrow(product))
      return emitGeneratedMatMul(product);
    Value target = declare(result, nameOf(result), plan_ir::BufferKind::activation);
    auto step = builder.create<plan_ir::MatMulOp>(
        product.getLoc(), memory[product.getOperand(0)], memory[product.getOperand(1)], target, bias,
        product.getTransposeAAttr(), product.getTransposeBAttr(), builder.getBoolAttr(product.getSumBatch().value_or(false)), builder.getStringAttr(activation),
        builder.getI64IntegerAttr(tasksOfProduct(product)), builder.getStringAttr(unit.name()));
    label(step, unit.ops.front());
    return success();
  }

  /// A kernel of the runtime under the operator's name, with the operator's own attributes.
  LogicalResult emitCall(Operation *op) {
    SmallVector<Value> inputs, targets;
    for (Value operand : op->getOperands())
      inputs.push_back(memory[operand]);
    NamedAttrList attributes;
    if (isa<net::HaloInterface>(op))
      if (DenseI64ArrayAttr halo = emitHalos(op, inputs))
        attributes.set("halo", halo);
    for (Value result : op->getResults())
      targets.push_back(declare(result, nameOf(result), plan_ir::BufferKind::activation));
    for (const net::AttributeSpec &spec : cast<net::Operator>(op).attributeSpecs())
      if (Attribute value = op->getAttr(spec.name); value && !isa<TypeAttr>(value)) // types: the buffers tell
        attributes.set(spec.name, value);
    if (holdsBFloat16(op))
      attributes.set("holds_bf16", builder.getBoolAttr(true));
    StringAttr name = builder.getStringAttr(op->getName().stripDialect());
    label(builder.create<plan_ir::CallOp>(op->getLoc(), name, inputs, targets, attributes.getDictionary(builder.getContext()),
                                          builder.getI64IntegerAttr(tasksOfCall(op)), name),
          op);
    return success();
  }

  // Kernels ----------------------------------------------------------------------------------------------------------

  LogicalResult emitCluster(const Unit &unit) {
    ClusterSignature signature = signatureOf(unit);
    SmallVector<Value> pointers = signature.pointers();
    std::vector<SizeReference> varying = varyingSizes(pointers);
    KernelVariants variants;
    int64_t traffic = 0;
    for (Value pointer : pointers)
      traffic += capacityBytes(pointer.getType());
    std::optional<codegen::CompiledKernel> largest; // the others follow its form
    for (int64_t rank : ranksWithOwnSizes(signature)) {
      FailureOr<func::FuncOp> function = buildClusterFunction(*scratch, unit, signature, rank);
      if (failed(function))
        return failure();
      if (options.onCluster)
        options.onCluster(*function);
      FailureOr<codegen::CompiledKernel> kernel = library.add(*function, largest ? &*largest : nullptr, traffic >= streamBytes);
      function->erase();
      if (failed(kernel))
        return failure();
      if (!largest)
        largest = *kernel;
      variants.emplace(localSizes(pointers, varying, rank), VariantOnRank{*kernel, rank});
    }
    if (!variants.empty())
      return emitLaunch(unit.ops.front(), unit.name(), signature, varying, variants, tasksOfTraffic(traffic));
    declareClusterOutputs(signature); // every rank's part is empty: nothing runs, but the values exist
    return success();
  }

  void declareClusterOutputs(const ClusterSignature &signature) {
    for (auto [output, input] : llvm::zip(signature.outputs, signature.inPlaceOf)) {
      if (input < 0)
        declare(output, nameOf(output), plan_ir::BufferKind::activation);
      else
        memory[output] = memory.lookup(signature.inputs[input]); // not operator[]: the table may grow between the two
    }
  }

  LogicalResult emitLaunch(Operation *op, StringRef name, const ClusterSignature &signature,
                           std::vector<SizeReference> varying, const KernelVariants &variants, int64_t tasks) {
    SmallVector<Value> pointers = signature.pointers();
    std::optional<std::vector<SizeReference>> range = rangeOf(variants, pointers);
    if (!range)
      return op->emitError("the variants of kernel '") << name << "' run over different ranges";
    SmallVector<Attribute> sizes, symbols, launches;
    SmallVector<int64_t> pieces, scratchBytes;
    StringRef first = variants.begin()->second.kernel.symbol;
    StringRef firstEntry = variants.begin()->second.kernel.gpu.entry;
    bool same = llvm::all_of(variants, [&](const auto &variant) {
      return variant.second.kernel.symbol == first && variant.second.kernel.gpu.entry == firstEntry;
    });
    if (same)
      varying.clear();
    for (const auto &[key, variant] : variants) {
      sizes.push_back(builder.getDenseI64ArrayAttr(same ? ArrayRef<int64_t>() : ArrayRef<int64_t>(key)));
      symbols.push_back(builder.getStringAttr(variant.kernel.symbol));
      launches.push_back(gpuLaunch(variant.kernel.gpu));
      pieces.push_back(variant.kernel.pieces);
      scratchBytes.push_back(variant.kernel.scratch);
      if (same)
        break;
    }
    declareClusterOutputs(signature);
    SmallVector<int64_t> writes, updates;
    for (int64_t input : signature.inPlaceOf)
      if (input >= 0)
        updates.push_back(input);
    for (size_t i = signature.inputs.size(); i < pointers.size(); ++i)
      writes.push_back(i);
    std::string symbol = ("k" + Twine(kernelCount++) + "_" + name).str();
    SmallVector<Value> buffers;
    for (Value pointer : pointers)
      buffers.push_back(memory[pointer]);
    const bool isCut = llvm::any_of(pieces, [](int64_t count) { return count != 0; });
    builder.create<plan_ir::KernelOp>(op->getLoc(), symbol, pointers.size(), builder.getArrayAttr(sizes), builder.getArrayAttr(symbols),
                                      isCut ? builder.getDenseI64ArrayAttr(pieces) : nullptr, isCut ? builder.getDenseI64ArrayAttr(scratchBytes) : nullptr,
                                      options.gpu ? builder.getArrayAttr(launches) : ArrayAttr());
    auto launch = builder.create<plan_ir::LaunchOp>(
        op->getLoc(), FlatSymbolRefAttr::get(builder.getContext(), symbol), buffers, builder.getDenseI64ArrayAttr(writes), builder.getDenseI64ArrayAttr(updates),
        flatten(varying), flatten(*range), builder.getI64IntegerAttr(range->empty() ? 1 : tasks),
        builder.getI64IntegerAttr(variants.begin()->second.kernel.unit), builder.getStringAttr(name));
    label(launch, op);
    return success();
  }

  DictionaryAttr gpuLaunch(const codegen::GpuLaunch &launch) {
    return builder.getDictionaryAttr({builder.getNamedAttr("entry", builder.getStringAttr(launch.entry)),
                                      builder.getNamedAttr("block", builder.getI64IntegerAttr(launch.block)),
                                      builder.getNamedAttr("items", builder.getI64IntegerAttr(launch.items)),
                                      builder.getNamedAttr("block_items", builder.getI64IntegerAttr(launch.blockItems)),
                                      builder.getNamedAttr("most_range", builder.getI64IntegerAttr(launch.mostRange)),
                                      builder.getNamedAttr("unit_scratch", builder.getI64IntegerAttr(launch.unitScratch))});
  }

  DenseI64ArrayAttr flatten(const std::vector<SizeReference> &references) {
    SmallVector<int64_t> flat;
    for (auto [argument, dim] : references)
      flat.append({argument, dim});
    return builder.getDenseI64ArrayAttr(flat);
  }

  /// f64 and integer products run as generated kernels.
  LogicalResult emitGeneratedMatMul(net::MatMulOp product) {
    ClusterSignature signature;
    signature.inputs = {product.getOperand(0), product.getOperand(1)};
    signature.outputs = {product->getResult(0)};
    signature.inPlaceOf = {-1};
    SmallVector<Value> pointers = signature.pointers();
    std::vector<SizeReference> varying = varyingSizes(pointers);
    KernelVariants variants;
    for (int64_t rank : ranksWithOwnSizes(signature)) {
      FailureOr<codegen::CompiledKernel> kernel = library.addMatMul(productShape(product, rank), product.getLoc());
      if (failed(kernel))
        return failure();
      variants.emplace(localSizes(pointers, varying, rank), VariantOnRank{*kernel, rank});
    }
    if (!variants.empty())
      return emitLaunch(product, "MatMul", signature, varying, variants, tasksOfProduct(product));
    declareClusterOutputs(signature);
    return success();
  }

  /// Rows, columns and batches of a product on one rank.
  static codegen::MatMulShape productShape(net::MatMulOp product, int64_t rank) {
    RankedTensorType left = localType(product.getOperand(0).getType(), rank);
    RankedTensorType right = localType(product.getOperand(1).getType(), rank);
    RankedTensorType out = localType(product->getResult(0).getType(), rank);
    codegen::MatMulShape shape;
    shape.element = out.getElementType();
    shape.transposeLeft = product.getTransposeA();
    shape.transposeRight = product.getTransposeB();
    shape.m = out.getDimSize(out.getRank() - 2);
    shape.n = out.getShape().back();
    shape.k = depthOf(product, left);
    for (int64_t back = out.getRank(); back > 2; --back) { // dimensions are aligned at the right
      auto has = [&](RankedTensorType operand) {
        return operand.getRank() >= back && operand.getDimSize(operand.getRank() - back) == out.getDimSize(out.getRank() - back);
      };
      shape.batch.push_back({out.getDimSize(out.getRank() - back), has(left), has(right)});
    }
    return shape;
  }

  LogicalResult addObjects() {
    if (options.onGpuIr)
      options.onGpuIr(library.gpuIrText());
    FailureOr<SmallVector<codegen::CodeObject>> objects =
        options.machineCode ? library.finish(network.getLoc()) : SmallVector<codegen::CodeObject>();
    if (failed(objects))
      return failure();
    for (const codegen::CodeObject &object : *objects)
      builder.create<plan_ir::ObjectOp>(network.getLoc(), object.isa, object.bytes);
    return success();
  }

  net::NetworkOp network;
  BuildPlanOptions options;
  OpBuilder builder;
  codegen::KernelLibrary library;
  OwningOpRef<ModuleOp> scratch; ///< holds cluster functions while they are compiled
  plan_ir::ProgramOp program;
  llvm::DenseMap<Value, Value> memory;
  struct GatheredWindows {
    net::HaloWindows windows;
    Value buffer;
    Operation *by;
  };
  llvm::DenseMap<std::pair<Value, Type>, std::vector<GatheredWindows>> gathered; ///< of values, see contentOf
  llvm::DenseMap<int64_t, Operation *> forwardById;
  Operation *lastStep = nullptr; ///< that was labelled last
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
