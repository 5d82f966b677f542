//===- Rotary.td - positions as rotations ---------------------------------===//
//
// Expanded: elements change places with their partners (CopyRegions), the rest is pointwise and fused.

def Net_RotaryPositionEmbeddingOp : Net_Operator<"RotaryPositionEmbedding", ["x", "cos", "sin"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "pairs of elements of the last dimension, rotated by angles";
  let description = [{
    `output[i] = x[i] * cos[i] + t[i] * sin[i]`, i along the last dimension of size D, where t is x with every element
    replaced by its partner, the first one of a pair negated. `mode: 0` pairs the halves:
    `t[i] = -x[i + D / 2]` for i < D / 2, `t[i] = x[i - D / 2]` behind; `mode: 1` pairs neighbours:
    `t[2 i] = -x[2 i + 1]`, `t[2 i + 1] = x[2 i]`. `cos` and `sin` repeat to the shape of `x`: (S, 1, D) for x of
    (B, S, heads, D), or (S, D) for x of (B, heads, S, D).

    Constraints:
    - (C1) all operands have the same float element type.
    - (C2) the last dimension of `x` has an even size D.
    - (C3) `cos` and `sin` have one shape, whose last dimension is D and which repeats to that of `x`.
    - (C4) `mode` is 0 or 1.

    Rule: all dimensions pass through, also that of the positions, since `cos` and `sin` are cut with it; where the last
    one is cut, elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$x, Net_Tensor:$cos, Net_Tensor:$sin, DefaultValuedAttr<I64Attr, "0">:$mode);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[2, 16, 4, 8], %cos: f32[16, 1, 8], %sin: f32[16, 1, 8]";
  let exampleAttributes = "mode: 0";
  let specs = [{
    {.name = "mode", .kind = Int, .summary = "0: the halves are pairs (Llama, GPT-NeoX); 1: neighbours are (GPT-J)"}
  }];
}
