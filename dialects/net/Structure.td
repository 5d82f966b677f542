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

// What may stand in a network and in the rounds of a repeat.
defvar Net_InBody = ParentOneOf<["NetworkOp", "RepeatOp"]>;

def Net_RepeatOp : Op<Net_Dialect, "repeat", [Net_InBody, SingleBlock]> {
  let summary = "the same operators again and again, each round with parameters of its own";
  let description = [{
    Rounds `from` to `to` - 1, at least one. The block arguments are the carried values: `initial` in the first round,
    then what the round before yields; the results are what the last round yields. Types stay the same. The body may use
    values from outside. A `net.param` in the body is one parameter per round.

    Names in the body hold for all rounds: `{i}` stands for the round where `variable` is "i", `{{` for a brace. No
    repeat within has the same variable. Strategies in the body hold for all rounds. `msc-unroll` puts the rounds one
    after the other.
    ```mlir
    %h = net.repeat "i" from 0 to 96 (%x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%t: tensor<8x4xf32>):
      %w = net.param "layers.{i}.weight" = {kind = "zeros"} : tensor<4x4xf32>
      %y = net.MatMul %t, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      net.yield %y : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$variable, I64Attr:$from, I64Attr:$to, Variadic<Net_Tensor>:$initial);
  let results = (outs Variadic<Net_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $variable `from` $from `to` $to `(` $initial `)` attr-dict `:` functional-type($initial, $results) $body
  }];
  let extraClassDeclaration = [{
    int64_t firstRound() { return static_cast<int64_t>(getFrom()); }
    /// Behind the last round.
    int64_t endRound() { return static_cast<int64_t>(getTo()); }
    int64_t rounds() { return endRound() - firstRound(); }
    ::mlir::Operation::operand_range yielded() { return getBody().front().back().getOperands(); }
  }];
  let hasVerifier = 1;
}

def Net_YieldOp : Op<Net_Dialect, "yield", [Terminator, HasParent<"RepeatOp">]> {
  let summary = "what a round gives to the next one";
  let arguments = (ins Variadic<Net_Tensor>:$values);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
}

def Net_ParamOp : Op<Net_Dialect, "param", [Net_InBody]> {
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

def Net_ConstantOp : Op<Net_Dialect, "constant", [Net_InBody, Pure]> {
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
