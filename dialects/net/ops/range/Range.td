//===- Range.td - numbers in order ----------------------------------------===//

def Net_RangeOp : Net_Operator<"Range", [], ["output"], [Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "numbers in order";
  let description = [{
    `output[i] = start + i * delta`, as long as that lies before `limit`: `ceil((limit - start) / delta)` numbers i32.

    Constraints:
    - (C1) `delta` is not 0.
    - (C2) all numbers fit i32.
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$start, I64Attr:$limit, DefaultValuedAttr<I64Attr, "1">:$delta);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "";
  let exampleAttributes = "limit: 16";
  let specs = [{
    {.name = "start", .kind = Int, .summary = "the first number"},
    {.name = "limit", .kind = Int, .required = true, .summary = "where the numbers end; not among them"},
    {.name = "delta", .kind = Int, .summary = "the difference of two neighbours"}
  }];
}
