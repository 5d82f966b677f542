//===- Slice.td - boxes out of a tensor -----------------------------------===//

def Net_SliceOp : Net_RegionCopy<"Slice", ["input_x"], ["output"]> {
  let summary = "a box of elements";
  let description = [{
    `output[i] = input_x[begin + i]` for 0 <= i < `size`, per dimension. An entry -1 of `size` takes all that is left.

    Constraints:
    - (C1) `begin` and `size` have one entry per dimension of `input_x`.
    - (C2) the box is not empty and lies within `input_x`.

    Rule: a dimension that is taken whole passes through. Any other may be cut too: then elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$begin, DenseI64ArrayAttr:$size);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "begin: (0, 8), size: (16, 16)";
  let specs = [{
    {.name = "begin", .kind = IntTuple, .required = true, .positional = true, .summary = "first index per dimension"},
    {.name = "size", .kind = IntTuple, .required = true, .positional = true, .summary = "elements per dimension; -1: to the end"}
  }];
}

def Net_StridedSliceOp : Net_Operator<"StridedSlice", ["input_x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, DeclareOpInterfaceMethods<Net_LowerInterface, ["loweringKind", "expand"]>,
     Net_CopiesRegions]> {
  let summary = "every n-th element of a box, as Python's x[begin:end:strides]";
  let description = [{
    Per dimension, the elements at `begin`, `begin + strides`, ... in front of `end`. Negative indices count from the end,
    those beyond an end stop there; a negative stride walks backwards. Bit i of a mask speaks of entry i:
    `begin_mask` and `end_mask` take that end of the dimension, `ellipsis_mask` all dimensions that no other entry names,
    `new_axis_mask` makes a new dimension of size 1, `shrink_axis_mask` takes the one element at `begin` and leaves the
    dimension out. Dimensions behind the last entry are taken whole.

    Constraints:
    - (C1) `begin`, `end` and `strides` have as many entries; no `strides` at all means 1 everywhere.
    - (C2) strides are not 0; at most one entry is an ellipsis; entries name no more dimensions than there are.
    - (C3) the result is not empty; an element that is taken alone exists.

    Rule: as Slice.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$begin, DenseI64ArrayAttr:$end,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides, DefaultValuedAttr<I64Attr, "0">:$begin_mask,
                       DefaultValuedAttr<I64Attr, "0">:$end_mask, DefaultValuedAttr<I64Attr, "0">:$ellipsis_mask,
                       DefaultValuedAttr<I64Attr, "0">:$new_axis_mask, DefaultValuedAttr<I64Attr, "0">:$shrink_axis_mask);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "begin: (0, 31), end: (16, 0), strides: (2, -1)";
  let specs = [{
    {.name = "begin", .kind = IntTuple, .required = true, .positional = true, .summary = "first index per entry"},
    {.name = "end", .kind = IntTuple, .required = true, .positional = true, .summary = "index behind the last one per entry"},
    {.name = "strides", .kind = IntTuple, .positional = true, .summary = "steps per entry; empty: 1"},
    {.name = "begin_mask", .kind = Int, .summary = "entries that begin at the start"},
    {.name = "end_mask", .kind = Int, .summary = "entries that go to the end"},
    {.name = "ellipsis_mask", .kind = Int, .summary = "the entry that stands for all dimensions not named"},
    {.name = "new_axis_mask", .kind = Int, .summary = "entries that make a new dimension"},
    {.name = "shrink_axis_mask", .kind = Int, .summary = "entries that take one element and leave the dimension out"}
  }];
}
