"""Compares numbers of msrun with PyTorch's: compare_pytorch.py [CASE...]; all cases unless some are named.

Operators: forward values, and gradients of all float operands, of a sum in which each element of the results has a weight of its own.
Optimizers: the loss of the last of 20 steps, and the parameters behind it. Every case runs on one device and on four, which a slow machine
makes share the work; both are compared with the same numbers of PyTorch. Parameters are drawn by msrun, inputs here: both sides take them
from the same .npy files. Networks and plans stay in the current folder.

PyTorch, 2.5 or later, is that of this Python, or else of the Python whose path is in the environment variable MSC_PYTHON_WITH_TORCH.
Without either nothing is compared.

A deviation is the one of the worst element, divided by the largest element of its tensor, as a sum is only as exact as its largest term.
Sums of f32 that have up to some thousand terms in another order are off by up to 1e-6, and so are parameters after 20 steps; 1e-5 leaves
room for other processors. Epsilons are large in all cases, so that each shows where it stands.
"""
import functools
import json
import math
import os
import struct
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError:
    other = os.environ.get("MSC_PYTHON_WITH_TORCH", "")
    if os.access(other, os.X_OK) and "--other" not in sys.argv:
        os.execv(other, [other, *sys.argv, "--other"])
    if other:
        sys.exit(f"MSC_PYTHON_WITH_TORCH names no Python with PyTorch: {other}")
    print("PyTorch skipped: not installed")
    sys.exit(0)

TOLERANCE = 1e-5
STEPS, ROWS = 20, 8
# What a type is called in networks, in .npy files and by struct.
TYPES = {torch.float32: ("f32", "<f4", "f"), torch.int32: ("i32", "<i4", "i"), torch.bool: ("bool", "|b1", "?")}


def write_npy(name, tensor):
    _, kind, letter = TYPES[tensor.dtype]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(tensor.shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(name + ".npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (tensor.numel(), letter), *tensor.flatten().tolist()))


def read_npy(name):
    """Of f32."""
    with open(name + ".npy", "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    shape = eval(data[10:start])["shape"]
    return torch.tensor(struct.unpack_from("<%df" % math.prod(shape), data, start)).reshape(shape)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def type_text(tensor):
    return f"{TYPES[tensor.dtype][0]}[{', '.join(map(str, tensor.shape))}]"


def slow_machine():
    """Computes so slowly that all devices share whatever can be shared."""
    kinds = ["AllReduce", "ReduceScatter", "AllGather", "AlltoAll", "CollectivePermute", "Exchange"]
    cost = {"alpha_us": 0, "hop_us": 0, "beta_us_per_byte": 1e-3}
    with open("slow.json", "w") as file:
        json.dump({"name": "slow", "source": "test", "flops_per_us": 1, "memory_bytes_per_us": 1, "launch_us": 0,
                   "levels": [{"name": "any", "ranks": 0, "collectives": {kind: cost for kind in kinds}}]}, file)


def compile_network(name, devices, *flags):
    """Returns the plan."""
    plan = f"{name}_{devices}.plan"
    run("msc", "compile", name + ".mir", "--devices", str(devices), "--machine", "slow.json", "--device-target", "cpu",
        "-o", plan, "--report", "report.json", *flags)
    return plan


def train(plan, fetched, *flags):
    fetches = [text for name in fetched for text in ("--fetch", f"{name}={name}.npy")]
    run("msrun", plan, "--no-checkpoint", *fetches, *flags)


def deviation_of(ours, theirs):
    """Equal infinities are equal."""
    if ours.shape != theirs.shape:
        return math.inf
    return (torch.where(ours == theirs, 0, ours - theirs).abs().max() / theirs[theirs.isfinite()].abs().max()).item()


class Operator:
    """`call` is what the network says, `theirs` the same with PyTorch; either may have several results. `trained` are parameters:
    name -> shape, or (shape, initializer); `given` are inputs: name -> tensor. `cut` is the strategy on four devices, which is searched
    unless given. `passive` are the numbers of results without a gradient."""

    def __init__(self, name, call, trained, theirs, given=None, cut="", passive=()):
        self.name, self.call, self.theirs, self.given, self.cut, self.passive = name, call, theirs, given or {}, cut, passive
        self.trained = {n: s if isinstance(s[0], tuple) else (s, "Normal(1.0)") for n, s in trained.items()}

    def results(self, values):
        results = self.theirs(**values)
        return results if isinstance(results, tuple) else (results,)

    def write(self):
        """The network and its inputs; returns the weights and the names of the results."""
        some = {n: torch.rand(shape) for n, (shape, _) in self.trained.items()}
        shapes = [y.shape for y in self.results(some | self.given)]
        weights = {i: torch.randn(shape or (1,)) for i, shape in enumerate(shapes) if i not in self.passive}
        inputs = self.given | {f"weight{i}": weight for i, weight in weights.items()}
        for n, tensor in inputs.items():
            write_npy(n, tensor)
        lines = [f"network compared({', '.join(f'%{n}: {type_text(t)}' for n, t in inputs.items())}) {{"]
        lines += [f"  param %{n}: f32[{', '.join(map(str, shape))}] = {initial}" for n, (shape, initial) in self.trained.items()]
        behind = f" {{in_strategy: {self.cut}}}" if self.cut else ""
        lines += [f"  {', '.join(f'%y{i}' for i in range(len(shapes)))} = {self.call} @ \"compared\"{behind}"]
        for i in weights:
            lines += [f"  %weighted{i} = Mul(%y{i}, %weight{i})", f"  %sum{i} = ReduceSum(%weighted{i})"]
        loss = "%sum0"
        if len(weights) > 1:
            lines += [f"  %loss = AddN({', '.join(f'%sum{i}' for i in weights)})"]
            loss = "%loss"
        lines += [f"  return loss: {loss}, {', '.join(f'y{i}: %y{i}' for i in range(len(shapes)))}", "}"]
        columns = ", ".join(f'{n}: "{n}.npy"' for n in inputs)
        lines += [f"dataset {{source: Npy(), columns: {{{columns}}}}}"]
        lines += ["train {optimizer: SGD(0.0), minimize: loss, steps: 1}"]  # parameters stay as they were drawn
        with open(self.name + ".mir", "w") as file:
            file.write("\n".join(lines) + "\n")
        return weights, [f"y{i}" for i in range(len(shapes))]

    def expected(self, weights):
        values = {n: read_npy(f"param:{n}").requires_grad_() for n in self.trained}
        results = self.results(values | self.given)
        total = sum((results[i] * weight).sum() for i, weight in weights.items())
        return [y.detach() for y in results] + list(torch.autograd.grad(total, list(values.values())))

    def check(self):
        """Yields what is fetched, how many devices ran, and what PyTorch has."""
        weights, names = self.write()
        names += [f"grad:{n}" for n in self.trained]
        for devices in (1, 4):
            plan = compile_network(self.name, devices, "--keep", ",".join(f"grad:{n}" for n in self.trained))
            train(plan, names + [f"param:{n}" for n in self.trained])
            if devices == 1:
                expected = self.expected(weights)
            else:
                with open("report.json") as file:
                    pieces = next(o["in_strategy"] for o in json.load(file)["operators"] if o["name"] == "compared")
                assert max(map(math.prod, pieces)) > 1, (self.name, pieces)
            for name, theirs in zip(names, expected):
                yield name, devices, theirs


def padded(x, kernel, stride, fill=0.0):
    """What pad_mode same adds: ceil(size / stride) windows, the odd row or column behind."""
    height, width = (max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[2:])
    return F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2), value=fill)


def mean_of_windows(x, pad, kernel, stride):
    """Means that do not count the padding, (left, right, top, bottom), which PyTorch has for even padding alone."""
    return F.avg_pool2d(F.pad(x, pad), kernel, stride) / F.avg_pool2d(F.pad(torch.ones_like(x), pad), kernel, stride)


X, W = (2, 4, 9, 7), (6, 4, 3, 3)
ROWS_CUT = "((1, 1, 2, 2), (1, 1, 1, 1))"
CONVOLUTIONS = [
    Operator("conv_valid", "Conv2D(%x, %w)", {"x": X, "w": W}, lambda x, w: F.conv2d(x, w)),
    Operator("conv_pad", "Conv2D(%x, %w, pad_mode: pad, pad: 1)", {"x": X, "w": W}, lambda x, w: F.conv2d(x, w, padding=1), cut=ROWS_CUT),
    Operator("conv_same", "Conv2D(%x, %w, pad_mode: same)", {"x": X, "w": W}, lambda x, w: F.conv2d(x, w, padding="same"),
             cut="((1, 2, 1, 1), (2, 2, 1, 1))"),
    Operator("conv_stride", "Conv2D(%x, %w, pad_mode: pad, pad: 1, stride: 2)", {"x": X, "w": W},
             lambda x, w: F.conv2d(x, w, padding=1, stride=2), cut=ROWS_CUT),
    Operator("conv_dilation", "Conv2D(%x, %w, pad_mode: pad, pad: 2, dilation: 2)", {"x": X, "w": W},
             lambda x, w: F.conv2d(x, w, padding=2, dilation=2), cut=ROWS_CUT),
    Operator("conv_groups", "Conv2D(%x, %w, pad_mode: pad, pad: 1, group: 2)", {"x": X, "w": (6, 2, 3, 3)},
             lambda x, w: F.conv2d(x, w, padding=1, groups=2)),
    Operator("conv_depthwise", "Conv2D(%x, %w, pad_mode: same, group: 4)", {"x": X, "w": (4, 1, 3, 3)},
             lambda x, w: F.conv2d(x, w, padding="same", groups=4), cut="((1, 4, 1, 1), (4, 1, 1, 1))"),
    Operator("conv_multiplied", "Conv2D(%x, %w, pad_mode: pad, pad: 1, stride: 2, group: 4)", {"x": X, "w": (8, 1, 3, 3)},
             lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=4), cut="((2, 2, 1, 1), (2, 1, 1, 1))"),
    Operator("conv_1x1", "Conv2D(%x, %w)", {"x": X, "w": (6, 4, 1, 1)}, lambda x, w: F.conv2d(x, w), cut=ROWS_CUT),
    Operator("conv_1x1_stride", "Conv2D(%x, %w, stride: 2)", {"x": X, "w": (6, 4, 1, 1)}, lambda x, w: F.conv2d(x, w, stride=2)),
    Operator("conv_wide", "Conv2D(%x, %w, pad_mode: pad, pad: 1)", {"x": (3, 24, 20, 17), "w": (40, 24, 3, 3)},
             lambda x, w: F.conv2d(x, w, padding=1)),
    Operator("conv_1x1_wide", "Conv2D(%x, %w)", {"x": (2, 64, 14, 14), "w": (96, 64, 1, 1)}, lambda x, w: F.conv2d(x, w)),
    Operator("conv_7x7", "Conv2D(%x, %w, pad_mode: pad, pad: 3, stride: 2)", {"x": (2, 3, 30, 29), "w": (16, 3, 7, 7)},
             lambda x, w: F.conv2d(x, w, padding=3, stride=2), cut=ROWS_CUT),
    Operator("conv_depthwise_wide", "Conv2D(%x, %w, pad_mode: pad, pad: 2, group: 33)", {"x": (2, 33, 15, 14), "w": (33, 1, 5, 5)},
             lambda x, w: F.conv2d(x, w, padding=2, groups=33)),
    # PyTorch refuses padding="same" with a stride.
    Operator("conv_same_stride", "Conv2D(%x, %w, pad_mode: same, stride: 2)", {"x": (2, 4, 8, 7), "w": W},
             lambda x, w: F.conv2d(padded(x, 3, 2), w, stride=2), cut=ROWS_CUT),
    Operator("conv_uneven", "Conv2D(%x, %w, pad_mode: pad, pad: (2, 0, 1, 3), stride: (1, 2), dilation: (2, 1))", {"x": X, "w": (6, 4, 2, 5)},
             lambda x, w: F.conv2d(F.pad(x, (1, 3, 2, 0)), w, stride=(1, 2), dilation=(2, 1))),
    Operator("transpose_valid", "Conv2DTranspose(%x, %w)", {"x": (2, 4, 5, 4), "w": (4, 3, 3, 3)}, lambda x, w: F.conv_transpose2d(x, w)),
    Operator("transpose_stride", "Conv2DTranspose(%x, %w, stride: 2)", {"x": (2, 4, 5, 4), "w": (4, 3, 2, 2)},
             lambda x, w: F.conv_transpose2d(x, w, stride=2), cut=ROWS_CUT),
    Operator("transpose_pad", "Conv2DTranspose(%x, %w, pad_mode: pad, pad: 1, stride: 2)", {"x": (2, 4, 5, 4), "w": (4, 3, 3, 3)},
             lambda x, w: F.conv_transpose2d(x, w, padding=1, stride=2), cut="((1, 2, 1, 2), (2, 1, 1, 1))"),
    Operator("transpose_size", "Conv2DTranspose(%x, %w, (2, 3, 10, 8), pad_mode: pad, pad: 1, stride: 2)",
             {"x": (2, 4, 5, 4), "w": (4, 3, 3, 3)}, lambda x, w: F.conv_transpose2d(x, w, padding=1, stride=2, output_padding=1)),
    # PyTorch has no `same`: rows and columns behind twice as many as x has are left out.
    Operator("transpose_same", "Conv2DTranspose(%x, %w, pad_mode: same, stride: 2)", {"x": (2, 4, 5, 4), "w": (4, 3, 3, 3)},
             lambda x, w: F.conv_transpose2d(x, w, stride=2)[:, :, :10, :8], cut=ROWS_CUT),
    Operator("transpose_wide", "Conv2DTranspose(%x, %w, pad_mode: pad, pad: 1, stride: 2)", {"x": (2, 40, 11, 13), "w": (40, 24, 4, 4)},
             lambda x, w: F.conv_transpose2d(x, w, padding=1, stride=2)),
    Operator("transpose_groups", "Conv2DTranspose(%x, %w, pad_mode: pad, pad: 2, dilation: 2, group: 2)",
             {"x": (2, 4, 5, 4), "w": (4, 3, 3, 3)}, lambda x, w: F.conv_transpose2d(x, w, padding=2, dilation=2, groups=2)),
]

POOLS = [
    Operator("max", "MaxPool(%x, 2, 2)", {"x": X}, lambda x: F.max_pool2d(x, 2)),
    Operator("max_overlapping", "MaxPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)", {"x": X},
             lambda x: F.max_pool2d(x, 3, 2, padding=1), cut="((1, 1, 2, 2))"),
    Operator("max_same", "MaxPool(%x, kernel_size: 3, strides: 2, pad_mode: same)", {"x": (2, 3, 8, 7)},
             lambda x: F.max_pool2d(padded(x, 3, 2, -math.inf), 3, 2), cut="((2, 1, 2, 1))"),
    Operator("max_uneven", "MaxPool(%x, kernel_size: (3, 2), strides: (1, 2), pad_mode: pad, pad: (2, 0, 1, 0))", {"x": X},
             lambda x: F.max_pool2d(F.pad(x, (1, 0, 2, 0), value=-math.inf), (3, 2), (1, 2)), cut="((1, 1, 4, 1))"),
    Operator("max_wide", "MaxPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)", {"x": (2, 20, 29, 31)},
             lambda x: F.max_pool2d(x, 3, 2, padding=1)),
    Operator("avg", "AvgPool(%x, 2, 2)", {"x": X}, lambda x: F.avg_pool2d(x, 2)),
    Operator("avg_stride", "AvgPool(%x, kernel_size: 3, strides: 2)", {"x": X}, lambda x: F.avg_pool2d(x, 3, 2), cut="((1, 1, 2, 2))"),
    Operator("avg_pad", "AvgPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)", {"x": X},
             lambda x: F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False), cut="((1, 1, 2, 2))"),
    Operator("avg_counted", "AvgPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1, count_include_pad: true)", {"x": X},
             lambda x: F.avg_pool2d(x, 3, 2, padding=1), cut="((1, 1, 4, 1))"),
    Operator("avg_same", "AvgPool(%x, kernel_size: (2, 3), strides: 1, pad_mode: same)", {"x": X},
             lambda x: mean_of_windows(x, (1, 1, 0, 1), (2, 3), 1), cut="((2, 1, 2, 1))"),
    Operator("avg_uneven", "AvgPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: (1, 2, 0, 1))", {"x": X},
             lambda x: mean_of_windows(x, (0, 1, 1, 2), 3, 2)),
    Operator("adaptive_one", "AdaptiveAvgPool2D(%x, 1)", {"x": X}, lambda x: F.adaptive_avg_pool2d(x, 1), cut="((1, 1, 2, 2))"),
    Operator("adaptive_overlapping", "AdaptiveAvgPool2D(%x, (4, 3))", {"x": X}, lambda x: F.adaptive_avg_pool2d(x, (4, 3)), cut="((1, 1, 2, 2))"),
    Operator("adaptive_larger", "AdaptiveAvgPool2D(%x, (11, 7))", {"x": X}, lambda x: F.adaptive_avg_pool2d(x, (11, 7))),
]


def batch_norm(x, scale, bias, mean, variance, training=True, momentum=0.3):
    mean, variance = mean.clone(), variance.clone()
    y = F.batch_norm(x, mean, variance, scale, bias, training, momentum, eps=0.1)
    return y, mean, variance


def layer_norm(x, gamma, beta):
    variance, mean = torch.var_mean(x, tuple(range(x.dim() - gamma.dim(), x.dim())), correction=0, keepdim=True)
    return F.layer_norm(x, gamma.shape, gamma, beta, eps=0.1), mean, variance


def group_norm(x, weight, bias):
    variance, mean = torch.var_mean(x.reshape(x.shape[0], 3, -1), 2, correction=0)
    return F.group_norm(x, 3, weight, bias, eps=0.1), mean, (variance + 0.1).rsqrt()


STATISTICS = {"mean": torch.linspace(-1, 1, 4), "variance": torch.linspace(0.5, 2, 4)}
SCALES = {"scale": (4,), "bias": (4,)}
# PyTorch's momentum is the share of the batch, as here. Running values have no gradient there.
NORMS = [
    Operator("batch_norm", "BatchNorm(%x, %scale, %bias, %mean, %variance, epsilon: 0.1, momentum: 0.3)", {"x": X} | SCALES, batch_norm,
             STATISTICS, passive=(1, 2)),
    Operator("batch_norm_channels", "BatchNorm(%x, %scale, %bias, %mean, %variance, is_training: true, epsilon: 0.1, momentum: 0.3)",
             {"x": X} | SCALES, batch_norm, STATISTICS, cut="((1, 2, 2, 1), (2), (2), (2), (2))", passive=(1, 2)),
    Operator("batch_norm_rows", "BatchNorm(%x, %scale, %bias, %mean, %variance, epsilon: 0.1, momentum: 0.3)", {"x": (9, 4)} | SCALES,
             batch_norm, STATISTICS, cut="((4, 1), (1), (1), (1), (1))", passive=(1, 2)),
    Operator("batch_norm_inference", "BatchNorm(%x, %scale, %bias, %mean, %variance, is_training: false, epsilon: 0.1)", {"x": X} | SCALES,
             lambda **operands: batch_norm(training=False, **operands), STATISTICS, passive=(1, 2)),
    Operator("layer_norm", "LayerNorm(%x, %gamma, %beta, begin_norm_axis: -1, begin_params_axis: -1, epsilon: 0.1)",
             {"x": (3, 5, 10), "gamma": (10,), "beta": (10,)}, layer_norm, cut="((1, 2, 2), (2), (2))"),
    Operator("layer_norm_images", "LayerNorm(%x, %gamma, %beta, epsilon: 0.1)", {"x": (4, 3, 5, 2), "gamma": (3, 5, 2), "beta": (3, 5, 2)},
             layer_norm),
    Operator("layer_norm_wide", "LayerNorm(%x, %gamma, %beta, epsilon: 0.1)", {"x": (6, 769), "gamma": (769,), "beta": (769,)}, layer_norm),
    Operator("rms_norm", "RmsNorm(%x, %gamma, epsilon: 0.1)", {"x": (3, 5, 10), "gamma": (10,)},
             lambda x, gamma: (F.rms_norm(x, (10,), gamma, 0.1), (x.square().mean(2, keepdim=True) + 0.1).rsqrt()), cut="((1, 2, 2), (2))"),
    Operator("group_norm", "GroupNorm(%x, %weight, %bias, 3, eps: 0.1)", {"x": (3, 6, 4, 5), "weight": (6,), "bias": (6,)}, group_norm,
             cut="((1, 2, 2, 1), (2), (2))"),
    Operator("group_norm_rows", "GroupNorm(%x, %weight, %bias, 3, eps: 0.1)", {"x": (5, 6), "weight": (6,), "bias": (6,)}, group_norm),
]

ACTIVATIONS = [
    Operator("softmax", "Softmax(%x)", {"x": (6, 10)}, lambda x: F.softmax(x, -1), cut="((2, 2))"),
    Operator("softmax_middle", "Softmax(%x, axis: 1)", {"x": (3, 6, 5)}, lambda x: F.softmax(x, 1)),
    Operator("softmax_large", "Softmax(%x)", {"x": ((6, 10), "Normal(50.0)")}, lambda x: F.softmax(x, -1)),
    Operator("log_softmax", "LogSoftmax(%x)", {"x": (6, 10)}, lambda x: F.log_softmax(x, -1), cut="((2, 2))"),
    Operator("log_softmax_first", "LogSoftmax(%x, axis: 0)", {"x": (6, 10)}, lambda x: F.log_softmax(x, 0)),
    Operator("log_softmax_large", "LogSoftmax(%x)", {"x": ((6, 10), "Normal(50.0)")}, lambda x: F.log_softmax(x, -1)),
    Operator("softmax_wide", "Softmax(%x)", {"x": (7, 1031)}, lambda x: F.softmax(x, -1)),
    Operator("gelu_tanh", "GeLU(%x)", {"x": ((6, 10), "Normal(2.0)")}, lambda x: F.gelu(x, approximate="tanh")),
    Operator("gelu_erf", "GeLU(%x, approximate: none)", {"x": ((6, 10), "Normal(2.0)")}, lambda x: F.gelu(x)),
]


def sparse(logits, labels, reduction="mean"):
    return F.cross_entropy(logits, labels.long(), reduction=reduction)


def checked(loss, theirs, *operands, **more):
    """The loss by its formula where PyTorch's has no gradient of weights; its value is PyTorch's, too."""
    with torch.no_grad():
        torch.testing.assert_close(loss, theirs(*operands, **more))
    return loss


def nll(logits, labels, weight, reduction="mean"):
    """Rows with the label -100 do not count."""
    classes = labels.long()
    weights = torch.where(classes == -100, 0, weight[classes.clamp(min=0)])
    losses = -weights * logits.gather(1, classes.clamp(min=0)[:, None])[:, 0]
    loss = losses if reduction == "none" else losses.sum() / (weights.sum() if reduction == "mean" else 1)
    return checked(loss, F.nll_loss, logits, classes, weight, reduction=reduction), weights.sum()


def bce(logits, labels, weight, positive):
    loss = (-weight * (positive * labels * F.logsigmoid(logits) + (1 - labels) * F.logsigmoid(-logits))).mean()
    return checked(loss, F.binary_cross_entropy_with_logits, logits, labels, weight, pos_weight=positive)


def with_labels(name, call, theirs, cut="", classes=(3, 0, 9, 3, 5, 1), weighted=False):
    weight = {"weight": ((10,), "Normal(0.2, mean: 1.0)")} if weighted else {}
    return Operator(name, call, {"logits": (6, 10)} | weight, theirs, {"labels": torch.tensor(classes, dtype=torch.int32)}, cut)


def with_shares(name, call, theirs, cut=""):
    """Labels are positive, as the logarithm of KLDivLoss wants them."""
    return Operator(name, call, {"logits": (6, 10), "labels": ((6, 10), "Normal(0.02, mean: 0.2)")}, theirs, cut=cut)


SOME = (3, -100, 9, 3, -100, 1)
ZEROS = {"labels": torch.tensor([0.25, 0.0, 0.5, 0.25, 0.0]).repeat(6, 2)}
BOTH = "((2, 2), (2, 2))"
LOSSES = [
    with_labels("cross_entropy", "SoftmaxCrossEntropyWithLogits(%logits, %labels, sparse: true)", sparse, cut="((1, 4), (1))"),
    # Rows without a class count in the mean, in PyTorch's they do not.
    with_labels("cross_entropy_some", "SoftmaxCrossEntropyWithLogits(%logits, %labels, sparse: true)",
                lambda logits, labels: sparse(logits, labels, "sum") / 6, classes=SOME),
    Operator("cross_entropy_wide", "SoftmaxCrossEntropyWithLogits(%logits, %labels, sparse: true)", {"logits": (9, 1031)}, sparse,
             {"labels": torch.arange(9, dtype=torch.int32) * 128}),
    with_labels("cross_entropy_sum", "SoftmaxCrossEntropyWithLogits(%logits, %labels, sparse: true, reduction: sum)",
                lambda logits, labels: sparse(logits, labels, "sum")),
    with_labels("cross_entropy_rows", "SoftmaxCrossEntropyWithLogits(%logits, %labels, sparse: true, reduction: none)",
                lambda logits, labels: sparse(logits, labels, "none"), cut="((2, 2), (2))", classes=SOME),
    with_labels("cross_entropy_name", "SparseSoftmaxCrossEntropyWithLogits(%logits, %labels)", sparse),
    with_shares("cross_entropy_dense", "SoftmaxCrossEntropyWithLogits(%logits, %labels)",
                lambda logits, labels: F.cross_entropy(logits, labels), cut=BOTH),
    with_shares("cross_entropy_dense_rows", "SoftmaxCrossEntropyWithLogits(%logits, %labels, reduction: none)",
                lambda logits, labels: F.cross_entropy(logits, labels, reduction="none")),
    with_labels("nll", "NLLLoss(%logits, %labels, %weight)", nll, cut="((2, 2), (2), (2))", classes=SOME, weighted=True),
    with_labels("nll_sum", "NLLLoss(%logits, %labels, %weight, reduction: sum)", functools.partial(nll, reduction="sum"), weighted=True),
    with_labels("nll_rows", "NLLLoss(%logits, %labels, %weight, reduction: none)", functools.partial(nll, reduction="none"), classes=SOME,
                weighted=True),
    Operator("bce_logits", "BCEWithLogitsLoss(%logits, %labels, %weight, %positive)",
             {"logits": (6, 10), "labels": ((6, 10), "Normal(0.2, mean: 0.5)"), "weight": ((6, 10), "Normal(0.2, mean: 1.0)"),
              "positive": ((10,), "Normal(0.2, mean: 2.0)")}, bce, cut="((2, 2), (2, 2), (2, 2), (2))"),
    with_shares("bce_logits_sum", "BCEWithLogitsLoss(%logits, %labels, 1.0, 1.0, reduction: sum)",
                lambda logits, labels: F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")),
    with_shares("bce_logits_elements", "BCEWithLogitsLoss(%logits, %labels, 1.0, 3.0, reduction: none)",
                lambda logits, labels: F.binary_cross_entropy_with_logits(logits, labels, pos_weight=torch.tensor(3.0), reduction="none")),
    # What PyTorch's says of itself: its mean will be what batchmean is.
    with_shares("kl_div", "KLDivLoss(%logits, %labels)", lambda logits, labels: F.kl_div(logits, labels, reduction="none").mean(), cut=BOTH),
    with_shares("kl_div_sum", "KLDivLoss(%logits, %labels, reduction: sum)",
                lambda logits, labels: F.kl_div(logits, labels, reduction="sum")),
    with_shares("kl_div_elements", "KLDivLoss(%logits, %labels, reduction: none)",
                lambda logits, labels: F.kl_div(logits, labels, reduction="none")),
    Operator("kl_div_zeros", "KLDivLoss(%logits, %labels, reduction: batchmean)", {"logits": (6, 10)},
             lambda logits, labels: F.kl_div(logits, labels, reduction="batchmean"), ZEROS, cut="((1, 4), (1, 4))"),
]
for reduction in ("mean", "sum", "none"):
    for loss, more, theirs in (("L1Loss", "", F.l1_loss), ("MSELoss", "", F.mse_loss),
                               ("SmoothL1Loss", "beta: 0.5, ", functools.partial(F.smooth_l1_loss, beta=0.5))):
        LOSSES += [Operator(f"{loss}_{reduction}", f"{loss}(%input, %target, {more}reduction: {reduction})",
                            {"input": (6, 10), "target": (6, 10)}, functools.partial(theirs, reduction=reduction),
                            cut=BOTH if reduction != "sum" else "")]


def attention(q, k, v, mask=None, heads=4, causal=False, scale=None):
    """Heads lie side by side in the last dimension here, in a dimension of their own in PyTorch, which returns no logsumexp and takes
    either a mask or is causal."""
    size = q.shape[2] // heads
    queries, keys, values = (x.unflatten(2, (-1, size)).transpose(1, 2) for x in (q, k, v))
    if causal and mask is not None:
        causal, mask = False, mask.masked_fill(torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).triu(1), -math.inf)
    output = F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal, scale=scale, enable_gqa=True)
    scores = queries @ keys.repeat_interleave(heads // keys.shape[1], 1).transpose(2, 3) * (scale or 1 / math.sqrt(size))
    if causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return output.transpose(1, 2).flatten(2), scores.logsumexp(3)


def attends(name, trained, text="heads: 4", given=None, cut="", **options):
    mask = ", %mask" if "mask" in trained or given else ""
    return Operator(name, f"ScaledDotProductAttention(%q, %k, %v{mask}, {text})", trained,
                    lambda **operands: attention(**operands, **options), given, cut, passive=(1,))


Q, KV = {"q": (2, 6, 12)}, {"k": (2, 7, 12), "v": (2, 7, 12)}
HALF, THIRD = {"k": (2, 7, 6), "v": (2, 7, 6)}, {"k": (2, 7, 3), "v": (2, 7, 3)}
SEEN = {"mask": torch.ones(6, 7, dtype=torch.bool).tril(-2)}  # the first two queries attend to nothing
CAUSAL = "heads: 4, causal: true"
ATTENTIONS = [
    attends("attention", Q | KV, cut="((1, 1, 4), (1, 1, 4), (1, 1, 4))"),
    attends("attention_queries", Q | KV, cut="((2, 2, 1), (2, 1, 1), (2, 1, 1))"),
    attends("attention_scale", Q | KV, "heads: 2, scale: 0.7", heads=2, scale=0.7),
    attends("attention_causal", {n: (2, 6, 12) for n in "qkv"}, CAUSAL, cut="((1, 4, 1), (1, 1, 1), (1, 1, 1))", causal=True),
    attends("attention_causal_wide", Q | KV, CAUSAL, causal=True),
    attends("attention_long", {n: (2, 67, 128) for n in "qkv"}),
    attends("attention_long_causal", {n: (2, 67, 128) for n in "qkv"}, CAUSAL, causal=True),
    attends("attention_mask", Q | KV | {"mask": (6, 7)}, cut="((1, 2, 2), (1, 1, 2), (1, 1, 2), (2, 1))"),
    attends("attention_mask_keys", Q | KV | {"mask": (2, 4, 1, 7)}),
    attends("attention_bools", Q | KV, given=SEEN, cut="((2, 2, 1), (2, 1, 1), (2, 1, 1), (2, 1))"),
    attends("attention_causal_mask", Q | KV | {"mask": (6, 7)}, CAUSAL, causal=True),
    attends("attention_groups", Q | HALF, cut="((1, 2, 2), (1, 1, 2), (1, 1, 2))"),
    attends("attention_groups_mask", Q | HALF | {"mask": (6, 7)}),
    attends("attention_one_head", Q | THIRD, CAUSAL, causal=True),
]


class ByFormula:
    """An optimizer whose rule says what a parameter loses: a function of it, its gradient, its states, which begin at 0, and the number
    of the step."""

    def __init__(self, parameters, rule):
        self.parameters, self.rule, self.steps = parameters, rule, 0
        self.states = [[torch.zeros_like(p) for _ in range(3)] for p in parameters]

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for p, states in zip(self.parameters, self.states):
            p -= self.rule(p, p.grad, states, self.steps)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


def means(g, states):
    states[0].mul_(0.9).add_(0.1 * g)
    states[1].mul_(0.99).add_(0.01 * g * g)
    return states[0], states[1]


def late_momentum(p, g, states, t):
    """MindSpore's dampening holds for the first gradient, too, which PyTorch lets in whole."""
    states[0].mul_(0.9).add_(0.7 * g)
    return 0.1 * states[0]


def nesterov_adam(p, g, states, t):
    """MindSpore's looks ahead in the mean of gradients; PyTorch's NAdam also has a schedule of its own."""
    m, v = means(g, states)
    return 0.05 * ((0.9 * m + 0.1 * g) / (1 - 0.9**t)) / ((v / (1 - 0.99**t)).sqrt() + 1e-3)


def adam_weight_decay(p, g, states, t):
    """BERT's: the means are not corrected as those of PyTorch's AdamW are."""
    m, v = means(g, states)
    return 0.02 * (m / (v.sqrt() + 1e-3) + 0.1 * p)


def lamb(p, g, states, t):
    """PyTorch has none."""
    m, v = means(g, states)
    update = m / (1 - 0.9**t) / ((v / (1 - 0.99**t)).sqrt() + 1e-3) + 0.1 * p
    return 0.05 * p.norm() / update.norm() * update


def rms_prop(p, g, states, t, centered=False, momentum=0.0, decay=0.0):
    """MindSpore's adds epsilon under the root, PyTorch's to the root; the learning rate is within the momentum, PyTorch's behind it."""
    g = g + decay * p
    states[0].mul_(0.9).add_(0.1 * g * g)
    states[1].mul_(0.9).add_(0.1 * g)
    states[2].mul_(momentum).add_(0.02 * g / (states[0] - (states[1] ** 2 if centered else 0) + 1e-2).sqrt())
    return states[2]


def warm_cosine(optimizer):
    """The warm-up ends at the first value of the cosine, which takes the other steps; behind it the last value stays."""
    rising = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / 5, total_iters=4)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15 - 5, eta_min=0.01)
    flat = torch.optim.lr_scheduler.ConstantLR(optimizer, 0.01 / 0.2, total_iters=STEPS)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [rising, falling, flat], [5, 15])


MLP = """network n(%x: f32[8, 6], %label: f32[8, 3]) {
  param %w1: f32[10, 6] = Normal(0.5)
  param %b1: f32[10] = Normal(0.5)
  param %w2: f32[3, 10] = Normal(0.5)
  param %b2: f32[3] = Normal(0.5)
  %up = Dense(%x, %w1, %b1) @ "up" {in_strategy: ((2, 1), (2, 1), (2))}
  %h = Tanh(%up)
  %out = Dense(%h, %w2, %b2) @ "down" {in_strategy: ((1, 2), (2, 2), (2))}
  %loss = MSELoss(%out, %label)
  return loss: %loss
}
"""
NORMED = MLP.replace("%h = Tanh(%up)", """param %scale: f32[10] = Ones()
  param %shift: f32[10] = Zeros()
  param %mean: f32[10] = Zeros() {requires_grad: false}
  param %variance: f32[10] = Ones() {requires_grad: false}
  %n, %m, %v = BatchNorm(%up, %scale, %shift, %mean, %variance)
  %h = Tanh(%n)""")


def mlp(p, x):
    return F.linear(torch.tanh(F.linear(x, p["w1"], p["b1"])), p["w2"], p["b2"])


def normed(p, x):
    up = F.batch_norm(F.linear(x, p["w1"], p["b1"]), p["mean"], p["variance"], p["scale"], p["shift"], training=True)
    return F.linear(torch.tanh(up), p["w2"], p["b2"])


class Optimizer:
    """`text` and `more` are what the train block says; `theirs` makes PyTorch's optimizer of parameters, `schedule` a schedule of that.
    `norm` bounds gradients."""

    def __init__(self, name, text, theirs, schedule=None, more="", norm=None, network=MLP, forward=mlp, other=()):
        self.name, self.text, self.theirs, self.schedule, self.more = name, text, theirs, schedule, more
        self.norm, self.network, self.forward = norm, network, forward
        self.fetched = ["param:w1", "param:b1", "param:w2", "param:b2", *other]

    def expected(self):
        """From the parameters that were fetched."""
        values = {n.split(":")[1]: read_npy(n) for n in self.fetched}
        trained = [values[n.split(":")[1]].requires_grad_() for n in self.fetched if n.startswith("param:")]
        optimizer = self.theirs(trained)
        schedule = self.schedule(optimizer) if self.schedule else None
        for x, label in zip(INPUTS.split(ROWS), LABELS.split(ROWS)):
            optimizer.zero_grad()
            loss = F.mse_loss(self.forward(values, x), label)
            loss.backward()
            if self.norm:
                torch.nn.utils.clip_grad_norm_(trained, self.norm)
            optimizer.step()
            if schedule:
                schedule.step()
        return [loss.detach()] + [value.detach() for value in values.values()]

    def check(self):
        """As of an operator."""
        with open(self.name + ".mir", "w") as file:
            file.write(self.network + 'dataset {source: Npy(), columns: {x: "x.npy", label: "label.npy"}}\n')
            file.write(f"train {{optimizer: {self.text}, minimize: loss, steps: {STEPS}{self.more}}}\n")
        write_npy("x", INPUTS)
        write_npy("label", LABELS)
        for devices in (1, 4):
            plan = compile_network(self.name, devices)
            if devices == 1:
                train(plan, self.fetched, "--steps", "0")  # as they were drawn
                expected = self.expected()
            train(plan, ["loss"] + self.fetched)
            for name, theirs in zip(["loss"] + self.fetched, expected):
                yield name, devices, theirs


def by(kind, **arguments):
    return lambda parameters: kind(parameters, **arguments)


def formula(rule, **arguments):
    return by(ByFormula, rule=functools.partial(rule, **arguments))


optim = torch.optim
OPTIMIZERS = [
    Optimizer("sgd", "SGD(0.1)", by(optim.SGD, lr=0.1)),
    Optimizer("sgd_decay", "SGD(0.1, weight_decay: 0.1)", by(optim.SGD, lr=0.1, weight_decay=0.1)),
    Optimizer("sgd_momentum", "SGD(0.1, momentum: 0.9, weight_decay: 0.1)", by(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.1)),
    Optimizer("sgd_dampening", "SGD(0.1, momentum: 0.9, dampening: 0.3)", formula(late_momentum)),
    Optimizer("momentum", "Momentum(0.1, 0.9)", by(optim.SGD, lr=0.1, momentum=0.9)),
    Optimizer("momentum_nesterov", "Momentum(0.1, 0.9, use_nesterov: true)", by(optim.SGD, lr=0.1, momentum=0.9, nesterov=True)),
    Optimizer("adam", "Adam(0.05, beta2: 0.99, eps: 1e-3)", by(optim.Adam, lr=0.05, betas=(0.9, 0.99), eps=1e-3)),
    Optimizer("adam_decay", "Adam(0.05, weight_decay: 0.1, eps: 1e-3)", by(optim.Adam, lr=0.05, weight_decay=0.1, eps=1e-3)),
    Optimizer("adam_nesterov", "Adam(0.05, beta2: 0.99, eps: 1e-3, use_nesterov: true)", formula(nesterov_adam)),
    Optimizer("adamw", "AdamW(0.05, weight_decay: 0.1, eps: 1e-3)", by(optim.AdamW, lr=0.05, weight_decay=0.1, eps=1e-3)),
    Optimizer("adam_weight_decay", "AdamWeightDecay(0.02, beta2: 0.99, eps: 1e-3, weight_decay: 0.1)", formula(adam_weight_decay)),
    Optimizer("lamb", "Lamb(0.05, beta2: 0.99, eps: 1e-3, weight_decay: 0.1)", formula(lamb)),
    Optimizer("rms_prop", "RMSProp(0.02, epsilon: 1e-2)", formula(rms_prop)),
    Optimizer("rms_prop_momentum", "RMSProp(0.02, epsilon: 1e-2, momentum: 0.5, weight_decay: 0.1)",
              formula(rms_prop, momentum=0.5, decay=0.1)),
    Optimizer("rms_prop_centered", "RMSProp(0.02, epsilon: 1e-2, centered: true)", formula(rms_prop, centered=True)),
    Optimizer("rms_prop_centered_momentum", "RMSProp(0.02, epsilon: 1e-2, centered: true, momentum: 0.5)",
              formula(rms_prop, centered=True, momentum=0.5)),
    # MindSpore's has no epsilon.
    Optimizer("adagrad", "Adagrad(0.1, weight_decay: 0.1)",
              by(optim.Adagrad, lr=0.1, initial_accumulator_value=0.1, weight_decay=0.1, eps=0.0)),
    Optimizer("clip_norm", "Momentum(0.1, 0.9)", by(optim.SGD, lr=0.1, momentum=0.9), more=", clip_global_norm: 0.5", norm=0.5),
    Optimizer("warm_cosine", "Adam(Cosine(0.2, total: 15, warmup: 5, end: 0.01), eps: 1e-3)", by(optim.Adam, lr=0.2, eps=1e-3), warm_cosine),
    Optimizer("running_statistics", "SGD(0.1)", by(optim.SGD, lr=0.1), network=NORMED, forward=normed,
              other=("param:scale", "param:shift", "state:mean", "state:variance")),
]

torch.manual_seed(1)
torch.set_num_threads(1)
INPUTS, LABELS = torch.randn(STEPS * ROWS, 6), torch.randn(STEPS * ROWS, 3)
slow_machine()
GROUPS = {"conv": CONVOLUTIONS, "pool": POOLS, "norm": NORMS, "activation": ACTIVATIONS, "loss": LOSSES, "attention": ATTENTIONS,
          "optimizer": OPTIMIZERS}
chosen = [name for name in sys.argv[1:] if name != "--other"]
failures, count = [], 0
for group, cases in GROUPS.items():
    worst = {}
    for case in cases:
        if chosen and case.name not in chosen:
            continue
        count += 1
        for name, devices, theirs in case.check():
            ours = read_npy(name)
            deviation = deviation_of(ours, theirs)
            kind = name.split(":")[0] if ":" in name else "values"
            worst[kind] = max(worst.get(kind, 0), deviation)
            if not deviation <= TOLERANCE:
                failures.append(f"{case.name} on {devices}: {name} is off by {deviation:.2g}: {tuple(ours.shape)} "
                                f"{ours.flatten()[:6].tolist()}, PyTorch has {tuple(theirs.shape)} {theirs.flatten()[:6].tolist()}")
    if worst:
        print(f"{group}: {', '.join(f'{kind} {deviation:.1e}' for kind, deviation in worst.items())}", flush=True)
if failures or count < max(1, len(chosen)):
    sys.exit("\n".join(failures) or f"not all of these are cases: {', '.join(chosen)}")
print(f"{count} cases on 1 and 4 devices agree with PyTorch {torch.__version__}")
