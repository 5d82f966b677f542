//===- PointwiseBinary.td - functions of two elements, with broadcasting --===//

class Net_Binary<string mnemonic, string formula, list<string> inputs = ["x", "y"], Trait lowering = Net_Generic>
    : Net_Pointwise<mnemonic, inputs, [Net_Differentiable], lowering> {
  let summary = formula;
  let description = "`output = " # formula # "`, element by element with NumPy broadcasting. "
                    # "Constraints: (C1) both operands hold " # elementsText # " of the same type; (C2) dimensions, "
                    # "aligned at the right, are equal or 1; a size of 1 is repeated.";
  let arguments = (ins Net_Tensor:$x, Net_Tensor:$y);
  let elements = "Number";
}

def Net_AddOp : Net_Binary<"Add", "x + y", ["x", "y"], Net_GenericOrEpilogue>;
def Net_SubOp : Net_Binary<"Sub", "x - y">;
def Net_MulOp : Net_Binary<"Mul", "x * y">;
def Net_SquaredDifferenceOp : Net_Binary<"SquaredDifference", "(x - y) * (x - y)">;
def Net_MaximumOp : Net_Binary<"Maximum", "the larger of x and y; NaN if one is NaN; equal ones share the gradient">;
def Net_MinimumOp : Net_Binary<"Minimum", "the smaller of x and y; NaN if one is NaN; equal ones share the gradient">;
let elements = "Float" in {
def Net_RealDivOp : Net_Binary<"RealDiv", "x / y">;
def Net_PowOp : Net_Binary<"Pow", "x to the power y; the gradient of y is 0 where x <= 0">;
def Net_XlogyOp : Net_Binary<"Xlogy", "x * log(y); 0 where x is 0">;
def Net_SigmoidCrossEntropyWithLogitsOp : Net_Binary<"SigmoidCrossEntropyWithLogits",
    "cross entropy between label and sigmoid(logits): max(logits, 0) - logits * label + log(1 + exp(-|logits|))",
    ["logits", "label"]> {
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$label);
}
}

// Results are bool and piecewise constant: every gradient is zero.
class Net_Comparison<string mnemonic, string formula> : Net_Binary<mnemonic, formula> {
  let resultElement = "BoolElement";
  let gradient = Net_ZeroGradient;
}
def Net_GreaterOp : Net_Comparison<"Greater", "x > y">;
def Net_GreaterEqualOp : Net_Comparison<"GreaterEqual", "x >= y">;
def Net_LessOp : Net_Comparison<"Less", "x < y">;
def Net_LessEqualOp : Net_Comparison<"LessEqual", "x <= y">;
let elements = "Any" in {
def Net_EqualOp : Net_Comparison<"Equal", "x == y">;
def Net_NotEqualOp : Net_Comparison<"NotEqual", "x != y">;
}
let elements = "Bool" in {
def Net_LogicalAndOp : Net_Comparison<"LogicalAnd", "x and y">;
def Net_LogicalOrOp : Net_Comparison<"LogicalOr", "x or y">;
def Net_LogicalXorOp : Net_Comparison<"LogicalXor", "x or y, but not both">;
}

def Net_AddNOp : Net_Operator<"AddN", ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "sum of tensors of one shape";
  let description = [{
    `output = x0 + x1 + ...`, element by element, from left to right.

    Constraints: (C1) all operands hold numbers of one type; (C2) they have one shape.
  }];
  let arguments = (ins Variadic<Net_Tensor>:$x);
  let results = (outs Net_Tensor:$output);
}
