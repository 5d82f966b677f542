//===- Dropout.td - zeros at random ---------------------------------------===//
//
// Which elements are kept is a function of the seed, the name of the operator, the number of the step and the element's
// place in the whole tensor: every sharding keeps the same ones. The steps are counted by a state of the network.

def Net_DropoutOp : Net_Operator<"Dropout", ["x"], ["output", "mask"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let summary = "zero at random while training, the rest scaled up";
  let description = [{
    `output = mask ? x / keep_prob : 0`; each element of `mask` is true with probability `keep_prob`, drawn anew in every step.
    In networks that are not trained `output = x`, and `mask` is true everywhere.

    The draw of an element is a word of Philox 4x32-10 (RandomBits) for its row-major place in the whole tensor, the number
    of the step, and a stream that comes from the seed of training, `Seed0`, `Seed1` and the instance name: it is the same
    on any number of devices and under any strategy. The state `dropout.step` counts the steps. In hybrid_parallel mode, where
    every rank has a tensor of its own, every rank draws for itself: its number goes into the upper half of the step's.

    Constraints:
    - (C1) `x` holds floats.
    - (C2) `keep_prob` is above 0 and at most 1.
  }];
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<F64Attr, "0.5">:$keep_prob,
                       DefaultValuedAttr<I64Attr, "0">:$Seed0, DefaultValuedAttr<I64Attr, "0">:$Seed1,
                       OptionalAttr<StrAttr>:$counter, OptionalAttr<I64Attr>:$stream);
  let results = (outs Net_Tensor:$output, Net_Tensor:$mask);
  let exampleAttributes = "keep_prob: 0.9";
  let specs = [{
    {.name = "keep_prob", .kind = Float, .summary = "the probability that an element is kept"},
    {.name = "Seed0", .kind = Int, .summary = "another number draws other elements"},
    {.name = "Seed1", .kind = Int, .summary = "another number draws other elements"}
  }];
  let declarations = [{
    /// The network is going to be trained: elements are dropped. `state` is the parameter, an i64 scalar, that counts steps.
    void beginTraining(::llvm::StringRef state, int64_t stream) {
      setCounter(state);
      setStream(stream);
    }
  }];
}

def Net_RandomBitsOp : Net_Operator<"RandomBits", ["place", "step", "stream"], ["output"],
    [Net_Rule, Net_OwnCost, Net_Generic]> {
  let summary = "random words, each a function of its place";
  let description = [{
    `output = word 0 of Philox 4x32-10(counter, key)`, from 0 to 2^32 - 1; `place` and `step` are the lower and the upper two
    words of the counter, `stream` the key.

    Constraints:
    - (C1) all operands are i64.
    - (C2) `step` and `stream` are scalars.
  }];
  let arguments = (ins Net_Tensor:$place, Net_Tensor:$step, Net_Tensor:$stream);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%place: i64[16, 32], %step: i64[], %stream: i64[]";
}
