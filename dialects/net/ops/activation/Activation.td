//===- Activation.td - activations that are pieced together ---------------===//
//
// At a kink the gradient is that of the left piece.

def Net_ReLU6Op : Net_Unary<"ReLU6", "x cut to [0, 6]; NaN stays NaN">;
def Net_HSigmoidOp : Net_Unary<"HSigmoid", "(x + 3) / 6 cut to [0, 1]; NaN stays NaN">;
def Net_HSwishOp : Net_Unary<"HSwish", "x * HSigmoid(x)">;
def Net_SoftplusOp : Net_Unary<"Softplus", "log(1 + exp(x))">;
def Net_SoftsignOp : Net_Unary<"Softsign", "x / (1 + |x|)">;
def Net_MishOp : Net_Unary<"Mish", "x * tanh(log(1 + exp(x)))">;
def Net_SeLUOp : Net_Unary<"SeLU", "1.0507009873554805 * (x where x > 0, else 1.6732632423543772 * (exp(x) - 1))">;

def Net_EluOp : Net_Unary<"Elu", "x where x > 0, else alpha * (exp(x) - 1)"> {
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let specs = [{ {.name = "alpha", .kind = Float, .summary = "what it tends to below 0, negated"} }];
}

def Net_LeakyReLUOp : Net_Unary<"LeakyReLU", "x where x > 0, else alpha * x (MindSpore's alpha is 0.2, PyTorch's 0.01)"> {
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<F64Attr, "0.2">:$alpha);
  let specs = [{ {.name = "alpha", .kind = Float, .summary = "slope below 0"} }];
}
