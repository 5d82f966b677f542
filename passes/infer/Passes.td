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

def MixedPrecision : Pass<"msc-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "casts operands to bf16 or f16 as a level of mixed precision says";
  let description = [{
    `O1`: products (the operators with the trait NarrowOperands) take narrow operands, all others f32. `O2`: every operator
    takes narrow operands but norms, losses, and those that only read parameters. `O3`: as O2, norms too. Results of the
    network keep their types, and so do the values that a repeat carries. Casts that are there already are taken as they
    are: a second run changes nothing.
  }];
  let options = [Option<"level", "level", "std::string", /*default=*/"\"O0\"", "O0, O1, O2 or O3">,
                 Option<"element", "element", "std::string", /*default=*/"\"f16\"", "bf16 or f16">,
                 Option<"narrowAttention", "narrow-attention", "bool", /*default=*/"false", "attention takes narrow operands, too">];
}

#endif // MSC_PASSES_INFER
