//===- Reduce.td - sums, means, products, extrema over dimensions ---------===//
//
// An empty `axis` means all dimensions; negative entries count from the end. `keep_dims` keeps reduced dimensions with
// size 1. Reduced dimensions that are cut leave a partial result.

class Net_Reduce<string mnemonic, string formula, string meaning, string operand, string more = "",
                 Trait lowering = Net_Generic>
    : Net_Operator<mnemonic, ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, lowering]> {
  let summary = formula;
  let description = meaning # "\n\nConstraints: (C1) `x` holds " # operand # "; (C2) every entry of `axis` lies in "
                    # "[-rank, rank) and none occurs twice" # more # ".";
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: -1, keep_dims: true";
  let specs = [{
    {.name = "axis", .kind = IntTuple, .positional = true, .summary = "dimensions to reduce; empty: all"},
    {.name = "keep_dims", .kind = Bool, .summary = "keep reduced dimensions with size 1"}
  }];
}

def Net_ReduceSumOp : Net_Reduce<"ReduceSum", "sum over dimensions",
    "`output[i] = sum_j x[i, j]`, j over the reduced dimensions.", "numbers">;
def Net_ReduceMeanOp : Net_Reduce<"ReduceMean", "mean over dimensions",
    "`output[i] = sum_j x[i, j] * (1 / n)`, n the global number of reduced elements: a rank multiplies its own sum by\n"
    "1 / n, so that uneven pieces weigh right.", "floats", "; (C3) not over zero elements">;
def Net_ReduceMaxOp : Net_Reduce<"ReduceMax", "maximum over dimensions",
    "`output[i] = max_j x[i, j]`; NaN if one is NaN. Elements that share the maximum share its gradient equally.",
    "numbers", "; (C3) not over zero elements">;

def Net_ReduceMinOp : Net_Reduce<"ReduceMin", "minimum over dimensions",
    "`output[i] = min_j x[i, j]`; NaN if one is NaN. Elements that share the minimum share its gradient equally.",
    "numbers", "; (C3) not over zero elements">;
def Net_ReduceProdOp : Net_Reduce<"ReduceProd", "product over dimensions",
    "`output[i] = prod_j x[i, j]`. The gradient is right where elements are 0.", "numbers">;

// In whole numbers, so that a cut leaves partial sums: how many elements are true, or false.
class Net_ReduceTruth<string mnemonic, string formula, string meaning>
    : Net_Reduce<mnemonic, formula, meaning, "bool", "", Net_Expanded> {
  let exampleInputs = "%x: bool[16, 32]";
}
def Net_ReduceAllOp : Net_ReduceTruth<"ReduceAll", "whether all elements over dimensions are true",
    "`output[i] = x[i, 0] and x[i, 1] and ...`; true for no elements at all. The gradient is zero.">;
def Net_ReduceAnyOp : Net_ReduceTruth<"ReduceAny", "whether any element over dimensions is true",
    "`output[i] = x[i, 0] or x[i, 1] or ...`; false for no elements at all. The gradient is zero.">;
