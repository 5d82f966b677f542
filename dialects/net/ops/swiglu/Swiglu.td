//===- Swiglu.td - a gated activation -------------------------------------===//
//
// Expanded: the halves, then two pointwise operators that are fused.

def Net_SwigluOp : Net_Operator<"Swiglu", ["input"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "SiLU of the first half of a dimension, times the second half";
  let description = [{
    `output[i] = a / (1 + exp(-a)) * input[i + n]` with `a = input[i]`, i along `dim`, which has 2 n elements and n in the
    result.

    Constraints: (C1) `input` holds floats; (C2) `dim` lies in [-rank, rank); (C3) its size is even.

    Rule: `dim` may be cut too: operand and output share the cut, and the halves move between ranks. Two products of their
    own, one for each half, move nothing.
  }];
  let arguments = (ins Net_Tensor:$input, DefaultValuedAttr<I64Attr, "-1">:$dim);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "dim: -1";
  let specs = [{
    {.name = "dim", .kind = Int, .positional = true, .summary = "the dimension with both halves"}
  }];
  let declarations = [{
    /// `dim` as a dimension of the operand.
    int64_t dimension();
  }];
}
