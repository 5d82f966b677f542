// exp, log, sin, tanh, erf, pow and friends as straight-line LLVM IR on scalars or vectors of f32 and f64.
//
// No library is called and no estimate instruction is used, so every CPU with FMA computes the same bits. NaN survives
// everywhere. Errors in units in the last place (the test VectorMathTest holds them):
//   f32: exp 1.3, log 1.0, tanh 1.5, erf 2, pow 0.6 (computed in f64), expm1 4, log1p 2, rsqrt 1.5
//   f64: exp 1.1, log 1, tanh 1.5, erf 2, pow 4 (2 for |y log x| < 10), expm1 4, log1p 2
//   for |x| <= 2^31 f32: sin, cos, tan 0.6 (computed in f64); f64: sin, cos 1, tan 3. Beyond, sin and cos are some number
//   in [-1, 1].
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace msc::codegen {

/// Emits math functions at the builder's insertion point. Operands are f32, f64 or vectors of them.
class VectorMath {
public:
  explicit VectorMath(llvm::IRBuilderBase &builder) : builder(builder) {}

  llvm::Value *exp(llvm::Value *x);
  llvm::Value *exp2(llvm::Value *x);
  llvm::Value *expm1(llvm::Value *x);
  llvm::Value *log(llvm::Value *x);
  llvm::Value *log2(llvm::Value *x);
  llvm::Value *log10(llvm::Value *x);
  llvm::Value *log1p(llvm::Value *x);
  llvm::Value *sin(llvm::Value *x);
  llvm::Value *cos(llvm::Value *x);
  llvm::Value *tan(llvm::Value *x);
  llvm::Value *tanh(llvm::Value *x);
  llvm::Value *erf(llvm::Value *x);
  llvm::Value *sqrt(llvm::Value *x);
  llvm::Value *rsqrt(llvm::Value *x);
  llvm::Value *abs(llvm::Value *x);
  llvm::Value *copysign(llvm::Value *magnitude, llvm::Value *sign);
  llvm::Value *fma(llvm::Value *a, llvm::Value *b, llvm::Value *c);
  /// Half away from zero, like C's round().
  llvm::Value *round(llvm::Value *x);
  /// C's pow(): x^0 = 1, negative base with integer exponent, zeros and infinities.
  llvm::Value *pow(llvm::Value *base, llvm::Value *exponent);
  /// C's fmod(); exact where the quotient is below 2^24 (f32) or 2^53 (f64).
  llvm::Value *remainder(llvm::Value *a, llvm::Value *b);
  /// The larger (smaller) operand; NaN if one is NaN.
  llvm::Value *maximum(llvm::Value *a, llvm::Value *b);
  llvm::Value *minimum(llvm::Value *a, llvm::Value *b);

  /// A constant of the type (splat for vectors).
  llvm::Constant *constant(llvm::Type *type, double value);

private:
  llvm::Constant *bits(llvm::Type *floatType, uint64_t pattern);
  llvm::Type *integerType(llvm::Type *floatType);
  llvm::Value *horner(llvm::ArrayRef<double> coefficients, llvm::Value *x);
  llvm::Value *atMost(llvm::Value *x, double limit);
  llvm::Value *atLeast(llvm::Value *x, double limit);
  /// e^r * 2^n where `shifted` holds n in the low bits of its mantissa.
  llvm::Value *scaledExp(llvm::Value *r, llvm::Value *shifted);
  llvm::Value *expTail(llvm::Value *r);
  /// Splits positive normal x into m * 2^e with m in [sqrt(1/2), sqrt(2)).
  void split(llvm::Value *x, llvm::Value *&mantissa, llvm::Value *&exponent);
  llvm::Value *normalised(llvm::Value *x, llvm::Value *&exponentOffset);
  llvm::Value *logSpecial(llvm::Value *x, llvm::Value *result);
  /// x = n pi / 2 + angle; both for the angle, and n.
  struct Turned {
    llvm::Value *sine, *cosine, *isOdd, *isHalf; ///< n is odd; n mod 4 is 2 or 3
  };
  Turned turned(llvm::Value *x);
  /// f(x) in f64, rounded to the type of x.
  llvm::Value *throughDouble(llvm::Value *x, llvm::Value *(VectorMath::*f)(llvm::Value *));
  llvm::Value *powFinite(llvm::Value *positiveBase, llvm::Value *exponent);

  llvm::IRBuilderBase &builder;
};

} // namespace msc::codegen
