//===- PlanDialect.td - what one rank does --------------------------------===//
//
// One to one with runtime/plan/plan.proto: buffers in one arena, steps in order, kernels, machine code.
//
//===----------------------------------------------------------------------===//

#ifndef MSC_DIALECTS_PLAN
#define MSC_DIALECTS_PLAN

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::msc::plan_ir";
  let summary = "what one rank does: buffers, kernel launches, collectives, waits";
  let description = [{
    The last form of a network before it is written as a plan. Buffers are values, steps are operators in order of
    execution; both are rank-parametric: a buffer's local size is a function of the rank's coordinates through the
    sharding in its tensor type. Steps carry `net.instance_name`, `net.phase` and a location like the operators they
    come from, and `step_op`, the word that dumps and profiles show.
  }];
  let useDefaultTypePrinterParser = 1;
  let usePropertiesForAttributes = 0;
}

def Plan_BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "memory";
  let summary = "memory of one tensor in the arena";
}

def Plan_BufferKind : I32EnumAttr<"BufferKind", "how long a buffer lives", [
    I32EnumAttrCase<"activation", 0>, I32EnumAttrCase<"parameter", 1>, I32EnumAttrCase<"input", 2>,
    I32EnumAttrCase<"output", 3>, I32EnumAttrCase<"scalar", 4>, I32EnumAttrCase<"constant", 5>]> {
  let cppNamespace = "::msc::plan_ir";
}

def Plan_ProgramOp : Op<Plan_Dialect, "program", [Symbol, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "a program by purpose: train, evaluate or predict";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$network, OptionalAttr<I64Attr>:$arena_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `of` $network attr-dict-with-keyword $body";
}

def Plan_BufferOp : Op<Plan_Dialect, "buffer", []> {
  let summary = "a tensor in the arena";
  let description = [{
    `tensor` is the global type with its sharding. `bytes` is the capacity: the largest local size over all ranks.
    `offset` is set by the pass `msc-assign-memory`. A buffer with an operand `view_of` shows that buffer's memory under
    another shape.
  }];
  let arguments = (ins StrAttr:$name, TypeAttr:$tensor, Plan_BufferKind:$kind, I64Attr:$bytes,
                       OptionalAttr<I64Attr>:$offset, Optional<Plan_BufferType>:$view_of);
  let results = (outs Plan_BufferType:$memory);
  let assemblyFormat = "$name $tensor $kind `bytes` $bytes (`offset` $offset^)? (`view_of` $view_of^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_KernelOp : Op<Plan_Dialect, "kernel", [Symbol]> {
  let summary = "a generated kernel and its variants";
  let description = [{
    `symbols[i]` runs where the sizes that a launch names as `inner` are `sizes[i]`. All variants take the same pointers.
    `pieces[i]` and `scratch[i]` are those of `Variant` in plan.proto; absent where all are 0.
    `gpu[i]` is its launch on GPUs, with the fields of `GpuLaunch` in plan.proto; absent where the plan has no PTX.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$arguments, ArrayAttr:$sizes, StrArrayAttr:$symbols,
                       OptionalAttr<DenseI64ArrayAttr>:$pieces, OptionalAttr<DenseI64ArrayAttr>:$scratch,
                       OptionalAttr<DictArrayAttr>:$gpu);
  let assemblyFormat = [{
    $sym_name `arguments` $arguments `sizes` $sizes `symbols` $symbols (`pieces` $pieces^ `scratch` $scratch)? (`gpu` $gpu^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ObjectOp : Op<Plan_Dialect, "object", []> {
  let summary = "machine code of all kernels for one instruction set";
  let arguments = (ins StrAttr:$isa, StrAttr:$code);
  let assemblyFormat = "$isa $code attr-dict";
}

def Plan_LaunchOp : Op<Plan_Dialect, "launch", []> {
  let summary = "runs a generated kernel over a range";
  let description = [{
    `inner` and `range` are pairs (argument, dimension) whose local sizes choose the variant and, multiplied, give the end
    of the range. `writes` lists the arguments that the kernel writes, `updates` those that it reads and writes; the others are read.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$arguments, DenseI64ArrayAttr:$writes,
                       DenseI64ArrayAttr:$updates, DenseI64ArrayAttr:$inner, DenseI64ArrayAttr:$range, I64Attr:$tasks, I64Attr:$unit,
                       StrAttr:$step_op);
  let assemblyFormat = "$step_op $kernel `(` $arguments `)` `writes` $writes `updates` $updates `inner` $inner `range` $range `tasks` $tasks `unit` $unit attr-dict";
  let hasVerifier = 1;
}

def Plan_MatMulOp : Op<Plan_Dialect, "matmul", []> {
  let summary = "result = activation(op(left) op(right) + bias), added in f32, by the device's library";
  let arguments = (ins Plan_BufferType:$left, Plan_BufferType:$right, Plan_BufferType:$result,
                       Optional<Plan_BufferType>:$bias, BoolAttr:$transpose_left, BoolAttr:$transpose_right,
                       BoolAttr:$sum_batch, StrAttr:$activation, I64Attr:$tasks, StrAttr:$step_op);
  let assemblyFormat = "$step_op `(` $left `,` $right `)` `->` $result (`bias` $bias^)? `activation` $activation `tasks` $tasks attr-dict";
}

def Plan_CallOp : Op<Plan_Dialect, "call", [AttrSizedOperandSegments]> {
  let summary = "results = kernel(operands) by a kernel of the runtime";
  let description = [{
    `operator_attributes` are those of the operator that the step comes from, by name: integers, lists of integers, floats, bools
    and words.
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<Plan_BufferType>:$inputs, Variadic<Plan_BufferType>:$targets,
                       DictionaryAttr:$operator_attributes, I64Attr:$tasks, StrAttr:$step_op);
  let assemblyFormat = "$step_op $kernel `(` $inputs `)` `->` $targets $operator_attributes `tasks` $tasks attr-dict";
  let hasVerifier = 1;
}

def Plan_CopyOp : Op<Plan_Dialect, "copy", []> {
  let summary = "copies within this rank: what the target holds out of the source, or regions";
  let description = [{
    Without `regions`, source and target are one tensor and the target's box lies within the source's. With them,
    `regions[i]` lists what is copied out of source i (msc::flattened, operands without meaning); `fill` is the value of all
    other elements, absent where there are none.
  }];
  let arguments = (ins Variadic<Plan_BufferType>:$sources, Plan_BufferType:$target, StrAttr:$step_op,
                       OptionalAttr<ArrayAttr>:$regions, OptionalAttr<F64Attr>:$fill);
  let assemblyFormat = "$step_op `(` $sources `)` `->` $target attr-dict";
  let hasVerifier = 1;
}

def Plan_FillOp : Op<Plan_Dialect, "fill", []> {
  let summary = "writes one value into all elements, once when the plan is loaded";
  let arguments = (ins Plan_BufferType:$target, F64Attr:$value, StrAttr:$step_op);
  let assemblyFormat = "$step_op `(` $value `)` `->` $target attr-dict";
}

def Plan_CollectiveOp : Op<Plan_Dialect, "collective", [SameVariadicOperandSize]> {
  let summary = "one collective of one or more tensors; complete when the step ends unless `asynchronous`";
  let description = [{
    Sources, targets, reasons, bytes and the operators that need them go together; the time is of all. An Exchange may have
    `regions`, one list per source, and `fill` as a copy has them; then several sources may have one target.
  }];
  let arguments = (ins StrAttr:$step_op, Variadic<Plan_BufferType>:$sources, Variadic<Plan_BufferType>:$targets,
                       DenseI64ArrayAttr:$group_matrix, DenseI32ArrayAttr:$group_axes, I64Attr:$reduction,
                       BoolAttr:$asynchronous, StrArrayAttr:$reasons, DenseI64ArrayAttr:$bytes, F64Attr:$predicted_us,
                       StrArrayAttr:$for_operators, OptionalAttr<ArrayAttr>:$regions, OptionalAttr<F64Attr>:$fill);
  let assemblyFormat = [{ $step_op `(` $sources `)` `->` $targets `group` $group_matrix `axes` $group_axes `reduction` $reduction
    `asynchronous` $asynchronous `reasons` $reasons `bytes` $bytes `predicted_us` $predicted_us `for` $for_operators attr-dict }];
  let hasVerifier = 1;
}

def Plan_WaitOp : Op<Plan_Dialect, "wait", []> {
  let summary = "waits for the asynchronous collective whose first target is `target`";
  let arguments = (ins Plan_BufferType:$target, StrAttr:$step_op);
  let assemblyFormat = "$step_op `(` $target `)` attr-dict";
}

def Plan_InputOp : Op<Plan_Dialect, "input", []> {
  let summary = "a buffer that the data pipeline fills before each step";
  let arguments = (ins StrAttr:$name, Plan_BufferType:$memory);
  let assemblyFormat = "$name $memory attr-dict";
}

def Plan_OutputOp : Op<Plan_Dialect, "output", []> {
  let summary = "a named result that can be fetched";
  let description = [{ `printed` is the message of an operator Print: then it is shown after every step. }];
  let arguments = (ins StrAttr:$name, Plan_BufferType:$memory, BoolAttr:$kept, OptionalAttr<StrAttr>:$printed);
  let assemblyFormat = "$name $memory `kept` $kept (`printed` $printed^)? attr-dict";
}

def Plan_ParameterOp : Op<Plan_Dialect, "parameter", []> {
  let summary = "a trained parameter or a state, kept over steps";
  let arguments = (ins StrAttr:$name, Plan_BufferType:$memory, DictionaryAttr:$initializer, BoolAttr:$trained,
                       StrAttr:$state_of, StrAttr:$draw_name);
  let assemblyFormat = "$name $memory $initializer `trained` $trained `state_of` $state_of `draw` $draw_name attr-dict";
}

def Plan_ScheduleOp : Op<Plan_Dialect, "schedule", []> {
  let summary = "a step-dependent scalar";
  let arguments = (ins StrAttr:$name, Plan_BufferType:$memory, DictionaryAttr:$schedule);
  let assemblyFormat = "$name $memory $schedule attr-dict";
}

#endif // MSC_DIALECTS_PLAN
