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
    `net.value_names`, `net.in_strategy`, `net.out_strategy`, `net.strategy_origin`, `net.phase`, `net.forward`.
  }];
  let usePropertiesForAttributes = 0;
  let useDefaultAttributePrinterParser = 0;
}

// f32, f64, i32, i64, bool (i1); f16 and bf16 have their names already.
def Net_Element : AnyTypeOf<[F16, BF16, F32, F64, I1, I32, I64]>;
def Net_FloatElement : AnyTypeOf<[F16, BF16, F32, F64]>;
def Net_Tensor : RankedTensorOf<[F16, BF16, F32, F64, I1, I32, I64]>;
def Net_FloatTensor : RankedTensorOf<[F16, BF16, F32, F64]>;
def Net_BoolTensor : RankedTensorOf<[I1]>;

// Every operator: text face, shape inference, rule, cost, lowering. Operators without a gradient leave out
// Net_Differentiable and say why in their description.
class Net_Operator<string mnemonic, list<Trait> traits = []>
    : Op<Net_Dialect, mnemonic, !listconcat([
        Pure,
        DeclareOpInterfaceMethods<InferTypeOpInterface>,
        DeclareOpInterfaceMethods<Net_OperatorInterface>,
        DeclareOpInterfaceMethods<Net_ShardingRuleInterface>], traits)> {
}

defvar Net_Differentiable = DeclareOpInterfaceMethods<Net_GradientInterface>;
defvar Net_DefaultCost = Net_CostInterface;
defvar Net_OwnCost = DeclareOpInterfaceMethods<Net_CostInterface, ["cost"]>;

#endif // MSC_DIALECTS_NET_BASE
