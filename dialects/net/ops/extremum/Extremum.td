//===- Extremum.td - where the largest and smallest elements stand --------===//
//
// Expanded: the extremum, then the smallest index that has it. A cut of the axis costs one number and one index per row,
// and every number of devices gives the same answer.

class Net_Extremum<string mnemonic, list<string> outputs, list<Trait> traits = []>
    : Net_Operator<mnemonic, ["x"], outputs, !listconcat([Net_Rule, Net_OwnCost, Net_Expanded], traits)> {
  let declarations = [{
    /// `axis` as a dimension of `x`.
    int64_t dimension();
  }];
}

class Net_ExtremumWithValue<string mnemonic, string what>
    : Net_Extremum<mnemonic, ["index", "values"], [Net_Differentiable]> {
  let summary = "the " # what # " elements along a dimension and where they stand";
  let description = "`values[i]` is the " # what # " of `x[i, j]`, j along `axis`, and `index[i]` the first j that has it. "
                    # "NaN counts as the " # what # ". The gradient flows to that element.\n\n"
                    # "Constraints: (C1) `x` holds numbers; (C2) `axis` lies in [-rank, rank) and has elements.";
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs Net_Tensor:$index, Net_Tensor:$values);
  let exampleAttributes = "axis: -1";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension to search"},
    {.name = "keep_dims", .kind = Bool, .summary = "keep that dimension with size 1"}
  }];
}
def Net_ArgMaxWithValueOp : Net_ExtremumWithValue<"ArgMaxWithValue", "largest">;
def Net_ArgMinWithValueOp : Net_ExtremumWithValue<"ArgMinWithValue", "smallest">;

class Net_ExtremumIndex<string mnemonic, string what> : Net_Extremum<mnemonic, ["output"]> {
  let summary = "where the " # what # " element along a dimension stands";
  let description = "`output[i]` is the first j with the " # what # " `x[i, j]`, j along `axis`; NaN counts as the " # what
                    # ".\n\nConstraints: (C1) `x` holds numbers; (C2) `axis` lies in [-rank, rank) and has elements; "
                    # "(C3) `output_type` is i32 or i64.";
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis,
                       OptionalAttr<TypeAttr>:$output_type);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: -1";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension to search"},
    {.name = "output_type", .kind = Type, .positional = true, .summary = "type of the index; i32 unless given"}
  }];
}
def Net_ArgmaxOp : Net_ExtremumIndex<"Argmax", "largest">;
def Net_ArgminOp : Net_ExtremumIndex<"Argmin", "smallest">;
