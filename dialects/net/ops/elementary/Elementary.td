//===- Elementary.td - sines, error function and their like ---------------===//

def Net_SinOp : Net_Unary<"Sin", "sine of x, in radians">;
def Net_CosOp : Net_Unary<"Cos", "cosine of x, in radians">;
def Net_TanOp : Net_Unary<"Tan", "tangent of x, in radians">;
def Net_ErfOp : Net_Unary<"Erf", "error function of x, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x">;
def Net_Expm1Op : Net_Unary<"Expm1", "exp(x) - 1, exact near 0">;
def Net_Log1pOp : Net_Unary<"Log1p", "log(1 + x), exact near 0">;
def Net_ReciprocalOp : Net_Unary<"Reciprocal", "1 / x">;
