//===- Gather.td - rows by number, and sums of rows by number -------------===//
//
// Kernels of the runtime: runtime/plan/calls, runtime/device/cpu/calls. A rank that holds a part of a table looks up the
// rows that it has and gives zeros for the others; the sum over the ranks is the whole. Sums of rows are added in the
// order of their numbers, so every run and every number of threads gives the same bits.

defvar Net_LookupRule = [{

    Rule: every dimension may be cut. Cutting the dimension of the table that is looked up leaves a partial sum.
}];

def Net_GatherOp : Net_Operator<"Gather", ["input_params", "input_indices"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "slices of a tensor along a dimension, by their numbers";
  let description = !strconcat([{
    `output[i, j, k] = input_params[i, input_indices[j], k]`: i stands for the dimensions in front of `axis`, j for all
    dimensions of the indices, k for the dimensions behind `axis`. An index outside [0, size) ends the run with an error.
    With `batch_dims: b` the first b dimensions of both operands are the same and stand once in the result, in front of the
    others: `output[b, i, j, k] = input_params[b, i, input_indices[b, j], k]`.

    Constraints:
    - (C1) `input_indices` holds i32 or i64.
    - (C2) `axis` lies in [-rank, rank).
    - (C3) `batch_dims` lies in [0, axis], and both operands have these dimensions with equal sizes.
}], Net_LookupRule);
  let arguments = (ins Net_Tensor:$input_params, Net_Tensor:$input_indices, I64Attr:$axis,
                       DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_params: f32[16, 32], %input_indices: i32[4]";
  let exampleAttributes = "axis: 0";
  let specs = [{
    {.name = "axis", .kind = Int, .required = true, .positional = true, .summary = "the dimension of the table that the indices number"},
    {.name = "batch_dims", .kind = Int, .positional = true, .summary = "dimensions that table and indices share"}
  }];
}

def Net_EmbeddingLookupOp : Net_Operator<"EmbeddingLookup", ["input_params", "input_indices"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "rows of a table by their numbers, zeros for numbers that it has not";
  let description = !strconcat([{
    `output[j, k] = input_params[input_indices[j] - offset, k]`, 0 where that is no row; j stands for all dimensions of the
    indices, k for all dimensions of the table but the first.

    Constraints:
    - (C1) `input_indices` holds i32 or i64.
    - (C2) `input_params` has at least 1 dimension.
}], Net_LookupRule);
  let arguments = (ins Net_Tensor:$input_params, Net_Tensor:$input_indices, DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_params: f32[16, 32], %input_indices: i32[4]";
  let specs = [{
    {.name = "offset", .kind = Int, .positional = true, .summary = "the number of row 0"}
  }];
}

def Net_GatherGradOp : Net_Operator<"GatherGrad", ["indices", "dout"], ["output"], [Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "gradient of Gather and EmbeddingLookup with respect to the table";
  let description = [{
    `output[i, r, k]` is the sum of `dout[i, j, k]` over all j with `indices[j] - offset == r`; `size` is the size of the
    dimension `axis` of the result. A backward helper without a gradient of its own.

    Constraints:
    - (C1) `indices` holds i32 or i64, `dout` numbers.
    - (C2) `dout` has the shape of `indices` from dimension `axis` on.
    - (C3) `size` is not negative.
  }];
  let arguments = (ins Net_Tensor:$indices, Net_Tensor:$dout, I64Attr:$axis, I64Attr:$size,
                       DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%indices: i32[4], %dout: f32[4, 32]";
  let exampleAttributes = "axis: 0, size: 16";
  let specs = [{
    {.name = "axis", .kind = Int, .required = true, .summary = "the dimension that the indices number"},
    {.name = "size", .kind = Int, .required = true, .summary = "its size"},
    {.name = "offset", .kind = Int, .summary = "the number of row 0"}
  }];
}

def Net_UnsortedSegmentSumOp : Net_Operator<"UnsortedSegmentSum", ["input_x", "segment_ids"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "sums of the rows that have the same number";
  let description = [{
    `output[s, k]` is the sum of `input_x[j, k]` over all j with `segment_ids[j] == s`; j stands for all dimensions of
    `segment_ids`. Rows whose number is not in [0, num_segments) are left out.

    Constraints:
    - (C1) `segment_ids` holds i32 or i64, `input_x` numbers.
    - (C2) the shape of `input_x` begins with that of `segment_ids`, which has at least 1 dimension.
    - (C3) `num_segments` is not negative.

    Rule: every dimension may be cut. Cutting a dimension of `segment_ids` leaves a partial sum.
  }];
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$segment_ids, I64Attr:$num_segments);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32], %segment_ids: i32[16]";
  let exampleAttributes = "num_segments: 4";
  let specs = [{
    {.name = "num_segments", .kind = Int, .required = true, .positional = true, .summary = "rows of the result"}
  }];
}

class Net_SegmentExtremum<string mnemonic, string what, string lowest>
    : Net_Operator<mnemonic, ["input_x", "segment_ids"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "the " # what # " of the rows that have the same number, element by element";
  let description = "`output[s, k]` is the " # what # " of `input_x[j, k]` over all j with `segment_ids[j] == s`; j stands "
                    # "for all dimensions of `segment_ids`. Rows whose number is not in [0, num_segments) are left out; where "
                    # "there is none, the output is " # lowest # ". Equal ones share the gradient.\n\n"
                    # "Constraints: those of UnsortedSegmentSum.\n\nRule: as UnsortedSegmentSum; what a cut leaves are "
                    # "partial " # what # " values.";
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$segment_ids, I64Attr:$num_segments);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32], %segment_ids: i32[16]";
  let exampleAttributes = "num_segments: 4";
  let specs = [{
    {.name = "num_segments", .kind = Int, .required = true, .positional = true, .summary = "rows of the result"}
  }];
}
def Net_UnsortedSegmentMaxOp : Net_SegmentExtremum<"UnsortedSegmentMax", "largest", "-inf, or the lowest whole number">;
def Net_UnsortedSegmentMinOp : Net_SegmentExtremum<"UnsortedSegmentMin", "smallest", "inf, or the highest whole number">;

// Expanded: x plus the sums of the updates.
def Net_ScatterAddOp : Net_Operator<"ScatterAdd", ["input_x", "indices", "updates"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "a tensor with rows added to the rows that indices number";
  let description = [{
    `output[r, k] = input_x[r, k]` plus the sum of `updates[j, k]` over all j with `indices[j] == r`; j stands for all
    dimensions of `indices`. Updates whose index is no row are left out. `input_x` itself does not change: the result is
    the new value.

    Constraints:
    - (C1) `input_x` and `updates` hold numbers of one type, `indices` i32 or i64.
    - (C2) `updates` has the shape of `indices`, at least 1 dimension, followed by that of a row of `input_x`.
  }];
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$indices, Net_Tensor:$updates);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32], %indices: i32[4], %updates: f32[4, 32]";
}

def Net_GatherDOp : Net_Operator<"GatherD", ["x", "index"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "elements along a dimension, by their numbers";
  let description = [{
    `output[i, j, k] = x[i, index[i, j, k], k]`: i stands for the dimensions in front of `dim`, k for those behind it. An
    index counts from the end if it is negative; one outside [-size, size) ends the run with an error.

    Constraints:
    - (C1) `index` holds i32 or i64.
    - (C2) `dim` lies in [-rank, rank).
    - (C3) both operands have the same shape but for dimension `dim`.

    Rule: every dimension may be cut. Cutting dimension `dim` of `x` leaves a partial sum.
  }];
  let arguments = (ins Net_Tensor:$x, Net_Tensor:$index, I64Attr:$dim);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[16, 32], %index: i32[16, 4]";
  let exampleAttributes = "dim: 1";
  let specs = [{
    {.name = "dim", .kind = Int, .required = true, .positional = true, .summary = "the dimension that the indices number"}
  }];
}

def Net_GatherDGradOp : Net_Operator<"GatherDGrad", ["index", "dout"], ["output"], [Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "gradient of GatherD and TopK with respect to x";
  let description = [{
    `output[i, r, k]` is the sum of `dout[i, j, k]` over all j with `index[i, j, k] == r`, negative indices counting from
    the end; `size` is the size of dimension `dim` of the result. A backward helper without a gradient of its own.

    Constraints:
    - (C1) `index` holds i32 or i64, `dout` numbers.
    - (C2) both operands have the same shape; `dim` lies in [-rank, rank).
    - (C3) `size` is not negative.
  }];
  let arguments = (ins Net_Tensor:$index, Net_Tensor:$dout, I64Attr:$dim, I64Attr:$size);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%index: i32[16, 4], %dout: f32[16, 4]";
  let exampleAttributes = "dim: 1, size: 32";
  let specs = [{
    {.name = "dim", .kind = Int, .required = true, .summary = "the dimension that the indices number"},
    {.name = "size", .kind = Int, .required = true, .summary = "its size"}
  }];
}
