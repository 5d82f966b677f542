//===- Reshape.td - the same elements under another shape -----------------===//

def Net_ReshapeOp : Net_Operator<"Reshape", ["x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_NotGeneric]> {
  let summary = "the same elements under another shape";
  let description = [{
    Elements keep their row-major order. One entry of `shape` may be -1: it takes what is left.

    Constraints:
    - (C1) at most one entry of `shape` is -1, the others are not negative.
    - (C2) the number of elements stays the same.

    Rule: dimensions are put into the smallest groups of equal size, from the left. A dimension that stays alone passes
    through. Of a merged or split group only the leading dimensions can be cut, and only where the boundaries of all
    pieces coincide on both sides: a Blocked factor. Inner dimensions are needed whole. Sizes of 1 carry no factor.
  }];
  let arguments = (ins Net_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "shape: (4, -1)";
  let specs = [{
    {.name = "shape", .kind = IntTuple, .required = true, .positional = true, .summary = "new shape; one entry may be -1"}
  }];
}
