//===- PointwiseUnary.td - functions of one element, and their backward helpers ---===//
//
// Formulas speak of one element.
// Backward helpers take the gradient of the result and what the forward operator kept; their operands have equal shapes.

class Net_Unary<string mnemonic, string formula, Trait lowering = Net_Generic>
    : Net_Pointwise<mnemonic, ["x"], [Net_Differentiable], lowering> {
  let summary = formula;
  let description = "`output = " # formula # "`, element by element. Constraints: (C1) `x` holds " # elementsText # ".";
  let arguments = (ins Net_Tensor:$x);
}

// (dy, kept value): not differentiable again, second derivatives are not built.
class Net_BackwardHelper<string mnemonic, list<string> inputs, string formula> : Net_Pointwise<mnemonic, inputs> {
  let summary = formula;
  let description = "`output = " # formula # "`, element by element: a backward helper without a gradient of its own. "
                    # "Constraints: (C1) all operands have the same float element type.";
}

def Net_ReLUOp : Net_Unary<"ReLU", "x where x > 0, else 0; NaN stays NaN", Net_GenericOrEpilogue>;
def Net_SigmoidOp : Net_Unary<"Sigmoid", "1 / (1 + exp(-x))">;
def Net_TanhOp : Net_Unary<"Tanh", "tanh(x)">;
def Net_SiLUOp : Net_Unary<"SiLU", "x / (1 + exp(-x))">;
def Net_ExpOp : Net_Unary<"Exp", "exp(x)">;
def Net_LogOp : Net_Unary<"Log", "natural logarithm of x">;
def Net_SqrtOp : Net_Unary<"Sqrt", "square root of x">;
def Net_RsqrtOp : Net_Unary<"Rsqrt", "1 / sqrt(x)">;

let elements = "Number" in {
def Net_NegOp : Net_Unary<"Neg", "-x">;
def Net_AbsOp : Net_Unary<"Abs", "|x|; gradient 0 at 0">;
def Net_SquareOp : Net_Unary<"Square", "x * x">;
def Net_SignOp : Net_Unary<"Sign", "-1, 0 or 1; NaN stays NaN; the gradient is zero"> {
  let gradient = Net_ZeroGradient;
}
}

def Net_GeLUOp : Net_Unary<"GeLU", "x * Phi(x), Phi the normal distribution function"> {
  let description = [{
    `approximate: tanh` (the default, as in MindSpore; PyTorch's default is none): `output = 0.5 x (1 + tanh(u))`,
    `u = sqrt(2 / pi) (x + 0.044715 x^3)`, computed as `x / (1 + exp(-2 u))`. `approximate: none`:
    `output = 0.5 x (1 + erf(x / sqrt(2)))`.

    Constraints: (C1) `x` holds floats; (C2) `approximate` is none or tanh.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "tanh">:$approximate);
  let specs = [{ {.name = "approximate", .kind = String, .words = kGeLUForms, .summary = "which formula"} }];
  let inference = "";
}

def Net_ReluGradOp : Net_BackwardHelper<"ReluGrad", ["dy", "y"], "dy where y > 0, else 0; y is the result of ReLU"> {
  let arguments = (ins Net_Tensor:$dy, Net_Tensor:$y);
}
def Net_SigmoidGradOp : Net_BackwardHelper<"SigmoidGrad", ["y", "dy"], "dy * y * (1 - y)"> {
  let arguments = (ins Net_Tensor:$y, Net_Tensor:$dy);
}
def Net_TanhGradOp : Net_BackwardHelper<"TanhGrad", ["y", "dy"], "dy * (1 - y * y)"> {
  let arguments = (ins Net_Tensor:$y, Net_Tensor:$dy);
}
def Net_SiLUGradOp : Net_BackwardHelper<"SiLUGrad", ["dy", "x"], "dy * s * (1 + x * (1 - s)), s = 1 / (1 + exp(-x))"> {
  let arguments = (ins Net_Tensor:$dy, Net_Tensor:$x);
}
def Net_GeLUGradOp : Net_BackwardHelper<"GeLUGrad", ["dy", "x"], "dy times the derivative of GeLU at x"> {
  let arguments = (ins Net_Tensor:$dy, Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "tanh">:$approximate);
  let specs = [{ {.name = "approximate", .kind = String, .words = kGeLUForms, .summary = "which formula"} }];
  let inference = "";
}
