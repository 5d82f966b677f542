//===- Passes.td - checks of whole networks -------------------------------===//

#ifndef MSC_PASSES_INFER
#define MSC_PASSES_INFER

include "mlir/Pass/PassBase.td"

def CheckNetwork : Pass<"msc-check-network", "::mlir::ModuleOp"> {
  let summary = "checks what no single operator can see";
  let description = [{
    Errors: a loss that is not a result of the network or not a float scalar. Warnings: parameters, inputs and
    operators that no result depends on. Operand types and attributes were checked when the operators were built. The network stays as it
    is. An empty `loss` is read from the module's `train` block.
  }];
  let options = [Option<"loss", "loss", "std::string", /*default=*/"", "name of the result that is minimised">,
                 ListOption<"keep", "keep", "std::string", "values that become results too">];
}

#endif // MSC_PASSES_INFER
