//===- Scan.td - running sums, and the largest elements in order ----------===//
//
// Kernels of the runtime: runtime/plan/calls, runtime/device/cpu/calls.

def Net_CumSumOp : Net_Operator<"CumSum", ["input"], ["y"], [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Library]> {
  let summary = "running sums along a dimension";
  let description = [{
    `y[i, j] = input[i, 0] + ... + input[i, j]`, j along `axis`. `exclusive`: without the last term; `reverse`: from the
    last element on.

    Constraints: (C1) `input` holds numbers; (C2) `axis` lies in [-rank, rank).
  }];
  let arguments = (ins Net_Tensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Net_Tensor:$y);
  let exampleAttributes = "axis: -1";
  let specs = [{
    {.name = "axis", .kind = Int, .required = true, .positional = true, .summary = "the dimension to run along"},
    {.name = "exclusive", .kind = Bool, .summary = "leave out the element itself"},
    {.name = "reverse", .kind = Bool, .summary = "run from the end"}
  }];
}

def Net_TopKOp : Net_Operator<"TopK", ["input_x"], ["values", "indices"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "the largest elements along the last dimension, and where they stand";
  let description = [{
    `values[i, 0], ..., values[i, k - 1]` are the k largest elements of `input_x[i, j]`, the largest first; of equal ones
    the first, and NaN counts as larger than all numbers. `indices` holds their j. `sorted: false`: in the order in which
    they stand in `input_x`.

    Constraints: (C1) `input_x` holds numbers; (C2) it has at least 1 dimension; (C3) `k` lies in [0, size of the last].
  }];
  let arguments = (ins Net_Tensor:$input_x, I64Attr:$k, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs Net_Tensor:$values, Net_Tensor:$indices);
  let exampleAttributes = "k: 4";
  let specs = [{
    {.name = "k", .kind = Int, .required = true, .positional = true, .summary = "how many"},
    {.name = "sorted", .kind = Bool, .summary = "the largest first"}
  }];
}
