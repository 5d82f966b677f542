#include "passes/codegen/nvptx/PackedMemory.h"

#include "passes/codegen/BodyEmitter.h"

#include "mlir/IR/BuiltinTypes.h"

namespace msc::codegen {

using llvm::Value;

/// Bytes of the widest access.
static constexpr unsigned accessBytes = 16;

llvm::Type *PackedMemory::memory(mlir::Type element) { return memoryType(element, builder.getContext()); }

Value *PackedMemory::toRegister(mlir::Type element, Value *raw) {
  if (isNarrowFloat(element))
    return NarrowFloat(builder).load(raw, element);
  return element.isInteger(1) ? builder.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType())) : raw;
}

Value *PackedMemory::toMemory(mlir::Type element, Value *value) {
  if (isNarrowFloat(element))
    return NarrowFloat(builder).store(value, element);
  return element.isInteger(1) ? builder.CreateZExt(value, builder.getInt8Ty()) : value;
}

Value *PackedMemory::advance(mlir::Type element, Value *address, Value *offset) {
  return builder.CreateInBoundsGEP(memory(element), address, builder.CreateZExt(offset, builder.getInt64Ty()));
}

// Elements below 32 bits travel in words: the target has no vectors of them.
Values PackedMemory::load(mlir::Type element, Value *address, unsigned count) {
  llvm::Type *type = memory(element);
  unsigned bytes = type->getPrimitiveSizeInBits() / 8;
  Values values;
  if (count == 1) {
    values.push_back(toRegister(element, builder.CreateAlignedLoad(type, address, llvm::Align(bytes))));
    return values;
  }
  unsigned whole = count * bytes, chunk = std::min(whole, accessBytes);
  for (unsigned start = 0; start < whole; start += chunk) {
    Value *place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), address, start);
    llvm::Align align(chunk);
    if (bytes >= 4) {
      Value *vector = builder.CreateAlignedLoad(llvm::FixedVectorType::get(type, chunk / bytes), place, align);
      for (unsigned i = 0; i < chunk / bytes; ++i)
        values.push_back(builder.CreateExtractElement(vector, uint64_t(i)));
      continue;
    }
    unsigned wordBytes = std::min(chunk, 4u), words = chunk / wordBytes;
    llvm::Type *word = builder.getIntNTy(8 * wordBytes);
    Value *loaded = builder.CreateAlignedLoad(words == 1 ? word : llvm::FixedVectorType::get(word, words), place, align);
    for (unsigned i = 0; i < chunk / bytes; ++i) {
      Value *from = words == 1 ? loaded : builder.CreateExtractElement(loaded, uint64_t(i * bytes / wordBytes));
      Value *raw = builder.CreateTrunc(builder.CreateLShr(from, 8 * (i * bytes % wordBytes)), type);
      values.push_back(toRegister(element, raw));
    }
  }
  return values;
}

void PackedMemory::store(mlir::Type element, llvm::ArrayRef<Value *> values, Value *address) {
  llvm::Type *type = memory(element);
  unsigned bytes = type->getPrimitiveSizeInBits() / 8;
  if (values.size() == 1) {
    builder.CreateAlignedStore(toMemory(element, values[0]), address, llvm::Align(bytes));
    return;
  }
  unsigned whole = values.size() * bytes, chunk = std::min(whole, accessBytes);
  for (unsigned start = 0; start < whole; start += chunk) {
    Value *place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), address, start);
    llvm::ArrayRef<Value *> part = values.slice(start / bytes, chunk / bytes);
    unsigned wordBytes = std::max(bytes, std::min(chunk, 4u)), words = chunk / wordBytes, perWord = wordBytes / bytes;
    llvm::Type *word = bytes >= 4 ? type : builder.getIntNTy(8 * wordBytes);
    auto packed = [&](unsigned i) -> Value * {
      if (bytes >= 4)
        return toMemory(element, part[i]);
      Value *sum = nullptr;
      for (unsigned k = 0; k < perWord; ++k) {
        Value *bits = builder.CreateZExt(toMemory(element, part[i * perWord + k]), word);
        bits = builder.CreateShl(bits, 8 * k * bytes);
        sum = sum ? builder.CreateOr(sum, bits) : bits;
      }
      return sum;
    };
    Value *vector = words == 1 ? packed(0) : llvm::PoisonValue::get(llvm::FixedVectorType::get(word, words));
    for (unsigned i = 0; words > 1 && i < words; ++i)
      vector = builder.CreateInsertElement(vector, packed(i), uint64_t(i));
    builder.CreateAlignedStore(vector, place, llvm::Align(chunk));
  }
}

} // namespace msc::codegen
