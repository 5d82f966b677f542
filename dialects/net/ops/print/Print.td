//===- Print.td - a tensor that users want to see -------------------------===//
//
// The plan lists it as a result that msrun prints after every step (passes/autodiff/BuildGradients.cpp, passes/plan).

#ifndef MSC_DIALECTS_NET_PRINT
#define MSC_DIALECTS_NET_PRINT

include "dialects/net/NetBase.td"

def Net_PrintOp : Net_Operator<"Print", ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_NotGeneric]> {
  let summary = "prints a tensor after every step, and passes it on";
  let description = [{
    `output = x`. When a step has run, rank 0 prints `message`, if there is one, on a line of its own, and `x` as NumPy would:
    the whole tensor, however it is split. In hybrid_parallel mode every rank prints its own, in the order of the ranks. The
    result need not be used. Prints appear in the order of the network.

    Several tensors take several Prints: one operator would have to split all of them over the same ranks.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedStrAttr<StrAttr, "">:$message);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "\"x:\"";
  let specs = [{
    {.name = "message", .kind = String, .positional = true, .summary = "a line in front of the tensor"},
  }];
}

#endif // MSC_DIALECTS_NET_PRINT
