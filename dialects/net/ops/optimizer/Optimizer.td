//===- Optimizer.td - steps of optimizers ---------------------------------===//
//
// Both members work element by element and in place. They have no gradient: a step is not part of the loss.

def Net_ApplyMomentumOp : Net_Operator<"ApplyMomentum", ["var", "accum", "learning_rate", "grad"],
    ["new_var", "new_accum"], [Net_Rule, Net_OwnCost, Net_InPlace]> {
  let summary = "one step of gradient descent with momentum";
  let description = [{
    `new_accum = momentum * accum + (1 - dampening) * g`; `new_var = var - learning_rate * new_accum`, with
    `use_nesterov` `new_var = var - learning_rate * (g + momentum * new_accum)`; `g = grad / loss_scale + weight_decay * var`.

    Constraints: (C1) `var`, `accum` and `grad` have the same float element type and shape; (C2) `learning_rate` is a
    scalar of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$accum, Net_Tensor:$learning_rate, Net_Tensor:$grad,
                       F64Attr:$momentum, DefaultValuedAttr<BoolAttr, "false">:$use_nesterov,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale,
                       DefaultValuedAttr<F64Attr, "0.0">:$dampening);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_accum);
  let exampleInputs = "%var: f32[16, 32], %accum: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "momentum: 0.9";
  let specs = [{
    {.name = "momentum", .kind = Float, .required = true, .summary = "what stays of the last step's direction"},
    {.name = "use_nesterov", .kind = Bool, .summary = "look ahead by one step"},
    {.name = "weight_decay", .kind = Float, .summary = "added times var to the gradient"},
    {.name = "loss_scale", .kind = Float, .summary = "the gradient is divided by it"},
    {.name = "dampening", .kind = Float, .summary = "share of the gradient that does not enter accum"}
  }];
}

def Net_SGDOp : Net_Operator<"SGD", ["var", "learning_rate", "grad"], ["new_var"],
    [Net_Rule, Net_OwnCost, Net_InPlace]> {
  let summary = "one step of plain gradient descent";
  let description = [{
    `new_var = var - learning_rate * g`; `g = grad / loss_scale + weight_decay * var`.

    Constraints: (C1) `var` and `grad` have the same float element type and shape; (C2) `learning_rate` is a scalar of
    that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$learning_rate, Net_Tensor:$grad,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var);
  let exampleInputs = "%var: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let specs = [{
    {.name = "weight_decay", .kind = Float, .summary = "added times var to the gradient"},
    {.name = "loss_scale", .kind = Float, .summary = "the gradient is divided by it"}
  }];
}
