// The functions follow one scheme: reduce the argument exactly, evaluate a short polynomial with fused multiply-adds,
// put the result together by bit patterns. Limits are applied as select(limit < x, limit, x), which keeps NaN.
#include "passes/codegen/VectorMath.h"

#include "llvm/IR/Intrinsics.h"

#include <cmath>
#include <limits>

namespace msc::codegen {

#include "passes/codegen/MathPolynomials.inc"

using llvm::Type;
using llvm::Value;

namespace {

/// What differs between f32 and f64.
struct Format {
  int mantissaBits, bias;
  double magic;             ///< adding it rounds to an integer that stands in the low bits of the mantissa
  double ln2High, ln2Low;   ///< ln2High * n is exact for every exponent n
  double overflow, underflow; ///< beyond these exp is infinite or zero
  uint64_t oneBits, rootHalfBits, magicBits;
  double smallestNormal, tanhLimit, erfLimit;
};

const Format single = {23, 127, 0x1.8p23, 0.693359375, -2.12194440054690583e-4, 89.0, -105.0,
                       0x3f800000, 0x3f3504f3, 0x4b400000, 0x1p-126, 0.625, 4.0};
const Format doubled = {52, 1023, 0x1.8p52, 0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33, 710.0, -746.0,
                        0x3ff0000000000000, 0x3fe6a09e667f3bcd, 0x4338000000000000, 0x1p-1022, 0.5625, 6.0};

bool isDouble(Value *x) { return x->getType()->getScalarType()->isDoubleTy(); }
const Format &format(Value *x) { return isDouble(x) ? doubled : single; }

} // namespace

llvm::Constant *VectorMath::constant(Type *type, double value) { return llvm::ConstantFP::get(type, value); }

llvm::Constant *VectorMath::bits(Type *floatType, uint64_t pattern) {
  return llvm::ConstantInt::get(integerType(floatType), pattern);
}

Type *VectorMath::integerType(Type *floatType) {
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(floatType))
    return llvm::VectorType::getInteger(vector);
  return builder.getIntNTy(floatType->getScalarSizeInBits());
}

Value *VectorMath::fma(Value *a, Value *b, Value *c) {
  return builder.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}
Value *VectorMath::sqrt(Value *x) { return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
Value *VectorMath::rsqrt(Value *x) { return builder.CreateFDiv(constant(x->getType(), 1.0), sqrt(x)); }
Value *VectorMath::abs(Value *x) { return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
Value *VectorMath::copysign(Value *magnitude, Value *sign) {
  return builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value *VectorMath::horner(llvm::ArrayRef<double> coefficients, Value *x) {
  Value *sum = constant(x->getType(), coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, constant(x->getType(), c));
  return sum;
}

Value *VectorMath::atMost(Value *x, double limit) {
  llvm::Constant *bound = constant(x->getType(), limit);
  return builder.CreateSelect(builder.CreateFCmpOLT(bound, x), bound, x);
}
Value *VectorMath::atLeast(Value *x, double limit) {
  llvm::Constant *bound = constant(x->getType(), limit);
  return builder.CreateSelect(builder.CreateFCmpOGT(bound, x), bound, x);
}

Value *VectorMath::maximum(Value *a, Value *b) {
  Value *larger = builder.CreateSelect(builder.CreateFCmpOGT(a, b), a, b);
  return builder.CreateSelect(builder.CreateFCmpUNO(a, a), a, larger);
}
Value *VectorMath::minimum(Value *a, Value *b) {
  Value *smaller = builder.CreateSelect(builder.CreateFCmpOLT(a, b), a, b);
  return builder.CreateSelect(builder.CreateFCmpUNO(a, a), a, smaller);
}

Value *VectorMath::round(Value *x) {
  // The largest number below one half: adding one half itself would round 0.49999997 up.
  double half = isDouble(x) ? std::nextafter(0.5, 0.0) : std::nextafterf(0.5f, 0.0f);
  Value *away = builder.CreateFAdd(x, copysign(constant(x->getType(), half), x));
  return builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, away);
}

Value *VectorMath::remainder(Value *a, Value *b) {
  // The rounded quotient may be one too large; the fused remainder then has the other sign.
  Value *quotient = builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, builder.CreateFDiv(a, b));
  Value *rest = fma(builder.CreateFNeg(quotient), b, a);
  Value *zero = constant(a->getType(), 0.0);
  Value *crossed = builder.CreateFCmpOLT(builder.CreateFMul(copysign(constant(a->getType(), 1.0), a), rest), zero);
  rest = builder.CreateSelect(crossed, builder.CreateFAdd(rest, copysign(abs(b), a)), rest);
  Value *infinite = builder.CreateFCmpOEQ(abs(b), constant(b->getType(), std::numeric_limits<double>::infinity()));
  Value *finiteLeft = builder.CreateFCmpOLT(abs(a), constant(b->getType(), std::numeric_limits<double>::infinity()));
  return builder.CreateSelect(builder.CreateAnd(infinite, finiteLeft), a, copysign(rest, a));
}

// e^r - 1 for |r| <= ln(2) / 2.
Value *VectorMath::expTail(Value *r) {
  Value *q = isDouble(r) ? horner(expF64, r) : horner(expF32, r);
  return fma(builder.CreateFMul(r, r), q, r);
}

Value *VectorMath::scaledExp(Value *r, Value *shifted) {
  const Format &f = format(r);
  Type *type = r->getType();
  Value *p = builder.CreateFAdd(expTail(r), constant(type, 1.0));
  // 2^n as two factors, so that results near overflow and subnormal ones come out right. Both biased exponents are
  // positive; for NaN they are garbage and p is NaN.
  Value *biased = builder.CreateSub(builder.CreateBitCast(shifted, integerType(type)), bits(type, f.magicBits - 2 * f.bias));
  Value *half = builder.CreateLShr(biased, bits(type, 1));
  Value *rest = builder.CreateSub(biased, half);
  auto power = [&](Value *exponent) {
    return builder.CreateBitCast(builder.CreateShl(exponent, bits(type, f.mantissaBits)), type);
  };
  return builder.CreateFMul(builder.CreateFMul(p, power(half)), power(rest));
}

Value *VectorMath::exp(Value *x) {
  const Format &f = format(x);
  Type *type = x->getType();
  x = atLeast(atMost(x, f.overflow), f.underflow);
  Value *shifted = fma(x, constant(type, 0x1.71547652b82fep0), constant(type, f.magic));
  Value *n = builder.CreateFSub(shifted, constant(type, f.magic));
  Value *r = fma(n, constant(type, -f.ln2High), x);
  return scaledExp(fma(n, constant(type, -f.ln2Low), r), shifted);
}

Value *VectorMath::exp2(Value *x) {
  const Format &f = format(x);
  Type *type = x->getType();
  x = atLeast(atMost(x, f.bias + 2.0), -f.bias - f.mantissaBits - 2.0);
  Value *shifted = builder.CreateFAdd(x, constant(type, f.magic));
  Value *n = builder.CreateFSub(shifted, constant(type, f.magic));
  return scaledExp(builder.CreateFMul(builder.CreateFSub(x, n), constant(type, M_LN2)), shifted);
}

// Near 1 the subtraction uncovers what exp has rounded away. There e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with n = 0, 1 or -1.
Value *VectorMath::expm1(Value *x) {
  const Format &f = format(x);
  Type *type = x->getType();
  Value *isSmall = builder.CreateFCmpOLT(abs(x), constant(type, 0.3465));
  Value *isMiddle = builder.CreateFCmpOLT(abs(x), constant(type, 1.0397)); // 3/2 ln(2)
  Value *one = constant(type, 1.0), *n = copysign(one, x);
  Value *r = fma(n, constant(type, -f.ln2Low), fma(n, constant(type, -f.ln2High), x));
  Value *tail = expTail(builder.CreateSelect(isSmall, x, r));
  Value *isPositive = builder.CreateFCmpOGT(x, constant(type, 0.0));
  Value *power = builder.CreateSelect(isPositive, constant(type, 2.0), constant(type, 0.5));
  Value *middle = builder.CreateSelect(isSmall, tail, fma(tail, power, builder.CreateFSub(power, one)));
  Value *large = builder.CreateFSub(exp(x), one);
  // The sum above gives +0 for -0.
  return copysign(builder.CreateSelect(isMiddle, middle, large), x);
}

void VectorMath::split(Value *x, Value *&mantissa, Value *&exponent) {
  const Format &f = format(x);
  Type *type = x->getType();
  Value *pattern = builder.CreateBitCast(x, integerType(type));
  Value *biased = builder.CreateLShr(builder.CreateAdd(pattern, bits(type, f.oneBits - f.rootHalfBits)),
                                     bits(type, f.mantissaBits));
  Value *shift = builder.CreateShl(builder.CreateSub(biased, bits(type, f.bias)), bits(type, f.mantissaBits));
  mantissa = builder.CreateBitCast(builder.CreateSub(pattern, shift), type);
  // The integer becomes a float through the mantissa of 2^mantissaBits: AVX2 has no conversion from 64-bit integers.
  double anchor = std::ldexp(1.0, f.mantissaBits);
  uint64_t anchorBits = static_cast<uint64_t>(f.bias + f.mantissaBits) << f.mantissaBits;
  Value *anchored = builder.CreateBitCast(builder.CreateOr(biased, bits(type, anchorBits)), type);
  exponent = builder.CreateFSub(anchored, constant(type, anchor + f.bias));
}

// Lifts subnormals into the normal range.
Value *VectorMath::normalised(Value *x, Value *&exponentOffset) {
  const Format &f = format(x);
  Type *type = x->getType();
  Value *tiny = builder.CreateFCmpOLT(x, constant(type, f.smallestNormal));
  exponentOffset = builder.CreateSelect(tiny, constant(type, -f.mantissaBits), constant(type, 0.0));
  Value *lifted = builder.CreateFMul(x, constant(type, std::ldexp(1.0, f.mantissaBits)));
  return builder.CreateSelect(tiny, lifted, x);
}

Value *VectorMath::logSpecial(Value *x, Value *result) {
  Type *type = x->getType();
  double infinity = std::numeric_limits<double>::infinity();
  result = builder.CreateSelect(builder.CreateFCmpOLT(x, constant(type, infinity)), result, x);
  result = builder.CreateSelect(builder.CreateFCmpOEQ(x, constant(type, 0.0)), constant(type, -infinity), result);
  return builder.CreateSelect(builder.CreateFCmpOLT(x, constant(type, 0.0)), llvm::ConstantFP::getNaN(type), result);
}

Value *VectorMath::log(Value *x) {
  const Format &format_ = format(x);
  Type *type = x->getType();
  Value *offset, *m, *e;
  split(normalised(x, offset), m, e);
  e = builder.CreateFAdd(e, offset);
  Value *f = builder.CreateFSub(m, constant(type, 1.0));
  if (!isDouble(x)) {
    // log(1 + f) = f - f^2 / 2 + f^3 P(f)
    Value *square = builder.CreateFMul(f, f);
    Value *y = builder.CreateFMul(builder.CreateFMul(horner(logF32, f), f), square);
    y = fma(e, constant(type, format_.ln2Low), y);
    y = builder.CreateFAdd(f, fma(square, constant(type, -0.5), y));
    return logSpecial(x, fma(e, constant(type, format_.ln2High), y));
  }
  // log(1 + f) = 2 s + s^3 P(s^2) with s = f / (2 + f), written so that f enters exactly.
  Value *s = builder.CreateFDiv(f, builder.CreateFAdd(f, constant(type, 2.0)));
  Value *z = builder.CreateFMul(s, s);
  Value *r = builder.CreateFMul(z, horner(logF64, z));
  Value *half = builder.CreateFMul(builder.CreateFMul(f, constant(type, 0.5)), f);
  Value *low = fma(s, builder.CreateFAdd(half, r), builder.CreateFMul(e, constant(type, format_.ln2Low)));
  Value *correction = builder.CreateFSub(builder.CreateFSub(half, low), f);
  return logSpecial(x, fma(e, constant(type, format_.ln2High), builder.CreateFNeg(correction)));
}

Value *VectorMath::log2(Value *x) { return builder.CreateFMul(log(x), constant(x->getType(), M_LOG2E)); }
Value *VectorMath::log10(Value *x) { return builder.CreateFMul(log(x), constant(x->getType(), M_LOG10E)); }

Value *VectorMath::log1p(Value *x) {
  Type *type = x->getType();
  Value *u = builder.CreateFAdd(x, constant(type, 1.0));
  // What the rounding of 1 + x lost comes back as a first-order term.
  Value *lost = builder.CreateFSub(x, builder.CreateFSub(u, constant(type, 1.0)));
  Value *result = builder.CreateFAdd(log(u), builder.CreateFDiv(lost, u));
  Value *finite = builder.CreateAnd(
      builder.CreateFCmpOLT(u, constant(type, std::numeric_limits<double>::infinity())),
      builder.CreateFCmpOGT(u, constant(type, 0.0)));
  result = builder.CreateSelect(finite, result, log(u));
  // Keeps the sign of zero.
  return builder.CreateSelect(builder.CreateFCmpOEQ(x, constant(type, 0.0)), x, result);
}

Value *VectorMath::throughDouble(Value *x, Value *(VectorMath::*f)(Value *)) {
  Type *type = x->getType(), *wide = builder.getDoubleTy();
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(type))
    wide = llvm::VectorType::get(wide, vector->getElementCount());
  return builder.CreateFPTrunc((this->*f)(builder.CreateFPExt(x, wide)), type);
}

// pi / 2 in three parts. The first product is subtracted without rounding, the second in two doubles, so that an argument
// near a multiple of pi / 2 keeps all digits.
VectorMath::Turned VectorMath::turned(Value *x) {
  Type *type = x->getType();
  auto number = [&](double value) { return constant(type, value); };
  Value *shifted = fma(x, number(0x1.45f306dc9c883p-1), number(doubled.magic));
  Value *n = builder.CreateFSub(shifted, number(doubled.magic)), *minusN = builder.CreateFNeg(n);
  Value *first = fma(minusN, number(0x1.921fb54442d18p0), x);
  Value *product = builder.CreateFMul(minusN, number(0x1.1a62633145c07p-54));
  Value *productLow = fma(minusN, number(0x1.1a62633145c07p-54), builder.CreateFNeg(product));
  Value *r = builder.CreateFAdd(first, product);
  Value *taken = builder.CreateFSub(r, first); // the sum of two: what rounding lost
  Value *lost = builder.CreateFAdd(builder.CreateFSub(first, builder.CreateFSub(r, taken)), builder.CreateFSub(product, taken));
  Value *low = fma(minusN, number(-0x1.f1976b7ed8fbcp-110), builder.CreateFAdd(lost, productLow));
  r = atLeast(atMost(r, 0.8), -0.8); // arguments that are too large
  low = atLeast(atMost(low, 0x1p-30), -0x1p-30);
  Value *z = builder.CreateFMul(r, r);
  Value *half = builder.CreateFMul(z, number(0.5)), *most = builder.CreateFSub(number(1.0), half);
  // cos(r + low) = 1 - z / 2 + (z^2 Q(z) - r low), the rounding of 1 - z / 2 put back.
  Value *rest = builder.CreateFSub(builder.CreateFSub(number(1.0), most), half);
  Value *series = fma(builder.CreateFMul(z, z), horner(cosF64, z), builder.CreateFNeg(builder.CreateFMul(r, low)));
  Value *cosine = builder.CreateFAdd(most, builder.CreateFAdd(rest, series));
  Value *sine = builder.CreateFAdd(r, fma(builder.CreateFMul(r, z), horner(sinF64, z), low));
  Value *quadrant = builder.CreateBitCast(shifted, integerType(type));
  auto isSet = [&](uint64_t bit) {
    return builder.CreateICmpNE(builder.CreateAnd(quadrant, bits(type, bit)), bits(type, 0));
  };
  return {sine, cosine, isSet(1), isSet(2)};
}

Value *VectorMath::sin(Value *x) {
  if (!isDouble(x))
    return throughDouble(x, &VectorMath::sin);
  Turned t = turned(x);
  Value *size = builder.CreateSelect(t.isOdd, t.cosine, t.sine);
  Value *result = builder.CreateSelect(t.isHalf, builder.CreateFNeg(size), size);
  return builder.CreateSelect(builder.CreateFCmpOEQ(x, constant(x->getType(), 0.0)), x, result); // -0 stays -0
}

Value *VectorMath::cos(Value *x) {
  if (!isDouble(x))
    return throughDouble(x, &VectorMath::cos);
  Turned t = turned(x);
  Value *size = builder.CreateSelect(t.isOdd, t.sine, t.cosine);
  return builder.CreateSelect(builder.CreateXor(t.isOdd, t.isHalf), builder.CreateFNeg(size), size);
}

Value *VectorMath::tan(Value *x) {
  if (!isDouble(x))
    return throughDouble(x, &VectorMath::tan);
  Turned t = turned(x);
  Value *above = builder.CreateSelect(t.isOdd, builder.CreateFNeg(t.cosine), t.sine);
  Value *result = builder.CreateFDiv(above, builder.CreateSelect(t.isOdd, t.sine, t.cosine));
  return builder.CreateSelect(builder.CreateFCmpOEQ(x, constant(x->getType(), 0.0)), x, result);
}

Value *VectorMath::tanh(Value *x) {
  Type *type = x->getType();
  Value *a = abs(x);
  Value *z = builder.CreateFMul(x, x);
  Value *p = isDouble(x) ? horner(tanhF64, z) : horner(tanhF32, z);
  Value *inner = fma(builder.CreateFMul(a, z), p, a);
  Value *e = exp(builder.CreateFAdd(a, a));
  Value *ratio = builder.CreateFDiv(constant(type, 2.0), builder.CreateFAdd(e, constant(type, 1.0)));
  Value *outer = builder.CreateFSub(constant(type, 1.0), ratio);
  Value *isSmall = builder.CreateFCmpOLT(a, constant(type, format(x).tanhLimit));
  return copysign(builder.CreateSelect(isSmall, inner, outer), x);
}

Value *VectorMath::erf(Value *x) {
  const Format &f = format(x);
  Type *type = x->getType();
  Value *a = abs(x);
  Value *z = builder.CreateFMul(x, x);
  Value *inner = fma(a, isDouble(x) ? horner(erfF64, z) : horner(erfF32, z), a);
  Value *u = builder.CreateFSub(atMost(a, f.erfLimit), constant(type, 1.0));
  Value *complement = exp(isDouble(x) ? horner(erfTailF64, u) : horner(erfTailF32, u));
  Value *outer = builder.CreateFSub(constant(type, 1.0), complement);
  return copysign(builder.CreateSelect(builder.CreateFCmpOLT(a, constant(type, 1.0)), inner, outer), x);
}

// e^(y log x) for f64 x > 0 with log x in two doubles: y may magnify the error of the logarithm by 745.
Value *VectorMath::powFinite(Value *x, Value *y) {
  Type *type = x->getType();
  auto number = [&](double value) { return constant(type, value); };
  Value *offset, *m, *e;
  split(normalised(x, offset), m, e);
  e = builder.CreateFAdd(e, offset);
  Value *f = builder.CreateFSub(m, number(1.0));
  Value *sum = builder.CreateFAdd(m, number(1.0));
  Value *sumLow = builder.CreateFSub(m, builder.CreateFSub(sum, number(1.0)));
  Value *s = builder.CreateFDiv(f, sum);
  Value *rest = fma(builder.CreateFNeg(s), sumLow, fma(builder.CreateFNeg(s), sum, f));
  Value *sLow = builder.CreateFDiv(rest, sum);
  Value *z = builder.CreateFMul(s, s);
  Value *series = builder.CreateFMul(builder.CreateFMul(s, z), horner(logF64, z));
  Value *twice = builder.CreateFAdd(s, s);
  // high = e ln2High + 2 s exactly split (|e ln2High| is zero or larger than |2 s|).
  Value *base = builder.CreateFMul(e, number(doubled.ln2High));
  Value *high = builder.CreateFAdd(base, twice);
  Value *low = builder.CreateFSub(twice, builder.CreateFSub(high, base));
  low = builder.CreateFAdd(low, fma(e, number(doubled.ln2Low), builder.CreateFAdd(sLow, builder.CreateFAdd(sLow, series))));
  Value *total = builder.CreateFAdd(high, low);
  low = builder.CreateFAdd(builder.CreateFSub(high, total), low);
  high = total;
  // The exponent is cut before it overflows: beyond 2000 the result is infinite or zero in any case.
  Value *product = builder.CreateFMul(y, high);
  Value *productLow = fma(y, low, fma(y, high, builder.CreateFNeg(product)));
  Value *inside = builder.CreateFCmpOLT(abs(product), number(2000.0));
  productLow = builder.CreateSelect(inside, productLow, number(0.0));
  // e^(a + b) = e^a (1 + b); where e^a is infinite b is dropped by the limit below.
  Value *result = exp(product);
  Value *finite = builder.CreateFCmpOLT(result, number(std::numeric_limits<double>::infinity()));
  return builder.CreateSelect(finite, fma(result, productLow, result), result);
}

Value *VectorMath::pow(Value *x, Value *y) {
  Type *type = x->getType();
  if (!isDouble(x)) {
    Type *wide = type->isVectorTy() ? static_cast<Type *>(llvm::VectorType::get(builder.getDoubleTy(),
                                                           llvm::cast<llvm::VectorType>(type)->getElementCount()))
                                    : builder.getDoubleTy();
    return builder.CreateFPTrunc(pow(builder.CreateFPExt(x, wide), builder.CreateFPExt(y, wide)), type);
  }
  auto number = [&](double value) { return constant(type, value); };
  double infinity = std::numeric_limits<double>::infinity();
  Value *a = abs(x);
  Value *result = powFinite(a, y);
  // Bases 0, 1 and infinity, exponents 0 and infinity.
  Value *zero = builder.CreateFCmpOEQ(a, number(0.0));
  Value *infinite = builder.CreateFCmpOEQ(a, number(infinity));
  Value *yPositive = builder.CreateFCmpOGT(y, number(0.0));
  Value *toZero = builder.CreateSelect(builder.CreateXor(zero, yPositive), number(infinity), number(0.0));
  result = builder.CreateSelect(builder.CreateOr(zero, infinite), toZero, result);
  Value *yInfinite = builder.CreateFCmpOEQ(abs(y), number(infinity));
  Value *grows = builder.CreateXor(builder.CreateFCmpOLT(a, number(1.0)), yPositive);
  result = builder.CreateSelect(yInfinite, builder.CreateSelect(grows, number(infinity), number(0.0)), result);
  result = builder.CreateSelect(builder.CreateFCmpOEQ(a, number(1.0)), number(1.0), result);
  // Negative base: the sign of an odd integer exponent, NaN for a fraction.
  auto isInteger = [&](Value *v) {
    return builder.CreateFCmpOEQ(builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v), v);
  };
  Value *odd = builder.CreateAnd(isInteger(y), builder.CreateNot(isInteger(builder.CreateFMul(y, number(0.5)))));
  result = builder.CreateSelect(odd, copysign(result, x), result);
  Value *fraction = builder.CreateAnd(builder.CreateFCmpOLT(x, number(0.0)), builder.CreateNot(isInteger(y)));
  fraction = builder.CreateAnd(fraction, builder.CreateFCmpOLT(a, number(infinity)));
  result = builder.CreateSelect(fraction, llvm::ConstantFP::getNaN(type), result);
  // NaN in, NaN out, except 1^NaN and NaN^0.
  Value *nan = builder.CreateFCmpUNO(x, y);
  result = builder.CreateSelect(nan, builder.CreateFAdd(x, y), result);
  Value *one = builder.CreateOr(builder.CreateFCmpOEQ(x, number(1.0)), builder.CreateFCmpOEQ(y, number(0.0)));
  return builder.CreateSelect(one, number(1.0), result);
}

} // namespace msc::codegen
