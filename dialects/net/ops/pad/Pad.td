//===- Pad.td - elements around a tensor ----------------------------------===//

class Net_PadFamily<string mnemonic> : Net_RegionCopy<mnemonic, ["input_x"], ["output"]> {
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%input_x: f32[16, 32]";
}

def Net_PadOp : Net_PadFamily<"Pad"> {
  let summary = "zeros around a tensor";
  let description = [{
    `output[before + i] = input_x[i]` per dimension; `paddings` gives for each dimension how many zeros stand before and
    behind.

    Constraints: (C1) `paddings` has one pair per dimension of `input_x`; (C2) its numbers are not negative.

    Rule: a dimension without padding passes through. Any other may be cut too: then elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$paddings);
  let exampleAttributes = "paddings: ((0, 0), (1, 2))";
  let specs = [{
    {.name = "paddings", .kind = IntPairs, .required = true, .positional = true, .summary = "per dimension: zeros before and behind"}
  }];
}

def Net_MirrorPadOp : Net_PadFamily<"MirrorPad"> {
  let summary = "mirror images around a tensor";
  let description = [{
    `paddings` gives for each dimension how many elements stand before and behind. They are the nearest ones in reverse order,
    the outermost itself left out if `mode` is REFLECT, repeated if it is SYMMETRIC.

    Constraints:
    - (C1) `paddings` has one pair per dimension of `input_x`; its numbers are not negative.
    - (C2) they are less than the size of the dimension, with SYMMETRIC at most its size.

    Rule: as Pad.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$paddings, DefaultValuedStrAttr<StrAttr, "REFLECT">:$mode);
  let exampleAttributes = "paddings: ((0, 0), (1, 2)), mode: SYMMETRIC";
  let specs = [{
    {.name = "paddings", .kind = IntPairs, .required = true, .positional = true, .summary = "per dimension: elements before and behind"},
    {.name = "mode", .kind = String, .words = ::msc::net::kMirrorModes, .summary = "whether the outermost element is repeated"}
  }];
}
