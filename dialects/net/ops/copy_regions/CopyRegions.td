//===- CopyRegions.td - boxes of elements, copied -------------------------===//
//
// What gradients and expansions are made of; not meant to be written by hand.

def Net_CopyRegionsOp : Net_RegionCopy<"CopyRegions", ["x"], ["output"], Net_CopiesAndFills> {
  let summary = "boxes of elements copied to other places";
  let description = [{
    `output[target + i * target_stride] = x[source + i * source_stride]` for every region and all its indices i, per
    dimension; elements that no region writes hold `fill`. `regions` lists for each region the number of the operand, then
    source, target, size, source stride and target stride of every dimension. Gradients of Slice, Split, Concat and Pad
    are made of it.

    Constraints:
    - (C1) all operands have one element type and as many dimensions as `shape`.
    - (C2) regions lie within operand and output; source strides are not 0, target strides at least 1.
    - (C3) no element is written twice.

    Rule: a dimension in which every region copies every index to itself passes through. Any other may be cut too: operands
    and output share the cut, and elements move between ranks.
  }];
  let arguments = (ins Variadic<Net_Tensor>:$x, DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$regions,
                       DefaultValuedAttr<F64Attr, "0.0">:$fill);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[8]";
  let exampleAttributes = "shape: (4), regions: (0, 2, 0, 4, 1, 1)";
  let specs = [{
    {.name = "shape", .kind = IntTuple, .required = true, .summary = "shape of the output"},
    {.name = "regions", .kind = IntTuple, .required = true, .summary = "operand; source, target, size and strides per dimension"},
    {.name = "fill", .kind = Float, .summary = "value of elements that no region writes"}
  }];
}
