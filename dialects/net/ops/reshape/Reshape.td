//===- Reshape.td - the same elements under another shape -----------------===//

class Net_View<string mnemonic, list<string> inputs>
    : Net_Operator<mnemonic, inputs, ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_NotGeneric]> {
  let results = (outs Net_Tensor:$output);
  let definitions = [{
    ::llvm::LogicalResult $cppClass::buildGradient(
        ::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients, const ::llvm::SmallBitVector &,
        ::llvm::MutableArrayRef<::mlir::Value> operandGradients) {
      auto type = ::llvm::cast<::mlir::RankedTensorType>(getOperand().getType());
      operandGradients[0] = ::msc::net::reshaped(builder, getLoc(), resultGradients[0], type.getShape());
      return ::llvm::success();
    }
    ::msc::net::ShardingRule $cppClass::shardingRule() {
      return ::msc::net::reshapeRule(::msc::net::shapeOf(getOperand()), ::msc::net::shapeOf(getOutput()));
    }
    ::msc::net::OperatorCost $cppClass::cost(::llvm::ArrayRef<::std::vector<int64_t>>,
                                             ::llvm::ArrayRef<::std::vector<int64_t>>) { return {}; }
    ::msc::net::LoweringKind $cppClass::loweringKind() { return ::msc::net::LoweringKind::View; }
  }];
}

def Net_ReshapeOp : Net_View<"Reshape", ["x"]> {
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
  let exampleAttributes = "shape: (4, -1)";
  let specs = [{
    {.name = "shape", .kind = IntTuple, .required = true, .positional = true, .summary = "new shape; one entry may be -1"}
  }];
}

def Net_ExpandDimsOp : Net_View<"ExpandDims", ["input_x"]> {
  let summary = "a new dimension of size 1";
  let description = [{
    Dimension `axis` of the output is the new one; the others keep their order.

    Constraints: (C1) `axis` lies in [-rank - 1, rank].
  }];
  let arguments = (ins Net_Tensor:$input_x, I64Attr:$axis);
  let exampleAttributes = "axis: 0";
  let specs = [{
    {.name = "axis", .kind = Int, .required = true, .positional = true, .summary = "where the new dimension stands in the output; negative from the end"}
  }];
}

def Net_SqueezeOp : Net_View<"Squeeze", ["input_x"]> {
  let summary = "leaves out dimensions of size 1";
  let description = [{
    The dimensions named by `axis`, all dimensions of size 1 if it is empty.

    Constraints: (C1) `axis` names dimensions of `input_x`, each at most once; (C2) these have size 1.
  }];
  let arguments = (ins Net_Tensor:$input_x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$axis);
  let exampleInputs = "%input_x: f32[16, 1]";
  let exampleAttributes = "axis: 1";
  let specs = [{
    {.name = "axis", .kind = IntTuple, .positional = true, .summary = "dimensions to leave out; empty: all of size 1"}
  }];
}

def Net_FlattenOp : Net_View<"Flatten", ["input_x"]> {
  let summary = "all dimensions but the first one merged";
  let description = [{
    The output has the shape (N, X): N is the size of dimension 0, X the product of all others.

    Constraints: (C1) `input_x` has at least one dimension.
  }];
  let arguments = (ins Net_Tensor:$input_x);
  let exampleInputs = "%input_x: f32[16, 4, 8]";
}
