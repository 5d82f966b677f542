//===- OneHot.td - a 1 at the place that an index names -------------------===//
//
// Expanded: every rank compares the indices with its part of the numbers 0, 1, ..., so a cut depth costs nothing.

def Net_OneHotOp : Net_Operator<"OneHot", ["indices"], ["output"], [Net_Rule, Net_DefaultCost, Net_Expanded]> {
  let summary = "one value at the place that an index names, another elsewhere";
  let description = [{
    `output[..., j, ...] = on_value where j == indices[...], else off_value`; j is the new dimension `axis` of size `depth`.
    An index that is not in [0, depth) gives a row of `off_value`.

    Constraints:
    - (C1) `indices` holds i32 or i64.
    - (C2) `depth` is at least 1.
    - (C3) `axis` lies in [-1, rank], -1 being the last.
    - (C4) `dtype` is a type of numbers, and holds `on_value` and `off_value`.
  }];
  let arguments = (ins Net_Tensor:$indices, I64Attr:$depth, DefaultValuedAttr<F64Attr, "1.0">:$on_value,
                       DefaultValuedAttr<F64Attr, "0.0">:$off_value, DefaultValuedAttr<I64Attr, "-1">:$axis,
                       OptionalAttr<TypeAttr>:$dtype);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%indices: i32[16]";
  let exampleAttributes = "depth: 10";
  let specs = [{
    {.name = "depth", .kind = Int, .required = true, .positional = true, .summary = "size of the new dimension"},
    {.name = "on_value", .kind = Float, .positional = true, .summary = "at the index"},
    {.name = "off_value", .kind = Float, .positional = true, .summary = "elsewhere"},
    {.name = "axis", .kind = Int, .summary = "the new dimension; -1: the last"},
    {.name = "dtype", .kind = Type, .summary = "element type of the result; f32 unless given"}
  }];
  let declarations = [{
    /// The new dimension of the result.
    int64_t dimension();
  }];
}
