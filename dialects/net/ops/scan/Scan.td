//===- Scan.td - running sums, and the largest elements in order ----------===//
//
// Expanded: every rank runs along its piece of the axis, then one number (or k of them) per line and piece goes to all
// ranks. The parts are kernels of the runtime: runtime/plan/calls, runtime/device/cpu/calls.

def Net_CumSumOp : Net_Operator<"CumSum", ["input"], ["y"],
    [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Expanded, Net_ExpandsByPieces]> {
  let summary = "running sums along a dimension";
  let description = [{
    `y[i, j] = input[i, 0] + ... + input[i, j]`, j along `axis`. `exclusive`: without the last term; `reverse`: from the
    last element on.

    Constraints: (C1) `input` holds numbers; (C2) `axis` lies in [-rank, rank).

    Rule: all dimensions pass through. A cut of `axis` costs one number per line and piece.
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

def Net_CumSumPiecesOp : Net_Operator<"CumSumPieces", ["input"], ["y"], [Net_Rule, Net_DefaultCost, Net_Library]> {
  let summary = "running sums along every piece of a dimension; a part of CumSum";
  let description = [{
    CumSum with sums that begin again at the pieces [floor(p n / `pieces`), floor((p + 1) n / `pieces`)) of dimension
    `axis`, n its size. Made by the partition, which cuts the dimension into these pieces; without a gradient of its own.

    Constraints: those of CumSum; (C3) `pieces` is at least 1.
  }];
  let arguments = (ins Net_Tensor:$input, I64Attr:$axis, I64Attr:$pieces, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Net_Tensor:$y);
  let exampleAttributes = "axis: -1, pieces: 4";
  let specs = [{
    {.name = "axis", .kind = Int, .required = true, .positional = true, .summary = "the dimension to run along"},
    {.name = "pieces", .kind = Int, .required = true, .summary = "into how many pieces it is cut"},
    {.name = "exclusive", .kind = Bool, .summary = "leave out the element itself"},
    {.name = "reverse", .kind = Bool, .summary = "run from the end"}
  }];
}

def Net_TopKOp : Net_Operator<"TopK", ["input_x"], ["values", "indices"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_ExpandsByPieces]> {
  let summary = "the largest elements along the last dimension, and where they stand";
  let description = [{
    `values[i, 0], ..., values[i, k - 1]` are the k largest elements of `input_x[i, j]`, the largest first; of equal ones
    the first, and NaN counts as larger than all numbers. `indices` holds their j. `sorted: false`: in the order in which
    they stand in `input_x`.

    Constraints: (C1) `input_x` holds numbers; (C2) it has at least 1 dimension; (C3) `k` lies in [0, size of the last].

    Rule: all dimensions of `input_x` may be cut. A cut of the last one costs the k largest elements of every piece; the
    result is the same on any number of devices.
  }];
  let arguments = (ins Net_Tensor:$input_x, I64Attr:$k, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs Net_Tensor:$values, Net_Tensor:$indices);
  let exampleAttributes = "k: 4";
  let specs = [{
    {.name = "k", .kind = Int, .required = true, .positional = true, .summary = "how many"},
    {.name = "sorted", .kind = Bool, .summary = "the largest first"}
  }];
}

def Net_TopKPiecesOp : Net_Operator<"TopKPieces", ["input_x"], ["values", "indices"], [Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "the largest elements of every piece of the last dimension; a part of TopK";
  let description = [{
    `values[i, p * k], ..., values[i, p * k + k - 1]` are the k largest elements of piece p of the last dimension of
    `input_x`, [floor(p n / `pieces`), floor((p + 1) n / `pieces`)) with n its size, the largest first; `indices` says where
    they stand in the whole dimension. A piece of fewer elements fills up with the lowest number and the index n. Made by
    the partition, which cuts the dimension into these pieces; without a gradient of its own.

    Constraints: those of TopK; (C4) `pieces` is at least 1.
  }];
  let arguments = (ins Net_Tensor:$input_x, I64Attr:$k, I64Attr:$pieces);
  let results = (outs Net_Tensor:$values, Net_Tensor:$indices);
  let exampleAttributes = "k: 4, pieces: 4";
  let specs = [{
    {.name = "k", .kind = Int, .required = true, .summary = "how many of every piece"},
    {.name = "pieces", .kind = Int, .required = true, .summary = "into how many pieces the dimension is cut"}
  }];
}

def Net_TopKMergeOp : Net_Operator<"TopKMerge", ["candidates", "places"], ["values", "indices"],
    [Net_Rule, Net_OwnCost, Net_Library]> {
  let summary = "the largest among candidates that stand at given places; a part of TopK";
  let description = [{
    `values[i, 0], ..., values[i, k - 1]` are the k largest of `candidates[i, j]`, of equal ones that with the smallest
    `places[i, j]`, and `indices` their places. `sorted: false`: by their places. Made by the partition; without a gradient
    of its own.

    Constraints: (C1) `candidates` holds numbers, `places` i32, of one shape; (C2) as in TopK; (C3) likewise.
  }];
  let arguments = (ins Net_Tensor:$candidates, Net_Tensor:$places, I64Attr:$k, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs Net_Tensor:$values, Net_Tensor:$indices);
  let exampleInputs = "%candidates: f32[16, 32], %places: i32[16, 32]";
  let exampleAttributes = "k: 4";
  let specs = [{
    {.name = "k", .kind = Int, .required = true, .summary = "how many"},
    {.name = "sorted", .kind = Bool, .summary = "the largest first"}
  }];
}
