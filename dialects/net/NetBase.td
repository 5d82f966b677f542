//===- NetBase.td - the net dialect and its operator families -------------===//

#ifndef MSC_DIALECTS_NET_BASE
#define MSC_DIALECTS_NET_BASE

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/net/interfaces/NetInterfaces.td"

def Net_Dialect : Dialect {
  let name = "net";
  let cppNamespace = "::msc::net";
  let summary = "networks on global tensors";
  let description = [{
    What a user writes: operators, parameters, inputs and results on global tensors, and the blocks that say how to
    train. Operators carry MindSpore's names and attribute names. The same operators appear again after partitioning;
    then every tensor type carries a sharding (`#dist.sharding`) as its encoding, and each rank computes the operator
    on its own shards.

    Attributes that every operator may carry, besides its own (see NetAttributes.h): `net.instance_name`, `net.scope`,
    `net.value_names`, `net.in_strategy`, `net.out_strategy`, `net.strategy_origin`, `net.alike`, `net.phase`, `net.forward`,
    `net.gradient_of_result`, `net.gradient_of_operand`.
  }];
  let usePropertiesForAttributes = 0;
  let useDefaultAttributePrinterParser = 0;
}

// What tensors may hold. Which operator accepts which is checked by type inference, whose messages name the values.
def Net_Tensor : RankedTensorOf<[F16, BF16, F32, F64, I1, I32, I64]>;

// Every operator: face towards text, type inference, rule, cost, lowering. An operator without a gradient leaves out
// Net_Differentiable and stands in the list of test/dialects/net with the reason.
//
// The class writes the tables that differ in words only. An operator brings
//   - `infer`: constraints and result types; reports through Inference (ops/support/Infer.h);
//   - `specs`: C++ initialisers of its AttributeSpecs, in positional order;
//   - the interface methods of its traits.
// `exampleInputs` and `exampleAttributes` make the example that `msc ops` shows; f32 there stands for any element type
// that the operator takes.
class Net_Operator<string mnemonic, list<string> inputs, list<string> outputs, list<Trait> traits = []>
    : Op<Net_Dialect, mnemonic, !listconcat([
        Pure,
        DeclareOpInterfaceMethods<InferTypeOpInterface>,
        DeclareOpInterfaceMethods<Net_OperatorInterface>], traits)> {
  code specs = "";
  int optionalInputs = 0; // of the last inputs
  string exampleInputs = !interleave(!foreach(name, inputs, "%" # name # ": f32[16, 32]"), ", ");
  string exampleAttributes = "";
  code declarations = "";
  code definitions = "";
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// Checks the operands and attributes and gives the result types (without encodings).
    static ::llvm::LogicalResult infer(const ::msc::net::Inference &at, Adaptor op,
                                       ::llvm::SmallVectorImpl<::mlir::Type> &results);
    /// Encodings (shardings) do not count.
    static bool isCompatibleReturnTypes(::mlir::TypeRange left, ::mlir::TypeRange right);
  }] # declarations;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &inferredReturnTypes) {
      ::msc::net::Inference at{location, getOperationName().drop_front(4), operands, inputNames(), context,
                               $cppClass::hasTrait<::mlir::OpTrait::VariadicOperands>(), optionalInputs()};
      if (::llvm::failed(at.checkOperandCount()))
        return ::llvm::failure();
      // The operator may not exist yet: defaults are filled in when it does.
      ::mlir::NamedAttrList all(attributes);
      populateDefaultAttrs(::mlir::OperationName(getOperationName(), context), all);
      if (::llvm::failed(at.checkAttributes(attributeSpecs(), all)))
        return ::llvm::failure();
      if (::llvm::failed(infer(at, Adaptor(operands, all.getDictionary(context), properties, regions), inferredReturnTypes)))
        return ::llvm::failure();
      return at.checkResults(inferredReturnTypes);
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange left, ::mlir::TypeRange right) {
      return ::msc::net::sameTensors(left, right);
    }
    ::llvm::ArrayRef<::llvm::StringRef> $cppClass::inputNames() {
  }] # !if(!empty(inputs), "return {};", [{
      static constexpr ::llvm::StringRef names[] = {"}] # !interleave(inputs, "\", \"") # [{"};
      return names;
  }]) # [{
    }
    unsigned $cppClass::optionalInputs() { return }] # !cast<string>(optionalInputs) # [{; }
    ::llvm::ArrayRef<::llvm::StringRef> $cppClass::outputNames() {
      static constexpr ::llvm::StringRef names[] = {"}] # !interleave(outputs, "\", \"") # [{"};
      return names;
    }
    ::llvm::ArrayRef<::msc::net::AttributeSpec> $cppClass::attributeSpecs() {
  }] # !if(!empty(specs), "return {};", [{
      using enum ::msc::net::AttributeKind;
      static constexpr ::msc::net::AttributeSpec specs[] = {}] # specs # "};" # [{
      return specs;
  }]) # [{
    }
    template <> ::msc::net::Documentation documentationOf<$cppClass>() {
      return {R"ods(}] # summary # [{)ods", R"ods(}] # description # [{)ods", R"ods(}] # exampleInputs # [{)ods",
              R"ods(%}] # !interleave(outputs, ", %") # " = " # mnemonic # "(" # !interleave(!foreach(name, inputs, "%" # name), ", ") #
                !if(!or(!empty(exampleAttributes), !empty(inputs)), "", ", ") # exampleAttributes # [{))ods"};
    }
  }] # definitions;
}

defvar Net_Differentiable = DeclareOpInterfaceMethods<Net_GradientInterface>;
defvar Net_Rule = DeclareOpInterfaceMethods<Net_ShardingRuleInterface>;
defvar Net_State = DeclareOpInterfaceMethods<Net_StateInterface>;
defvar Net_DefaultCost = Net_CostInterface;
defvar Net_OwnCost = DeclareOpInterfaceMethods<Net_CostInterface, ["cost"]>;
defvar Net_Generic = DeclareOpInterfaceMethods<Net_LowerInterface, ["lowerToLinalg"]>;
defvar Net_GenericOrEpilogue = DeclareOpInterfaceMethods<Net_LowerInterface, ["lowerToLinalg", "epilogueKind"]>;
defvar Net_NotGeneric = DeclareOpInterfaceMethods<Net_LowerInterface, ["loweringKind"]>;
defvar Net_Expanded = DeclareOpInterfaceMethods<Net_LowerInterface, ["loweringKind", "expand"]>;
defvar Net_CopiesRegions = DeclareOpInterfaceMethods<Net_RegionsInterface, ["copyRegions"]>;
defvar Net_CopiesAndFills = DeclareOpInterfaceMethods<Net_RegionsInterface, ["copyRegions", "fillValue"]>;
defvar Net_Halo = DeclareOpInterfaceMethods<Net_HaloInterface>;
defvar Net_HaloOfOperand = DeclareOpInterfaceMethods<Net_HaloInterface, ["haloLeader"]>;
// A kernel of the runtime registered under the operator's name: runtime/plan/calls, runtime/device/cpu/calls.
defvar Net_Library = DeclareOpInterfaceMethods<Net_LowerInterface, ["loweringKind"]>;
defvar Net_InPlace = DeclareOpInterfaceMethods<Net_LowerInterface, ["lowerToLinalg", "inPlaceResults"]>;

// What the operator expands to depends on into how many pieces its factors are cut (`net.pieces`).
def Net_ExpandsByPieces : NativeOpTrait<"ExpandsByPieces"> { let cppNamespace = "::msc::net"; }

// What mixed precision does with an operator: the first kind gains from narrow operands (products), norms keep f32 below
// level O3, losses at every level. All others follow their operands.
class Net_PrecisionTrait<string name> : NativeOpTrait<name> { let cppNamespace = "::msc::net"; }
def Net_NarrowOperands : Net_PrecisionTrait<"NarrowOperands">;
def Net_IsNorm : Net_PrecisionTrait<"IsNorm">;
def Net_IsLoss : Net_PrecisionTrait<"IsLoss">;

// For `gradient` of piecewise constant operators: every gradient is zero.
defvar Net_ZeroGradient = [{
  ::llvm::LogicalResult $cppClass::buildGradient(::mlir::OpBuilder &, ::mlir::ValueRange,
                                                 const ::llvm::SmallBitVector &,
                                                 ::llvm::MutableArrayRef<::mlir::Value>) {
    return ::llvm::success();
  }
}];

// An operator that treats every element alike, with NumPy broadcasting of its operands. It brings `scalarBody`, one
// scalar operation in `arith` and `math`; rule and lowering follow. `elements` is the ElementSet of the operands,
// `resultElement` the C++ name of the way to find the element type of the result: "SameElement" or "BoolElement".
class Net_Pointwise<string mnemonic, list<string> inputs, list<Trait> traits = [], Trait lowering = Net_Generic>
    : Net_Operator<mnemonic, inputs, ["output"],
                   !listconcat([Net_Rule, lowering, Net_DefaultCost], traits)> {
  string elements = "Float";
  string elementsText = !cond(!eq(elements, "Float") : "floats", !eq(elements, "Number") : "numbers",
                              !eq(elements, "Any") : "numbers or bool", !eq(elements, "Bool") : "bool");
  string resultElement = "SameElement";
  // Empty where the operator brings its own `infer`.
  code inference = [{
    ::llvm::LogicalResult $cppClass::infer(const ::msc::net::Inference &at, Adaptor,
                                           ::llvm::SmallVectorImpl<::mlir::Type> &results) {
      return ::msc::net::inferPointwise(at, ::msc::net::ElementSet::}] # elements # [{,
                                        ::msc::net::ResultElement::}] # resultElement # [{, results);
    }
  }];
  // Empty where the operator's .cpp brings `buildGradient`, or has none.
  code gradient = "";
  let results = (outs Net_Tensor:$output);
  let declarations = [{
    /// The operation on one element; `x` are the operands' elements.
    ::mlir::Value scalarBody(::mlir::ImplicitLocOpBuilder &b, ::mlir::ValueRange x);
  }];
  let definitions = inference # gradient # [{
    ::msc::net::ShardingRule $cppClass::shardingRule() { return ::msc::net::pointwiseRule(*this); }
    ::llvm::LogicalResult $cppClass::lowerToLinalg(
        ::mlir::OpBuilder &builder, ::mlir::ValueRange operands, ::mlir::TypeRange resultTypes,
        ::llvm::SmallVectorImpl<::mlir::Value> &results) {
      auto body = [&](::mlir::ImplicitLocOpBuilder &b, ::mlir::ValueRange x) -> ::llvm::SmallVector<::mlir::Value> {
        return {scalarBody(b, x)};
      };
      ::llvm::append_range(results, ::msc::net::buildPointwise(builder, getLoc(), operands, resultTypes, body));
      return ::llvm::success();
    }
  }];
}

// An operator that copies boxes of elements. It brings `infer` and `copyRegions`; all else follows.
class Net_RegionCopy<string mnemonic, list<string> inputs, list<string> outputs, Trait regions = Net_CopiesRegions>
    : Net_Operator<mnemonic, inputs, outputs, [Net_Differentiable, Net_Rule, Net_OwnCost, Net_NotGeneric, regions]> {
  let definitions = [{
    ::llvm::LogicalResult $cppClass::buildGradient(
        ::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients, const ::llvm::SmallBitVector &wanted,
        ::llvm::MutableArrayRef<::mlir::Value> operandGradients) {
      ::msc::net::buildRegionsGradient(*this, builder, resultGradients, wanted, operandGradients);
      return ::llvm::success();
    }
    ::msc::net::ShardingRule $cppClass::shardingRule() { return ::msc::net::regionsRule(*this); }
    ::msc::net::OperatorCost $cppClass::cost(::llvm::ArrayRef<::std::vector<int64_t>>,
                                             ::llvm::ArrayRef<::std::vector<int64_t>> resultShapes) {
      return ::msc::net::copyCost(*this, resultShapes);
    }
    ::msc::net::LoweringKind $cppClass::loweringKind() { return ::msc::net::LoweringKind::Regions; }
  }];
}

#endif // MSC_DIALECTS_NET_BASE
