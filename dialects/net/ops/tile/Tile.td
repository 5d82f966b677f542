//===- Tile.td - copies of a tensor beside each other ---------------------===//

def Net_TileOp : Net_Operator<"Tile", ["input_x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_CopiesRegions]> {
  let summary = "copies of a tensor side by side";
  let description = [{
    `output[k n + i] = input_x[i]` for 0 <= k < `multiples` along each dimension, n its size. More entries of `multiples`
    than there are dimensions make new ones in front.

    Constraints: (C1) `multiples` has at least one entry per dimension of `input_x`; (C2) its entries are at least 1;
    (C3) those of dimensions of sizes other than 1 have a product of at most 16384, as each copy is a region of its own.

    Rule: dimensions that are not repeated pass through, those of size 1 are broadcast. Any other may be cut too: then
    elements move between ranks.
  }];
  let arguments = (ins Net_Tensor:$input_x, DenseI64ArrayAttr:$multiples);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "multiples: (2, 1)";
  let specs = [{
    {.name = "multiples", .kind = IntTuple, .required = true, .positional = true, .summary = "copies per dimension"}
  }];
}
