//===- Passes.td - from a forward network to one training step ------------===//

#ifndef MSC_PASSES_AUTODIFF
#define MSC_PASSES_AUTODIFF

include "mlir/Pass/PassBase.td"

def BuildGradients : Pass<"msc-build-gradients", "::mlir::ModuleOp"> {
  let summary = "adds backward pass and parameter update to every network";
  let description = [{
    Before: `net.network` with forward operators, one result of which is the loss, a scalar float. After: the same
    operators, then the backward operators (phase "backward", `net.forward` = `net.id` of the forward operator whose
    gradient they belong to, its location, scope "Gradients/..."), then per trained parameter one step of the optimizer
    (phase "update", scope "Default/optimizer-...") and a `net.update`. Optimizer state is `net.param` with
    `trained = false`; the learning rate is `net.scalar`. Operators whose results nobody uses are gone.

    Gradients are built only for values on a path from a trained parameter to the loss. A parameter without such a path
    is reported and not updated. The optimizer, and the loss if the option is empty, are read from the module's `train`
    block; without one nothing is done.
  }];
  let options = [
    Option<"loss", "loss", "std::string", /*default=*/"", "name of the result that is minimised">,
    Option<"rankTensors", "rank-tensors", "int64_t", /*default=*/"1",
           "number of ranks that have tensors of their own: the loss and the gradients are means over them">,
    ListOption<"keep", "keep", "std::string", "further results, such as %a or grad:w">
  ];
}

#endif // MSC_PASSES_AUTODIFF
