//===- Roll.td - elements in another order along a dimension --------------===//

def Net_RollOp : Net_RegionCopy<"Roll", ["input_x"], ["output"]> {
  let summary = "elements shifted along dimensions; what leaves at one end enters at the other";
  let description = [{
    `output[(i + shift) mod n] = input_x[i]` along each dimension of `axis`, n its size.

    Constraints: (C1) `axis` names dimensions of `input_x`, each at most once; (C2) `shift` has as many entries.

    Rule: other dimensions pass through. A rolled one may be cut too: then elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$shift, DenseI64ArrayAttr:$axis);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "shift: 3, axis: 1";
  let specs = [{
    {.name = "shift", .kind = IntTuple, .required = true, .positional = true, .summary = "by how many indices, per entry of axis; may be negative"},
    {.name = "axis", .kind = IntTuple, .required = true, .positional = true, .summary = "the dimensions"}
  }];
}

def Net_ReverseV2Op : Net_RegionCopy<"ReverseV2", ["input_x"], ["output"]> {
  let summary = "elements in reverse order along dimensions";
  let description = [{
    `output[n - 1 - i] = input_x[i]` along each dimension of `axis`, n its size.

    Constraints: (C1) `axis` names dimensions of `input_x`, each at most once.

    Rule: as Roll.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$axis);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: (0, 1)";
  let specs = [{
    {.name = "axis", .kind = IntTuple, .required = true, .positional = true, .summary = "the dimensions"}
  }];
}
