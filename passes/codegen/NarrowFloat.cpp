#include "passes/codegen/NarrowFloat.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/IR/DerivedTypes.h"

namespace msc::codegen {

using llvm::Value;

llvm::Type *NarrowFloat::like(Value *value, llvm::Type *element) {
  auto *vector = llvm::dyn_cast<llvm::VectorType>(value->getType());
  return vector ? llvm::VectorType::get(element, vector->getElementCount()) : element;
}

Value *NarrowFloat::bitsOf(Value *value) { return builder.CreateBitCast(value, like(value, builder.getInt32Ty())); }

Value *NarrowFloat::load(Value *bits, mlir::Type element) {
  llvm::Type *single = like(bits, builder.getFloatTy());
  if (element.isF16())
    return builder.CreateFPExt(builder.CreateBitCast(bits, like(bits, builder.getHalfTy())), single);
  Value *high = builder.CreateShl(builder.CreateZExt(bits, like(bits, builder.getInt32Ty())), 16);
  return builder.CreateBitCast(high, single);
}

Value *NarrowFloat::store(Value *value, mlir::Type element) {
  llvm::Type *word = like(value, builder.getInt16Ty());
  if (element.isF16())
    return builder.CreateBitCast(builder.CreateFPTrunc(value, like(value, builder.getHalfTy())), word);
  return builder.CreateTrunc(builder.CreateLShr(bitsOf(value), 16), word);
}

// f64 -> f32 with the last bit set where anything was lost: rounding that once more to fewer bits is as good as rounding
// the f64 (Boldo and Melquiond, "When double rounding is odd", 2005).
Value *NarrowFloat::toOdd(Value *value) {
  llvm::Type *single = like(value, builder.getFloatTy()), *wide = value->getType();
  Value *nearest = builder.CreateFPTrunc(value, single), *back = builder.CreateFPExt(nearest, wide);
  auto magnitude = [&](Value *x) { return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value *bits = bitsOf(nearest);
  Value *one = llvm::ConstantInt::get(bits->getType(), 1);
  Value *away = builder.CreateFCmpOGT(magnitude(back), magnitude(value));
  Value *towardsZero = builder.CreateSelect(away, builder.CreateSub(bits, one), bits);
  Value *odd = builder.CreateSelect(builder.CreateFCmpONE(back, value), builder.CreateOr(towardsZero, one), bits);
  return builder.CreateBitCast(odd, single);
}

Value *NarrowFloat::round(Value *value, mlir::Type element) {
  llvm::Type *single = like(value, builder.getFloatTy());
  if (element.isF32())
    return builder.CreateFPTrunc(value, single);
  if (value->getType() != single)
    value = toOdd(value);
  if (element.isF16())
    return builder.CreateFPExt(builder.CreateFPTrunc(value, like(value, builder.getHalfTy())), single);
  Value *bits = bitsOf(value);
  auto number = [&](uint32_t x) { return llvm::ConstantInt::get(bits->getType(), x); };
  Value *even = builder.CreateAnd(builder.CreateLShr(bits, 16), number(1));
  Value *rounded = builder.CreateAdd(bits, builder.CreateAdd(even, number(0x7fff)));
  Value *quiet = builder.CreateOr(bits, number(0x400000));
  Value *chosen = builder.CreateSelect(builder.CreateFCmpUNO(value, value), quiet, rounded);
  return builder.CreateBitCast(builder.CreateAnd(chosen, number(0xffff0000)), single);
}

} // namespace msc::codegen
