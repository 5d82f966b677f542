//===- Split.td - a tensor in parts ---------------------------------------===//

def Net_SplitOp : Net_RegionCopy<"Split", ["input_x"], ["output0", "output1"]> {
  let summary = "equal parts of a dimension";
  let description = [{
    Part i of `output_num` holds the indices [i n / `output_num`, (i + 1) n / `output_num`) of dimension `axis`, n its size.

    Constraints:
    - (C1) `axis` lies in [-rank, rank).
    - (C2) `output_num` is at least 1 and divides the size of the dimension; SplitV makes parts of other sizes.
    - (C3) there are at most 65536 outputs.

    Rule: dimension `axis` may be cut too: operand and outputs share the cut, and elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$input_x, DefaultValuedAttr<I64Attr, "0">:$axis,
                       DefaultValuedAttr<I64Attr, "1">:$output_num);
  let results = (outs Variadic<Net_Tensor>:$outputs);
  let exampleAttributes = "axis: 1, output_num: 2";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension that is parted"},
    {.name = "output_num", .kind = Int, .positional = true, .summary = "number of parts"}
  }];
}

def Net_SplitVOp : Net_RegionCopy<"SplitV", ["input_x"], ["output0", "output1"]> {
  let summary = "parts of a dimension of given sizes";
  let description = [{
    Part i holds `size_splits[i]` indices of dimension `split_dim`, one part behind the other.

    Constraints:
    - (C1) `split_dim` lies in [-rank, rank).
    - (C2) the sizes are at least 1, one of them may be -1 for what is left; they add up to the size of the dimension.
    - (C3) `num_split` is 0 or the number of sizes.

    Rule: as Split.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$size_splits, DefaultValuedAttr<I64Attr, "0">:$split_dim,
                       DefaultValuedAttr<I64Attr, "0">:$num_split);
  let results = (outs Variadic<Net_Tensor>:$outputs);
  let exampleAttributes = "size_splits: (24, 8), split_dim: 1";
  let specs = [{
    {.name = "size_splits", .kind = IntTuple, .required = true, .positional = true, .summary = "size of every part; one may be -1"},
    {.name = "split_dim", .kind = Int, .positional = true, .summary = "the dimension that is parted"},
    {.name = "num_split", .kind = Int, .positional = true, .summary = "number of parts; 0: not said"}
  }];
}

def Net_UnstackOp : Net_Operator<"Unstack", ["input_x"], ["output0", "output1"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "the elements of a dimension as tensors";
  let description = [{
    Output i is index i of dimension `axis`, which is left out. `num` may say how many there are.

    Constraints: (C1) `axis` lies in [-rank, rank); (C2) `num` is 0 or the size of the dimension; (C3) that is at most 65536.

    Rule: the other dimensions pass through; `axis` may be cut too: every output then comes from one piece.
  }];
  let arguments = (ins Net_Tensor:$input_x, DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<I64Attr, "0">:$num);
  let results = (outs Variadic<Net_Tensor>:$outputs);
  let exampleInputs = "%input_x: f32[2, 32]";
  let exampleAttributes = "axis: 0";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension that is taken apart"},
    {.name = "num", .kind = Int, .positional = true, .summary = "its size; 0: not said"}
  }];
  let declarations = [{
    /// `axis` as a dimension of the operand.
    int64_t dimension();
  }];
}
