//===- Communication.td - communication that networks write themselves ----===//
//
// For hybrid_parallel mode, where every tensor is one per rank. What the ranks hold makes one tensor, of which each has a
// piece or a term; that tensor moves as any other does (`communication`). `rank_size` is the number of devices; the frontend
// fills it in.

#ifndef MSC_DIALECTS_NET_COMMUNICATION
#define MSC_DIALECTS_NET_COMMUNICATION

include "dialects/net/NetBase.td"
include "dialects/net/ops/communication/CommunicationInterface.td"

class Net_Communication<string mnemonic, list<string> inputs, list<string> outputs, list<Trait> traits = [Net_Differentiable]>
    : Net_Operator<mnemonic, inputs, outputs,
                   !listconcat([Net_Rule, Net_DefaultCost, Net_NotGeneric, DeclareOpInterfaceMethods<Net_CommunicationInterface>],
                                traits)> {
  let exampleInputs = "%x: f32[16, 32]";
  string group = [{
    {.name = "group", .kind = String, .words = kGroups, .summary = "MindSpore's names of the group of all ranks"},
    {.name = "rank_list", .kind = IntTuple, .summary = "a group of some ranks, as rank 0 sees it; the others have groups alike"},
  }];
  string rankSize = [{
    {.name = "rank_size", .kind = Int, .summary = "the number of devices; need not be written"}
  }];
  string reduction = [{
    {.name = "op", .kind = String, .words = kRankReductions, .summary = "sum, max, min or prod"},
  }];
}

def Net_AllReduceOp : Net_Communication<"AllReduce", ["x"], ["output"]> {
  let summary = "the sum (or maximum, minimum, product) over the tensors of all ranks";
  let description = [{
    `output = sum_r x_r` over the ranks r of the group, the same on all of them, added in the order of the ranks. With `op`
    max, min or prod the maximum, minimum or product. The gradient of a sum is a sum; of an extremum it goes to all ranks
    whose element is the extremum.

    Constraints:
    - (C1) `x` holds numbers.
    - (C2) `rank_list` begins with 0 and goes on in equal steps; steps times ranks divide the number of devices. Left out:
      all ranks.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "sum">:$op, DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group,
                       OptionalAttr<DenseI64ArrayAttr>:$rank_list, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let specs = reduction # group # rankSize;
}

def Net_AllGatherOp : Net_Communication<"AllGather", ["x"], ["output"]> {
  let summary = "the tensors of all ranks behind one another";
  let description = [{
    `output = [x_0, x_1, ...]` along dimension 0, x_r the tensor of the group's rank r; the same on all of them. The gradient
    is a ReduceScatter.

    Constraints:
    - (C1) `x` has a dimension.
    - (C2) `rank_list` as in AllReduce.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group,
                       OptionalAttr<DenseI64ArrayAttr>:$rank_list, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let specs = group # rankSize;
}

def Net_ReduceScatterOp : Net_Communication<"ReduceScatter", ["x"], ["output"]> {
  let summary = "each rank's piece of the sum (or maximum, minimum, product) over the tensors of all ranks";
  let description = [{
    `output_r` is the r-th of as many equal pieces of `sum_q x_q` along dimension 0 as the group has ranks. The gradient of a
    sum is an AllGather.

    Constraints:
    - (C1) `x` holds numbers and has a dimension.
    - (C2) `rank_list` as in AllReduce.
    - (C3) the number of ranks in the group divides dimension 0.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "sum">:$op, DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group,
                       OptionalAttr<DenseI64ArrayAttr>:$rank_list, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let specs = reduction # group # rankSize;
}

def Net_AlltoAllOp : Net_Communication<"AlltoAll", ["x"], ["output"]> {
  let summary = "piece q of every rank's tensor goes to rank q";
  let description = [{
    `output_r` joins along `concat_dim` the r-th of `split_count` equal pieces along `split_dim` of x_0, x_1, ... The gradient
    is an AlltoAll with both dimensions swapped.

    Constraints:
    - (C1) `split_dim` and `concat_dim` lie in [-rank, rank).
    - (C2) `rank_list` as in AllReduce.
    - (C3) `split_count` is the number of ranks in the group and divides dimension `split_dim`.
  }];
  let arguments = (ins Net_Tensor:$x, I64Attr:$split_count, I64Attr:$split_dim, I64Attr:$concat_dim,
                       DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group, OptionalAttr<DenseI64ArrayAttr>:$rank_list,
                       DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "split_count: 1, split_dim: 1, concat_dim: 0";
  let specs = [{
    {.name = "split_count", .kind = Int, .required = true, .positional = true, .summary = "the number of ranks in the group"},
    {.name = "split_dim", .kind = Int, .required = true, .positional = true, .summary = "the dimension that is cut"},
    {.name = "concat_dim", .kind = Int, .required = true, .positional = true, .summary = "the dimension along which pieces are joined"},
  }] # group # rankSize;
}

def Net_BroadcastOp : Net_Communication<"Broadcast", ["x"], ["output"]> {
  let summary = "the tensor of one rank, on all ranks";
  let description = [{
    `output = x_root`, x_root the tensor of rank `root_rank` of the group. The gradient is the sum over the ranks, on that
    rank alone.

    Constraints:
    - (C1) `root_rank` is the number of a rank within the group.
    - (C2) `rank_list` as in AllReduce.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$root_rank, DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group,
                       OptionalAttr<DenseI64ArrayAttr>:$rank_list, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "root_rank: 0";
  let specs = [{
    {.name = "root_rank", .kind = Int, .positional = true, .summary = "whose tensor it is"},
  }] # group # rankSize;
}

def Net_NeighborExchangeOp : Net_Communication<"NeighborExchange", ["x"], ["output0"]> {
  let summary = "tensors sent to some ranks, and received from some";
  let description = [{
    Rank r sends operand i to rank `send_rank_ids[r][i]` and receives output j from rank `recv_rank_ids[r][j]`; -1: none, and
    the output holds zeros. One text serves all ranks, so both lists have a row per rank, one behind the other. Several
    tensors between the same two ranks arrive in the order of the operands. The gradient is the exchange backwards.

    Constraints:
    - (C1) all operands have one shape and element type.
    - (C2) `send_rank_ids` has a number per rank and operand, `recv_rank_ids` as many for every rank, all from -1 to below the
      number of ranks.
    - (C3) what is sent from one rank to another is as much as is received there.
  }];
  let arguments = (ins Variadic<Net_Tensor>:$x, DenseI64ArrayAttr:$send_rank_ids, DenseI64ArrayAttr:$recv_rank_ids,
                       DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Variadic<Net_Tensor>:$outputs);
  let exampleAttributes = "send_rank_ids: (0), recv_rank_ids: (0)";
  let specs = [{
    {.name = "send_rank_ids", .kind = IntTuple, .required = true, .summary = "to whom: per rank a number for every operand"},
    {.name = "recv_rank_ids", .kind = IntTuple, .required = true, .summary = "from whom: per rank a number for every output"},
    {.name = "group", .kind = String, .words = kGroups, .summary = "MindSpore's names of the group of all ranks"},
  }] # rankSize;
}

def Net_SendOp : Net_Operator<"Send", ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_NotGeneric]> {
  let summary = "what a Receive with the same tag takes";
  let description = [{
    `output = x`; a Receive that reads it gets the tensor of its own `src_rank` on rank `dest_rank`.

    Constraints: (C1) `dest_rank` is the number of a rank.
  }];
  let arguments = (ins Net_Tensor:$x, I64Attr:$sr_tag, I64Attr:$dest_rank, DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group,
                       DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "sr_tag: 0, dest_rank: 0";
  let specs = [{
    {.name = "sr_tag", .kind = Int, .required = true, .positional = true, .summary = "tells the Receive that takes it"},
    {.name = "dest_rank", .kind = Int, .required = true, .positional = true, .summary = "the rank that receives"},
    {.name = "group", .kind = String, .words = kGroups, .summary = "MindSpore's names of the group of all ranks"},
    {.name = "rank_size", .kind = Int, .summary = "the number of devices; need not be written"}
  }];
}

def Net_ReceiveOp : Net_Communication<"Receive", ["x"], ["output"]> {
  let summary = "the tensor that a rank sends";
  let description = [{
    `output = x_src` on rank `dest_rank`, x_src the tensor of rank `src_rank`; zeros on all others. `x` is what a Send with the
    same tag gives; then `dest_rank` is that of the Send and need not be written. The gradient goes the same way back.

    Constraints:
    - (C1) `src_rank` and `dest_rank` are numbers of ranks.
    - (C2) `shape` and `dtype` may be left out; they are those of `x`.
  }];
  let arguments = (ins Net_Tensor:$x, I64Attr:$sr_tag, I64Attr:$src_rank, OptionalAttr<DenseI64ArrayAttr>:$shape,
                       OptionalAttr<TypeAttr>:$dtype, OptionalAttr<I64Attr>:$dest_rank,
                       DefaultValuedStrAttr<StrAttr, "nccl_world_group">:$group, DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "sr_tag: 0, src_rank: 0, dest_rank: 0";
  let specs = [{
    {.name = "sr_tag", .kind = Int, .required = true, .positional = true, .summary = "the tag of the Send"},
    {.name = "src_rank", .kind = Int, .required = true, .positional = true, .summary = "the rank that sends"},
    {.name = "shape", .kind = IntTuple, .positional = true, .summary = "shape of the tensor"},
    {.name = "dtype", .kind = Type, .positional = true, .summary = "type of its elements"},
    {.name = "dest_rank", .kind = Int, .summary = "the rank that receives; need not be written"},
    {.name = "group", .kind = String, .words = kGroups, .summary = "MindSpore's names of the group of all ranks"},
    {.name = "rank_size", .kind = Int, .summary = "the number of devices; need not be written"}
  }];
}

def Net_RankOp : Net_Communication<"Rank", [], ["output"], []> {
  let summary = "the number of the rank";
  let description = [{
    `output = 0, 1, ...`, on every rank its own number, an i32 scalar: MindSpore's get_rank().
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "1">:$rank_size);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "";
  let specs = rankSize;
}

def Net_ReinterpretOp : Op<Net_Dialect, "Reinterpret", [Pure, Net_NotGeneric]> {
  let summary = "what the ranks hold, as pieces or terms of another tensor";
  let description = [{
    Behind the partition only. Nothing moves: every rank has as many elements of the result as of the source, the same ones in
    the same order. So tensors that each rank has on its own become one tensor, and back.
  }];
  let arguments = (ins Net_Tensor:$source);
  let results = (outs Net_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
}

#endif // MSC_DIALECTS_NET_COMMUNICATION
