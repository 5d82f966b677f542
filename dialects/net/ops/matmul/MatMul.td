//===- MatMul.td - matrix product -----------------------------------------===//

def Net_MatMulOp : Net_Operator<"MatMul", ["x1", "x2"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_NotGeneric, Net_NarrowOperands]> {
  let summary = "matrix product of the last two dimensions";
  let description = [{
    `output[b, i, j] = sum_k op(x1)[b, i, k] * op(x2)[b, k, j]`, where op swaps the last two dimensions if `transpose_a`
    (`transpose_b`) is true. Leading (batch) dimensions broadcast as in NumPy. With `sum_batch` they are contracted too:
    `output[i, j] = sum_b,k x1[b, k, i] * x2[b, k, j]`, the gradient of a matrix that a batched product used.

    Constraints:
    - (C1) both operands have the same element type: f16, bf16, f32, f64, i32 or i64.
    - (C2) both operands have at least 2 dimensions.
    - (C3) the contracted sizes are equal: columns of op(x1), rows of op(x2).
    - (C4) batch dimensions, aligned at the right, are equal or 1.
    - (C5) `sum_batch` goes with transpose_a: true, transpose_b: false and equal batch dimensions.

    Rule: `(b m k, b k n) -> (b m n), reduce k`, factors in the order batch, m, k, n. A k that is cut leaves a partial
    sum, and so does, with `sum_batch`, a batch that is cut: `(b k m, b k n) -> (m n), reduce b k`.
  }];
  let arguments = (ins Net_Tensor:$x1, Net_Tensor:$x2, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_b, OptionalAttr<BoolAttr>:$sum_batch);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x1: f32[16, 32], %x2: f32[8, 32]";
  let exampleAttributes = "transpose_b: true";
  let specs = [{
    {.name = "transpose_a", .kind = Bool, .summary = "swap the last two dimensions of x1"},
    {.name = "transpose_b", .kind = Bool, .summary = "swap the last two dimensions of x2"},
    {.name = "sum_batch", .kind = Bool, .summary = "contract the batch dimensions too"}
  }];
}

// Expanded: MindSpore's other names of the product.
def Net_BatchMatMulOp : Net_Operator<"BatchMatMul", ["x1", "x2"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_NarrowOperands]> {
  let summary = "matrix product of the last two dimensions, by the name for batches";
  let description = [{
    The same as MatMul: `output[b, i, j] = sum_k op(x1)[b, i, k] * op(x2)[b, k, j]`.

    Constraints: (C1) to (C4) of MatMul.
  }];
  let arguments = (ins Net_Tensor:$x1, Net_Tensor:$x2, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_b);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x1: f32[4, 16, 32], %x2: f32[4, 32, 8]";
  let specs = [{
    {.name = "transpose_a", .kind = Bool, .summary = "swap the last two dimensions of x1"},
    {.name = "transpose_b", .kind = Bool, .summary = "swap the last two dimensions of x2"}
  }];
}

def Net_DenseOp : Net_Operator<"Dense", ["input", "weight", "bias"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_NarrowOperands]> {
  let summary = "product with the rows of a matrix, plus a bias";
  let description = [{
    `output[i, j] = sum_k input[i, k] * weight[j, k] + bias[j]`: i stands for all dimensions of `input` but the last. `bias`
    may be left out. The layer of this name is a cell of `nn.mir`, with parameters of its own.

    Constraints:
    - (C1) all operands hold numbers of one type.
    - (C2) `input` has at least 2 dimensions, `weight` 2, and their last ones are equal.
    - (C3) `bias` has one element per row of `weight`.
  }];
  let arguments = (ins Net_Tensor:$input, Net_Tensor:$weight, Optional<Net_Tensor>:$bias);
  let results = (outs Net_Tensor:$output);
  let optionalInputs = 1;
  let exampleInputs = "%input: f32[16, 32], %weight: f32[8, 32], %bias: f32[8]";
}
