// readConfig and the blocks dataset and checkpoint. The others are in ConfigTrain.cpp and ConfigContext.cpp.
#include "dialects/net/ConfigBlocks.h"

#include "dialects/net/Network.h"
#include "dialects/net/Suggest.h"
#include "dialects/net/ops/support/Infer.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace msc::net {

static const StringRef blockKinds[] = {"dataset", "train", "checkpoint", "context"};

//===----------------------------------------------------------------------===//
// dataset
//===----------------------------------------------------------------------===//

/// The words of Random's columns and how many numbers each takes.
static bool readDistribution(Fields &columns, StringRef key, Attribute attribute, ColumnConfig &column) {
  struct Form {
    StringRef name;
    std::vector<double> defaults;
    bool required;
    StringRef example;
  };
  static const Form forms[] = {{"uniform", {0, 1}, false, "uniform(-1, 1)"},
                               {"normal", {0, 1}, false, "normal(0, 0.1)"},
                               {"zeros", {}, false, "zeros"},
                               {"ones", {}, false, "ones"},
                               {"constant", {0}, true, "constant(0.5)"},
                               {"integers", {0, 2}, true, "integers(0, 10)"}};
  std::optional<CallValue> call = asCall(attribute);
  auto word = dyn_cast<StringAttr>(attribute);
  StringRef name = call ? call->callee : word ? word.getValue() : StringRef();
  const Form *form = find_if(forms, [&](const Form &f) { return f.name == name; });
  if (form == std::end(forms)) {
    InFlightDiagnostic diagnostic = emitError(columns.valueLocation(key))
                                    << "unknown distribution '" << valueText(attribute) << "' of column '" << key
                                    << "': expected uniform, normal, zeros, ones, constant or integers";
    if (asNumber(attribute))
      addHelp(diagnostic, "write constant(" + valueText(attribute) + ")");
    else
      addSuggestion(diagnostic, name, map_range(forms, [](const Form &f) { return f.name; }));
    return false;
  }
  column.distribution = name.str();
  column.values = form->defaults;
  size_t given = call ? call->args.size() : 0;
  if ((call && (!call->named.empty() || given != form->defaults.size())) || (!call && form->required)) {
    InFlightDiagnostic diagnostic = emitError(columns.valueLocation(key));
    diagnostic << "'" << name << "' of column '" << key << "' takes " << form->defaults.size()
               << (form->defaults.size() == 1 ? " number, but " : " numbers, but ") << given << (given == 1 ? " is given" : " are given");
    addHelp(diagnostic, "write " + form->example);
    return false;
  }
  for (size_t i = 0; i < given; ++i) {
    std::optional<double> number = asNumber(call->args[i]);
    if (!number) {
      emitError(columns.valueLocation(key)) << "'" << name << "' of column '" << key << "' expects numbers, found '"
                                            << valueText(call->args[i]) << "'";
      return false;
    }
    column.values[i] = *number;
  }
  StringRef wrong;
  if (name == "uniform" && column.values[0] > column.values[1])
    wrong = "the lower bound first";
  if (name == "normal" && column.values[1] < 0)
    wrong = "a standard deviation that is not negative, behind the mean";
  if (name == "integers" && column.values[0] >= column.values[1])
    wrong = "the smallest number and one beyond the largest";
  if (wrong.empty())
    return true;
  emitError(columns.valueLocation(key)) << "'" << name << "' of column '" << key << "' expects " << wrong << ", found ("
                                        << numberText(column.values[0]) << ", " << numberText(column.values[1]) << ")";
  return false;
}

static void readSource(Fields &fields, DatasetConfig &dataset, bool &hasSource) {
  Attribute source = fields.get("source");
  if (!source)
    return;
  std::optional<CallValue> call = asCall(source);
  auto word = dyn_cast<StringAttr>(source);
  dataset.source = call ? call->callee.str() : word ? word.getValue().str() : valueText(source);
  static const StringRef sources[] = {"Random", "Npy"};
  static const StringRef later[] = {"Cifar10", "Mnist", "ImageFolder", "Text", "MindRecord", "TFRecord", "Csv"};
  if (!is_contained(sources, dataset.source)) {
    fields.markWrong();
    if (is_contained(later, dataset.source)) {
      InFlightDiagnostic diagnostic = emitError(fields.valueLocation("source"))
                                      << "source '" << dataset.source << "' is not in this version";
      addHelp(diagnostic, "convert the data to .npy files and use Npy()");
      return;
    }
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("source"))
                                    << "unknown source '" << dataset.source << "': expected Random or Npy";
    if (word && word.getValue().ends_with(".npy"))
      addHelp(diagnostic, "files are columns: write source: Npy(), columns: {x: \"" + word.getValue() + "\"}");
    else
      addSuggestion(diagnostic, dataset.source, sources);
    return;
  }
  hasSource = true;
  if (!call)
    return;
  Fields arguments = fields.arguments("source", *call);
  if (!call->args.empty()) {
    emitError(fields.valueLocation("source")) << "'" << dataset.source << "' takes named arguments only";
    fields.markWrong();
  }
  arguments.integer("seed", dataset.seed);
  if (arguments.get("seed") && fields.get("seed")) {
    InFlightDiagnostic diagnostic = emitError(fields.keyLocation("seed")) << "'seed' is given twice";
    diagnostic.attachNote(arguments.keyLocation("seed")) << "first given here";
    fields.markWrong();
  }
  arguments.finish();
  if (!arguments.ok())
    fields.markWrong();
}

/// The file of one of Npy's columns; a word of Random's in its place is a mix-up.
static void readPath(Fields &columns, ColumnConfig &column) {
  static const StringRef distributions[] = {"uniform", "normal", "zeros", "ones", "constant", "integers"};
  columns.filePath(column.name, column.path);
  if (columns.ok() && column.path.empty()) {
    emitError(columns.valueLocation(column.name)) << "column '" << column.name << "' needs the path of a file";
    return columns.markWrong();
  }
  if (!columns.ok() || !is_contained(distributions, column.path))
    return;
  InFlightDiagnostic diagnostic = emitError(columns.valueLocation(column.name))
                                  << "expected a path in quotes or env(\"NAME\"), found '" << column.path << "'";
  addHelp(diagnostic, "columns of Npy are files; source: Random() draws '" + column.path + "'");
  columns.markWrong();
}

static void readColumns(Fields &fields, DatasetConfig &dataset) {
  Attribute value = fields.get("columns");
  auto map = dyn_cast_or_null<DictionaryAttr>(value);
  if (!value && fields.hasMisspelt("columns"))
    return fields.markWrong();
  if (!map || asCall(value)) {
    emitError(value ? fields.valueLocation("columns") : dataset.location)
        << "the dataset needs 'columns: {name: " << (dataset.source == "Npy" ? "\"file.npy\"" : "uniform") << ", ...}'";
    return fields.markWrong();
  }
  Fields columns = fields.inside("columns", map);
  for (NamedAttribute field : map) {
    ColumnConfig column;
    column.name = field.getName().str();
    if (dataset.source == "Npy")
      readPath(columns, column);
    else if (!readDistribution(columns, column.name, field.getValue(), column))
      fields.markWrong();
    dataset.columns.push_back(std::move(column));
  }
  if (!columns.ok())
    fields.markWrong();
}

bool readDataset(Fields &fields, DatasetConfig &dataset) {
  bool hasSource = false;
  readSource(fields, dataset, hasSource);
  if (hasSource) {
    readColumns(fields, dataset);
  } else if (fields.ok() && !fields.hasMisspelt("source")) {
    emitError(dataset.location) << "the dataset needs a 'source', such as Random(seed: 1) or Npy()";
    fields.markWrong();
  } else {
    fields.get("columns");
  }
  fields.integer("seed", dataset.seed);
  fields.integer("steps", dataset.steps, 1, INT32_MAX); // times the epochs in 64 bits
  fields.boolean("same_batch", dataset.sameBatch);
  int64_t batch = 0;
  fields.integer("batch", batch, 1, INT64_MAX);
  if (batch)
    dataset.batch = batch;
  fields.boolean("shuffle", dataset.shuffle);
  if (Attribute keeps = fields.get("drop_remainder"); keeps && keeps != BoolAttr::get(keeps.getContext(), true)) {
    emitError(fields.valueLocation("drop_remainder"))
        << "'drop_remainder: " << valueText(keeps) << "' is not in this version: every batch has the size of the inputs";
    fields.markWrong();
  }
  uint64_t repeat = 1;
  fields.integer("repeat", repeat, 1);
  if (repeat != 1) {
    emitError(fields.valueLocation("repeat")) << "'repeat' is not in this version: write 'epochs' in the train block";
    fields.markWrong();
  }
  fields.unsupported("image", "pipelines of image operators are not built yet");
  fields.unsupported("label", "pipelines of operators are not built yet");
  fields.finish();
  if (hasSource && fields.ok() && dataset.source == "Random" && dataset.steps == 0) {
    emitError(dataset.location) << "a Random dataset needs 'steps', the number of batches per epoch";
    fields.markWrong();
  }
  if (fields.ok() && dataset.source == "Random" && dataset.shuffle)
    emitWarning(fields.keyLocation("shuffle")) << "'shuffle' has nothing to do: the batches are random";
  if (fields.ok() && dataset.source == "Npy" && !dataset.shuffle && fields.get("seed"))
    emitWarning(fields.keyLocation("seed")) << "'seed' has nothing to do: the samples are not shuffled";
  return fields.ok();
}

//===----------------------------------------------------------------------===//
// checkpoint, mesh
//===----------------------------------------------------------------------===//

bool readCheckpoint(Fields &fields, CheckpointConfig &checkpoint) {
  fields.filePath("directory", checkpoint.directory);
  fields.word("prefix", checkpoint.prefix);
  if (checkpoint.prefix.find('/') != std::string::npos) {
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("prefix"))
                                    << "'prefix' is the beginning of a file name and holds no '/', found '"
                                    << checkpoint.prefix << "'";
    addHelp(diagnostic, "folders belong to 'directory'");
    fields.markWrong();
  }
  fields.integer("every_epochs", checkpoint.everyEpochs, 1);
  fields.integer("every_steps", checkpoint.everySteps, 1);
  fields.integer("keep", checkpoint.keep);
  fields.boolean("per_rank", checkpoint.perRank);
  fields.finish();
  if (fields.ok() && checkpoint.everyEpochs == 0 && checkpoint.everySteps == 0)
    checkpoint.everyEpochs = 1;
  return fields.ok();
}

static void readMesh(ConfigOp op, Config &config) {
  MeshConfig mesh;
  for (Attribute axis : op.getFields().getAs<ArrayAttr>("axes"))
    mesh.axes.push_back(cast<StringAttr>(axis).getValue().str());
  auto sizes = op.getFields().getAs<DenseI64ArrayAttr>("sizes").asArrayRef();
  mesh.sizes.assign(sizes.begin(), sizes.end());
  if (!config.mesh) // further meshes name other cuts of the same devices
    config.mesh = std::move(mesh);
}

//===----------------------------------------------------------------------===//
// All blocks
//===----------------------------------------------------------------------===//

namespace {
class Reader {
public:
  Reader(ModuleOp module, ArrayRef<ConfigOverride> overrides) : module(module), overrides(overrides) {}
  FailureOr<Config> run();

private:
  void read(ConfigOp op);
  /// True if the block is the first of its kind and name; reports it otherwise.
  bool isFirst(ConfigOp op);
  /// Columns feed the inputs of the same name: each input needs one, each column one input.
  bool checkColumns();
  /// Where a column stands, else the block.
  Location placeOf(const DatasetConfig &dataset, StringRef column);
  bool checkDatasetName(ConfigOp op);
  /// The global batch is dimension 0 of every input.
  bool checkBatch(const DatasetConfig &dataset, NetworkOp network);
  bool checkDistributions(const DatasetConfig &dataset, NetworkOp network);
  bool checkLookups(const DatasetConfig &dataset, NetworkOp network);
  /// Which columns are labels, and whether those that are drawn are classes.
  bool checkLabels(DatasetConfig &dataset, NetworkOp network);
  void checkUpdates() const;

  ModuleOp module;
  ArrayRef<ConfigOverride> overrides;
  std::map<std::pair<std::string, std::string>, Location> seen;
  ConfigOp context;
  Config config{.context = {.datasetStrategy = {.location = UnknownLoc::get(module.getContext())},
                            .location = UnknownLoc::get(module.getContext())}};
  bool sound = true;
};
} // namespace

bool Reader::isFirst(ConfigOp op) {
  auto [entry, added] = seen.try_emplace({op.getKind().str(), op.getName().str()}, op.getLoc());
  if (added)
    return true;
  InFlightDiagnostic diagnostic = emitError(op.getLoc()) << "duplicate block '" << op.getKind()
                                                         << (op.getName().empty() ? "" : " ") << op.getName() << "'";
  diagnostic.attachNote(entry->second) << "the first one is here";
  return sound = false;
}

void Reader::read(ConfigOp op) {
  StringRef kind = op.getKind();
  if (kind == "mesh")
    return readMesh(op, config);
  if (!is_contained(blockKinds, kind)) {
    InFlightDiagnostic diagnostic = emitError(op.getLoc()) << "unknown block '" << kind << "'";
    addSuggestionOrList(diagnostic, kind, ArrayRef<StringRef>(blockKinds));
    sound = false;
    return;
  }
  if (!isFirst(op))
    return;
  if (kind != "dataset" && !op.getName().empty()) {
    emitError(op.getLoc()) << "a " << kind << " block has no name, found '" << op.getName() << "'";
    sound = false;
    return;
  }
  Fields fields(op.getFields(), op.getLocations(), "", (kind + " block").str(), op.getLoc());
  if (kind == "dataset") {
    sound &= checkDatasetName(op);
    DatasetConfig dataset{.name = op.getName().str(), .location = op.getLoc()};
    sound &= readDataset(fields, dataset);
    config.datasets.push_back(std::move(dataset));
  } else if (kind == "train") {
    sound &= readTrain(fields, config.train.emplace(TrainConfig{.optimizer = {.location = op.getLoc()}, .location = op.getLoc()}));
  } else if (kind == "checkpoint") {
    sound &= readCheckpoint(fields, config.checkpoint.emplace(CheckpointConfig{.location = op.getLoc()}));
  } else {
    context = op;
  }
}

/// A data set has no name or that of what it is for.
bool Reader::checkDatasetName(ConfigOp op) {
  static const StringRef purposes[] = {"train", "evaluate"};
  if (op.getName() == "evaluate")
    emitWarning(op.getLoc()) << "dataset 'evaluate' has nothing to do: networks are not evaluated yet";
  if (op.getName().empty() || is_contained(purposes, op.getName()))
    return true;
  InFlightDiagnostic diagnostic = emitError(op.getLoc())
                                  << "unknown dataset '" << op.getName() << "': expected train or evaluate";
  addSuggestion(diagnostic, op.getName(), purposes);
  return false;
}

bool Reader::checkBatch(const DatasetConfig &dataset, NetworkOp network) {
  for (BlockArgument input : network.getBody().getArguments()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(input.getType()).getShape();
    if (!dataset.batch || shape.empty() || shape[0] == *dataset.batch)
      continue;
    InFlightDiagnostic diagnostic = emitError(dataset.location)
                                    << "'batch' is " << *dataset.batch << ", but input '" << getValueName(input)
                                    << "' has " << shape[0] << " rows";
    diagnostic.attachNote(input.getLoc()) << "the input is here";
    return false;
  }
  return true;
}

/// The operator that looks an input up in a table; null: none does. Where several do, that with the smallest table.
static Operation *lookupOf(BlockArgument input, int64_t &rows) {
  Operation *lookup = nullptr;
  for (OpOperand &use : input.getUses()) {
    const StringRef name = use.getOwner()->getName().stripDialect();
    auto axis = use.getOwner()->getAttrOfType<IntegerAttr>("axis");
    if (use.getOperandNumber() != 1 || use.getOwner()->use_empty() || (name != "EmbeddingLookup" && !(name == "Gather" && axis)))
      continue;
    auto table = cast<RankedTensorType>(use.getOwner()->getOperand(0).getType());
    const int64_t along = name != "Gather" ? 0 : axis.getInt() < 0 ? axis.getInt() + table.getRank() : axis.getInt();
    if (along < 0 || along >= table.getRank() || table.getDimSize(along) <= 0 || (lookup && table.getDimSize(along) >= rows))
      continue;
    lookup = use.getOwner();
    rows = table.getDimSize(along);
  }
  return lookup;
}

/// Behind the largest number that an input of whole numbers is to have: the rows of the table in which an operator looks them up.
static int64_t endOfNumbers(BlockArgument input) {
  constexpr int64_t otherwise = 10;
  int64_t rows = otherwise;
  if (cast<RankedTensorType>(input.getType()).getElementType().isInteger(1))
    return 2;
  return lookupOf(input, rows) ? rows : otherwise;
}

static std::string integersFor(BlockArgument input) { return "integers(0, " + std::to_string(endOfNumbers(input)) + ")"; }

/// Of a whole number: "4", not "4.0".
static std::string wholeText(double number) {
  std::string text = numberText(number);
  return StringRef(text).ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

/// Of a loss with logits.
static int64_t numberOfClasses(Operation *loss) { return cast<RankedTensorType>(loss->getOperand(0).getType()).getShape().back(); }

/// Reads its second operand for numbers of classes, with all that lie behind them being mistakes.
static bool takesLabels(Operation *op) {
  const StringRef name = op->getName().stripDialect();
  auto sparse = op->getAttrOfType<BoolAttr>("sparse");
  auto ignored = op->getAttrOfType<IntegerAttr>("ignore_index");
  return name == "SparseSoftmaxCrossEntropyWithLogits" || (name == "SoftmaxCrossEntropyWithLogits" && sparse && sparse.getValue()) ||
         (name == "NLLLoss" && (!ignored || ignored.getInt() < numberOfClasses(op)));
}

/// The same numbers, in another shape or type.
static bool movesNumbers(Operation *op) {
  static const StringRef moves[] = {"Reshape", "Squeeze", "ExpandDims", "Flatten", "Transpose"};
  const StringRef name = op->getName().stripDialect();
  auto isWhole = [](Value value) { return getElementTypeOrSelf(value.getType()).isInteger(32) || getElementTypeOrSelf(value.getType()).isInteger(64); };
  return is_contained(moves, name) || (name == "Cast" && isWhole(op->getOperand(0)) && isWhole(op->getResult(0)));
}

/// By a result of the network, through others.
static bool isNeeded(Operation *op) {
  SmallVector<Operation *> work{op};
  llvm::SmallPtrSet<Operation *, 16> seen{op};
  while (!work.empty()) {
    Operation *next = work.pop_back_val();
    if (next->hasTrait<OpTrait::IsTerminator>())
      return true;
    for (Operation *user : next->getUsers())
      if (seen.insert(user).second)
        work.push_back(user);
  }
  return false;
}

/// The loss with most classes of those that take an input for labels, perhaps behind a view or a cast; null: there is none, or the numbers
/// are looked up as well, and may be others.
static Operation *lossOfLabels(Value labels, bool &areLookedUp) {
  static const StringRef lookups[] = {"Gather",           "GatherD",             "GatherNd",           "EmbeddingLookup",    "OneHot",            "ScatterAdd",
                                      "TensorScatterAdd", "TensorScatterUpdate", "UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"};
  Operation *loss = nullptr;
  for (OpOperand &use : labels.getUses()) {
    Operation *op = use.getOwner();
    areLookedUp |= is_contained(lookups, op->getName().stripDialect());
    if (use.getOperandNumber() == 0 && movesNumbers(op))
      op = lossOfLabels(op->getResult(0), areLookedUp);
    else if (use.getOperandNumber() != 1 || !takesLabels(op) || !isNeeded(op))
      continue;
    if (op && (!loss || numberOfClasses(op) > numberOfClasses(loss)))
      loss = op;
  }
  return areLookedUp ? nullptr : loss;
}

/// The largest that a column of whole numbers draws; -1: nothing above 0. Bounds may be fractions, of which what is below is taken.
static double largestDrawn(const ColumnConfig &column) {
  if (column.distribution == "integers")
    return std::ceil(column.values[1]) - 1;
  return column.distribution == "ones" ? 1 : column.distribution == "constant" ? column.values[0] : -1;
}

/// Numbers that a table has no row for end a run; EmbeddingLookup, whose table may be a part of one, takes them.
bool Reader::checkLookups(const DatasetConfig &dataset, NetworkOp network) {
  for (BlockArgument input : network.getBody().getArguments())
    for (const ColumnConfig &column : dataset.columns) {
      int64_t rows = 0;
      Operation *lookup = column.name == getValueName(input) && dataset.source != "Npy" ? lookupOf(input, rows) : nullptr;
      const double largest = largestDrawn(column), least = column.values.empty() ? 0 : std::floor(column.values[0]);
      if (!lookup || lookup->getName().stripDialect() != "Gather" || (largest < static_cast<double>(rows) && least >= 0))
        continue;
      InFlightDiagnostic diagnostic = emitError(placeOf(dataset, column.name));
      diagnostic << "column '" << column.name << "' draws numbers " << (least < 0 ? "from " : "up to ") << wholeText(least < 0 ? least : largest)
                 << ", but the table has " << rows << (rows == 1 ? " row" : " rows");
      diagnostic.attachNote(lookup->getLoc()) << "they are looked up here";
      addHelp(diagnostic, "write " + column.name + ": " + integersFor(input));
      return false;
    }
  return true;
}

/// Labels that count behind the classes are mistakes, as a rule of who counts from 1.
bool Reader::checkLabels(DatasetConfig &dataset, NetworkOp network) {
  for (BlockArgument input : network.getBody().getArguments())
    for (ColumnConfig &column : dataset.columns) {
      bool areLookedUp = false;
      Operation *loss = column.name == getValueName(input) ? lossOfLabels(input, areLookedUp) : nullptr;
      if (!loss)
        continue;
      column.classes = numberOfClasses(loss);
      const double largest = largestDrawn(column);
      if (largest < static_cast<double>(column.classes))
        continue;
      const std::string classes = std::to_string(column.classes);
      InFlightDiagnostic diagnostic = emitError(placeOf(dataset, column.name));
      diagnostic << "column '" << column.name << "' draws labels up to " << wholeText(largest) << ", but there "
                 << (column.classes == 1 ? "is 1 class" : "are " + classes + " classes");
      diagnostic.attachNote(loss->getLoc()) << "the last dimension of the logits is the classes";
      double low = column.distribution == "integers" ? std::floor(column.values[0]) : 0;
      if (low >= static_cast<double>(column.classes))
        low = 0;
      addHelp(diagnostic, "write " + column.name + ": integers(" + wholeText(low) + ", " + classes + ")");
      return false;
    }
  return true;
}

/// Fractions between 0 and 1 are all 0 in a column of integers.
bool Reader::checkDistributions(const DatasetConfig &dataset, NetworkOp network) {
  for (BlockArgument input : network.getBody().getArguments())
    for (const ColumnConfig &column : dataset.columns) {
      Type element = cast<RankedTensorType>(input.getType()).getElementType();
      const auto tooLarge = find_if(column.values, [&](double value) { return isa<FloatType>(element) && !holdsNumber(element, value); });
      if (column.name == getValueName(input) && tooLarge != column.values.end()) {
        emitError(placeOf(dataset, column.name)) << "column '" << column.name << "' is drawn with " << numberText(*tooLarge) << ", which "
                                                 << elementText(element) << " cannot hold";
        return false;
      }
      if (column.name != getValueName(input) || isa<FloatType>(element) ||
          (column.distribution != "uniform" && column.distribution != "normal"))
        continue;
      InFlightDiagnostic diagnostic = emitError(dataset.location)
                                      << "column '" << column.name << "' is " << column.distribution
                                      << ", but the input holds whole numbers";
      diagnostic.attachNote(input.getLoc()) << "the input is here";
      addHelp(diagnostic, "write " + column.name + ": " + integersFor(input) + ", which draws 0 to " + std::to_string(endOfNumbers(input) - 1));
      return false;
    }
  return true;
}

Location Reader::placeOf(const DatasetConfig &dataset, StringRef column) {
  for (ConfigOp op : module.getOps<ConfigOp>())
    if (op.getLoc() == dataset.location)
      if (auto place = op.getLocations().getAs<LocationAttr>(("columns." + column).str()))
        return place;
  return dataset.location;
}

bool Reader::checkColumns() {
  auto networks = module.getOps<NetworkOp>();
  if (networks.empty())
    return true;
  SmallVector<StringRef> inputs;
  for (StringRef input : (*networks.begin()).getInputNames().getAsValueRange<StringAttr>())
    inputs.push_back(input);
  for (DatasetConfig &dataset : config.datasets) {
    if (!checkBatch(dataset, *networks.begin()) || !checkDistributions(dataset, *networks.begin()) || !checkLookups(dataset, *networks.begin()) ||
        !checkLabels(dataset, *networks.begin()))
      return false;
    for (const ColumnConfig &column : dataset.columns) {
      if (is_contained(inputs, column.name))
        continue;
      InFlightDiagnostic diagnostic = emitError(placeOf(dataset, column.name))
                                      << "column '" << column.name << "' feeds no input of the network";
      addSuggestionOrList(diagnostic, column.name, inputs);
      return false;
    }
    for (auto [input, argument] : zip(inputs, (*networks.begin()).getBody().getArguments()))
      if (none_of(dataset.columns, [&](const ColumnConfig &column) { return column.name == input; })) {
        InFlightDiagnostic diagnostic = emitError(dataset.location) << "the dataset has no column for input '" << input << "'";
        const bool isWhole = !isa<FloatType>(cast<RankedTensorType>(argument.getType()).getElementType());
        const std::string values = dataset.source == "Npy" ? "\"" + input.str() + ".npy\"" : isWhole ? integersFor(argument) : "uniform";
        addHelp(diagnostic, "add '" + input + ": " + values + "' to its columns");
        return false;
      }
  }
  return true;
}

/// Batches that make no update are easily taken for a learning rate of 0.
void Reader::checkUpdates() const {
  if (!config.train)
    return;
  auto trains = find_if(config.datasets, [](const DatasetConfig &dataset) { return dataset.name != "evaluate"; });
  const uint64_t ofDataset = trains == config.datasets.end() ? 0 : trains->steps * config.train->epochs;
  const uint64_t steps = config.train->steps ? config.train->steps : ofDataset, wanted = config.train->gradients.accumulateSteps;
  if (steps == 0 || wanted <= steps)
    return;
  InFlightDiagnostic diagnostic = emitWarning(config.train->location);
  diagnostic << "'accumulate_steps' is " << wanted << ", but training has " << steps << (steps == 1 ? " step" : " steps") << ": no parameter is updated";
  addHelp(diagnostic, "write accumulate_steps: " + Twine(steps) + ", or train for more steps");
}

FailureOr<Config> Reader::run() {
  if (auto devices = module->getAttrOfType<IntegerAttr>(devicesAttributeName))
    config.devices = devices.getInt();
  for (ConfigOp op : module.getOps<ConfigOp>())
    read(op);
  sound &= readContext(context, module, overrides, config);
  sound = sound && checkColumns();
  if (sound)
    checkUpdates();
  if (sound && config.checkpoint && !config.train && !module->hasAttr(incompleteName))
    emitWarning(config.checkpoint->location) << "the checkpoint block has nothing to do: the network is not trained";
  if (!sound)
    return failure();
  return std::move(config);
}

FailureOr<Config> readConfig(ModuleOp module, ArrayRef<ConfigOverride> overrides) {
  return Reader(module, overrides).run();
}

} // namespace msc::net
