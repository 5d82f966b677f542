//===- Loss.td - losses that are sums or means of terms -------------------===//
//
// Expanded: terms out of pointwise operators, then a reduction. Gradients are those of the parts.

class Net_Loss<string mnemonic, list<string> inputs, list<string> outputs = ["output"]>
    : Net_Operator<mnemonic, inputs, outputs, [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_IsLoss]> {
  let results = (outs Net_Tensor:$output);
  let definitions = [{
    ::llvm::LogicalResult $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange dy,
                                                   const ::llvm::SmallBitVector &wanted,
                                                   ::llvm::MutableArrayRef<::mlir::Value> gradients) {
      return ::msc::net::expansionGradient(builder, *this, dy, wanted, gradients);
    }
    ::msc::net::LoweringKind $cppClass::loweringKind() { return ::msc::net::LoweringKind::Expanded; }
  }];
}

// A loss with one term per element of operand 0. It brings `terms`; operands behind the second are repeated as NumPy
// would.
class Net_ElementLoss<string mnemonic, list<string> inputs, string formula, string constraints = "">
    : Net_Loss<mnemonic, inputs> {
  string words = "kLossReductions";
  string meanText = "`reduction: mean`: `output = sum_i e[i] * (1 / n)`, n the global number of elements; `sum`: without "
                    # "the factor; `none`: `output = e`.";
  let description = "`e = " # formula # "`. " # meanText # "\n\nConstraints: (C1) all operands have the same float "
                    # "element type; (C2) the first two have the same shape; (C3) `reduction` is one of its words; a "
                    # "mean needs at least one element" # constraints # ".";
  let specs = [{
    {.name = "reduction", .kind = String, .words = }] # words # [{, .summary = "what becomes of the elements"}
  }];
  let declarations = [{
    /// One term per element.
    ::mlir::Value terms(::mlir::OpBuilder &builder, ::mlir::ValueRange operands);
  }];
  code inference = [{
    ::llvm::LogicalResult $cppClass::infer(const ::msc::net::Inference &at, Adaptor op,
                                           ::llvm::SmallVectorImpl<::mlir::Type> &results) {
      return ::msc::net::inferElementLoss(at, op.getReduction(), }] # words # [{, results);
    }
  }];
  let definitions = inference # [{
    ::llvm::LogicalResult $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange dy,
                                                   const ::llvm::SmallBitVector &wanted,
                                                   ::llvm::MutableArrayRef<::mlir::Value> gradients) {
      return ::msc::net::expansionGradient(builder, *this, dy, wanted, gradients);
    }
    ::msc::net::LoweringKind $cppClass::loweringKind() { return ::msc::net::LoweringKind::Expanded; }
    ::llvm::SmallVector<::mlir::Value> $cppClass::expand(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      return {::msc::net::reducedTerms(builder, getLoc(), terms(builder, operands), getReduction())};
    }
    ::msc::net::ShardingRule $cppClass::shardingRule() {
      return ::msc::net::elementLossRule(*this, getReduction() != "none");
    }
    ::msc::net::OperatorCost $cppClass::cost(::llvm::ArrayRef<::std::vector<int64_t>> operands,
                                             ::llvm::ArrayRef<::std::vector<int64_t>> results) {
      return ::msc::net::elementLossCost(*this, operands, results);
    }
  }];
}

def Net_L1LossOp : Net_ElementLoss<"L1Loss", ["logits", "labels"], "|logits - labels|"> {
  let summary = "absolute error of two tensors";
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
}

def Net_SmoothL1LossOp : Net_ElementLoss<"SmoothL1Loss", ["prediction", "target"],
    "0.5 d^2 / beta where d < beta, else d - 0.5 beta; d = |prediction - target|", "; (C4) `beta` is positive"> {
  let summary = "squared error near 0, absolute error beyond";
  let arguments = (ins Net_Tensor:$prediction, Net_Tensor:$target, DefaultValuedAttr<F64Attr, "1.0">:$beta,
                       DefaultValuedStrAttr<StrAttr, "none">:$reduction);
  let inference = "";
  let specs = [{
    {.name = "beta", .kind = Float, .summary = "where the squared error ends"},
    {.name = "reduction", .kind = String, .words = kLossReductions, .summary = "what becomes of the elements"}
  }];
}

def Net_BinaryCrossEntropyOp : Net_ElementLoss<"BinaryCrossEntropy", ["logits", "labels", "weight"],
    "-weight * (labels * log(logits) + (1 - labels) * log(1 - logits)), logarithms of at least 1e-12",
    "; (C4) `weight` broadcasts to the shape of `logits`"> {
  let summary = "cross entropy of probabilities of one class";
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, Net_Tensor:$weight,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let exampleInputs = "%logits: f32[16, 32], %labels: f32[16, 32], %weight: f32[32]";
}

def Net_BCEWithLogitsLossOp : Net_ElementLoss<"BCEWithLogitsLoss", ["logits", "label", "weight", "pos_weight"],
    "-weight * (pos_weight * label * log(p) + (1 - label) * log(1 - p)), p = Sigmoid(logits)",
    "; (C4) `weight` and `pos_weight` broadcast to the shape of `logits`"> {
  let summary = "cross entropy of the sigmoid of logits";
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$label, Net_Tensor:$weight, Net_Tensor:$pos_weight,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let exampleInputs = "%logits: f32[16, 32], %label: f32[16, 32], %weight: f32[32], %pos_weight: f32[]";
}

def Net_KLDivLossOp : Net_ElementLoss<"KLDivLoss", ["logits", "labels"], "labels * (log(labels) - logits), 0 where labels are 0"> {
  let summary = "divergence of labels from the probabilities whose logarithms the logits are";
  let words = "kDivergenceReductions";
  let meanText = "`reduction: mean`: `output = sum_i e[i] * (1 / n)`, n the global number of elements; `batchmean`: n the "
                 # "size of dimension 0; `sum`: without the factor; `none`: `output = e`.";
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
}

def Net_NLLLossOp : Net_Loss<"NLLLoss", ["logits", "labels", "weight"], ["loss", "total_weight"]> {
  let summary = "negative logarithms of the probabilities of the right classes";
  let description = [{
    `loss[i] = -weight[labels[i]] * logits[i, labels[i]]`, the classes being the last dimension; 0 where the label is
    `ignore_index` or no class. `total_weight = sum_i weight[labels[i]]` over the other rows. `reduction: mean`: the sum of
    the losses divided by `total_weight`; `sum`: not divided; `none`: one loss per row.

    Constraints:
    - (C1) `logits` holds floats and has at least 1 dimension; there are classes.
    - (C2) `labels` holds i32 or i64 and has the shape of `logits` without the last dimension.
    - (C3) `weight` has the type of `logits`, and one element per class.
    - (C4) `reduction` is mean, sum or none.
  }];
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, Net_Tensor:$weight,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs Net_Tensor:$loss, Net_Tensor:$total_weight);
  let exampleInputs = "%logits: f32[16, 32], %labels: i32[16], %weight: f32[32]";
  let specs = [{
    {.name = "reduction", .kind = String, .words = kLossReductions, .summary = "what becomes of the rows"},
    {.name = "ignore_index", .kind = Int, .summary = "rows with this label do not count"}
  }];
}

def Net_SparseSoftmaxCrossEntropyWithLogitsOp : Net_Loss<"SparseSoftmaxCrossEntropyWithLogits", ["logits", "labels"]> {
  let summary = "mean cross entropy between classes and the softmax of logits";
  let description = [{
    `SoftmaxCrossEntropyWithLogits(logits, labels, sparse: true, reduction: mean)`.

    Constraints: C1 and C2 of SoftmaxCrossEntropyWithLogits; there is at least one row.
  }];
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels);
  let exampleInputs = "%logits: f32[16, 32], %labels: i32[16]";
}
