//===- Structure.td - what holds operators together -----------------------===//

#ifndef MSC_DIALECTS_NET_STRUCTURE
#define MSC_DIALECTS_NET_STRUCTURE

include "dialects/net/NetBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Net_NetworkOp : Op<Net_Dialect, "network", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "a network: inputs, parameters, operators, named results";
  let description = [{
    The block arguments are the inputs (`input_names` in order), the body holds `net.param`, operators, `net.update`
    and ends in `net.return`.
    ```mlir
    net.network @quickstart inputs ["x", "label"] {
    ^bb0(%x: tensor<16x32xf32>, %label: tensor<16x16xf32>):
      ...
      net.return %loss, %out names ["loss", "out"] : tensor<f32>, tensor<16x16xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$input_names);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $input_names attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Net_ReturnOp : Op<Net_Dialect, "return", [Terminator, HasParent<"NetworkOp">]> {
  let summary = "named results of a network";
  let arguments = (ins Variadic<Net_Tensor>:$values, StrArrayAttr:$names);
  let assemblyFormat = "($values^)? `names` $names attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def Net_ParamOp : Op<Net_Dialect, "param", [HasParent<"NetworkOp">]> {
  let summary = "a parameter, or a state that is not trained";
  let description = [{
    `initializer` is a dictionary {kind, a, b} as in plan.proto. `trained = false` marks state (optimizer moments,
    running statistics). `state_of` names the parameter an optimizer state belongs to.
  }];
  let arguments = (ins StrAttr:$name, DictionaryAttr:$initializer, DefaultValuedAttr<BoolAttr, "true">:$trained,
                       DefaultValuedStrAttr<StrAttr, "">:$state_of, DefaultValuedStrAttr<StrAttr, "">:$draw_name);
  let results = (outs Net_Tensor:$value);
  let assemblyFormat = "$name `=` $initializer attr-dict `:` type($value)";
}

def Net_ScalarOp : Op<Net_Dialect, "scalar", [HasParent<"NetworkOp">, Pure]> {
  let summary = "a step-dependent scalar, e.g. the learning rate";
  let description = [{ The runtime writes its value before each step. `schedule` is a dictionary {kind, values}. }];
  let arguments = (ins StrAttr:$name, DictionaryAttr:$schedule);
  let results = (outs Net_Tensor:$value);
  let assemblyFormat = "$name `=` $schedule attr-dict `:` type($value)";
}

def Net_ConstantOp : Op<Net_Dialect, "constant", [HasParent<"NetworkOp">, Pure]> {
  let summary = "a tensor whose elements all have one value";
  let arguments = (ins F64Attr:$splat);
  let results = (outs Net_Tensor:$value);
  let assemblyFormat = "$splat attr-dict `:` type($value)";
}

def Net_UpdateOp : Op<Net_Dialect, "update", [HasParent<"NetworkOp">]> {
  let summary = "writes the new value of a parameter or state at the end of the step";
  let arguments = (ins Net_Tensor:$parameter, Net_Tensor:$new_value);
  let assemblyFormat = "$parameter `,` $new_value attr-dict `:` type($parameter) `,` type($new_value)";
  let hasVerifier = 1;
}

def Net_ConfigOp : Op<Net_Dialect, "config"> {
  let summary = "a block such as train, dataset, context, checkpoint";
  let description = [{
    `kind` is the word before the block, `name` the optional word behind it. `fields` holds what the user wrote:
    integers i64, floats f64, bools, strings (words too), arrays for tuples and lists, dictionaries for maps; a call
    `Momentum(learning_rate: 0.2)` is {callee = "Momentum", args = [positional ...], named = {...}}; `%a` is
    {value = "a"}. `locations` maps each key to its place.
  }];
  let arguments = (ins StrAttr:$kind, DefaultValuedStrAttr<StrAttr, "">:$name, DictionaryAttr:$fields,
                       DictionaryAttr:$locations);
  let assemblyFormat = "$kind $name $fields `at` $locations attr-dict";
}

#endif // MSC_DIALECTS_NET_STRUCTURE
