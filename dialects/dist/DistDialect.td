//===- DistDialect.td - shardings and data movement between ranks ---------===//

#ifndef MSC_DIALECTS_DIST
#define MSC_DIALECTS_DIST

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::msc::dist";
  let summary = "tensors that are spread over ranks, and the movement between two spreads";
  let description = [{
    A partitioned network is rank-parametric: types keep their global shape and carry a `#dist.sharding` as tensor
    encoding; local shapes, slices and groups are functions of a rank's coordinates. Operators of the `net` dialect then
    mean "each rank computes this on its own shards", and the operators of this dialect move data.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// The machine whose times all passes of a compilation use; the preset cpu-local unless the driver sets another.
    const ::msc::MachineModel &getMachine() const { return machine; }
    void setMachine(::msc::MachineModel model) { machine = std::move(model); }
    /// Plans are for GPUs alone, which multiply bf16 and f16 faster than f32.
    bool areOnlyGpus() const { return onlyGpus; }
    void setOnlyGpus(bool only) { onlyGpus = only; }

  private:
    ::msc::MachineModel machine = ::msc::MachineModel::cpuLocal();
    bool onlyGpus = false;

  public:
  }];
  let usePropertiesForAttributes = 0;
}

def Dist_ShardingAttr : AttrDef<Dist_Dialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "where the elements of a tensor are";
  let description = [{
    `#dist.sharding<"(2, 4) [0, 1]">`, the text of msc::Sharding::str(): device matrix, per dimension the axes that cut
    it ('-' none, '.' joins several, major first), partial axes by kind: `"(2, 4) [-, 0] partial(sum: 1)"`.
    See runtime/plan/Sharding.h.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$axes,
                        ArrayRefParameter<"::mlir::DenseI32ArrayAttr">:$dims,
                        ArrayRefParameter<"int32_t">:$partialAxes,
                        ArrayRefParameter<"int32_t">:$partialKinds);
  let extraClassDeclaration = [{
    /// The plain-data form. Cheap; the attribute is uniqued, the plain form is not.
    ::msc::Sharding get() const;
    static ShardingAttr get(::mlir::MLIRContext *context, const ::msc::Sharding &sharding);
  }];
  let hasCustomAssemblyFormat = 1;
}

def Dist_AllReduceKind : I32EnumAttrCase<"AllReduce", 0>;
def Dist_AllGatherKind : I32EnumAttrCase<"AllGather", 1>;
def Dist_ReduceScatterKind : I32EnumAttrCase<"ReduceScatter", 2>;
def Dist_AlltoAllKind : I32EnumAttrCase<"AlltoAll", 3>;
def Dist_PermuteKind : I32EnumAttrCase<"CollectivePermute", 4>;
def Dist_ExchangeKind : I32EnumAttrCase<"Exchange", 5>;
def Dist_CollectiveKind : I32EnumAttr<"CollectiveKind", "what moves", [
    Dist_AllReduceKind, Dist_AllGatherKind, Dist_ReduceScatterKind, Dist_AlltoAllKind, Dist_PermuteKind,
    Dist_ExchangeKind]> {
  let cppNamespace = "::msc::dist";
}

def Dist_ReshardOp : Op<Dist_Dialect, "reshard", [Pure]> {
  let summary = "changes the sharding of a value";
  let description = [{
    Source and result have the same global shape; their encodings say from what to what. `move` is "completion" (partial
    results of the operator become whole, in the operator's own output sharding) or "redistribution" (towards what a
    consumer wants). `reason` is a sentence for people. `dist.reshard` is replaced by collectives and slices by the
    pass `msc-plan-reshards`.
  }];
  let arguments = (ins AnyRankedTensor:$source, StrAttr:$move, DefaultValuedStrAttr<StrAttr, "">:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source $move attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_CollectiveOp : Op<Dist_Dialect, "collective", [Pure]> {
  let summary = "one collective among the ranks of a group";
  let description = [{
    From the encoding of the source to the encoding of the result. The group of a rank are the ranks that share all
    coordinates except those on `group_axes` of the device matrix `group_matrix`. `dimension` is the gathered dimension of
    AllGather, the scattered one of ReduceScatter, the concatenated one of AlltoAll (whose `split_dimension` is cut);
    -1 where it has no meaning or several dimensions take part. `received_elements` is what the busiest rank receives.
    ```mlir
    %1 = dist.collective AllReduce %0 group [2, 4] axes [1] move "completion" {received_elements = 192 : i64} : ...
    ```
  }];
  let arguments = (ins Dist_CollectiveKind:$kind, AnyRankedTensor:$source, DenseI64ArrayAttr:$group_matrix,
                       DenseI32ArrayAttr:$group_axes, DefaultValuedAttr<I64Attr, "-1">:$dimension,
                       DefaultValuedAttr<I64Attr, "-1">:$split_dimension, I64Attr:$received_elements, StrAttr:$move,
                       DefaultValuedStrAttr<StrAttr, "">:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{ $kind $source `group` $group_matrix `axes` $group_axes `move` $move attr-dict `:` type($source) `->` type($result) }];
  let hasVerifier = 1;
}

def Dist_SliceOp : Op<Dist_Dialect, "slice", [Pure]> {
  let summary = "keeps the part of its own shard that the result's sharding asks for; no communication";
  let description = [{ Every rank's box of the result lies within its box of the source. Dumps show StridedSlice. }];
  let arguments = (ins AnyRankedTensor:$source, StrAttr:$move, DefaultValuedStrAttr<StrAttr, "">:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source $move attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // MSC_DIALECTS_DIST
