#include "compiler/PlanHeader.h"

#include "compiler/PlanWriter.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetAttributes.h"
#include "passes/partition/Widen.h"
#include "passes/sharding/Decisions.h"

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace msc::compiler {

static void writeDataset(const net::DatasetConfig &config, plan::Plan &plan) {
  plan::Dataset *dataset = plan.add_datasets();
  dataset->set_name(config.name);
  dataset->set_source(config.source);
  dataset->set_seed(config.seed);
  dataset->set_steps(config.steps);
  dataset->set_same_batch(config.sameBatch);
  dataset->set_shuffle(config.shuffle);
  dataset->set_drop_remainder(true);
  for (const net::ColumnConfig &column : config.columns) {
    plan::Dataset::Column *entry = dataset->add_columns();
    entry->set_name(column.name);
    entry->set_distribution(column.distribution);
    entry->set_path(column.path);
    for (double value : column.values)
      entry->add_values(value);
    entry->set_classes(column.classes);
  }
}

void writeHeader(StringRef network, const net::Config &config, plan::Plan &plan) {
  plan.set_network(network.str());
  plan.set_devices(config.devices);
  plan.set_parallel_mode(config.context.parallelMode);
  plan.set_search_mode(config.context.searchMode);
  plan.set_device_target(config.context.deviceTarget);
  if (config.mesh)
    for (auto [name, size] : llvm::zip(config.mesh->axes, config.mesh->sizes)) {
      plan::MeshAxis *axis = plan.add_mesh();
      axis->set_name(name);
      axis->set_size(size);
    }
  plan.set_seed(config.train ? config.train->seed : 1);
  for (const net::DatasetConfig &dataset : config.datasets)
    writeDataset(dataset, plan);
  if (config.train) {
    plan::Training *training = plan.mutable_training();
    training->set_epochs(config.train->epochs);
    training->set_steps(config.train->steps);
    training->set_loss(config.train->minimize);
    training->set_log_every(config.train->logEvery);
  }
  if (config.checkpoint) {
    plan::Checkpointing *checkpointing = plan.mutable_checkpointing();
    checkpointing->set_directory(config.checkpoint->directory);
    checkpointing->set_prefix(config.checkpoint->prefix.empty() ? network.str() : config.checkpoint->prefix);
    checkpointing->set_every_epochs(config.checkpoint->everyEpochs);
    checkpointing->set_every_steps(config.checkpoint->everySteps);
    checkpointing->set_keep(config.checkpoint->keep);
    checkpointing->set_per_rank(config.checkpoint->perRank);
  }
}

/// "allreduce size 32" and so on: the buckets of collectives that are not those of the defaults.
static std::string unusualBuckets(const net::ContextConfig &context) {
  std::string text;
  for (auto [kind, fusion] : {std::pair("allreduce", &context.fuseAllReduce), std::pair("allgather", &context.fuseAllGather),
                              std::pair("reducescatter", &context.fuseReduceScatter)}) {
    net::FusionConfig usual;
    if (fusion->mode == usual.mode && fusion->megabytes == usual.megabytes && fusion->indices == usual.indices)
      continue;
    text += (llvm::Twine(" ") + kind + " " + fusion->mode + " " + llvm::Twine(fusion->megabytes)).str();
    for (int64_t index : fusion->indices)
      text += " " + std::to_string(index);
  }
  return text;
}

/// The value before redistributions: what the operator's author would recognise.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<dist::CollectiveOp, dist::SliceOp, dist::ReshardOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static StringRef valueName(Value value) {
  value = sourceOf(value);
  if (auto param = value.getDefiningOp<net::ParamOp>())
    return param.getName();
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto network = dyn_cast<net::NetworkOp>(argument.getOwner()->getParentOp()))
      return cast<StringAttr>(network.getInputNames()[argument.getArgNumber()]).getValue();
  return net::getValueName(value);
}

static void writeValue(StringRef name, Type tensor, PlanTables &tables, plan::OperatorNote::Value *note) {
  note->set_name(name.str());
  auto type = cast<RankedTensorType>(tensor);
  note->set_dtype(dataTypeOf(type.getElementType()));
  for (int64_t size : type.getShape())
    note->add_shape(size);
  note->set_sharding(tables.sharding(dist::shardingOf(type)));
}

/// The note of an operator in whose place others stand.
static void writeExpansion(DictionaryAttr record, PlanTables &tables) {
  auto text = [&](StringRef key) { return record.getAs<StringAttr>(key).str(); };
  auto write = [&](StringRef kind, auto add) {
    auto types = record.getAs<ArrayAttr>((kind + "_types").str()), names = record.getAs<ArrayAttr>((kind + "_names").str());
    for (auto [type, name] : llvm::zip_equal(types, names))
      writeValue(cast<StringAttr>(name).getValue(), cast<TypeAttr>(type).getValue(), tables, add());
  };
  plan::OperatorNote *note = tables.plan.add_operators();
  note->set_name(text("name"));
  note->set_op(text("op"));
  note->set_scope(text("scope"));
  note->set_location(tables.location(Location(record.getAs<LocationAttr>("location"))));
  note->set_in_strategy(text("in_strategy"));
  note->set_out_strategy(text("out_strategy"));
  note->set_origin(text("origin"));
  write("operand", [&] { return note->add_operands(); });
  write("result", [&] { return note->add_results(); });
}

void writeOperatorNotes(net::NetworkOp network, PlanTables &tables) {
  auto expansions = network->getAttrOfType<ArrayAttr>(passes::expansionsAttributeName);
  int64_t told = -1; // expansion
  for (Operation &op : network.getBody().front()) {
    if (net::getPhase(&op) != net::Phase::Forward)
      continue;
    if (std::optional<net::Whole> whole = net::getWhole(&op)) {
      if (whole->index > told)
        writeExpansion(cast<DictionaryAttr>(expansions[told = whole->index]), tables);
      continue;
    }
    if (!isa<net::Operator>(op))
      continue;
    plan::OperatorNote *note = tables.plan.add_operators();
    note->set_name(net::getInstanceName(&op).str());
    note->set_op(op.getName().stripDialect().str());
    note->set_scope(net::getScope(&op).str());
    note->set_location(tables.location(op.getLoc()));
    if (auto strategy = net::getInStrategy(&op))
      note->set_in_strategy(net::strategyText(*strategy));
    if (auto strategy = net::getOutStrategy(&op))
      note->set_out_strategy(net::strategyText(*strategy));
    note->set_origin(net::getStrategyOrigin(&op).str());
    for (Value operand : op.getOperands()) {
      if (Operation *cast = operand.getDefiningOp(); cast && passes::isWideningCast(cast))
        operand = cast->getOperand(0);
      writeValue(valueName(operand), operand.getType(), tables, note->add_operands());
    }
    for (Value result : op.getResults())
      writeValue(valueName(result), result.getType(), tables, note->add_results());
  }
}

std::string digestOf(net::NetworkOp network, const net::Config &config, const std::string &unusual) {
  OwningOpRef<net::NetworkOp> copy = cast<net::NetworkOp>(network->clone());
  copy->setSymName("network");
  copy->walk([](Operation *op) {
    for (StringRef name : {"net.value_names", "net.instance_name", "net.scope", "net.strategy_origin", "net.alike", "net.fixed_pieces",
                           "net.fixed_place", "net.id", "net.kept"})
      op->removeAttr(name);
  });
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.printGenericOpForm().useLocalScope().elideLargeElementsAttrs(std::numeric_limits<int64_t>::max());
  copy->print(stream, flags);
  plan::Plan options;
  writeHeader("network", config, options);
  options.clear_checkpointing();
  stream << options.SerializeAsString(); // no maps: the bytes are a function of the content
  if (config.train)
    stream << net::updateText(*config.train);
  stream << unusual << unusualBuckets(config.context);
  std::array<uint8_t, 32> hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(stream.str()));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

} // namespace msc::compiler
