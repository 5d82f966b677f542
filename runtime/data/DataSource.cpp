#include "runtime/data/DataSource.h"

#include "runtime/data/Draw.h"

#include <algorithm>
#include <fmt/format.h>

namespace msc {
namespace {

class RandomColumn final : public InputColumn {
public:
  RandomColumn(ElementFunction function, plan::DataType type, std::vector<int64_t> shape, uint64_t steps)
      : function(std::move(function)), type(type), shape(std::move(shape)), steps(steps) {}
  Status fill(std::byte *target, const Box &box, uint64_t epoch, uint64_t batch) override {
    uint64_t number = epoch * steps + batch;
    fillBox(target, type, shape, box, number * static_cast<uint64_t>(elementCount(shape)), function);
    return {};
  }

private:
  ElementFunction function;
  plan::DataType type;
  std::vector<int64_t> shape; ///< of one global batch
  uint64_t steps;
};

/// The data set of a program: by its purpose's name, or the one without a name.
const plan::Dataset *datasetOf(const plan::Plan &plan, plan::Program::Purpose purpose) {
  std::string_view name = purpose == plan::Program::EVALUATE ? "evaluate" : "train";
  const plan::Dataset *unnamed = nullptr;
  for (const plan::Dataset &dataset : plan.datasets()) {
    if (dataset.name() == name)
      return &dataset;
    if (dataset.name().empty())
      unnamed = &dataset;
  }
  return unnamed;
}

const plan::Dataset::Column *columnOf(const plan::Dataset *dataset, const plan::Input &input) {
  if (dataset)
    for (const plan::Dataset::Column &column : dataset->columns())
      if (column.name() == (input.column().empty() ? input.name() : input.column()))
        return &column;
  return nullptr;
}

/// What a column's file holds, and what a batch takes of it.
struct ColumnLength {
  std::string name;
  int64_t samples = 0, batch = 0;
};

/// Columns whose samples belong together. Batches of different sizes pair up in order, but not once they are shuffled.
Status checkLengths(const std::vector<ColumnLength> &lengths, bool shuffle) {
  auto differs = [&](const ColumnLength &other) {
    const ColumnLength &first = lengths.front();
    return shuffle ? first.samples != other.samples
                   : static_cast<__int128>(first.samples) * other.batch != static_cast<__int128>(other.samples) * first.batch;
  };
  if (std::none_of(lengths.begin(), lengths.end(), differs))
    return {};
  std::vector<std::string> texts;
  for (const ColumnLength &length : lengths)
    texts.push_back(fmt::format("{} {}", length.name, length.samples));
  return Error{ExitCode::BadFile, fmt::format("columns differ in length: {}", fmt::join(texts, ", ")),
               "a sample is one row of every column"};
}

} // namespace

Result<std::unique_ptr<InputColumn>> randomColumn(const plan::Dataset &dataset, const plan::Dataset::Column &column,
                                                  plan::DataType type, const std::vector<int64_t> &shape) {
  Result<ElementFunction> function = columnFunction(column, dataset.seed(), type == plan::F32);
  if (!function)
    return function.error();
  return std::unique_ptr<InputColumn>(new RandomColumn(std::move(*function), type, shape, dataset.steps()));
}

Result<std::unique_ptr<DataSource>> DataSource::open(const PlanIndex &index, const plan::Program &program,
                                                     const std::map<std::string, std::string> &files, int64_t rank) {
  auto source = std::make_unique<DataSource>();
  const plan::Dataset *dataset = datasetOf(index.plan(), program.purpose());
  std::vector<ColumnLength> lengths;
  source->constant = true;
  for (const plan::Input &input : program.inputs()) {
    plan::DataType type = index.buffer(input.buffer()).dtype();
    const std::vector<int64_t> &shape = index.shape(input.buffer());
    const plan::Dataset::Column *column = columnOf(dataset, input);
    auto file = files.find(input.name());
    if (file == files.end() && !column)
      return Error{ExitCode::Usage, fmt::format("input '{}' has no data", input.name()),
                   fmt::format("--input {0}={0}.npy", input.name())};
    auto made = file != files.end()              ? fixedColumn(file->second, input.name(), type, shape, column ? column->classes() : 0)
                : dataset->source() == "Random" ? randomColumn(*dataset, *column, type, shape)
                                                : npyColumn(*dataset, *column, type, shape);
    if (!made)
      return made.error();
    source->constant &= file != files.end();
    if ((*made)->samples() != 0)
      lengths.push_back({column->name(), (*made)->samples(), shape[0]});
    if (file == files.end() && !shape.empty() && source->batchSize == 0)
      source->batchSize = shape[0];
    Box box = index.localBox(input.buffer(), rank);
    size_t bytes = static_cast<size_t>(elementCount(box)) * elementBytes(type);
    source->inputs.push_back({std::move(*made), index.buffer(input.buffer()).offset(), box, bytes, nullptr});
  }
  uint64_t wanted = dataset ? dataset->steps() : 0, has = 0;
  if (!lengths.empty()) {
    if (Status status = checkLengths(lengths, dataset->shuffle()); !status)
      return status.error();
    const ColumnLength &column = lengths.front();
    source->samplesOfFiles = column.samples;
    source->batchSize = column.batch;
    has = static_cast<uint64_t>(column.samples / column.batch);
    if (int64_t left = column.samples % column.batch; left != 0)
      source->remark = left == 1 ? fmt::format("1 sample of column '{}' fills no batch of {} and is left out", column.name,
                                               column.batch)
                                 : fmt::format("{} samples of column '{}' fill no batch of {} and are left out", left,
                                               column.name, column.batch);
    if (wanted > has)
      return Error{ExitCode::BadFile, fmt::format("the data set has {} batches, the plan wants {} in an epoch", has, wanted),
                   "'steps' of a dataset are those of an epoch: leave it out, or write steps in the train block for those of the training"};
  }
  source->batches = wanted != 0 ? wanted : has != 0 ? has : 1;
  source->sameBatch = dataset && dataset->same_batch();
  return source;
}

Status DataSource::connect(device::Device &device) {
  for (Bound &input : inputs) {
    if (input.bytes == 0)
      continue;
    auto opened = device.openInlet(input.bytes);
    if (!opened)
      return opened.error();
    input.inlet = std::move(*opened);
  }
  return {};
}

Status DataSource::send(uint64_t epoch, uint64_t batch) {
  for (Bound &input : inputs) {
    if (!input.inlet)
      continue;
    Result<std::byte *> host = input.inlet->host();
    if (!host)
      return host.error();
    if (Status status = input.column->fill(*host, input.box, epoch, batch); !status)
      return status;
    if (Status status = input.inlet->send(); !status)
      return status;
  }
  return {};
}

void DataSource::prepare(uint64_t epoch, uint64_t batch) {
  std::pair<uint64_t, uint64_t> wanted{sameBatch ? 0 : epoch, sameBatch ? 0 : batch};
  if (sent && (constant || *sent == wanted))
    return;
  sent = wanted;
  sending = send(wanted.first, wanted.second);
}

Status DataSource::load(std::byte *arena, uint64_t epoch, uint64_t batch) {
  prepare(epoch, batch);
  if (!sending)
    return sending;
  // Also where nothing changed: the memory of an input may be used again within a step.
  for (Bound &input : inputs)
    if (input.inlet)
      if (Status status = input.inlet->place(arena + input.offset); !status)
        return status;
  return {};
}

} // namespace msc
