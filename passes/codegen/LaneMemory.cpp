#include "passes/codegen/LaneMemory.h"

#include "passes/codegen/BodyEmitter.h"

#include "llvm/ADT/STLExtras.h"

namespace msc::codegen {

using llvm::Value;

llvm::Type *LaneMemory::memory(mlir::Type element) { return memoryType(element, builder.getContext()); }

Value *LaneMemory::toRegister(mlir::Type element, Value *value) {
  return element.isInteger(1) ? builder.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())) : value;
}

Value *LaneMemory::toMemory(mlir::Type element, Value *value) {
  if (!element.isInteger(1))
    return value;
  llvm::Type *byte = builder.getInt8Ty();
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(value->getType()))
    byte = llvm::VectorType::get(byte, vector->getElementCount());
  return builder.CreateZExt(value, byte);
}

Value *LaneMemory::advance(mlir::Type element, Value *address, Value *elements) {
  return builder.CreateInBoundsGEP(memory(element), address, elements);
}
Value *LaneMemory::advance(mlir::Type element, Value *address, int64_t elements) {
  return elements == 0 ? address : advance(element, address, builder.getInt64(elements));
}

LaneMask LaneMemory::firstLanes(Value *count) {
  llvm::SmallVector<llvm::Constant *> numbers;
  for (unsigned lane = 0; lane < lanes; ++lane)
    numbers.push_back(builder.getInt32(lane));
  Value *limit = builder.CreateVectorSplat(lanes, builder.CreateTrunc(count, builder.getInt32Ty()));
  LaneMask mask;
  mask.dynamic = builder.CreateICmpSLT(llvm::ConstantVector::get(numbers), limit);
  return mask;
}

Value *LaneMemory::maskValue(const LaneMask &mask) {
  if (mask.dynamic)
    return mask.dynamic;
  llvm::SmallVector<llvm::Constant *> bits;
  for (int lane = 0; lane < int(lanes); ++lane)
    bits.push_back(builder.getInt1(mask.valid < 0 || lane < mask.valid));
  return llvm::ConstantVector::get(bits);
}

Value *LaneMemory::laneAddresses(mlir::Type element, Value *address, int64_t stride) {
  llvm::SmallVector<llvm::Constant *> offsets;
  for (unsigned lane = 0; lane < lanes; ++lane)
    offsets.push_back(builder.getInt64(lane * stride));
  return builder.CreateGEP(memory(element), address, llvm::ConstantVector::get(offsets));
}

Value *LaneMemory::load(mlir::Type element, Value *address, int64_t stride, const LaneMask &mask) {
  llvm::Type *type = memory(element);
  llvm::Align align(type->getScalarSizeInBits() / 8);
  auto *vector = llvm::FixedVectorType::get(type, lanes);
  if (stride == 0)
    return builder.CreateVectorSplat(lanes, toRegister(element, builder.CreateAlignedLoad(type, address, align)));
  llvm::Constant *zero = llvm::Constant::getNullValue(vector);
  if (stride == 1 && mask.isFull())
    return toRegister(element, builder.CreateAlignedLoad(vector, address, align));
  if (stride == 1)
    return toRegister(element, builder.CreateMaskedLoad(vector, address, align, maskValue(mask), zero));
  if (mask.dynamic)
    return toRegister(element, builder.CreateMaskedGather(vector, laneAddresses(element, address, stride), align,
                                                          mask.dynamic, zero));
  // Single loads beat gather instructions on processors with the gather mitigation.
  Value *value = zero;
  for (unsigned lane = 0; lane < (mask.valid < 0 ? lanes : unsigned(mask.valid)); ++lane) {
    Value *single = builder.CreateAlignedLoad(type, advance(element, address, lane * stride), align);
    value = builder.CreateInsertElement(value, single, uint64_t(lane));
  }
  return toRegister(element, value);
}

void LaneMemory::store(mlir::Type element, Value *value, Value *address, int64_t stride, const LaneMask &mask) {
  value = toMemory(element, value);
  llvm::Align align(memory(element)->getScalarSizeInBits() / 8);
  if (stride == 0) {
    builder.CreateAlignedStore(builder.CreateExtractElement(value, uint64_t(0)), address, align);
  } else if (stride == 1 && mask.isFull()) {
    builder.CreateAlignedStore(value, address, align);
  } else if (stride == 1) {
    builder.CreateMaskedStore(value, address, align, maskValue(mask));
  } else if (mask.dynamic) {
    builder.CreateMaskedScatter(value, laneAddresses(element, address, stride), align, mask.dynamic);
  } else {
    for (unsigned lane = 0; lane < (mask.valid < 0 ? lanes : unsigned(mask.valid)); ++lane)
      builder.CreateAlignedStore(builder.CreateExtractElement(value, uint64_t(lane)),
                                 advance(element, address, lane * stride), align);
  }
}

// Exchanges off-diagonal blocks of halving size: log2(lanes) rounds of two-operand shuffles.
Values LaneMemory::transpose(Values rows) {
  int count = rows.size();
  for (int block = count / 2; block >= 1; block /= 2) {
    llvm::SmallVector<int> upper, lower;
    for (int lane = 0; lane < count; ++lane) {
      upper.push_back(lane & block ? count + lane - block : lane);
      lower.push_back(lane & block ? count + lane : lane + block);
    }
    for (int row = 0; row < count; ++row) {
      if (row & block)
        continue;
      Value *a = rows[row], *b = rows[row + block];
      rows[row] = builder.CreateShuffleVector(a, b, upper);
      rows[row + block] = builder.CreateShuffleVector(a, b, lower);
    }
  }
  return rows;
}

} // namespace msc::codegen
