//===- Triangle.td - parts of matrices on one side of a diagonal ----------===//

class Net_TriangleFamily<string mnemonic, string side>
    : Net_Operator<mnemonic, ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Expanded]> {
  let description = "`output[..., i, j] = x[..., i, j]` where j - i " # side # [{ `diagonal`, else 0.

    Constraints: (C1) `x` has at least two dimensions and holds numbers.

    Rule: all dimensions pass through.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$diagonal);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "diagonal: 1";
  let specs = [{
    {.name = "diagonal", .kind = Int, .positional = true, .summary = "0 is the main diagonal, 1 the one above"}
  }];
}

def Net_TriuOp : Net_TriangleFamily<"Triu", ">="> {
  let summary = "the upper triangle of matrices, zeros below";
}

def Net_TrilOp : Net_TriangleFamily<"Tril", "<="> {
  let summary = "the lower triangle of matrices, zeros above";
}
