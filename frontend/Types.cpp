#include "frontend/Types.h"

#include "frontend/Lexer.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

namespace {
struct Element {
  StringRef name, dump, longName, shortDump;
  Type (*make)(MLIRContext *);
};
} // namespace

static ArrayRef<Element> elements() {
  static const Element table[] = {
      {"f16", "Float16", "float16", "F16", [](MLIRContext *c) -> Type { return Float16Type::get(c); }},
      {"bf16", "BFloat16", "bfloat16", "BF16", [](MLIRContext *c) -> Type { return BFloat16Type::get(c); }},
      {"f32", "Float32", "float32", "F32", [](MLIRContext *c) -> Type { return Float32Type::get(c); }},
      {"f64", "Float64", "float64", "F64", [](MLIRContext *c) -> Type { return Float64Type::get(c); }},
      {"i32", "Int32", "int32", "I32", [](MLIRContext *c) -> Type { return IntegerType::get(c, 32); }},
      {"i64", "Int64", "int64", "I64", [](MLIRContext *c) -> Type { return IntegerType::get(c, 64); }},
      {"bool", "Bool", "bool_", "Bool", [](MLIRContext *c) -> Type { return IntegerType::get(c, 1); }}};
  return table;
}

Type elementTypeFromName(StringRef name, MLIRContext *context) {
  for (const Element &element : elements())
    if (name == element.name || name == element.dump || name == element.longName || name == element.shortDump)
      return element.make(context);
  return {};
}

ArrayRef<StringRef> elementTypeNames() {
  static const SmallVector<StringRef> names =
      map_to_vector(elements(), [](const Element &e) { return e.name; });
  return names;
}

static const Element *find(Type type) {
  for (const Element &element : elements())
    if (element.make(type.getContext()) == type)
      return &element;
  return nullptr;
}

StringRef elementTypeName(Type type) { return find(type) ? find(type)->name : "unknown"; }
StringRef dumpElementName(Type type) { return find(type) ? find(type)->dump : "Unknown"; }

RankedTensorType tensorTypeFromDump(StringRef text, MLIRContext *context) {
  if (!text.consume_front("<") || !text.consume_back(">"))
    return {};
  bool isRef = text.consume_front("Ref[");
  if (!text.consume_front("Tensor"))
    return {};
  char close = text.starts_with("(") ? ')' : ']'; // MindSpore writes Tensor[Float32] and Tensor(F32)
  if (!text.consume_front("[") && !text.consume_front("("))
    return {};
  StringRef name = text.take_until([&](char c) { return c == close; });
  Type element = elementTypeFromName(name, context);
  text = text.drop_front(std::min(text.size(), name.size() + 1));
  if (!element || (isRef && !text.consume_front("]")) || !text.consume_front(",") || !(text = text.ltrim()).consume_front("("))
    return {};
  StringRef sizes = text.take_until([](char c) { return c == ')'; });
  SmallVector<StringRef> parts;
  sizes.split(parts, ',', -1, /*KeepEmpty=*/false);
  SmallVector<int64_t> shape;
  std::optional<int64_t> count = 1;
  for (StringRef part : parts) {
    int64_t size = 0;
    if (part.trim().empty())
      continue;
    if (part.trim().getAsInteger(10, size) || size < 1)
      return {};
    count = count ? checkedMul(*count, size) : std::nullopt;
    shape.push_back(size);
  }
  return count ? RankedTensorType::get(shape, element) : RankedTensorType();
}

StringRef refKeyFromDump(StringRef text) {
  auto [front, key] = text.split("ref_key=:");
  return front.starts_with("<Ref[") ? key.take_until([](char c) { return c == '>' || c == ','; }) : StringRef();
}

std::string dumpTypeText(Type element, ArrayRef<int64_t> shape, StringRef refKey) {
  std::string text;
  raw_string_ostream os(text);
  os << (refKey.empty() ? "<Tensor[" : "<Ref[Tensor[") << dumpElementName(element) << (refKey.empty() ? "], (" : "]], (");
  interleaveComma(shape, os);
  os << ')';
  if (!refKey.empty())
    os << ", ref_key=:" << refKey;
  os << '>';
  return text;
}

std::string dumpTypeText(RankedTensorType type, StringRef refKey) {
  return dumpTypeText(type.getElementType(), type.getShape(), refKey);
}

std::string typeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string text;
  raw_string_ostream os(text);
  if (tensor) {
    os << '(';
    interleaveComma(tensor.getShape(), os);
    os << ") ";
  }
  os << dumpElementName(tensor ? tensor.getElementType() : type);
  return text;
}

bool isPlainName(StringRef debugName) { return isValueName(debugName); }

} // namespace msc::frontend
