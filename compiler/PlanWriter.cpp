#include "compiler/PlanWriter.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "runtime/plan/PlanIndex.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace msc::compiler {

std::pair<std::string, unsigned> fileAndLine(Location location) {
  std::pair<std::string, unsigned> result{"", 0};
  location->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      result = {file.getFilename().str(), file.getLine()};
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result;
}

uint32_t PlanTables::location(Location location) {
  auto place = fileAndLine(location);
  auto [at, isNew] = locations.try_emplace(place, plan.locations_size());
  if (!isNew)
    return at->second;
  auto [file, isNewFile] = files.try_emplace(place.first, plan.files_size());
  if (isNewFile)
    plan.add_files(place.first);
  plan::Location *entry = plan.add_locations();
  entry->set_file(file->second);
  entry->set_line(place.second);
  return at->second;
}

uint32_t PlanTables::sharding(const Sharding &sharding) {
  auto [at, isNew] = shardings.try_emplace(sharding.str(), plan.shardings_size());
  if (isNew)
    *plan.add_shardings() = fromSharding(sharding);
  return at->second;
}

plan::DataType dataTypeOf(Type element) {
  if (element.isF32())
    return plan::F32;
  if (element.isF64())
    return plan::F64;
  if (element.isF16())
    return plan::F16;
  if (element.isBF16())
    return plan::BF16;
  if (element.isInteger(1))
    return plan::BOOL;
  return element.isInteger(32) ? plan::I32 : plan::I64;
}

namespace {

plan::Collective::Kind collectiveKind(StringRef name) {
  return llvm::StringSwitch<plan::Collective::Kind>(name)
      .Case("AllReduce", plan::Collective::ALL_REDUCE)
      .Case("AllGather", plan::Collective::ALL_GATHER)
      .Case("ReduceScatter", plan::Collective::REDUCE_SCATTER)
      .Case("AlltoAll", plan::Collective::ALL_TO_ALL)
      .Case("CollectivePermute", plan::Collective::PERMUTE)
      .Default(plan::Collective::EXCHANGE);
}

class ProgramWriter {
public:
  ProgramWriter(plan_ir::ProgramOp program, PlanTables &tables)
      : program(program), tables(tables), plan(tables.plan) {}

  void run() {
    proto = plan.add_programs();
    proto->set_purpose(program.getSymName() == "train" ? plan::Program::TRAIN : plan::Program::PREDICT);
    variant = proto->add_variants();
    for (Operation &op : program.getBody().front())
      write(&op);
    auto *range = proto->add_ranges();
    range->set_first(0);
    range->set_last(plan.devices() - 1);
    plan.set_arena_bytes(std::max<uint64_t>(plan.arena_bytes(), program.getArenaBytes().value_or(0)));
  }

private:
  void write(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](plan_ir::BufferOp buffer) { writeBuffer(buffer); })
        .Case([&](plan_ir::KernelOp kernel) { writeKernel(kernel); })
        .Case([&](plan_ir::ObjectOp object) {
          auto *entry = plan.add_objects();
          entry->set_isa(object.getIsa().str());
          entry->set_code(object.getCode().data(), object.getCode().size());
        })
        .Case([&](plan_ir::InputOp input) {
          auto *entry = proto->add_inputs();
          entry->set_name(input.getName().str());
          entry->set_column(input.getName().str());
          entry->set_buffer(indexOf(input.getMemory()));
        })
        .Case([&](plan_ir::OutputOp output) {
          auto *entry = proto->add_outputs();
          entry->set_name(output.getName().str());
          entry->set_buffer(indexOf(output.getMemory()));
          entry->set_kept(output.getKept());
          entry->set_printed(output.getPrinted().has_value());
          entry->set_message(output.getPrinted().value_or("").str());
        })
        .Case([&](plan_ir::ParameterOp parameter) { writeParameter(parameter); })
        .Case([&](plan_ir::ScheduleOp schedule) { writeSchedule(schedule); })
        .Default([&](Operation *other) {
          if (plan_ir::isStep(other))
            writeStep(other);
        });
  }

  uint32_t indexOf(Value memory) { return bufferIndex.at(memory); }

  void writeBuffer(plan_ir::BufferOp buffer) {
    bufferIndex[buffer.getMemory()] = plan.buffers_size();
    auto type = cast<RankedTensorType>(buffer.getTensor());
    auto *entry = plan.add_buffers();
    entry->set_name(buffer.getName().str());
    entry->set_dtype(dataTypeOf(type.getElementType()));
    for (int64_t size : type.getShape())
      entry->add_shape(size);
    entry->set_sharding(tables.sharding(dist::shardingOf(type)));
    entry->set_offset(buffer.getOffset().value_or(0));
    entry->set_bytes(buffer.getBytes());
    entry->set_location(tables.location(buffer.getLoc()));
    entry->set_kind(static_cast<plan::Buffer::Kind>(buffer.getKind()));
    if (buffer.getViewOf())
      entry->set_view_of(1 + indexOf(buffer.getViewOf()));
  }

  void writeKernel(plan_ir::KernelOp kernel) {
    kernelIndex[kernel.getSymName().str()] = plan.kernels_size();
    auto *entry = plan.add_kernels();
    entry->set_name(kernel.getSymName().str());
    entry->set_arguments(kernel.getArguments());
    for (auto [i, sizes, symbol] : llvm::enumerate(kernel.getSizes(), kernel.getSymbols())) {
      auto *item = entry->add_variants();
      if (kernel.getGpu())
        writeGpuLaunch(cast<DictionaryAttr>((*kernel.getGpu())[i]), item->mutable_gpu());
      for (int64_t size : cast<DenseI64ArrayAttr>(sizes).asArrayRef())
        item->add_inner(size);
      item->set_symbol(cast<StringAttr>(symbol).getValue().str());
      if (kernel.getPieces()) {
        item->set_pieces((*kernel.getPieces())[i]);
        item->set_scratch((*kernel.getScratch())[i]);
      }
    }
  }

  static void writeGpuLaunch(DictionaryAttr launch, plan::GpuLaunch *entry) {
    auto number = [&](StringRef key) { return launch.getAs<IntegerAttr>(key).getInt(); };
    entry->set_entry(launch.getAs<StringAttr>("entry").getValue().str());
    entry->set_block(number("block"));
    entry->set_items(number("items"));
    entry->set_block_items(number("block_items"));
    entry->set_most_range(number("most_range"));
    entry->set_unit_scratch(number("unit_scratch"));
  }

  void writeParameter(plan_ir::ParameterOp parameter) {
    auto *entry = plan.add_parameters();
    entry->set_name(parameter.getName().str());
    entry->set_buffer(indexOf(parameter.getMemory()));
    entry->set_trained(parameter.getTrained());
    entry->set_state_of(parameter.getStateOf().str());
    entry->set_draw_name(parameter.getDrawName().empty() ? parameter.getName().str() : parameter.getDrawName().str());
    DictionaryAttr initializer = parameter.getInitializer();
    auto number = [&](StringRef key) {
      auto value = initializer.getAs<FloatAttr>(key);
      return value ? value.getValueAsDouble() : 0.0;
    };
    if (auto kind = initializer.getAs<StringAttr>("kind"))
      entry->mutable_initializer()->set_kind(kind.getValue().str());
    entry->mutable_initializer()->set_a(number("a"));
    entry->mutable_initializer()->set_b(number("b"));
  }

  void writeSchedule(plan_ir::ScheduleOp schedule) {
    auto *entry = plan.add_schedules();
    entry->set_name(schedule.getName().str());
    entry->set_buffer(indexOf(schedule.getMemory()));
    if (auto kind = schedule.getSchedule().getAs<StringAttr>("kind"))
      entry->set_kind(kind.getValue().str());
    if (auto values = schedule.getSchedule().getAs<ArrayAttr>("values"))
      for (Attribute value : values)
        entry->add_values(cast<FloatAttr>(value).getValueAsDouble());
    if (auto warmup = schedule.getSchedule().getAs<IntegerAttr>("warmup"))
      entry->set_warmup(warmup.getInt());
    if (auto every = schedule.getSchedule().getAs<IntegerAttr>("every"))
      entry->set_every(every.getInt());
  }

  uint32_t groupIndex(ArrayRef<int64_t> matrix, ArrayRef<int32_t> axes) {
    plan::Group group;
    for (int64_t size : matrix)
      group.add_matrix(size);
    for (int32_t axis : axes)
      group.add_axes(axis);
    auto [at, isNew] = groups.try_emplace(group.SerializeAsString(), variant->groups_size());
    if (isNew)
      *variant->add_groups() = group;
    return at->second;
  }

  void writeStep(Operation *op) {
    uint32_t index = variant->steps_size();
    plan::Step *step = variant->add_steps();
    step->set_name(net::getInstanceName(op).str());
    step->set_op(op->getAttrOfType<StringAttr>("step_op").str());
    step->set_location(tables.location(op->getLoc()));
    step->set_phase(static_cast<plan::Step::Phase>(net::getPhase(op)));
    plan_ir::Access access = plan_ir::accessOf(op);
    for (Value value : access.reads)
      step->add_reads(indexOf(value));
    for (Value value : access.writes) {
      step->add_writes(indexOf(value));
      lastWriter[value] = index;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](plan_ir::LaunchOp launch) { writeLaunch(launch, *step->mutable_launch()); })
        .Case([&](plan_ir::MatMulOp product) { writeMatMul(product, *step->mutable_matmul()); })
        .Case([&](plan_ir::CopyOp copy) { writeCopy(copy, *step->mutable_copy()); })
        .Case([&](plan_ir::CallOp call) { writeCall(call, *step->mutable_call()); })
        .Case([&](plan_ir::FillOp fill) {
          step->mutable_fill()->set_target(indexOf(fill.getTarget()));
          step->mutable_fill()->set_value(fill.getValue().convertToDouble());
          variant->add_constants(index);
        })
        .Case([&](plan_ir::CollectiveOp collective) { writeCollective(collective, *step); })
        .Case([&](plan_ir::WaitOp wait) { step->mutable_wait()->set_step(lastWriter[wait.getTarget()]); });
  }

  void writeLaunch(plan_ir::LaunchOp launch, plan::Launch &proto) {
    proto.set_kernel(kernelIndex.at(launch.getKernel().str()));
    for (Value argument : launch.getArguments())
      proto.add_arguments(indexOf(argument));
    auto sizes = [&](ArrayRef<int64_t> pairs, auto add) {
      for (size_t i = 0; i < pairs.size(); i += 2) {
        plan::SizeOf *size = add();
        size->set_buffer(indexOf(launch.getArguments()[pairs[i]]));
        size->set_dim(pairs[i + 1]);
      }
    };
    sizes(launch.getInner(), [&] { return proto.add_inner(); });
    sizes(launch.getRange(), [&] { return proto.add_range(); });
    proto.set_tasks(launch.getTasks());
    proto.set_unit(launch.getUnit());
  }

  void writeMatMul(plan_ir::MatMulOp product, plan::MatMul &proto) {
    proto.set_left(indexOf(product.getLeft()));
    proto.set_right(indexOf(product.getRight()));
    proto.set_result(indexOf(product.getResult()));
    proto.set_transpose_left(product.getTransposeLeft());
    proto.set_transpose_right(product.getTransposeRight());
    proto.set_sum_batch(product.getSumBatch());
    if (product.getBias())
      proto.set_bias(1 + indexOf(product.getBias()));
    proto.set_activation(product.getActivation().str());
    proto.set_tasks(product.getTasks());
  }

  void writeCopy(plan_ir::CopyOp copy, plan::Copy &proto) {
    proto.set_target(indexOf(copy.getTarget()));
    for (auto [index, source] : llvm::enumerate(copy.getSources())) {
      auto write = [&, index = index, source = source](auto &part) {
        part.set_source(indexOf(source));
        writeRegions(copy.getRegions(), index, copy.getTarget(), part);
      };
      index == 0 ? write(proto) : write(*proto.add_also());
    }
    if (copy.getFill())
      proto.mutable_fill()->set_value(copy.getFill()->convertToDouble());
  }

  /// The regions of tensor `index`, if there are any.
  template <typename Tensor>
  static void writeRegions(std::optional<ArrayAttr> regions, size_t index, Value target, Tensor &tensor) {
    if (!regions)
      return;
    auto type = cast<RankedTensorType>(target.getDefiningOp<plan_ir::BufferOp>().getTensor());
    ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>((*regions)[index]).asArrayRef();
    *tensor.mutable_regions() = fromRegions(regionsFrom({numbers.data(), numbers.size()}, type.getRank()));
  }

  void writeCall(plan_ir::CallOp call, plan::Call &proto) {
    proto.set_kernel(call.getKernel().str());
    for (Value input : call.getInputs())
      proto.add_operands(indexOf(input));
    for (Value target : call.getTargets())
      proto.add_results(indexOf(target));
    for (NamedAttribute attribute : call.getOperatorAttributes())
      writeAttribute(attribute, *proto.add_attributes());
    proto.set_tasks(call.getTasks());
  }

  static void writeAttribute(NamedAttribute attribute, plan::Call::Attribute &proto) {
    proto.set_name(attribute.getName().str());
    llvm::TypeSwitch<Attribute>(attribute.getValue())
        .Case([&](BoolAttr flag) { proto.add_ints(flag.getValue() ? 1 : 0); })
        .Case([&](IntegerAttr number) { proto.add_ints(number.getInt()); })
        .Case([&](FloatAttr number) { proto.add_floats(number.getValueAsDouble()); })
        .Case([&](StringAttr word) { proto.set_text(word.str()); })
        .Case([&](DenseI64ArrayAttr list) {
          for (int64_t number : list.asArrayRef())
            proto.add_ints(number);
        });
  }

  void writeCollective(plan_ir::CollectiveOp op, plan::Step &step) {
    plan::Collective &proto = *step.mutable_collective();
    proto.set_kind(collectiveKind(op.getStepOp()));
    auto reasons = op.getReasons().getAsValueRange<StringAttr>(), operators = op.getForOperators().getAsValueRange<StringAttr>();
    for (auto [index, source, target, reason, user, bytes] :
         llvm::enumerate(op.getSources(), op.getTargets(), reasons, operators, op.getBytes())) {
      auto write = [&, index = index, source = source, target = target, reason = reason, user = user,
                    bytes = bytes](auto &tensor) {
        tensor.set_source(indexOf(source));
        tensor.set_target(indexOf(target));
        tensor.set_reason(reason.str());
        tensor.set_for_operator(user.str());
        tensor.set_bytes(bytes);
        writeRegions(op.getRegions(), index, target, tensor);
      };
      index == 0 ? write(proto) : write(*proto.add_also());
    }
    if (op.getFill())
      proto.mutable_fill()->set_value(op.getFill()->convertToDouble());
    proto.set_group(groupIndex(op.getGroupMatrix(), op.getGroupAxes()));
    proto.set_reduction(static_cast<plan::Reduction>(op.getReduction()));
    proto.set_asynchronous(op.getAsynchronous());
    proto.set_bytes(std::accumulate(op.getBytes().begin(), op.getBytes().end(), int64_t{0}));
    proto.set_predicted_us(op.getPredictedUs().convertToDouble());
  }

  plan_ir::ProgramOp program;
  PlanTables &tables;
  plan::Plan &plan;
  plan::Program *proto = nullptr;
  plan::Variant *variant = nullptr;
  llvm::DenseMap<Value, uint32_t> bufferIndex, lastWriter;
  std::map<std::string, uint32_t> groups, kernelIndex;
};

} // namespace

void writeProgram(plan_ir::ProgramOp program, PlanTables &tables) { ProgramWriter(program, tables).run(); }

} // namespace msc::compiler
