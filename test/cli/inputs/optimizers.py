"""Trains a small network with every optimizer, schedule and treatment of gradients, and compares its parameters and states
after 20 steps with plain formulas, which are those of PyTorch where it has the optimizer: optimizers.py DEVICES..."""
import math
import struct
import subprocess
import sys

ROWS, INPUTS, OUTPUTS, STEPS = 8, 3, 2, 20
NETWORK = """network small(%x: f64[{rows}, 3], %label: f64[{rows}, 2]) {{
  param %w: f64[3, 2] = Constant(0.5)
  param %bias: f64[2] = Constant(0.25)
  %h = MatMul(%x, %w) @ "product" {{in_strategy: {strategy}}}
  %out = BiasAdd(%h, %bias)
  %loss = MSELoss(%out, %label)
  return loss: %loss
}}
dataset {{source: Npy(), columns: {{x: "x.npy", label: "label.npy"}}}}
train {{optimizer: {optimizer}, minimize: loss, steps: {steps}{more}}}
"""


def write_npy(path, rows):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for row in rows:
            file.write(struct.pack("<%dd" % len(row), *row))


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack("<%dd" % ((len(data) - start) // 8), data[start:]))


X = [[math.sin(3 * i + j) for j in range(INPUTS)] for i in range(4 * ROWS)]
LABEL = [[math.cos(i) + (2 * j - 1) * X[i][0] for j in range(OUTPUTS)] for i in range(4 * ROWS)]


def gradients(parameters, batch, rows=ROWS):
    """Of the mean square error with respect to w (row-major) and the bias, which follows in the same list."""
    total = [0.0] * (INPUTS * OUTPUTS + OUTPUTS)
    for i in range(rows):
        x, label = X[(batch * rows + i) % len(X)], LABEL[(batch * rows + i) % len(X)]
        for j in range(OUTPUTS):
            out = sum(x[k] * parameters[k * OUTPUTS + j] for k in range(INPUTS)) + parameters[INPUTS * OUTPUTS + j]
            slope = 2 * (out - label[j]) / (rows * OUTPUTS)
            total[INPUTS * OUTPUTS + j] += slope
            for k in range(INPUTS):
                total[k * OUTPUTS + j] += slope * x[k]
    return total


def tensors(values):
    return [values[: INPUTS * OUTPUTS], values[INPUTS * OUTPUTS :]]


def sgd(t, p, g, s, lr, decay=0.0):
    return [x - lr * (d + decay * x) for x, d in zip(p, g)]


def momentum(t, p, g, s, lr, momentum=0.9):
    s["moments"] = [momentum * m + d for m, d in zip(s.get("moments", [0.0] * len(p)), g)]
    return [x - lr * m for x, m in zip(p, s["moments"])]


def means(s, g, names, beta1=0.9, beta2=0.999):
    zeros = [0.0] * len(g)
    s[names[0]] = [beta1 * m + (1 - beta1) * d for m, d in zip(s.get(names[0], zeros), g)]
    s[names[1]] = [beta2 * v + (1 - beta2) * d * d for v, d in zip(s.get(names[1], zeros), g)]
    return s[names[0]], s[names[1]]


def adam(t, p, g, s, lr, decay=0.0, decoupled=0.0, nesterov=False, eps=1e-8):
    g = [d + decay * x for x, d in zip(p, g)]
    m, v = means(s, g, ("moment1", "moment2"))
    if nesterov:
        m = [0.9 * a + 0.1 * d for a, d in zip(m, g)]
    p = [x * (1 - lr * decoupled) for x in p]
    return [x - lr * (a / (1 - 0.9**t)) / (math.sqrt(b / (1 - 0.999**t)) + eps) for x, a, b in zip(p, m, v)]


def adam_weight_decay(t, p, g, s, lr, decay=0.0):
    m, v = means(s, g, ("adam_m", "adam_v"))
    return [x - lr * (a / (math.sqrt(b) + 1e-6) + decay * x) for x, a, b in zip(p, m, v)]


def lamb(t, p, g, s, lr, decay=0.0):
    m, v = means(s, g, ("lamb_m", "lamb_v"))
    u = [a / (1 - 0.9**t) / (math.sqrt(b / (1 - 0.999**t)) + 1e-6) + decay * x for x, a, b in zip(p, m, v)]
    length, reach = math.hypot(*p), math.hypot(*u)
    ratio = length / reach if length > 0 and reach > 0 else 1
    return [x - lr * ratio * d for x, d in zip(p, u)]


def rms_prop(t, p, g, s, lr, momentum=0.0, centered=False):
    zeros = [0.0] * len(g)
    s["mean_square"] = [0.9 * v + 0.1 * d * d for v, d in zip(s.get("mean_square", zeros), g)]
    variance = s["mean_square"]
    if centered:
        s["mean_grad"] = [0.9 * v + 0.1 * d for v, d in zip(s.get("mean_grad", zeros), g)]
        variance = [v - m * m for v, m in zip(variance, s["mean_grad"])]
    s["moment"] = [momentum * b + lr * d / math.sqrt(v + 1e-10)
                   for b, d, v in zip(s.get("moment", zeros), g, variance)]
    return [x - b for x, b in zip(p, s["moment"])]


def adagrad(t, p, g, s, lr):
    s["accum"] = [a + d * d for a, d in zip(s.get("accum", [0.1] * len(g)), g)]
    return [x - lr * d / math.sqrt(a) for x, d, a in zip(p, g, s["accum"])]


def constant(rate):
    return lambda t: rate


def warm(warmup, rate):
    """`rate` of the steps behind the warm-up, which rises to its first value."""
    return lambda t: rate(0) * (t + 1) / warmup if t < warmup else rate(t - warmup)


def clip_norm(bound):
    return lambda g: [x * bound / max(bound, math.hypot(*g)) for x in g]


def train(step, rate=constant(0.05), change=lambda g: g, accumulate=1, decays=({}, {})):
    """Parameters and states after STEPS batches."""
    parameters, states = [0.5] * (INPUTS * OUTPUTS) + [0.25] * OUTPUTS, [{}, {}]
    for t in range(STEPS // accumulate):
        parts = [gradients(parameters, t * accumulate + i) for i in range(accumulate)]
        g = change([sum(values) / accumulate for values in zip(*parts)])
        new = [step(t + 1, p, d, s, rate(t), **decay)
               for p, d, s, decay in zip(tensors(parameters), tensors(g), states, decays)]
        parameters = new[0] + new[1]
    return tensors(parameters), states


SGD, both = "SGD(0.05)", lambda **decay: (decay, decay)
# What the train block says behind the optimizer, and the formulas of both parameters.
CASES = {
    "sgd": ("SGD(0.05, weight_decay: 0.1)", "", train(sgd, decays=both(decay=0.1))),
    "momentum": ("Momentum(0.05, 0.9)", "", train(momentum)),
    "adam": ("Adam(0.05)", "", train(adam)),
    "adam_l2": ("Adam(0.05, weight_decay: 0.1, use_nesterov: true, loss_scale: 4)", ", loss_scale: FixedLossScale(4)",
                train(adam, change=lambda g: [x / 4 for x in g], decays=both(decay=0.1, nesterov=True))),
    "adamw": ("AdamW(0.05, weight_decay: 0.1, no_decay: [\"b*\"])", "", train(adam, decays=({"decoupled": 0.1}, {}))),
    "bert": ("AdamWeightDecay(0.05, weight_decay: 0.1)", "", train(adam_weight_decay, decays=both(decay=0.1))),
    "lamb": ("Lamb(0.05, weight_decay: 0.1)", "", train(lamb, decays=both(decay=0.1))),
    "rmsprop": ("RMSProp(0.05, momentum: 0.5)", "", train(rms_prop, decays=both(momentum=0.5))),
    "centered": ("RMSProp(0.05, centered: true)", "", train(rms_prop, decays=both(centered=True))),
    "adagrad": ("Adagrad(0.05)", "", train(adagrad)),
    "step": ("SGD(Step(0.2, every: 4, rate: 0.5))", "", train(sgd, lambda t: 0.2 * 0.5 ** (t // 4))),
    "exponential": ("SGD(Exponential(0.2, 0.5, every: 8, warmup: 5))", "",
                    train(sgd, warm(5, lambda t: 0.2 * 0.5 ** (t / 8)))),
    "cosine": ("SGD(Cosine(0.2, total: 15, warmup: 5, end: 0.01))", "",
               train(sgd, warm(5, lambda t: 0.01 + 0.19 * (1 + math.cos(math.pi * min(1, t / 10))) / 2))),
    "polynomial": ("Adam(learning_rate: Polynomial(0.2, total: 12, end: 0.02, power: 2.0))", "",
                   train(adam, lambda t: 0.02 + 0.18 * (1 - min(1, t / 12)) ** 2)),
    "piecewise": ("SGD(Piecewise(rates: (0.2, 0.1, 0.0), milestones: (6, 15), warmup: 3))", "",
                  train(sgd, lambda t: 0.2 * (t + 1) / 3 if t < 3 else 0.2 if t < 6 else 0.1 if t < 15 else 0)),
    "norm": ("Momentum(0.05, 0.9)", ", clip_global_norm: 0.1", train(momentum, change=clip_norm(0.1))),
    "value": (SGD, ", clip_value: (-0.02, 0.1)", train(sgd, change=lambda g: [min(0.1, max(-0.02, x)) for x in g])),
    "accumulate": ("Adam(Cosine(0.2, total: 8))", ", accumulate_steps: 2, clip_global_norm: 0.1",
                   train(adam, lambda t: 0.1 * (1 + math.cos(math.pi * min(1, t / 8))), clip_norm(0.1), accumulate=2)),
    "fixed": ("Adam(0.05)", ", loss_scale: FixedLossScale(1024)", train(adam)),
    "dynamic": ("Adam(0.05)", ", loss_scale: DynamicLossScale(scale_window: 5), accumulate_steps: 2",
                train(adam, accumulate=2)),
    "both": ("Lamb(0.05)", ", clip_value: 0.3, clip_global_norm: 0.2", train(
        lamb, change=lambda g: clip_norm(0.2)([min(0.3, max(-0.3, x)) for x in g]))),
}
STRATEGIES = {1: "((1, 1), (1, 1))", 2: "((2, 1), (1, 1))", 3: "((1, 3), (3, 1))", 4: "((2, 1), (1, 2))", 6: "((1, 3), (3, 2))"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def check(name, devices):
    optimizer, more, (expected, states) = CASES[name]
    with open("small.mir", "w") as file:
        file.write(NETWORK.format(rows=ROWS, strategy=STRATEGIES[devices], optimizer=optimizer, steps=STEPS, more=more))
    run("msc", "compile", "small.mir", "--devices", str(devices))
    wanted = {f"param:{p}": values for p, values in zip(("w", "bias"), expected)}
    for p, state in zip(("w", "bias"), states):
        wanted.update({f"state:{key}.{p}": values for key, values in state.items()})
    fetches = [text for i, key in enumerate(wanted) for text in ("--fetch", f"{key}={i}.npy")]
    run("msrun", "small.plan", "--no-checkpoint", *fetches)
    worst = 0
    for i, (key, values) in enumerate(wanted.items()):
        found = read_npy(f"{i}.npy")
        error = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, values))
        if len(found) != len(values) or not error < TOLERANCE.get(name, 1e-12):
            sys.exit(f"{name} on {devices} devices: {key} is {found}, expected {values}")
        worst = max(worst, error)
    print(f"{name} on {devices}: {worst:.1e}")


# The loss scale and what counts updates beside it are f32.
TOLERANCE = {"dynamic": 1e-6}
write_npy("x.npy", X)
write_npy("label.npy", LABEL)
for devices in map(int, sys.argv[1:]):
    for name in CASES:
        check(name, devices)
