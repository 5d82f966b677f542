//===- NetInterfaces.td - what every operator brings ----------------------===//
//
// One operator is one folder (or one family of operators that differ in a word). Its .cpp implements, in this order:
// verify, shape inference (upstream InferTypeOpInterface), Gradient, ShardingRule, Cost, Lower.
//
//===----------------------------------------------------------------------===//

#ifndef MSC_DIALECTS_NET_INTERFACES
#define MSC_DIALECTS_NET_INTERFACES

include "mlir/IR/OpBase.td"

def Net_OperatorInterface : OpInterface<"Operator"> {
  let cppNamespace = "::msc::net";
  let description = [{
    The face of an operator towards text: names and attributes as users write them. The operator's name is its
    mnemonic in the `net` dialect (`net.MatMul` is written `MatMul`).
  }];
  let methods = [
    StaticInterfaceMethod<"The attributes that users may write, in positional order.",
      "::llvm::ArrayRef<::msc::net::AttributeSpec>", "attributeSpecs", (ins)>,
    StaticInterfaceMethod<"Names of the operands (MindSpore's input_names), one per operand.",
      "::llvm::ArrayRef<::llvm::StringRef>", "inputNames", (ins)>,
    StaticInterfaceMethod<"How many of the last operands may be left out.", "unsigned", "optionalInputs", (ins)>,
    StaticInterfaceMethod<"Names of the results (MindSpore's output_names), one per result.",
      "::llvm::ArrayRef<::llvm::StringRef>", "outputNames", (ins)>,
  ];
}

def Net_GradientInterface : OpInterface<"Gradient"> {
  let cppNamespace = "::msc::net";
  let description = [{
    Builds the gradients of the operands from the gradients of the results, as `net` operators on global tensors.
  }];
  let methods = [
    InterfaceMethod<[{
        `resultGradients[i]` is null where nothing flows back into result i. `wanted[i]` says whether the gradient of
        operand i is needed; leave `operandGradients[i]` null where it is not wanted or is zero. The builder stands
        behind the last forward operator and gives every new operator this operator's location, scope and the phase
        "backward". Sum over broadcast dimensions with `sumTo`. Fails (with a diagnostic) if the operator has no
        gradient.
      }],
      "::llvm::LogicalResult", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGradients,
           "const ::llvm::SmallBitVector &":$wanted, "::llvm::MutableArrayRef<::mlir::Value>":$operandGradients)>,
  ];
}

def Net_ShardingRuleInterface : OpInterface<"ShardingRuleInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{ How the operator may be split: factors over the dimensions of operands and results. }];
  let methods = [
    InterfaceMethod<"The rule for this operator's global shapes and attributes.",
      "::msc::net::ShardingRule", "shardingRule", (ins)>,
  ];
}

def Net_CostInterface : OpInterface<"CostInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{ What the operator costs on one rank, in machine-independent units. }];
  let methods = [
    InterfaceMethod<[{
        Work for the given local shapes, one list per operand and per result. The default is one operation per result
        element, every operand read once and every result written once.
      }],
      "::msc::net::OperatorCost", "cost",
      (ins "::llvm::ArrayRef<::std::vector<int64_t>>":$operandShapes,
           "::llvm::ArrayRef<::std::vector<int64_t>>":$resultShapes),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::msc::net::defaultCost($_op, operandShapes, resultShapes);
      }]>,
  ];
}

def Net_StateInterface : OpInterface<"StateInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{
    An operator with state that training does not learn by gradients: running statistics. States are operands; their new
    values are extra results.
  }];
  let methods = [
    InterfaceMethod<"The network is going to be trained: attributes that depend on it and were left out are set.",
      "void", "beginTraining", (ins)>,
    InterfaceMethod<"(result, operand): the result is the operand's value for the next step.",
      "::llvm::SmallVector<::std::pair<unsigned, unsigned>>", "newStates", (ins)>,
  ];
}

def Net_LowerInterface : OpInterface<"Lower"> {
  let cppNamespace = "::msc::net";
  let description = [{
    How the operator becomes code on one rank. `Generic`: a scalar body as `linalg.generic`, fused with its neighbours
    and compiled. `MatMul`: a library call. `View`: the same elements under another shape, no code. `Regions`: boxes of
    elements copied from the operands, see RegionsInterface. `Expanded`: other operators in its place, which are split and
    completed like any others; so a factor that the operator reduces on the way (the axis of a softmax) may be cut.
    `Library`: a kernel of the runtime (runtime/device/cpu/calls), which takes the operator's name, its attributes, and
    every tensor with the rank's own box of it.
  }];
  let methods = [
    InterfaceMethod<"Which of the ways this operator takes.", "::msc::net::LoweringKind", "loweringKind", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return ::msc::net::LoweringKind::Generic;">,
    InterfaceMethod<[{
        Only for `Generic`. Builds `linalg.generic` operators (with `tensor.empty` and `linalg.fill` for accumulators)
        on this rank's local tensors: `operands` are ranked tensors with static local shapes, `resultTypes` the local
        types of the results. Attributes that speak of global sizes (a mean's count) use the operator's own global
        types. Bodies use `arith` and `math` only; bool is i1.
      }],
      "::llvm::LogicalResult", "lowerToLinalg",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$resultTypes,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results),
      /*methodBody=*/"", /*defaultImplementation=*/"return $_op->emitOpError(\"has no generic lowering\");">,
    InterfaceMethod<[{
        Only for `Expanded`. Builds the results out of other operators on global tensors, for operands that are split as
        the rule says. Where no operand tells how a result is split, `setResultFactors` does.
      }],
      "::llvm::SmallVector<::mlir::Value>", "expand",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands),
      /*methodBody=*/"", /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
        What the operator may be within the library call that computes its operand 0 as a matrix product. In f32 the fused and
        the separate operator give the same bits, so that a strategy decides about speed alone; a narrow product is rounded behind its bias
        instead of before and behind it.
      }],
      "::msc::net::EpilogueKind", "epilogueKind", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return ::msc::net::EpilogueKind::None;">,
    InterfaceMethod<[{
        (result, operand) pairs that may share memory because the operator updates the operand in place, e.g.
        (0, 0) for the parameter of an optimizer.
      }],
      "::llvm::SmallVector<::std::pair<unsigned, unsigned>>", "inPlaceResults", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return {};">,
  ];
}

def Net_RegionsInterface : OpInterface<"RegionsInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{
    An operator that copies boxes of elements (runtime/plan/CopyRegion.h). Gradient, rule and cost follow from the regions
    (ops/support/Regions.h). Operands and results have the same number of dimensions and one element type.
  }];
  let methods = [
    InterfaceMethod<"What is copied into a result, in global indices.", "::msc::CopyRegions", "copyRegions",
      (ins "unsigned":$result)>,
    InterfaceMethod<"The value of elements that no region writes.", "double", "fillValue", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return 0;">,
  ];
}

def Net_HaloInterface : OpInterface<"HaloInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{
    An operator whose windows reach over the boundaries of pieces: factors of its rule with `halo`. One of its tensors, the
    leader, decides: a rank that has some indices of it needs certain indices of the operands that carry the same factor.
    Those it gathers before the operator runs (Halo.h), or has already. A kernel takes such windows by its attribute `halo`.
  }];
  let methods = [
    InterfaceMethod<"The leader: the result, or the operand over which a partial result sums.", "::mlir::Value", "haloLeader",
      (ins), /*methodBody=*/"", /*defaultImplementation=*/"return $_op->getResult(0);">,
    InterfaceMethod<[{
        From the indices of the leader's dimension that a rank has, not none, to those of dimension `dim` of an operand that it
        needs: the same that the kernel derives, no index outside the dimension among them.
      }],
      "::msc::net::NeededIndices", "neededIndices", (ins "unsigned":$operand, "unsigned":$dim)>,
  ];
}

#endif // MSC_DIALECTS_NET_INTERFACES
