// The context block and the flags that override it.
#include "dialects/net/ConfigBlocks.h"
#include "dialects/net/ContextOptions.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::net {

std::vector<StringRef> contextOptionNames() {
  std::vector<StringRef> names;
  for (const ContextOption &option : contextOptions())
    names.push_back(option.name);
  return names;
}

//===----------------------------------------------------------------------===//
// The text of a flag
//===----------------------------------------------------------------------===//

/// A key or a word as MindSpore's dictionaries have it, in quotes, too.
static StringRef withoutQuotes(StringRef word) {
  word = word.trim();
  for (char quote : {'"', '\''})
    if (word.size() >= 2 && word.front() == quote && word.back() == quote)
      return word.drop_front().drop_back();
  return word;
}

/// Reads "2", "0.5", "true", "((2, 1), (2, 1))", "[2, 1]", "{mode: size}", or else a word.
static Attribute parseFlagText(StringRef &text, Builder &builder, int depth) {
  text = text.ltrim();
  if (StringRef close = text.starts_with("(") ? ")" : text.starts_with("[") ? "]" : ""; !close.empty()) {
    text = text.drop_front();
    SmallVector<Attribute> elements;
    while (depth < 8 && !(text = text.ltrim()).starts_with(close)) {
      Attribute element = parseFlagText(text, builder, depth + 1);
      if (!element)
        return {};
      elements.push_back(element);
      text = text.ltrim();
      if (!text.consume_front(",") && !text.starts_with(close))
        return {};
    }
    return text.consume_front(close) ? builder.getArrayAttr(elements) : Attribute();
  }
  if (text.consume_front("{")) {
    NamedAttrList entries;
    while (depth < 8 && !(text = text.ltrim()).starts_with("}")) {
      auto [key, rest] = text.split(':');
      text = rest;
      Attribute value = parseFlagText(text, builder, depth + 1);
      if (withoutQuotes(key).empty() || !value)
        return {};
      entries.set(withoutQuotes(key), value);
      text = text.ltrim();
      if (!text.consume_front(",") && !text.starts_with("}"))
        return {};
    }
    return text.consume_front("}") ? builder.getDictionaryAttr(entries) : Attribute();
  }
  StringRef word =
      depth == 0 ? text.rtrim() : text.take_while([](char c) { return c != ',' && c != ')' && c != ']' && c != '}'; });
  text = text.drop_front(depth == 0 ? text.size() : word.size());
  word = word.trim();
  int64_t integer;
  double real;
  if (word.empty())
    return depth == 0 ? builder.getStringAttr("") : Attribute();
  if (word == "true" || word == "false")
    return builder.getBoolAttr(word == "true");
  if (!word.getAsInteger(10, integer))
    return builder.getI64IntegerAttr(integer);
  if (!word.getAsDouble(real))
    return builder.getF64FloatAttr(real);
  return builder.getStringAttr(depth == 0 ? word : withoutQuotes(word));
}

static std::string snakeCase(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// Puts the flags over the fields of the block. False after reporting flags that nobody knows.
static bool applyOverrides(ArrayRef<ConfigOverride> overrides, MLIRContext *context, NamedAttrList &fields,
                           NamedAttrList &locations) {
  Builder builder(context);
  bool sound = true;
  for (const ConfigOverride &given : overrides) {
    std::string flag = "--" + given.key, key = snakeCase(given.key);
    std::replace(flag.begin() + 2, flag.end(), '_', '-');
    // The flag is the place of its value: messages start with it.
    auto location = FileLineColLoc::get(context, flag, 0, 0);
    std::vector<StringRef> names = contextOptionNames();
    StringRef text = given.text;
    Attribute value = parseFlagText(text, builder, 0);
    if (!is_contained(names, key)) {
      InFlightDiagnostic diagnostic = emitError(UnknownLoc::get(context)) << "unknown option '" << flag << "'";
      addSuggestion(diagnostic, key, names);
      sound = false;
    } else if (!value || !text.trim().empty()) {
      emitError(location) << "cannot read '" << given.text << "'";
      sound = false;
    } else {
      fields.set(key, value);
      locations.set(key, location);
      locations.set(key + "#value", location);
    }
  }
  return sound;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static void checkFixedOptions(Fields &fields) {
  for (const ContextOption &option : contextOptions()) {
    if (option.effect == ContextOption::Effect::Works)
      continue;
    Attribute value = fields.get(option.name);
    if (!value || (option.effect != ContextOption::Effect::Unsupported && valueText(value) == option.value))
      continue;
    if (option.effect == ContextOption::Effect::NoEffect) {
      emitWarning(fields.keyLocation(option.name)) << "'" << option.name << "' has nothing to do: " << option.reason;
      continue;
    }
    InFlightDiagnostic diagnostic = emitError(fields.keyLocation(option.name));
    diagnostic << "'" << option.name;
    if (option.effect == ContextOption::Effect::OnlyDefault)
      diagnostic << ": " << valueText(value);
    diagnostic << "' is known to MindSpore, not supported here: " << option.reason;
    fields.markWrong();
  }
}

static bool readPieces(Attribute attribute, DatasetStrategy &strategy) {
  auto inputs = dyn_cast<ArrayAttr>(attribute);
  if (!inputs)
    return false;
  for (Attribute input : inputs) {
    auto dims = dyn_cast<ArrayAttr>(input);
    if (!dims)
      return false;
    auto &pieces = strategy.pieces.emplace_back();
    for (Attribute dim : dims) {
      auto count = dyn_cast<IntegerAttr>(dim);
      if (!count || count.getInt() < 1)
        return false;
      pieces.push_back(count.getInt());
    }
  }
  strategy.kind = DatasetStrategy::Kind::Given;
  return true;
}

/// True if a flag gives the option, not the file.
static bool isFlag(const Fields &fields, StringRef key) {
  auto place = dyn_cast<FileLineColLoc>(fields.keyLocation(key));
  return place && place.getFilename().getValue().starts_with("--");
}

/// An option that the mode makes idle is worth a warning, unless the file sets the option and a flag the mode.
static void warnIdle(Fields &fields, StringRef key, StringRef by, const Twine &reason) {
  if (!isFlag(fields, key) && isFlag(fields, by))
    fields.setAside(key);
  else if (fields.get(key))
    emitWarning(fields.keyLocation(key)) << "'" << key << "' has nothing to do: " << reason;
}

static void readDatasetStrategy(Fields &fields, Config &config) {
  ContextConfig &context = config.context;
  bool fullBatch = false;
  fields.boolean("full_batch", fullBatch);
  Attribute value = fields.get("dataset_strategy");
  DatasetStrategy &strategy = context.datasetStrategy;
  if (value)
    strategy.location = fields.valueLocation("dataset_strategy");
  if (auto word = dyn_cast_or_null<StringAttr>(value)) {
    static const StringRef words[] = {"data_parallel", "full_batch"};
    if (!is_contained(words, word.getValue())) {
      InFlightDiagnostic diagnostic =
          emitError(fields.valueLocation("dataset_strategy"))
          << "unknown dataset_strategy '" << word.getValue()
          << "': expected data_parallel, full_batch or pieces per dimension per input, such as ((8, 1), (8, 1))";
      addSuggestion(diagnostic, word.getValue(), words);
      return fields.markWrong();
    }
    if (word.getValue() == "full_batch")
      strategy.kind = DatasetStrategy::Kind::FullBatch;
  } else if (value && !readPieces(value, strategy)) {
    emitError(fields.valueLocation("dataset_strategy"))
        << "'dataset_strategy' expects data_parallel, full_batch or pieces per dimension per input, such as "
           "((8, 1), (8, 1)), found '"
        << valueText(value) << "'";
    return fields.markWrong();
  }
  bool clashes =
      fields.get("full_batch") && value && fullBatch != (strategy.kind == DatasetStrategy::Kind::FullBatch);
  if (clashes && isFlag(fields, "full_batch") != isFlag(fields, "dataset_strategy")) {
    bool byFullBatch = isFlag(fields, "full_batch");
    if (byFullBatch)
      strategy = DatasetStrategy{.location = fields.valueLocation("full_batch")};
    else
      fullBatch = false;
    fields.setAside(byFullBatch ? "dataset_strategy" : "full_batch");
  } else if (clashes) {
    InFlightDiagnostic diagnostic = emitError(fields.keyLocation("full_batch"))
                                    << "'full_batch: " << (fullBatch ? "true" : "false")
                                    << "' clashes with 'dataset_strategy: " << valueText(value) << "'";
    diagnostic.attachNote(fields.keyLocation("dataset_strategy")) << "the dataset strategy is here";
    return fields.markWrong();
  }
  if (fullBatch)
    strategy.kind = DatasetStrategy::Kind::FullBatch;
  fields.boolean("dataset_repeat_dim_right", context.datasetRepeatDimRight);
  if (!fields.ok() || config.devices == 1)
    return;
  bool alone = context.parallelMode == "stand_alone" || context.parallelMode == "hybrid_parallel";
  bool decides = alone || context.parallelMode == "data_parallel";
  DatasetStrategy::Kind kind = alone ? DatasetStrategy::Kind::FullBatch : DatasetStrategy::Kind::DataParallel;
  if (decides && strategy.kind != kind)
    for (StringRef key : {"dataset_strategy", "full_batch"})
      warnIdle(fields, key, "parallel_mode",
               "in " + context.parallelMode + " mode every rank gets " + (alone ? "all rows" : "its own rows"));
  if (context.datasetRepeatDimRight && strategy.kind != DatasetStrategy::Kind::Given)
    warnIdle(fields, "dataset_repeat_dim_right", "parallel_mode", "no device is left over by the dataset_strategy");
}

/// Search modes of a parallel mode that searches.
static void readSearchMode(Fields &fields, Config &config) {
  ContextConfig &context = config.context;
  static const StringRef known[] = {"sharding_propagation", "dynamic_programming", "recursive_programming", "optimal"};
  std::string other;
  fields.word("auto_parallel_search_mode", other, known);
  fields.word("search_mode", context.searchMode, known);
  StringRef key = context.searchMode.empty() ? "auto_parallel_search_mode" : "search_mode";
  bool clashes = !other.empty() && !context.searchMode.empty() && other != context.searchMode;
  if (clashes && isFlag(fields, "search_mode") != isFlag(fields, "auto_parallel_search_mode")) {
    if (isFlag(fields, "auto_parallel_search_mode")) {
      context.searchMode = other;
      key = "auto_parallel_search_mode";
    }
    fields.setAside(key == "search_mode" ? "auto_parallel_search_mode" : "search_mode");
  } else if (clashes) {
    InFlightDiagnostic diagnostic = emitError(fields.keyLocation("auto_parallel_search_mode"))
                                    << "'auto_parallel_search_mode: " << other
                                    << "' clashes with 'search_mode: " << context.searchMode << "'";
    diagnostic.attachNote(fields.keyLocation("search_mode")) << "the search mode is here";
    return fields.markWrong();
  }
  if (context.searchMode.empty())
    context.searchMode = other;
  if (!fields.ok() || context.searchMode.empty())
    return;
  if (context.parallelMode == "auto_parallel")
    return;
  context.searchMode.clear();
  if (config.devices > 1)
    warnIdle(fields, key, "parallel_mode", context.parallelMode + " mode does not search");
}

static void readModes(Fields &fields, Config &config) {
  ContextConfig &context = config.context;
  static const StringRef parallelModes[] = {"stand_alone", "data_parallel", "semi_auto_parallel", "auto_parallel",
                                            "hybrid_parallel"};
  context.parallelMode = config.devices > 1 ? "auto_parallel" : "stand_alone";
  fields.word("parallel_mode", context.parallelMode, parallelModes);
  readSearchMode(fields, config);
  std::string mode = "GRAPH_MODE";
  static const StringRef modes[] = {"GRAPH_MODE", "PYNATIVE_MODE"};
  if (Attribute value = fields.get("mode"); value && (asInteger(value) == 0 || asInteger(value) == 1))
    mode = modes[*asInteger(value)];
  else
    fields.word("mode", mode, {"GRAPH_MODE"}, modes);
  if (mode == "PYNATIVE_MODE") {
    emitError(fields.valueLocation("mode")) << "'PYNATIVE_MODE' is known to MindSpore, not supported here: a network "
                                               "is compiled as a whole";
    fields.markWrong();
  }
}

static void readDevices(Fields &fields, Config &config) {
  int64_t number = config.devices;
  fields.integer("device_num", number, 1, mostDevices);
  if (number != config.devices) {
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("device_num"))
                                    << "'device_num' is " << number << ", but --devices is " << config.devices;
    addHelp(diagnostic, "pass --devices " + std::to_string(number));
    fields.markWrong();
  }
  std::string target = config.context.deviceTarget;
  static const StringRef targets[] = {"auto", "cpu", "cuda", "gpu", "CPU", "GPU"};
  fields.word("device_target", target, targets, {"Ascend"});
  if (target == "Ascend") {
    emitError(fields.valueLocation("device_target")) << "'Ascend' is known to MindSpore, not supported here: devices "
                                                        "are CPUs and CUDA GPUs";
    fields.markWrong();
  }
  std::string lower = StringRef(target).lower();
  config.context.deviceTarget = lower == "gpu" ? "cuda" : lower;
}

static void readGradientsMean(Fields &fields, Config &config) {
  bool mean = true;
  fields.boolean("gradients_mean", mean);
  if (fields.get("gradients_mean"))
    config.context.gradientsMean = mean;
  if (!fields.ok() || mean)
    return;
  InFlightDiagnostic diagnostic = emitWarning(fields.keyLocation("gradients_mean"))
                                  << "'gradients_mean: false' has nothing to do: losses are global means and "
                                     "gradients exact in every mode";
  if (is_contained({"data_parallel", "hybrid_parallel"}, config.context.parallelMode) && config.devices > 1)
    addHelp(diagnostic, "for MindSpore's sum over " + std::to_string(config.devices) +
                            " ranks multiply the learning rate by " + std::to_string(config.devices));
}

/// `{mode: size, config: 32}` of one kind of collective.
static void readFusionRule(Fields &rules, StringRef kind, ArrayRef<StringRef> modes, FusionConfig &config) {
  Attribute value = rules.get(kind);
  if (!value)
    return;
  auto map = dyn_cast<DictionaryAttr>(value);
  if (!map) {
    emitError(rules.valueLocation(kind)) << "'" << kind << "' expects {mode: ..., config: ...}, found '" << valueText(value) << "'";
    return rules.markWrong();
  }
  Fields fields = rules.inside(kind, map);
  fields.get("config");
  if (!fields.get("mode")) {
    fields.finish();
    if (!fields.ok()) // a misspelt one
      return rules.markWrong();
    emitError(rules.valueLocation(kind)) << "'" << kind << "' has no 'mode': expected " << join(modes, ", ");
    return rules.markWrong();
  }
  fields.word("mode", config.mode, modes);
  Attribute detail = fields.get("config");
  auto none = dyn_cast_or_null<StringAttr>(detail);
  if (none && (none.getValue() == "None" || none.getValue() == "none"))
    detail = {};
  if (fields.ok() && config.mode == "size") {
    if (!detail) {
      emitError(fields.valueLocation("mode")) << "'" << kind << "' in mode size has no 'config': the MB of a bucket";
      return rules.markWrong();
    }
    fields.integer("config", config.megabytes, 0, int64_t{1} << 20);
  } else if (fields.ok() && config.mode == "index") {
    auto list = dyn_cast_or_null<ArrayAttr>(detail);
    for (Attribute element : list ? list.getValue() : ArrayRef<Attribute>())
      config.indices.push_back(asInteger(element).value_or(-1));
    if (config.indices.empty() || llvm::any_of(config.indices, [](int64_t index) { return index < 1; }) ||
        !llvm::is_sorted(config.indices)) {
      emitError(fields.valueLocation(detail ? "config" : "mode"))
          << "'" << kind << "' in mode index expects ascending numbers from 1 up in 'config', such as (20, 35)";
      return rules.markWrong();
    }
  } else if (fields.ok() && detail) {
    emitWarning(fields.keyLocation("config")) << "'config' has nothing to do: mode auto makes buckets of 64 MB";
  }
  fields.finish();
  if (!fields.ok())
    rules.markWrong();
}

static void readCommFusion(Fields &fields, ContextConfig &context) {
  Attribute value = fields.get("comm_fusion");
  if (!value)
    return;
  auto map = dyn_cast<DictionaryAttr>(value);
  if (!map) {
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("comm_fusion"))
                                    << "'comm_fusion' expects a map, found '" << valueText(value) << "'";
    addHelp(diagnostic, "write {allreduce: {mode: size, config: 32}}");
    return fields.markWrong();
  }
  Fields rules = fields.inside("comm_fusion", map);
  rules.boolean("openstate", context.commFusion);
  readFusionRule(rules, "allreduce", {"auto", "size", "index"}, context.fuseAllReduce);
  readFusionRule(rules, "allgather", {"auto", "size"}, context.fuseAllGather);
  readFusionRule(rules, "reducescatter", {"auto", "size"}, context.fuseReduceScatter);
  rules.finish();
  if (!rules.ok())
    fields.markWrong();
}

static void readSaveGraphs(Fields &fields, ContextConfig &context) {
  if (auto onOff = dyn_cast_or_null<BoolAttr>(fields.get("save_graphs")))
    context.saveGraphs = onOff.getValue() ? 1 : 0;
  else
    fields.integer("save_graphs", context.saveGraphs, 0, 3);
  fields.word("save_graphs_path", context.saveGraphsPath);
  if (fields.ok() && context.saveGraphs == 0)
    warnIdle(fields, "save_graphs_path", "save_graphs", "'save_graphs' is 0");
}

/// Puts the flags into the block, which then says what counts: dumps print it. How many devices there are the module
/// says; where dumps go is a matter of one compile.
static void keepFlags(ConfigOp op, ModuleOp module, ArrayRef<ConfigOverride> overrides, const NamedAttrList &fields,
                      const NamedAttrList &locations, ArrayRef<std::string> aside) {
  NamedAttrList keptFields, keptLocations;
  if (op) {
    keptFields = NamedAttrList(op.getFields());
    keptLocations = NamedAttrList(op.getLocations());
  }
  for (const ConfigOverride &given : overrides) {
    std::string key = snakeCase(given.key);
    if (is_contained({"device_num", "save_graphs", "save_graphs_path"}, StringRef(key)))
      continue;
    keptFields.set(key, fields.get(key));
    for (const std::string &place : {key, key + "#value"})
      keptLocations.set(place, locations.get(place));
  }
  for (const std::string &key : aside)
    keptFields.erase(key);
  MLIRContext *context = module.getContext();
  if (!op && !keptFields.empty()) {
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    op = builder.create<ConfigOp>(UnknownLoc::get(context), "context", "", builder.getDictionaryAttr({}),
                                  builder.getDictionaryAttr({}));
  }
  if (op) {
    op.setFieldsAttr(keptFields.getDictionary(context));
    op.setLocationsAttr(keptLocations.getDictionary(context));
  }
}

bool readContext(ConfigOp op, ModuleOp module, ArrayRef<ConfigOverride> overrides, Config &config) {
  MLIRContext *context = module.getContext();
  NamedAttrList fieldList, locationList;
  if (op) {
    fieldList = NamedAttrList(op.getFields());
    locationList = NamedAttrList(op.getLocations());
    config.context.location = op.getLoc();
  }
  bool sound = applyOverrides(overrides, context, fieldList, locationList);
  Fields fields(fieldList.getDictionary(context), locationList.getDictionary(context), "", "context block",
                config.context.location);
  readModes(fields, config);
  readDevices(fields, config);
  readDatasetStrategy(fields, config);
  readGradientsMean(fields, config);
  readCommFusion(fields, config.context);
  readSaveGraphs(fields, config.context);
  checkFixedOptions(fields);
  fields.finish();
  if (!sound || !fields.ok())
    return false;
  if (!overrides.empty())
    keepFlags(op, module, overrides, fieldList, locationList, fields.setAsides());
  return true;
}

} // namespace msc::net
