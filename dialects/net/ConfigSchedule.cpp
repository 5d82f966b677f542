// Learning rates: a number, or a schedule such as Cosine(0.1, total: 1000, warmup: 50).
#include "dialects/net/ConfigBlocks.h"

#include "dialects/net/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace msc::net {

DictionaryAttr withPositional(const CallValue &call, ArrayRef<StringRef> order, Location place, Fields &fields) {
  NamedAttrList named(call.named);
  for (auto [index, value] : enumerate(call.args)) {
    if (index >= order.size() || named.get(order[index])) {
      emitError(place) << "'" << call.callee << "' cannot take " << call.args.size()
                       << " arguments without a name here";
      fields.markWrong();
      break;
    }
    named.set(order[index], value);
  }
  return named.getDictionary(call.named.getContext());
}

namespace {

/// One number of a schedule, in the order of plan.proto's values.
struct ScheduleNumber {
  StringRef name;
  std::optional<double> otherwise; ///< absent: it has to be given
  bool steps = false;              ///< a whole number from 1 up
};

/// A schedule of numbers with names. All take `warmup`, too.
struct ScheduleForm {
  StringRef name;
  StringRef kind; ///< in plan.proto
  std::vector<ScheduleNumber> numbers;
  std::vector<StringRef> positional;
};

const std::vector<ScheduleForm> &scheduleForms() {
  static const std::vector<ScheduleForm> forms = {
      {"Constant", "constant", {{"base", {}}}, {"base"}},
      {"Step", "exponential", {{"base", {}}, {"rate", 0.1}, {"every", {}, true}}, {"base", "every", "rate"}},
      {"Exponential", "decay", {{"base", {}}, {"rate", {}}, {"every", 1, true}}, {"base", "rate", "every"}},
      {"Cosine", "cosine", {{"base", {}}, {"end", 0}, {"total", {}, true}}, {"base", "total"}},
      {"Polynomial", "polynomial", {{"base", {}}, {"end", 0}, {"total", {}, true}, {"power", 1}}, {"base", "total"}},
      {"Piecewise", "piecewise", {}, {}}};
  return forms;
}

/// How schedules of MindSpore are written here; empty for other words.
StringRef ourSchedule(StringRef name) {
  static const std::pair<StringRef, StringRef> words[] = {
      {"CosineDecayLR", "Cosine(MAX_LR, total: DECAY_STEPS, end: MIN_LR)"},
      {"cosine_decay_lr", "Cosine(MAX_LR, total: DECAY_STEPS, end: MIN_LR)"},
      {"PolynomialDecayLR", "Polynomial(LEARNING_RATE, total: DECAY_STEPS, end: END_LEARNING_RATE, power: POWER)"},
      {"polynomial_decay_lr", "Polynomial(LEARNING_RATE, total: DECAY_STEPS, end: END_LEARNING_RATE, power: POWER)"},
      {"ExponentialDecayLR", "Exponential(LEARNING_RATE, rate: DECAY_RATE, every: DECAY_STEPS)"},
      {"exponential_decay_lr", "Exponential(LEARNING_RATE, rate: DECAY_RATE, every: DECAY_STEPS)"},
      {"WarmUpLR", "Constant(LEARNING_RATE, warmup: WARMUP_STEPS)"},
      {"warmup_lr", "Constant(LEARNING_RATE, warmup: WARMUP_STEPS)"},
      {"StepLR", "Step(LEARNING_RATE, every: STEP_SIZE, rate: GAMMA)"},
      {"piecewise_constant_lr", "Piecewise(rates: (0.1, 0.01), milestones: 1000)"}};
  for (auto [theirs, ours] : words)
    if (theirs == name)
      return ours;
  return "";
}

class ScheduleReader {
public:
  /// `arguments` are those of the call that is the value of `key` in `outer`.
  ScheduleReader(const ScheduleForm &form, Fields arguments, Location place, ScheduleConfig &schedule)
      : form(form), arguments(std::move(arguments)), place(place), schedule(schedule) {}

  bool read() {
    schedule.kind = form.kind.str();
    if (form.kind == "piecewise")
      readPieces();
    for (const ScheduleNumber &number : form.numbers)
      readNumber(number);
    arguments.integer("warmup", schedule.warmup);
    arguments.finish();
    for (const ScheduleNumber &number : form.numbers)
      if (arguments.ok() && !number.otherwise && !arguments.get(number.name))
        complain(place) << "'" << form.name << "' needs '" << number.name << "'";
    if (arguments.ok())
      checkWarmup();
    return arguments.ok();
  }

private:
  InFlightDiagnostic complain(Location at) {
    arguments.markWrong();
    return emitError(at);
  }

  void readNumber(const ScheduleNumber &number) {
    double value = number.otherwise.value_or(0);
    if (number.steps) {
      auto steps = static_cast<uint64_t>(value);
      arguments.integer(number.name, steps, 1);
      value = static_cast<double>(steps);
    } else {
      arguments.number(number.name, value, 0);
    }
    schedule.values.push_back(value);
  }

  /// The numbers of a tuple, or one number alone.
  std::vector<double> readTuple(StringRef key) {
    Attribute value = arguments.get(key);
    if (!value) {
      complain(place) << "'" << form.name << "' needs '" << key << "'";
      return {};
    }
    SmallVector<Attribute> elements{value};
    if (auto tuple = dyn_cast<ArrayAttr>(value))
      elements.assign(tuple.begin(), tuple.end());
    std::vector<double> numbers;
    for (Attribute element : elements) {
      std::optional<double> number = asNumber(element);
      if (!number || *number < 0) {
        arguments.wrongKind(key, element, "numbers from 0 up");
        return {};
      }
      numbers.push_back(*number);
    }
    return numbers;
  }

  void readPieces() {
    std::vector<double> rates = readTuple("rates");
    if (!arguments.ok())
      return;
    std::vector<double> milestones = readTuple("milestones");
    if (!arguments.ok())
      return;
    if (rates.size() != milestones.size() + 1) {
      complain(place) << "'Piecewise' has " << milestones.size() << (milestones.size() == 1 ? " milestone" : " milestones")
                      << " and " << rates.size() << (rates.size() == 1 ? " rate" : " rates")
                      << ": expected one rate more than milestones";
      return;
    }
    schedule.values = {rates[0]};
    double last = 0;
    for (auto [milestone, rate] : zip(milestones, drop_begin(rates))) {
      if (milestone <= last || milestone != std::floor(milestone)) {
        arguments.wrongKind("milestones", arguments.get("milestones"), "ascending numbers of steps from 1 up");
        return;
      }
      last = milestone;
      schedule.values.insert(schedule.values.end(), {milestone, rate});
    }
  }

  /// The warm-up ends before the schedule does.
  void checkWarmup() {
    auto total = find_if(form.numbers, [](const ScheduleNumber &number) { return number.name == "total"; });
    double end = total != form.numbers.end()    ? schedule.values[total - form.numbers.begin()]
                 : form.kind == "piecewise" ? schedule.values[1]
                                            : INFINITY;
    auto warmup = static_cast<double>(schedule.warmup);
    if (warmup == 0 || warmup < end)
      return;
    StringRef what = form.kind == "piecewise" ? "first milestone" : "total";
    complain(arguments.valueLocation("warmup"))
        << "a warm-up of " << schedule.warmup << " updates leaves none for '" << form.name << "': its " << what << " is "
        << static_cast<uint64_t>(end);
  }

  const ScheduleForm &form;
  Fields arguments;
  Location place;
  ScheduleConfig &schedule;
};

} // namespace

void readSchedule(Fields &fields, StringRef key, ScheduleConfig &schedule) {
  Attribute value = fields.get(key);
  std::optional<CallValue> call = value ? asCall(value) : std::nullopt;
  if (!call) {
    double constant = schedule.values.empty() ? 0 : schedule.values[0];
    fields.number(key, constant, 0);
    schedule = {.kind = "constant", .values = {constant}};
    return;
  }
  const std::vector<ScheduleForm> &forms = scheduleForms();
  auto form = find_if(forms, [&](const ScheduleForm &f) { return f.name == call->callee; });
  if (form == forms.end()) {
    auto names = map_range(forms, [](const ScheduleForm &f) { return f.name; });
    InFlightDiagnostic diagnostic = emitError(fields.valueLocation(key))
                                    << "unknown schedule '" << call->callee << "': expected " << join(names, ", ");
    if (StringRef ours = ourSchedule(call->callee); !ours.empty())
      addHelp(diagnostic, "write " + ours.str());
    else
      addSuggestion(diagnostic, call->callee, names);
    return fields.markWrong();
  }
  schedule = {};
  DictionaryAttr named = withPositional(*call, form->positional, fields.valueLocation(key), fields);
  Fields arguments = fields.arguments(key, CallValue{call->callee, call->args, named});
  if (!fields.ok() || !ScheduleReader(*form, std::move(arguments), fields.valueLocation(key), schedule).read())
    fields.markWrong();
}

} // namespace msc::net
