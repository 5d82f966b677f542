#include "dialects/net/ConfigFields.h"

#include "dialects/net/Suggest.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cmath>
#include <limits>

using namespace llvm;
using namespace mlir;

namespace msc::net {

std::optional<CallValue> asCall(Attribute attribute) {
  auto map = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!map)
    return std::nullopt;
  auto callee = map.getAs<StringAttr>("callee");
  auto args = map.getAs<ArrayAttr>("args");
  auto named = map.getAs<DictionaryAttr>("named");
  if (!callee || !args || !named)
    return std::nullopt;
  return CallValue{callee.getValue(), args, named};
}

static Attribute unwrap(Attribute attribute) {
  for (auto tuple = dyn_cast_or_null<ArrayAttr>(attribute); tuple && tuple.size() == 1;
       tuple = dyn_cast<ArrayAttr>(attribute))
    attribute = tuple[0];
  return attribute;
}

std::optional<int64_t> asInteger(Attribute attribute) {
  auto integer = dyn_cast_or_null<IntegerAttr>(unwrap(attribute));
  if (!integer || integer.getType().isInteger(1))
    return std::nullopt;
  return integer.getInt();
}

std::optional<double> asNumber(Attribute attribute) {
  if (auto real = dyn_cast_or_null<FloatAttr>(unwrap(attribute)))
    return real.getValueAsDouble();
  if (auto integer = asInteger(attribute))
    return static_cast<double>(*integer);
  return std::nullopt;
}

std::string numberText(double number) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  std::string text(buffer, end);
  if (text.find_first_of(".einf") == std::string::npos)
    text += ".0"; // reads back as a float
  return text;
}

/// Appends to `text`; stops behind 200 characters, since values may share their parts many times over.
static void appendValue(Attribute attribute, std::string &text) {
  if (text.size() > 200) {
    if (!StringRef(text).ends_with("..."))
      text += "...";
    return;
  }
  raw_string_ostream os(text);
  if (auto boolean = dyn_cast<BoolAttr>(attribute)) {
    os << (boolean.getValue() ? "true" : "false");
  } else if (auto word = dyn_cast<StringAttr>(attribute)) {
    os << word.getValue();
  } else if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    os << integer.getInt();
  } else if (auto real = dyn_cast<FloatAttr>(attribute)) {
    os << numberText(real.getValueAsDouble());
  } else if (auto tuple = dyn_cast<ArrayAttr>(attribute)) {
    text += '(';
    for (auto [index, element] : enumerate(tuple)) {
      text += index ? ", " : "";
      appendValue(element, text);
      if (StringRef(text).ends_with("..."))
        break;
    }
    text += ')';
  } else if (auto call = asCall(attribute)) {
    os << call->callee << "(...)";
  } else if (auto map = dyn_cast<DictionaryAttr>(attribute); map && map.size() == 1 && map.getAs<StringAttr>("value")) {
    os << '%' << map.getAs<StringAttr>("value").getValue();
  } else {
    os << "{...}";
  }
}

std::string valueText(Attribute attribute) {
  std::string text;
  appendValue(attribute, text);
  return text;
}

Location Fields::locationOf(const std::string &key) const {
  auto found = locations ? locations.get(path + key) : Attribute();
  auto location = dyn_cast_or_null<LocationAttr>(found);
  return location ? Location(location) : whole;
}

Location Fields::keyLocation(StringRef key) const { return locationOf(key.str()); }
Location Fields::valueLocation(StringRef key) const {
  std::string entry = key.str() + "#value";
  return locations && locations.get(path + entry) ? locationOf(entry) : keyLocation(key);
}

Attribute Fields::get(StringRef key) {
  known.push_back(key.str());
  return fields.get(key);
}

void Fields::wrongKind(StringRef key, Attribute found, StringRef expected) {
  emitError(valueLocation(key)) << "'" << key << "' expects " << expected << ", found '" << valueText(found) << "'";
  sound = false;
}

void Fields::integer(StringRef key, int64_t &value, int64_t minimum, int64_t maximum) {
  Attribute found = get(key);
  if (!found)
    return;
  std::optional<int64_t> integer = asInteger(found);
  if (integer && *integer >= minimum && *integer <= maximum)
    value = *integer;
  else if (maximum == INT64_MAX)
    wrongKind(key, found, "a whole number from " + std::to_string(minimum) + " up");
  else
    wrongKind(key, found, "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
}

void Fields::integer(StringRef key, uint64_t &value, int64_t minimum, int64_t maximum) {
  int64_t read = static_cast<int64_t>(value);
  integer(key, read, minimum, maximum);
  value = static_cast<uint64_t>(read);
}

void Fields::number(StringRef key, double &value, double minimum) {
  Attribute found = get(key);
  if (!found)
    return;
  std::optional<double> number = asNumber(found);
  if (number && std::isfinite(*number) && std::abs(*number) > std::numeric_limits<float>::max()) {
    emitError(valueLocation(key)) << "'" << key << "' is " << valueText(found) << ", which f32 cannot hold";
    sound = false;
  } else if (number && *number >= minimum)
    value = *number;
  else
    wrongKind(key, found, minimum == 0 ? "a number from 0 up" : "a number");
}

void Fields::boolean(StringRef key, bool &value) {
  Attribute found = get(key);
  if (!found)
    return;
  if (auto boolean = dyn_cast<BoolAttr>(found))
    value = boolean.getValue();
  else
    wrongKind(key, found, "true or false");
}

void Fields::word(StringRef key, std::string &value, ArrayRef<StringRef> words, ArrayRef<StringRef> refused) {
  Attribute found = get(key);
  if (!found)
    return;
  auto word = dyn_cast<StringAttr>(found);
  if (std::string text = valueText(found); !word && StringRef(text).starts_with("%")) {
    InFlightDiagnostic diagnostic = emitError(valueLocation(key)) << "'" << key << "' expects a word, found '" << text << "'";
    addHelp(diagnostic, "write '" + StringRef(text).drop_front() + "'");
    sound = false;
    return;
  }
  if (!word)
    return wrongKind(key, found, words.empty() ? "a word" : "one of " + join(words, ", "));
  if (words.empty() || is_contained(words, word.getValue()) || is_contained(refused, word.getValue())) {
    value = word.getValue().str();
    return;
  }
  InFlightDiagnostic diagnostic = emitError(valueLocation(key))
                                  << "unknown " << key << " '" << word.getValue() << "': expected "
                                  << join(words, ", ");
  addSuggestion(diagnostic, word.getValue(), words);
  sound = false;
}

void Fields::filePath(StringRef key, std::string &value) {
  Attribute found = get(key);
  if (!found)
    return;
  if (auto text = dyn_cast<StringAttr>(found)) {
    value = text.getValue().str();
    return;
  }
  std::optional<CallValue> call = asCall(found);
  if (call && call->callee == "env" && call->args.size() == 1 && call->named.empty())
    if (auto name = dyn_cast<StringAttr>(call->args[0])) {
      value = ("${" + name.getValue() + "}").str();
      return;
    }
  emitError(valueLocation(key)) << "expected a path in quotes or env(\"NAME\"), found '" << valueText(found) << "'";
  sound = false;
}

void Fields::unsupported(StringRef key, StringRef reason) {
  if (!fields.get(key))
    return;
  known.push_back(key.str());
  emitError(keyLocation(key)) << "'" << key << "' is not in this version: " << reason;
  sound = false;
}

/// Other systems' words for our keys, which no letter tells.
static StringRef ourWord(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases("devices", "num_devices", "world_size", "device_num")
      .Case("lr", "learning_rate")
      .Cases("loss", "objective", "loss_fn", "minimize")
      .Case("batch_size", "batch")
      .Case("max_steps", "steps")
      .Case("num_epochs", "epochs")
      .Cases("gradient_accumulation", "gradient_accumulation_steps", "grad_accumulation_step", "accumulate_steps")
      .Cases("clip_grad_norm", "max_grad_norm", "gradient_clip_norm", "clip_global_norm")
      .Case("clip_grad_value", "clip_value")
      .Default("");
}

void Fields::finish() {
  for (NamedAttribute field : fields) {
    StringRef name = field.getName().getValue();
    if (is_contained(known, name))
      continue;
    InFlightDiagnostic diagnostic = emitError(keyLocation(name)) << "unknown key '" << name << "' in the " << what;
    sound = false;
    if (name == "betas" && is_contained(known, "beta1")) {
      addHelp(diagnostic, "write beta1: ..., beta2: ...");
      continue;
    }
    if ((name == "learning_rate" || name == "lr") && is_contained(known, "optimizer")) {
      addHelp(diagnostic, "it is an argument of the optimizer: AdamW(learning_rate: " + valueText(field.getValue()) + ")");
      continue;
    }
    if ((name == "warmup" || name == "warmup_steps") && is_contained(known, "optimizer")) {
      addHelp(diagnostic, "it is an argument of the schedule: Cosine(0.1, total: 1000, warmup: " + valueText(field.getValue()) + ")");
      continue;
    }
    if (StringRef ours = ourWord(name); is_contained(known, ours)) {
      addHelp(diagnostic, "did you mean '" + ours + "'?");
      continue;
    }
    if (std::string near = nearestKey(name, known); !near.empty()) {
      addHelp(diagnostic, "did you mean '" + near + "'?");
      continue;
    }
    llvm::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    if (known.size() <= 16) // a context has many
      addHelp(diagnostic, "it takes " + join(known, ", "));
  }
}

bool Fields::hasMisspelt(StringRef key) const {
  return any_of(fields, [&](NamedAttribute field) {
    StringRef name = field.getName().getValue();
    return !is_contained(known, name) && nearest(name, std::initializer_list<std::string_view>{key}) == key;
  });
}

Fields Fields::arguments(StringRef key, const CallValue &call) const {
  return Fields(call.named, locations, path + key.str() + ".", "arguments of '" + call.callee.str() + "'",
                valueLocation(key));
}

Fields Fields::inside(StringRef key, DictionaryAttr map) const {
  return Fields(map, locations, path + key.str() + ".", "'" + key.str() + "' map", valueLocation(key));
}

} // namespace msc::net
