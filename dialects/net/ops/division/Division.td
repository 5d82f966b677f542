//===- Division.td - quotients in whole numbers, and what is left ---------===//
//
// An integer divided by 0 gives 0.

def Net_FloorDivOp : Net_Binary<"FloorDiv", "the largest whole number that is not above x / y; the gradient is zero"> {
  let gradient = Net_ZeroGradient;
}
def Net_FloorModOp : Net_Binary<"FloorMod", "x - y * floor(x / y): it has the sign of y">;
def Net_ModOp : Net_Binary<"Mod", "x - y * trunc(x / y): it has the sign of x">;
let elements = "Float" in
def Net_DivNoNanOp : Net_Binary<"DivNoNan", "x / y; 0 where y is 0">;
