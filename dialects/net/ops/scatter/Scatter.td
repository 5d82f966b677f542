//===- Scatter.td - elements of tensors by indices with several numbers ---===//
//
// Expanded: the numbers of an index become one number of a row, then look-ups and sums by number do the rest.

defvar Net_ScatterRule = [{

    Rule: every dimension may be cut but that of the numbers of an index.
}];

def Net_GatherNdOp : Net_Operator<"GatherNd", ["input_x", "indices"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "slices of a tensor by indices of its first dimensions";
  let description = !strconcat([{
    `output[j, k] = input_x[indices[j, 0], ..., indices[j, n - 1], k]`: j stands for all dimensions of `indices` but the
    last, whose size n is the number of dimensions that an index names; k for those behind. An index outside of `input_x`
    ends the run with an error.

    Constraints:
    - (C1) `indices` holds i32 or i64.
    - (C2) the last dimension of `indices` has 1 to rank elements.
}], Net_ScatterRule);
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$indices);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32, 8], %indices: i32[4, 2]";
}

class Net_TensorScatter<string mnemonic>
    : Net_Operator<mnemonic, ["input_x", "indices", "updates"], ["output"],
                   [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  string constraints = !strconcat([{

    Constraints:
    - (C1) `input_x` and `updates` hold numbers of one type, `indices` i32 or i64.
    - (C2) the last dimension of `indices` has 1 to rank elements.
    - (C3) `updates` has the shape of `indices` without its last dimension, followed by the dimensions of `input_x` that an
      index does not name.
}], Net_ScatterRule);
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$indices, Net_Tensor:$updates);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32, 8], %indices: i32[4, 2], %updates: f32[4, 8]";
}

def Net_TensorScatterAddOp : Net_TensorScatter<"TensorScatterAdd"> {
  let summary = "a tensor with updates added where indices say";
  let description = !strconcat([{
    `output` is `input_x` with every `updates[j, k]` added at `[indices[j, 0], ..., indices[j, n - 1], k]`. Updates whose
    index lies outside are left out.
}], constraints);
}

def Net_TensorScatterUpdateOp : Net_TensorScatter<"TensorScatterUpdate"> {
  let summary = "a tensor with updates in the place of elements where indices say";
  let description = !strconcat([{
    `output` is `input_x` with `updates[j, k]` at `[indices[j, 0], ..., indices[j, n - 1], k]`; where several indices are
    equal, that of the last one. Updates whose index lies outside are left out.
}], constraints);
}
