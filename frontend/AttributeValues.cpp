#include "frontend/AttributeValues.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/Suggest.h"
#include "frontend/Evaluate.h"
#include "frontend/Types.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

StringRef kindText(net::AttributeKind kind) {
  switch (kind) {
  case net::AttributeKind::Bool: return "true or false";
  case net::AttributeKind::Int: return "a whole number";
  case net::AttributeKind::Float: return "a number";
  case net::AttributeKind::String: return "a word";
  case net::AttributeKind::IntTuple: return "a tuple of whole numbers";
  case net::AttributeKind::IntPairs: return "a tuple of pairs of whole numbers";
  case net::AttributeKind::Type: return "an element type (f16, bf16, f32, f64, i32, i64, bool)";
  }
  return "";
}

Attribute convertAttribute(net::AttributeKind kind, Attribute value, Builder &builder) {
  Attribute single = unwrapTuple(value);
  switch (kind) {
  case net::AttributeKind::Bool: return dyn_cast<BoolAttr>(single);
  case net::AttributeKind::Int:
    return net::asInteger(single) ? Attribute(builder.getI64IntegerAttr(*net::asInteger(single))) : Attribute();
  case net::AttributeKind::Float:
    return net::asNumber(single) ? Attribute(builder.getF64FloatAttr(*net::asNumber(single))) : Attribute();
  case net::AttributeKind::String: return dyn_cast<StringAttr>(single);
  case net::AttributeKind::Type: {
    auto word = dyn_cast<StringAttr>(single);
    Type type = word ? elementTypeFromName(word.getValue(), builder.getContext()) : Type();
    return type ? Attribute(TypeAttr::get(type)) : Attribute();
  }
  case net::AttributeKind::IntTuple: {
    SmallVector<int64_t> numbers;
    auto tuple = dyn_cast<ArrayAttr>(value);
    for (Attribute element : tuple ? tuple.getValue() : ArrayRef<Attribute>(value)) {
      if (!net::asInteger(element))
        return {};
      numbers.push_back(*net::asInteger(element));
    }
    return builder.getDenseI64ArrayAttr(numbers);
  }
  case net::AttributeKind::IntPairs: {
    SmallVector<int64_t> numbers;
    auto pairs = dyn_cast<ArrayAttr>(value);
    for (Attribute element : pairs ? pairs.getValue() : ArrayRef<Attribute>()) {
      auto pair = dyn_cast<ArrayAttr>(element);
      if (!pair || pair.size() != 2 || !net::asInteger(pair[0]) || !net::asInteger(pair[1]))
        return {};
      numbers.append({*net::asInteger(pair[0]), *net::asInteger(pair[1])});
    }
    return pairs ? builder.getDenseI64ArrayAttr(numbers) : Attribute();
  }
  }
  return {};
}

StringRef knownWord(const net::AttributeSpec &spec, StringRef word) {
  auto *known = find_if(spec.words, [&](StringRef one) { return one.equals_insensitive(word); });
  return known == spec.words.end() ? "" : *known;
}

void addNestingHelp(InFlightDiagnostic &diagnostic, Attribute call) {
  net::addHelp(diagnostic, "calls do not nest: write %y = " + net::valueText(call) + " and pass %y");
}

} // namespace msc::frontend
