//===- Concat.td - tensors behind each other ------------------------------===//

def Net_ConcatOp : Net_RegionCopy<"Concat", ["x", "y"], ["output"]> {
  let summary = "tensors one behind the other";
  let description = [{
    Along dimension `axis` the output holds all of the first tensor, then all of the second, and so on. Any number of
    tensors, also as a tuple: `Concat((%a, %b, %c), 1)`.

    Constraints:
    - (C1) all have one element type and as many dimensions.
    - (C2) `axis` lies in [-rank, rank).
    - (C3) the other dimensions have equal sizes.

    Rule: dimension `axis` may be cut too: operands and output share the cut, and elements move between ranks.
  }];
  let arguments = (ins Variadic<Net_Tensor>:$inputs, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: 1";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension along which they follow each other"}
  }];
}

def Net_StackOp : Net_Operator<"Stack", ["x", "y"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "tensors of one shape along a new dimension";
  let description = [{
    Index i of the new dimension `axis` holds the i-th tensor. Any number of tensors, also as a tuple: `Stack((%a, %b), 0)`.

    Constraints:
    - (C1) all have one element type and one shape.
    - (C2) `axis` lies in [-rank - 1, rank].

    Rule: the dimensions of the tensors pass through; the new one stays whole.
  }];
  let arguments = (ins Variadic<Net_Tensor>:$inputs, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: 0";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "where the new dimension stands in the output"}
  }];
  let declarations = [{
    /// `axis` as a dimension of the output.
    int64_t dimension();
  }];
}
