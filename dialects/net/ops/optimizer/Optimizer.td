//===- Optimizer.td - steps of optimizers ---------------------------------===//
//
// All members work element by element and in place. They have no gradient: a step is not part of the loss.

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

// Optimizers that scale each element by the history of its gradients: `Adaptive.cpp`.
class Net_AdaptiveStep<string mnemonic, list<string> inputs, list<string> outputs>
    : Net_Operator<mnemonic, inputs, outputs, [Net_Rule, Net_OwnCost, Net_InPlace]> {
  string decaySpecs = [{
    {.name = "weight_decay", .kind = Float, .summary = "added times var to the gradient"},
    {.name = "loss_scale", .kind = Float, .summary = "the gradient is divided by it"}
  }];
  string betaSpecs = [{
    {.name = "beta1", .kind = Float, .required = true, .summary = "what stays of the mean of gradients"},
    {.name = "beta2", .kind = Float, .required = true, .summary = "what stays of the mean of squares"},
    {.name = "epsilon", .kind = Float, .required = true, .summary = "added to the root of the mean of squares"},
  }];
}

def Net_AdamOp : Net_AdaptiveStep<"Adam", ["var", "m", "v", "beta1_correction", "beta2_correction", "learning_rate", "grad"],
    ["new_var", "new_m", "new_v"]> {
  let summary = "one step of Adam; with decoupled weight decay, of AdamW";
  let description = [{
    `new_m = beta1 * m + (1 - beta1) * g`; `new_v = beta2 * v + (1 - beta2) * g^2`; `d` is `new_m`, with `use_nesterov`
    `beta1 * new_m + (1 - beta1) * g`;
    `new_var = var - learning_rate * (d * beta1_correction) / (sqrt(new_v * beta2_correction) + epsilon)`.
    The corrections of step t = 1, 2, ... are `1 / (1 - beta1^t)` and `1 / (1 - beta2^t)`. `g = grad / loss_scale + weight_decay * var`;
    with `decoupled` `g = grad / loss_scale` and `new_var` starts from `var * (1 - learning_rate * weight_decay)`.

    Constraints: (C1) `var`, `m`, `v` and `grad` have the same float element type and shape; (C2) the corrections and
    `learning_rate` are scalars of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$m, Net_Tensor:$v, Net_Tensor:$beta1_correction,
                       Net_Tensor:$beta2_correction, Net_Tensor:$learning_rate, Net_Tensor:$grad,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       DefaultValuedAttr<BoolAttr, "false">:$use_nesterov, DefaultValuedAttr<BoolAttr, "false">:$decoupled,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_m, Net_Tensor:$new_v);
  let exampleInputs = "%var: f32[16, 32], %m: f32[16, 32], %v: f32[16, 32], %beta1_correction: f32[], %beta2_correction: f32[], %learning_rate: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "beta1: 0.9, beta2: 0.999, epsilon: 1e-8";
  let specs = betaSpecs # [{
    {.name = "use_nesterov", .kind = Bool, .summary = "look ahead by one step"},
    {.name = "decoupled", .kind = Bool, .summary = "weight decay shrinks var instead of entering the gradient"},
  }] # decaySpecs;
}

def Net_AdamWeightDecayOp : Net_AdaptiveStep<"AdamWeightDecay", ["var", "m", "v", "learning_rate", "grad"],
    ["new_var", "new_m", "new_v"]> {
  let summary = "one step of Adam with weight decay, without correction of the means";
  let description = [{
    `new_m = beta1 * m + (1 - beta1) * g`; `new_v = beta2 * v + (1 - beta2) * g^2`; `g = grad / loss_scale`;
    `new_var = var - learning_rate * (new_m / (sqrt(new_v) + epsilon) + weight_decay * var)`.

    Constraints: (C1) `var`, `m`, `v` and `grad` have the same float element type and shape; (C2) `learning_rate` is a
    scalar of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$m, Net_Tensor:$v, Net_Tensor:$learning_rate, Net_Tensor:$grad,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_m, Net_Tensor:$new_v);
  let exampleInputs = "%var: f32[16, 32], %m: f32[16, 32], %v: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "beta1: 0.9, beta2: 0.999, epsilon: 1e-6";
  let specs = betaSpecs # [{
    {.name = "weight_decay", .kind = Float, .summary = "added times var to the direction"},
    {.name = "loss_scale", .kind = Float, .summary = "the gradient is divided by it"}
  }];
}

def Net_LambNextMVOp : Net_AdaptiveStep<"LambNextMV", ["var", "m", "v", "beta1_correction", "beta2_correction", "grad"],
    ["update", "new_m", "new_v"]> {
  let summary = "the direction of one step of LAMB";
  let description = [{
    `new_m = beta1 * m + (1 - beta1) * g`; `new_v = beta2 * v + (1 - beta2) * g^2`; `g = grad / loss_scale`;
    `update = (new_m * beta1_correction) / (sqrt(new_v * beta2_correction) + epsilon) + weight_decay * var`.
    LambUpdateWithLR takes the step.

    Constraints: (C1) `var`, `m`, `v` and `grad` have the same float element type and shape; (C2) the corrections are
    scalars of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$m, Net_Tensor:$v, Net_Tensor:$beta1_correction,
                       Net_Tensor:$beta2_correction, Net_Tensor:$grad, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$update, Net_Tensor:$new_m, Net_Tensor:$new_v);
  let exampleInputs = "%var: f32[16, 32], %m: f32[16, 32], %v: f32[16, 32], %beta1_correction: f32[], %beta2_correction: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "beta1: 0.9, beta2: 0.999, epsilon: 1e-6";
  let specs = betaSpecs # [{
    {.name = "weight_decay", .kind = Float, .summary = "added times var to the direction"},
    {.name = "loss_scale", .kind = Float, .summary = "the gradient is divided by it"}
  }];
}

def Net_LambUpdateWithLROp : Net_AdaptiveStep<"LambUpdateWithLR", ["var", "w_norm", "g_norm", "learning_rate", "update"],
    ["new_var"]> {
  let summary = "one step of LAMB along a direction, as long as the parameter asks for";
  let description = [{
    `new_var = var - learning_rate * ratio * update`; `ratio = w_norm / g_norm`, 1 where one of them is 0. `w_norm` and
    `g_norm` are the norms of the whole `var` and the whole `update`.

    Constraints: (C1) `var` and `update` have the same float element type and shape; (C2) the norms and `learning_rate`
    are scalars of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$w_norm, Net_Tensor:$g_norm, Net_Tensor:$learning_rate,
                       Net_Tensor:$update);
  let results = (outs Net_Tensor:$new_var);
  let exampleInputs = "%var: f32[16, 32], %w_norm: f32[], %g_norm: f32[], %learning_rate: f32[], %update: f32[16, 32]";
}

def Net_ApplyRMSPropOp : Net_AdaptiveStep<"ApplyRMSProp", ["var", "mean_square", "moment", "learning_rate", "grad"],
    ["new_var", "new_mean_square", "new_moment"]> {
  let summary = "one step of RMSProp";
  let description = [{
    `new_mean_square = decay * mean_square + (1 - decay) * g^2`;
    `new_moment = momentum * moment + learning_rate * g / sqrt(new_mean_square + epsilon)`; `new_var = var - new_moment`;
    `g = grad / loss_scale + weight_decay * var`.

    Constraints: (C1) `var`, `mean_square`, `moment` and `grad` have the same float element type and shape;
    (C2) `learning_rate` is a scalar of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$mean_square, Net_Tensor:$moment, Net_Tensor:$learning_rate,
                       Net_Tensor:$grad, F64Attr:$decay, F64Attr:$momentum, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_mean_square, Net_Tensor:$new_moment);
  let exampleInputs = "%var: f32[16, 32], %mean_square: f32[16, 32], %moment: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "decay: 0.9, momentum: 0.0, epsilon: 1e-10";
  let specs = [{
    {.name = "decay", .kind = Float, .required = true, .summary = "what stays of the mean of squares"},
    {.name = "momentum", .kind = Float, .required = true, .summary = "what stays of the last step"},
    {.name = "epsilon", .kind = Float, .required = true, .summary = "added to the mean of squares"},
  }] # decaySpecs;
}

def Net_ApplyCenteredRMSPropOp : Net_AdaptiveStep<"ApplyCenteredRMSProp",
    ["var", "mean_grad", "mean_square", "moment", "learning_rate", "grad"],
    ["new_var", "new_mean_grad", "new_mean_square", "new_moment"]> {
  let summary = "one step of RMSProp by the variance of gradients";
  let description = [{
    `new_mean_grad = decay * mean_grad + (1 - decay) * g`; `new_mean_square = decay * mean_square + (1 - decay) * g^2`;
    `new_moment = momentum * moment + learning_rate * g / sqrt(new_mean_square - new_mean_grad^2 + epsilon)`;
    `new_var = var - new_moment`; `g = grad / loss_scale + weight_decay * var`.

    Constraints: (C1) `var`, `mean_grad`, `mean_square`, `moment` and `grad` have the same float element type and shape;
    (C2) `learning_rate` is a scalar of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$mean_grad, Net_Tensor:$mean_square, Net_Tensor:$moment,
                       Net_Tensor:$learning_rate, Net_Tensor:$grad, F64Attr:$decay, F64Attr:$momentum, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_mean_grad, Net_Tensor:$new_mean_square, Net_Tensor:$new_moment);
  let exampleInputs = "%var: f32[16, 32], %mean_grad: f32[16, 32], %mean_square: f32[16, 32], %moment: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let exampleAttributes = "decay: 0.9, momentum: 0.0, epsilon: 1e-10";
  let specs = [{
    {.name = "decay", .kind = Float, .required = true, .summary = "what stays of both means"},
    {.name = "momentum", .kind = Float, .required = true, .summary = "what stays of the last step"},
    {.name = "epsilon", .kind = Float, .required = true, .summary = "added to the variance"},
  }] # decaySpecs;
}

def Net_ApplyAdagradOp : Net_AdaptiveStep<"ApplyAdagrad", ["var", "accum", "learning_rate", "grad"],
    ["new_var", "new_accum"]> {
  let summary = "one step of Adagrad";
  let description = [{
    `new_accum = accum + g^2`; `new_var = var - learning_rate * g / sqrt(new_accum)`; `g = grad / loss_scale + weight_decay * var`.

    Constraints: (C1) `var`, `accum` and `grad` have the same float element type and shape; (C2) `learning_rate` is a
    scalar of that element type.
  }];
  let arguments = (ins Net_Tensor:$var, Net_Tensor:$accum, Net_Tensor:$learning_rate, Net_Tensor:$grad,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "1.0">:$loss_scale);
  let results = (outs Net_Tensor:$new_var, Net_Tensor:$new_accum);
  let exampleInputs = "%var: f32[16, 32], %accum: f32[16, 32], %learning_rate: f32[], %grad: f32[16, 32]";
  let specs = decaySpecs;
}
