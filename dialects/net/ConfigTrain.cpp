// The train block: the optimizer, what becomes of gradients before it takes them, and how long training lasts.
#include "dialects/net/ConfigBlocks.h"

#include "dialects/net/Optimizers.h"
#include "dialects/net/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace llvm;
using namespace mlir;

namespace msc::net {

//===----------------------------------------------------------------------===//
// optimizer
//===----------------------------------------------------------------------===//

static auto optimizerNames() {
  return map_range(optimizerForms(), [](const OptimizerForm &form) { return form.name; });
}

/// "SGD, Momentum or Adam".
static std::string listed(SmallVector<StringRef> names) {
  StringRef last = names.pop_back_val();
  return join(names, ", ") + " or " + last.str();
}

/// The form that the value of `optimizer` asks for; null after reporting why it asks for none.
static const OptimizerForm *findForm(const Fields &fields, Attribute value, const OptimizerConfig &optimizer) {
  std::optional<CallValue> call = value ? asCall(value) : std::nullopt;
  static const StringRef later[] = {"LARS", "Ftrl"};
  if (!call) {
    auto word = dyn_cast_or_null<StringAttr>(value);
    const OptimizerForm *form = word ? findOptimizer(word.getValue()) : nullptr;
    if (!value && fields.hasMisspelt("optimizer"))
      return nullptr;
    if (!form) {
      emitError(value ? fields.valueLocation("optimizer") : optimizer.location)
          << "the train block needs 'optimizer: Momentum(learning_rate: 0.1, momentum: 0.9)' or another optimizer";
      return nullptr;
    }
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("optimizer"))
                                    << "'" << word.getValue() << "' needs its arguments";
    addHelp(diagnostic, "write " + word.getValue() + "(learning_rate: " +
                            StringRef(numberText(form->learningRate.value_or(0.1))) +
                            (form->name == "Momentum" ? ", momentum: 0.9)" : ")"));
    return nullptr;
  }
  const OptimizerForm *form = findOptimizer(call->callee);
  if (!form) {
    bool known = is_contained(later, call->callee);
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation("optimizer"));
    diagnostic << (known ? "optimizer '" + call->callee.str() + "' is not in this version"
                         : "unknown optimizer '" + call->callee.str() + "'")
               << ": expected " << listed(llvm::to_vector(optimizerNames()));
    if (!known)
      addSuggestion(diagnostic, call->callee, optimizerNames());
  }
  return form;
}

static void readArgument(Fields &arguments, const OptimizerArgument &form, OptimizerConfig &optimizer) {
  using Range = OptimizerArgument::Range;
  double &value = optimizer.numbers[form.name.str()] = form.otherwise.value_or(0);
  auto read = [&](StringRef name) {
    if (form.range == Range::Flag) {
      bool flag = value != 0;
      arguments.boolean(name, flag);
      value = flag;
      return;
    }
    arguments.number(name, value, 0);
    if (!arguments.ok() || !arguments.get(name))
      return;
    if (form.range == Range::Share && value >= 1) {
      emitError(arguments.valueLocation(name)) << "'" << name << "' has to be from 0 to below 1, found " << numberText(value);
      arguments.markWrong();
    }
    if (form.range == Range::Positive && value <= 0) {
      emitError(arguments.valueLocation(name)) << "'" << name << "' has to be greater than 0";
      arguments.markWrong();
    }
  };
  read(form.name);
  if (form.synonym.empty())
    return;
  bool both = arguments.get(form.name) && arguments.get(form.synonym);
  if (!both)
    return read(form.synonym);
  InFlightDiagnostic diagnostic = emitError(arguments.keyLocation(form.name))
                                  << "'" << form.name << "' and '" << form.synonym << "' are the same";
  diagnostic.attachNote(arguments.keyLocation(form.synonym)) << "the other one is here";
  arguments.markWrong();
}

/// Patterns of the names of parameters that are spared.
static void readNoDecay(Fields &arguments, OptimizerConfig &optimizer) {
  Attribute value = arguments.get("no_decay");
  if (!value)
    return;
  SmallVector<Attribute> elements{value};
  if (auto list = dyn_cast<ArrayAttr>(value))
    elements.assign(list.begin(), list.end());
  optimizer.noDecay.emplace();
  for (Attribute element : elements) {
    auto pattern = dyn_cast<StringAttr>(element);
    std::string wrong;
    if (pattern)
      handleAllErrors(GlobPattern::create(pattern.getValue()).takeError(), [&](const ErrorInfoBase &) { wrong = "pattern"; });
    if (!pattern || !wrong.empty())
      return arguments.wrongKind("no_decay", element, "patterns of parameter names, such as [\"*.bias\", \"*norm*\"]");
    optimizer.noDecay->push_back(pattern.getValue().str());
  }
  if (optimizer.number("weight_decay") == 0 && arguments.ok())
    emitWarning(arguments.keyLocation("no_decay")) << "'no_decay' has nothing to do: 'weight_decay' is 0";
}

static void readArguments(Fields &arguments, DictionaryAttr named, const OptimizerForm &form, OptimizerConfig &optimizer) {
  optimizer.learningRate.values = {form.learningRate.value_or(0)};
  readSchedule(arguments, "learning_rate", optimizer.learningRate);
  for (const OptimizerArgument &argument : form.arguments)
    readArgument(arguments, argument, optimizer);
  readNoDecay(arguments, optimizer);
  if (arguments.ok() && form.name == "SGD" && optimizer.number("dampening") != 0 && optimizer.number("momentum") == 0)
    emitWarning(arguments.keyLocation("dampening")) << "'dampening' has nothing to do: there is no momentum";
  arguments.finish();
  auto need = [&](StringRef name) {
    if (!arguments.ok() || named.get(name)) // a misspelled key is one mistake
      return;
    emitError(optimizer.location) << "'" << form.name << "' needs '" << name << "'";
    arguments.markWrong();
  };
  if (!form.learningRate)
    need("learning_rate");
  for (const OptimizerArgument &argument : form.arguments)
    if (!argument.otherwise)
      need(argument.name);
}

static void readOptimizer(Fields &fields, OptimizerConfig &optimizer) {
  Attribute value = fields.get("optimizer");
  const OptimizerForm *form = findForm(fields, value, optimizer);
  if (!form)
    return fields.markWrong();
  std::optional<CallValue> call = asCall(value);
  optimizer.location = fields.valueLocation("optimizer");
  optimizer.name = form->name.str();
  SmallVector<StringRef> positional{"learning_rate"};
  for (const OptimizerArgument &argument : form->arguments.take_front(form->positional))
    positional.push_back(argument.name);
  DictionaryAttr named = withPositional(*call, positional, fields.valueLocation("optimizer"), fields);
  Fields arguments = fields.arguments("optimizer", CallValue{call->callee, call->args, named});
  readArguments(arguments, named, *form, optimizer);
  if (!arguments.ok())
    fields.markWrong();
}

//===----------------------------------------------------------------------===//
// gradients
//===----------------------------------------------------------------------===//

/// FixedLossScale(1024) or DynamicLossScale(init: 65536, factor: 2, window: 2000); MindSpore's names with Manager, too.
static void readLossScale(Fields &fields, LossScaleConfig &lossScale) {
  Attribute value = fields.get("loss_scale");
  if (!value)
    return;
  std::optional<CallValue> call = asCall(value);
  StringRef name = call ? call->callee : "";
  bool fixed = name == "FixedLossScale" || name == "FixedLossScaleManager";
  lossScale.dynamic = name == "DynamicLossScale" || name == "DynamicLossScaleManager";
  if (!fixed && !lossScale.dynamic)
    return fields.wrongKind("loss_scale", value, "FixedLossScale(1024) or DynamicLossScale()");
  lossScale.scale = fixed ? 128 : 16777216;
  StringRef first = fixed ? "loss_scale" : "init_loss_scale";
  DictionaryAttr named = withPositional(*call, fixed ? ArrayRef<StringRef>{"loss_scale"}
                                                     : ArrayRef<StringRef>{"init_loss_scale", "scale_factor", "scale_window"},
                                        fields.valueLocation("loss_scale"), fields);
  Fields arguments = fields.arguments("loss_scale", CallValue{name, call->args, named});
  auto above = [&](StringRef key, double &number, double least) {
    arguments.number(key, number, 0);
    if (arguments.ok() && number <= least) {
      emitError(arguments.valueLocation(key)) << "'" << key << "' has to be greater than " << static_cast<int64_t>(least);
      arguments.markWrong();
    }
  };
  above(first, lossScale.scale, 0);
  if (lossScale.dynamic) {
    above("scale_factor", lossScale.factor, 1);
    arguments.integer("scale_window", lossScale.window, 1);
  }
  arguments.finish();
  if (!arguments.ok())
    fields.markWrong();
}

/// A bound for both signs, or the least and the largest element.
static void readClipValue(Fields &fields, GradientConfig &gradients) {
  Attribute value = fields.get("clip_value");
  if (!value)
    return;
  auto pair = dyn_cast<ArrayAttr>(value);
  std::optional<double> bound = asNumber(value), low, high;
  if (bound && *bound > 0) {
    low = -*bound;
    high = *bound;
  } else if (pair && pair.size() == 2) {
    low = asNumber(pair[0]);
    high = asNumber(pair[1]);
  }
  if (low && high && *low < *high) {
    gradients.clipValue = std::pair(*low, *high);
    return;
  }
  fields.wrongKind("clip_value", value, "a bound above 0, or the least and the largest value");
}

static void readGradients(Fields &fields, GradientConfig &gradients) {
  readLossScale(fields, gradients.lossScale);
  fields.integer("accumulate_steps", gradients.accumulateSteps, 1);
  readClipValue(fields, gradients);
  bool sound = fields.ok();
  fields.number("clip_global_norm", gradients.clipGlobalNorm, 0);
  if (sound && fields.ok() && fields.get("clip_global_norm") && gradients.clipGlobalNorm == 0) {
    emitError(fields.valueLocation("clip_global_norm")) << "'clip_global_norm' has to be greater than 0";
    fields.markWrong();
  }
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

static void readLogEvery(Fields &fields, TrainConfig &train) {
  Attribute value = fields.get("log_every");
  if (std::optional<int64_t> number = value ? asInteger(value) : std::nullopt; number && *number >= 0)
    train.logEvery = std::to_string(*number);
  else if (auto word = dyn_cast_or_null<StringAttr>(value); word && word.getValue() == "epoch")
    train.logEvery = "epoch";
  else if (value) {
    emitError(fields.valueLocation("log_every")) << "'log_every' expects a number of steps, 0 or epoch, found '"
                                                 << valueText(value) << "'";
    fields.markWrong();
  }
  bool sink = false;
  fields.boolean("dataset_sink_mode", sink);
  if (sink && value)
    emitWarning(fields.keyLocation("dataset_sink_mode"))
        << "'dataset_sink_mode' has nothing to do: 'log_every' says what is printed";
  if (sink && train.logEvery.empty())
    train.logEvery = "epoch";
}

static void readPrecision(Fields &fields, TrainConfig &train) {
  fields.word("amp_level", train.ampLevel, {"O0", "O1", "O2", "O3"});
  std::string type;
  fields.word("amp_dtype", type, {"f16", "bf16", "float16", "bfloat16"});
  if (!type.empty())
    train.ampType = StringRef(type).starts_with("b") ? "bf16" : "f16";
  if (!type.empty() && train.ampLevel == "O0" && fields.ok()) // else it may have been meant otherwise
    emitWarning(fields.keyLocation("amp_dtype")) << "'amp_dtype' has nothing to do: 'amp_level' is O0";
}

/// Schedules count updates; where several batches make one, all steps are easily taken for them.
static void checkScheduleEnd(const Fields &fields, const TrainConfig &train) {
  const ScheduleConfig &schedule = train.optimizer.learningRate;
  if (train.steps == 0 || (schedule.kind != "cosine" && schedule.kind != "polynomial"))
    return;
  const auto total = static_cast<uint64_t>(schedule.values[2]), updates = train.steps / train.gradients.accumulateSteps;
  if (total <= updates || total > train.steps || updates == 0)
    return;
  InFlightDiagnostic diagnostic = emitWarning(fields.valueLocation("optimizer"));
  diagnostic << "the learning rate reaches its end after " << total << " updates, but " << train.steps << " steps with 'accumulate_steps: "
             << train.gradients.accumulateSteps << "' are " << updates;
  if (schedule.warmup < updates)
    addHelp(diagnostic, "write total: " + Twine(updates));
}

bool readTrain(Fields &fields, TrainConfig &train) {
  train.optimizer.location = train.location;
  readOptimizer(fields, train.optimizer);
  fields.word("minimize", train.minimize);
  if (fields.ok() && train.minimize.empty() && !fields.hasMisspelt("minimize")) {
    InFlightDiagnostic diagnostic = emitError(train.location) << "the train block does not say what to minimize";
    addHelp(diagnostic, "add 'minimize: loss', where loss is a result of the network");
    fields.markWrong();
  }
  fields.integer("epochs", train.epochs, 1, INT32_MAX);
  fields.integer("steps", train.steps, 1);
  if (fields.ok() && fields.get("epochs") && train.steps) {
    emitError(fields.keyLocation("epochs")) << "'epochs' has no effect: 'steps' says where training ends";
    fields.markWrong();
  }
  fields.integer("seed", train.seed);
  readLogEvery(fields, train);
  readGradients(fields, train.gradients);
  readPrecision(fields, train);
  fields.unsupported("metrics", "metrics are not computed yet");
  fields.finish();
  if (fields.ok())
    checkScheduleEnd(fields, train);
  return fields.ok();
}

std::string updateText(const TrainConfig &train) {
  std::string text;
  raw_string_ostream stream(text);
  auto write = [&](double number) { stream << ' ' << bit_cast<uint64_t>(number); };
  const OptimizerConfig &optimizer = train.optimizer;
  stream << optimizer.name << ' ' << optimizer.learningRate.kind << ' ' << optimizer.learningRate.warmup;
  for_each(optimizer.learningRate.values, write);
  for (const auto &[name, number] : optimizer.numbers) {
    stream << ' ' << name;
    write(number);
  }
  if (optimizer.noDecay)
    stream << " no_decay " << join(*optimizer.noDecay, " ");
  const GradientConfig &gradients = train.gradients;
  stream << " gradients " << gradients.accumulateSteps << ' ' << gradients.lossScale.dynamic << ' ' << gradients.lossScale.window;
  for (double number : {gradients.lossScale.scale, gradients.lossScale.factor, gradients.clipGlobalNorm})
    write(number);
  if (gradients.clipValue)
    for (double number : {gradients.clipValue->first, gradients.clipValue->second})
      write(number);
  return text;
}

} // namespace msc::net
