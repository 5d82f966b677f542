//===- Step.td - piecewise constant functions of one element --------------===//

class Net_Step<string mnemonic, string formula> : Net_Unary<mnemonic, formula # "; the gradient is zero"> {
  let gradient = Net_ZeroGradient;
}

def Net_FloorOp : Net_Step<"Floor", "the largest whole number that is not above x">;
def Net_CeilOp : Net_Step<"Ceil", "the smallest whole number that is not below x">;
def Net_RoundOp : Net_Step<"Round", "the nearest whole number, the even one of two">;
def Net_TruncOp : Net_Step<"Trunc", "x without what stands behind the point">;

let resultElement = "BoolElement" in {
def Net_IsFiniteOp : Net_Step<"IsFinite", "x is neither infinite nor NaN">;
def Net_IsInfOp : Net_Step<"IsInf", "x is infinite">;
def Net_IsNanOp : Net_Step<"IsNan", "x is NaN">;
}

let elements = "Bool" in
def Net_LogicalNotOp : Net_Step<"LogicalNot", "not x">;

let elements = "Any" in {
def Net_ZerosLikeOp : Net_Step<"ZerosLike", "0, or false">;
def Net_OnesLikeOp : Net_Step<"OnesLike", "1, or true">;
}
