#include "passes/codegen/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace msc::codegen {

using llvm::ArrayRef;
using llvm::Value;
namespace arith = mlir::arith;
namespace math_ = mlir::math;

bool isNarrowFloat(mlir::Type type) { return type.isF16() || type.isBF16(); }

bool isSupportedType(mlir::Type type) {
  return isNarrowFloat(type) || type.isF32() || type.isF64() || type.isInteger(1) || type.isInteger(8) || type.isInteger(32) ||
         type.isInteger(64) || type.isIndex();
}

bool isSupportedInBody(mlir::Operation &op) {
  bool rounds = mlir::isa<arith::ConstantOp, arith::SelectOp, arith::ExtFOp, arith::TruncFOp, mlir::linalg::YieldOp>(op);
  auto supported = [&](mlir::Type type) { return isSupportedType(type) && (rounds || !isNarrowFloat(type)); };
  if (!llvm::all_of(op.getOperandTypes(), supported) || !llvm::all_of(op.getResultTypes(), supported))
    return false;
  return mlir::isa<arith::ConstantOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
                   arith::RemFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::CmpFOp,
                   arith::CmpIOp, arith::SelectOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp,
                   arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::AndIOp, arith::OrIOp,
                   arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::MaxSIOp, arith::MinSIOp,
                   arith::MaxUIOp, arith::MinUIOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp,
                   arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
                   arith::IndexCastOp, arith::IndexCastUIOp, arith::BitcastOp>(op) ||
         mlir::isa<math_::ExpOp, math_::Exp2Op, math_::ExpM1Op, math_::LogOp, math_::Log2Op, math_::Log10Op,
                   math_::Log1pOp, math_::SinOp, math_::CosOp, math_::TanOp, math_::TanhOp, math_::ErfOp, math_::SqrtOp,
                   math_::RsqrtOp, math_::AbsFOp,
                   math_::AbsIOp, math_::PowFOp, math_::FmaOp, math_::CeilOp, math_::FloorOp, math_::RoundOp,
                   math_::RoundEvenOp, math_::TruncOp, math_::CopySignOp>(op) ||
         mlir::isa<mlir::linalg::IndexOp, mlir::linalg::YieldOp>(op);
}

unsigned bodyCost(mlir::Operation &op) {
  if (mlir::isa<math_::PowFOp>(op))
    return 120;
  if (mlir::isa<math_::SinOp, math_::CosOp, math_::TanOp>(op))
    return 60;
  if (mlir::isa<math_::TanhOp, math_::ErfOp, math_::Log1pOp, math_::ExpM1Op>(op))
    return 35;
  if (mlir::isa<math_::ExpOp, math_::Exp2Op, math_::LogOp, math_::Log2Op, math_::Log10Op>(op))
    return 20;
  if (mlir::isa<arith::DivFOp, math_::SqrtOp, math_::RsqrtOp, arith::RemFOp, arith::DivSIOp, arith::RemSIOp>(op))
    return 8;
  return mlir::isa<arith::ConstantOp, mlir::linalg::YieldOp>(op) ? 0 : 1;
}

llvm::Type *registerType(mlir::Type type, llvm::LLVMContext &context) {
  if (type.isF32() || isNarrowFloat(type))
    return llvm::Type::getFloatTy(context);
  if (type.isF64())
    return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
}

llvm::Type *memoryType(mlir::Type type, llvm::LLVMContext &context) {
  if (isNarrowFloat(type))
    return llvm::Type::getInt16Ty(context);
  return type.isInteger(1) ? llvm::Type::getInt8Ty(context) : registerType(type, context);
}

llvm::Type *BodyEmitter::vectorType(mlir::Type element) {
  llvm::Type *scalar = registerType(element, builder.getContext());
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

llvm::Constant *BodyEmitter::splat(mlir::TypedAttr value) {
  llvm::Type *type = vectorType(value.getType());
  if (auto number = mlir::dyn_cast<mlir::FloatAttr>(value))
  {
    llvm::APFloat exact = number.getValue();
    bool inexact; // never: registers hold every value of the types in memory
    exact.convert(type->getScalarType()->getFltSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return llvm::ConstantFP::get(type, exact);
  }
  llvm::APInt bits = mlir::cast<mlir::IntegerAttr>(value).getValue();
  return llvm::ConstantInt::get(type, bits.zextOrTrunc(type->getScalarSizeInBits()));
}

llvm::SmallVector<Value *> BodyEmitter::emit(mlir::Block &body, ArrayRef<Value *> arguments,
                                             llvm::function_ref<Value *(unsigned)> index) {
  llvm::DenseMap<mlir::Value, Value *> values;
  for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
    values[argument] = value;
  // Constants defined outside the body are legal operands.
  auto lookup = [&](mlir::Value value) -> Value * {
    if (Value *known = values.lookup(value))
      return known;
    return values[value] = splat(mlir::cast<mlir::TypedAttr>(value.getDefiningOp<arith::ConstantOp>().getValue()));
  };
  for (mlir::Operation &op : body.without_terminator()) {
    if (auto position = mlir::dyn_cast<mlir::linalg::IndexOp>(op)) {
      values[position.getResult()] = index(position.getDim());
      continue;
    }
    llvm::SmallVector<Value *> operands;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(lookup(operand));
    values[op.getResult(0)] = emitOp(op, operands);
  }
  llvm::SmallVector<Value *> results;
  for (mlir::Value yielded : body.getTerminator()->getOperands())
    results.push_back(lookup(yielded));
  return results;
}

Value *BodyEmitter::emitBinary(mlir::Operation &op, Value *left, Value *right) { return emitOp(op, {left, right}); }

Value *BodyEmitter::emitOp(mlir::Operation &op, ArrayRef<Value *> operands) {
  if (auto constant = mlir::dyn_cast<arith::ConstantOp>(op))
    return splat(mlir::cast<mlir::TypedAttr>(constant.getValue()));
  if (mlir::isa<arith::SelectOp>(op))
    return builder.CreateSelect(operands[0], operands[1], operands[2]);
  for (auto emitter : {&BodyEmitter::emitFloat, &BodyEmitter::emitInteger, &BodyEmitter::emitCast, &BodyEmitter::emitMath})
    if (Value *value = (this->*emitter)(op, operands))
      return value;
  llvm_unreachable("isSupportedInBody admitted an operation that has no code");
}

static llvm::CmpInst::Predicate predicate(arith::CmpFPredicate kind) {
  // Both enumerations count ordered = 1, greater = 2, less = 4 in the same order.
  static constexpr llvm::CmpInst::Predicate table[] = {
      llvm::CmpInst::FCMP_FALSE, llvm::CmpInst::FCMP_OEQ, llvm::CmpInst::FCMP_OGT, llvm::CmpInst::FCMP_OGE,
      llvm::CmpInst::FCMP_OLT,   llvm::CmpInst::FCMP_OLE, llvm::CmpInst::FCMP_ONE, llvm::CmpInst::FCMP_ORD,
      llvm::CmpInst::FCMP_UEQ,   llvm::CmpInst::FCMP_UGT, llvm::CmpInst::FCMP_UGE, llvm::CmpInst::FCMP_ULT,
      llvm::CmpInst::FCMP_ULE,   llvm::CmpInst::FCMP_UNE, llvm::CmpInst::FCMP_UNO, llvm::CmpInst::FCMP_TRUE};
  return table[static_cast<unsigned>(kind)];
}

static llvm::CmpInst::Predicate predicate(arith::CmpIPredicate kind) {
  static constexpr llvm::CmpInst::Predicate table[] = {
      llvm::CmpInst::ICMP_EQ,  llvm::CmpInst::ICMP_NE,  llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_SLE,
      llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_ULT, llvm::CmpInst::ICMP_ULE,
      llvm::CmpInst::ICMP_UGT, llvm::CmpInst::ICMP_UGE};
  return table[static_cast<unsigned>(kind)];
}

Value *BodyEmitter::emitFloat(mlir::Operation &op, ArrayRef<Value *> v) {
  auto larger = [&](bool maximum) { // the number when one operand is NaN
    Value *picked = builder.CreateSelect(
        maximum ? builder.CreateFCmpOGT(v[0], v[1]) : builder.CreateFCmpOLT(v[0], v[1]), v[0], v[1]);
    return builder.CreateSelect(builder.CreateFCmpUNO(v[1], v[1]), v[0], picked);
  };
  return llvm::TypeSwitch<mlir::Operation *, Value *>(&op)
      .Case<arith::AddFOp>([&](auto) { return builder.CreateFAdd(v[0], v[1]); })
      .Case<arith::SubFOp>([&](auto) { return builder.CreateFSub(v[0], v[1]); })
      .Case<arith::MulFOp>([&](auto) { return builder.CreateFMul(v[0], v[1]); })
      .Case<arith::DivFOp>([&](auto) { return builder.CreateFDiv(v[0], v[1]); })
      .Case<arith::NegFOp>([&](auto) { return builder.CreateFNeg(v[0]); })
      .Case<arith::RemFOp>([&](auto) { return math.remainder(v[0], v[1]); })
      .Case<arith::MaximumFOp>([&](auto) { return math.maximum(v[0], v[1]); })
      .Case<arith::MinimumFOp>([&](auto) { return math.minimum(v[0], v[1]); })
      .Case<arith::MaxNumFOp>([&](auto) { return larger(true); })
      .Case<arith::MinNumFOp>([&](auto) { return larger(false); })
      .Case<arith::CmpFOp>([&](auto cmp) { return builder.CreateFCmp(predicate(cmp.getPredicate()), v[0], v[1]); })
      .Default([](auto) { return nullptr; });
}

// Division by zero gives zero and the least number divided by -1 wraps: the processor would trap on both, and the lanes
// behind the end of a row hold zeros.
Value *BodyEmitter::divide(Value *a, Value *b, bool isSigned, bool remainder) {
  llvm::Type *type = a->getType();
  llvm::Constant *zero = llvm::Constant::getNullValue(type), *one = llvm::ConstantInt::get(type, 1);
  Value *isZero = builder.CreateICmpEQ(b, zero);
  Value *isMinusOne = builder.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
  Value *special = isSigned ? builder.CreateOr(isZero, isMinusOne) : isZero;
  Value *divisor = builder.CreateSelect(special, one, b);
  if (remainder)
    return isSigned ? builder.CreateSRem(a, divisor) : builder.CreateURem(a, divisor);
  Value *quotient = isSigned ? builder.CreateSDiv(a, divisor) : builder.CreateUDiv(a, divisor);
  if (isSigned)
    quotient = builder.CreateSelect(isMinusOne, builder.CreateNeg(a), quotient);
  return builder.CreateSelect(isZero, zero, quotient);
}

Value *BodyEmitter::emitInteger(mlir::Operation &op, ArrayRef<Value *> v) {
  auto pick = [&](llvm::CmpInst::Predicate kind) {
    return builder.CreateSelect(builder.CreateICmp(kind, v[0], v[1]), v[0], v[1]);
  };
  auto floorDivide = [&] {
    Value *quotient = divide(v[0], v[1], true, false), *rest = divide(v[0], v[1], true, true);
    llvm::Constant *zero = llvm::Constant::getNullValue(rest->getType());
    Value *opposite = builder.CreateICmpSLT(builder.CreateXor(rest, v[1]), zero);
    Value *down = builder.CreateAnd(builder.CreateICmpNE(rest, zero), opposite);
    return builder.CreateAdd(quotient, builder.CreateSExt(down, rest->getType()));
  };
  return llvm::TypeSwitch<mlir::Operation *, Value *>(&op)
      .Case<arith::AddIOp>([&](auto) { return builder.CreateAdd(v[0], v[1]); })
      .Case<arith::SubIOp>([&](auto) { return builder.CreateSub(v[0], v[1]); })
      .Case<arith::MulIOp>([&](auto) { return builder.CreateMul(v[0], v[1]); })
      .Case<arith::DivSIOp>([&](auto) { return divide(v[0], v[1], true, false); })
      .Case<arith::DivUIOp>([&](auto) { return divide(v[0], v[1], false, false); })
      .Case<arith::RemSIOp>([&](auto) { return divide(v[0], v[1], true, true); })
      .Case<arith::RemUIOp>([&](auto) { return divide(v[0], v[1], false, true); })
      .Case<arith::FloorDivSIOp>([&](auto) { return floorDivide(); })
      .Case<arith::AndIOp>([&](auto) { return builder.CreateAnd(v[0], v[1]); })
      .Case<arith::OrIOp>([&](auto) { return builder.CreateOr(v[0], v[1]); })
      .Case<arith::XOrIOp>([&](auto) { return builder.CreateXor(v[0], v[1]); })
      .Case<arith::ShLIOp>([&](auto) { return builder.CreateShl(v[0], v[1]); })
      .Case<arith::ShRSIOp>([&](auto) { return builder.CreateAShr(v[0], v[1]); })
      .Case<arith::ShRUIOp>([&](auto) { return builder.CreateLShr(v[0], v[1]); })
      .Case<arith::MaxSIOp>([&](auto) { return pick(llvm::CmpInst::ICMP_SGT); })
      .Case<arith::MinSIOp>([&](auto) { return pick(llvm::CmpInst::ICMP_SLT); })
      .Case<arith::MaxUIOp>([&](auto) { return pick(llvm::CmpInst::ICMP_UGT); })
      .Case<arith::MinUIOp>([&](auto) { return pick(llvm::CmpInst::ICMP_ULT); })
      .Case<arith::CmpIOp>([&](auto cmp) { return builder.CreateICmp(predicate(cmp.getPredicate()), v[0], v[1]); })
      .Default([](auto) { return nullptr; });
}

Value *BodyEmitter::emitCast(mlir::Operation &op, ArrayRef<Value *> v) {
  if (!mlir::isa<mlir::CastOpInterface>(op))
    return nullptr;
  llvm::Type *type = vectorType(op.getResult(0).getType());
  // Numbers out of range saturate and NaN becomes 0: the plain instruction would give what the processor likes.
  auto saturate = [&](llvm::Intrinsic::ID id) {
    return builder.CreateIntrinsic(id, {type, v[0]->getType()}, {v[0]});
  };
  return llvm::TypeSwitch<mlir::Operation *, Value *>(&op)
      .Case<arith::ExtFOp>([&](auto) { return v[0]->getType() == type ? v[0] : builder.CreateFPExt(v[0], type); })
      .Case<arith::TruncFOp>([&](auto cast) { return narrow.round(v[0], cast.getResult().getType()); })
      .Case<arith::ExtSIOp>([&](auto) { return builder.CreateSExt(v[0], type); })
      .Case<arith::ExtUIOp>([&](auto) { return builder.CreateZExt(v[0], type); })
      .Case<arith::TruncIOp>([&](auto) { return builder.CreateTrunc(v[0], type); })
      .Case<arith::SIToFPOp>([&](auto) { return builder.CreateSIToFP(v[0], type); })
      .Case<arith::UIToFPOp>([&](auto) { return builder.CreateUIToFP(v[0], type); })
      .Case<arith::FPToSIOp>([&](auto) { return saturate(llvm::Intrinsic::fptosi_sat); })
      .Case<arith::FPToUIOp>([&](auto) { return saturate(llvm::Intrinsic::fptoui_sat); })
      .Case<arith::IndexCastOp>([&](auto) { return builder.CreateSExtOrTrunc(v[0], type); })
      .Case<arith::IndexCastUIOp>([&](auto) { return builder.CreateZExtOrTrunc(v[0], type); })
      .Case<arith::BitcastOp>([&](auto) { return builder.CreateBitCast(v[0], type); })
      .Default([](auto) { return nullptr; });
}

// The exponents that networks use, exactly and without a logarithm. Null for others.
Value *BodyEmitter::powConstant(mlir::Operation &op, ArrayRef<Value *> v) {
  mlir::FloatAttr exponent;
  if (!mlir::matchPattern(op.getOperand(1), mlir::m_Constant(&exponent)))
    return nullptr;
  double y = exponent.getValueAsDouble();
  if (y == 1.0)
    return v[0];
  if (y == 2.0)
    return builder.CreateFMul(v[0], v[0]);
  if (y == -1.0)
    return builder.CreateFDiv(math.constant(v[0]->getType(), 1.0), v[0]);
  return nullptr;
}

Value *BodyEmitter::emitMath(mlir::Operation &op, ArrayRef<Value *> v) {
  auto plain = [&](llvm::Intrinsic::ID id) { return builder.CreateUnaryIntrinsic(id, v[0]); };
  auto absolute = [&] {
    return builder.CreateIntrinsic(llvm::Intrinsic::abs, {v[0]->getType()}, {v[0], builder.getFalse()});
  };
  return llvm::TypeSwitch<mlir::Operation *, Value *>(&op)
      .Case<math_::ExpOp>([&](auto) { return math.exp(v[0]); })
      .Case<math_::Exp2Op>([&](auto) { return math.exp2(v[0]); })
      .Case<math_::ExpM1Op>([&](auto) { return math.expm1(v[0]); })
      .Case<math_::LogOp>([&](auto) { return math.log(v[0]); })
      .Case<math_::Log2Op>([&](auto) { return math.log2(v[0]); })
      .Case<math_::Log10Op>([&](auto) { return math.log10(v[0]); })
      .Case<math_::Log1pOp>([&](auto) { return math.log1p(v[0]); })
      .Case<math_::SinOp>([&](auto) { return math.sin(v[0]); })
      .Case<math_::CosOp>([&](auto) { return math.cos(v[0]); })
      .Case<math_::TanOp>([&](auto) { return math.tan(v[0]); })
      .Case<math_::TanhOp>([&](auto) { return math.tanh(v[0]); })
      .Case<math_::ErfOp>([&](auto) { return math.erf(v[0]); })
      .Case<math_::SqrtOp>([&](auto) { return math.sqrt(v[0]); })
      .Case<math_::RsqrtOp>([&](auto) { return math.rsqrt(v[0]); })
      .Case<math_::AbsFOp>([&](auto) { return math.abs(v[0]); })
      .Case<math_::AbsIOp>([&](auto) { return absolute(); })
      .Case<math_::FmaOp>([&](auto) { return math.fma(v[0], v[1], v[2]); })
      .Case<math_::PowFOp>([&](auto) {
        Value *shortcut = powConstant(op, v);
        return shortcut ? shortcut : math.pow(v[0], v[1]);
      })
      .Case<math_::CeilOp>([&](auto) { return plain(llvm::Intrinsic::ceil); })
      .Case<math_::FloorOp>([&](auto) { return plain(llvm::Intrinsic::floor); })
      .Case<math_::RoundEvenOp>([&](auto) { return plain(llvm::Intrinsic::roundeven); })
      .Case<math_::TruncOp>([&](auto) { return plain(llvm::Intrinsic::trunc); })
      .Case<math_::RoundOp>([&](auto) { return math.round(v[0]); })
      .Case<math_::CopySignOp>([&](auto) { return math.copysign(v[0], v[1]); })
      .Default([](auto) { return nullptr; });
}

llvm::Constant *BodyEmitter::identity(mlir::Operation &combiner) {
  mlir::Type element = combiner.getResult(0).getType();
  llvm::Type *type = vectorType(element);
  unsigned width = type->getScalarSizeInBits();
  double infinity = std::numeric_limits<double>::infinity();
  auto real = [&](double value) { return llvm::ConstantFP::get(type, value); };
  auto whole = [&](const llvm::APInt &value) { return llvm::ConstantInt::get(type, value); };
  return llvm::TypeSwitch<mlir::Operation *, llvm::Constant *>(&combiner)
      .Case<arith::AddFOp>([&](auto) { return real(0.0); })
      .Case<arith::MulFOp>([&](auto) { return real(1.0); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return real(-infinity); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return real(infinity); })
      .Case<arith::MulIOp>([&](auto) { return whole(llvm::APInt(width, 1)); })
      .Case<arith::MaxSIOp>([&](auto) { return whole(llvm::APInt::getSignedMinValue(width)); })
      .Case<arith::MinSIOp>([&](auto) { return whole(llvm::APInt::getSignedMaxValue(width)); })
      .Case<arith::MinUIOp, arith::AndIOp>([&](auto) { return whole(llvm::APInt::getAllOnes(width)); })
      .Default([&](auto) { return llvm::Constant::getNullValue(type); });
}

} // namespace msc::codegen
