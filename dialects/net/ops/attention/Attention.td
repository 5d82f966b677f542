//===- Attention.td - scaled dot-product attention ------------------------===//
//
// A kernel of the runtime that goes over the keys in tiles: no tensor of queries times keys is kept. The gradient computes
// the weights again from the logarithm of their sums.

defvar Net_AttentionAttributes = (ins I64Attr:$heads, DefaultValuedAttr<BoolAttr, "false">:$causal, OptionalAttr<F64Attr>:$scale);
defvar Net_AttentionSpecs = [{
    {.name = "heads", .kind = Int, .required = true, .summary = "heads of the queries"},
    {.name = "causal", .kind = Bool, .summary = "query i attends to keys 0 to i alone"},
    {.name = "scale", .kind = Float, .summary = "of the scores; 1 / sqrt(D) unless given"}
}];
defvar Net_AttentionRule = [{

    Rule: the batch, the heads and the sequence of the queries may be cut; heads in whole groups that share keys, because
    a head's elements stay together. Where all heads share one head of the keys, keys and values are whole. Every rank needs the whole sequence of keys and values. `attn_mask` is cut with the
    dimensions that it has.
}];
defvar Net_AttentionExample = "%query: f32[2, 16, 32], %key: f32[2, 16, 32], %value: f32[2, 16, 32]";

def Net_ScaledDotProductAttentionOp : Net_Operator<"ScaledDotProductAttention", ["query", "key", "value", "attn_mask"],
    ["output", "logsumexp"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library, Net_NarrowOperands]> {
  let summary = "means of values, weighted by how well their keys fit a query";
  let description = !strconcat([{
    Queries are (B, S, heads * D), keys and values (B, T, g * D): heads of D elements side by side. Head h of the queries
    goes with head `h * g / heads` of keys and values. With
    `p[i, j] = exp(scale * dot(query[i], key[j]) + attn_mask[i, j] - logsumexp[i])`,
    `logsumexp` being such that `sum_j p[i, j] = 1`: `output[i] = sum_j p[i, j] * value[j]`, for each batch and head.
    `logsumexp` is (B, heads, S), in f32 where the operands are bf16 or f16; it has no gradient of its own.

    `attn_mask` may be left out. Floats are added to the scores; a bool says which keys a query attends to (true: it
    does, as in PyTorch; MindSpore's FlashAttentionScore means the opposite, which LogicalNot turns around). A query that
    attends to no key gets zeros, and its `logsumexp` is -inf.

    Constraints:
    - (C1) all operands hold the same float type and have 3 dimensions.
    - (C2) `heads` divides the last dimension of `query`; that of `key` is a multiple of D whose heads divide `heads`.
    - (C3) `key` and `value` have one shape, and the batch of `query`; there are keys.
    - (C4) `attn_mask` holds bools, or floats of the type of `query`, and repeats to (B, heads, S, T): at most 4 dimensions,
      aligned at the right, each of that size or 1.
}], Net_AttentionRule);
  let arguments = !con((ins Net_Tensor:$query, Net_Tensor:$key, Net_Tensor:$value, Optional<Net_Tensor>:$attn_mask),
                       Net_AttentionAttributes);
  let results = (outs Net_Tensor:$output, Net_Tensor:$logsumexp);
  let optionalInputs = 1;
  let exampleInputs = Net_AttentionExample # ", %attn_mask: f32[16, 16]";
  let exampleAttributes = "heads: 4, causal: true";
  let specs = Net_AttentionSpecs;
}

class Net_AttentionGradient<string mnemonic, list<string> outputs>
    : Net_Operator<mnemonic, ["query", "key", "value", "output", "logsumexp", "dout", "attn_mask"], outputs,
                   [Net_Rule, Net_OwnCost, Net_Library, Net_NarrowOperands]> {
  let exampleInputs = Net_AttentionExample # ", %output: f32[2, 16, 32], %logsumexp: f32[2, 4, 16], "
                      # "%dout: f32[2, 16, 32], %attn_mask: f32[16, 16]";
  let exampleAttributes = "heads: 4, causal: true";
  let specs = Net_AttentionSpecs;
}

def Net_ScaledDotProductAttentionGradOp
    : Net_AttentionGradient<"ScaledDotProductAttentionGrad", ["dquery", "dkey", "dvalue"]> {
  let summary = "gradient of ScaledDotProductAttention with respect to queries, keys and values";
  let description = !strconcat([{
    With p as there, `dp[i, j] = dot(dout[i], value[j])` and `ds[i, j] = p[i, j] * (dp[i, j] - dot(dout[i], output[i]))`:
    `dquery[i] = scale * sum_j ds[i, j] * key[j]`, `dkey[j] = scale * sum_i ds[i, j] * query[i]`,
    `dvalue[j] = sum_i p[i, j] * dout[i]`; keys and values that several heads share get the sum over those. A backward
    helper without a gradient of its own.

    Constraints: those of ScaledDotProductAttention; `output` and `dout` have the shape of `query`.
}], Net_AttentionRule);
  let arguments = !con((ins Net_Tensor:$query, Net_Tensor:$key, Net_Tensor:$value, Net_Tensor:$output,
                        Net_Tensor:$logsumexp, Net_Tensor:$dout, Optional<Net_Tensor>:$attn_mask), Net_AttentionAttributes);
  let results = (outs Net_Tensor:$dquery, Net_Tensor:$dkey, Net_Tensor:$dvalue);
  let optionalInputs = 1;
}

def Net_ScaledDotProductAttentionMaskGradOp : Net_AttentionGradient<"ScaledDotProductAttentionMaskGrad", ["dmask"]> {
  let summary = "gradient of ScaledDotProductAttention with respect to its mask";
  let description = !strconcat([{
    `dmask[i, j] = ds[i, j]` with ds as in ScaledDotProductAttentionGrad, of every head; summed over the batch or the
    queries where `attn_mask` repeats along those, which keeps the dimension with size 1: (B or 1, heads, S or 1, T). A
    backward helper without a gradient of its own.

    Constraints: those of ScaledDotProductAttentionGrad; `attn_mask` holds floats.
}], Net_AttentionRule);
  let arguments = !con((ins Net_Tensor:$query, Net_Tensor:$key, Net_Tensor:$value, Net_Tensor:$output,
                        Net_Tensor:$logsumexp, Net_Tensor:$dout, Net_Tensor:$attn_mask), Net_AttentionAttributes);
  let results = (outs Net_Tensor:$dmask);
}
