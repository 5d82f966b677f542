//===- Range.td - tensors that attributes describe ------------------------===//

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

def Net_LinSpaceOp : Net_Operator<"LinSpace", [], ["output"], [Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "numbers at equal distances";
  let description = [{
    `output[i] = start + i * (stop - start) / (num - 1)` for 0 <= i < `num`, f32; `start` alone where `num` is 1.

    Constraints: (C1) `num` is at least 1.
  }];
  let arguments = (ins F64Attr:$start, F64Attr:$stop, I64Attr:$num);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "";
  let exampleAttributes = "start: 0, stop: 1, num: 5";
  let specs = [{
    {.name = "start", .kind = Float, .required = true, .summary = "the first number"},
    {.name = "stop", .kind = Float, .required = true, .summary = "the last number"},
    {.name = "num", .kind = Int, .required = true, .summary = "how many"}
  }];
}

def Net_FillOp : Net_Operator<"Fill", [], ["output"], [Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "a tensor of one number";
  let description = [{
    `output[i] = value`, of the given shape and element type.

    Constraints:
    - (C1) no size of `shape` is negative.
    - (C2) `type` is a type of numbers, or bool, and holds `value`.
  }];
  let arguments = (ins TypeAttr:$type, DenseI64ArrayAttr:$shape, F64Attr:$value);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "";
  let exampleAttributes = "type: f32, shape: (16, 32), value: 0.5";
  let specs = [{
    {.name = "type", .kind = Type, .required = true, .summary = "element type"},
    {.name = "shape", .kind = IntTuple, .required = true, .summary = "size per dimension"},
    {.name = "value", .kind = Float, .required = true, .summary = "of every element"}
  }];
}
