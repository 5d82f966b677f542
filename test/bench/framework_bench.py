"""framework_bench.py [--threads 1,2] [--rounds N] [--steps N] [--only WORD] [--bf16]: steps of ours against PyTorch and JAX, on one rank.

First operators over shapes of ResNet-50 and GPT-2 small: forward, the gradient of the sum of squares of the result, and a step of
SGD on all operands. Then whole training steps: an MLP, ResNet-50 at 32 and at 224 px, GPT-2 small. `msc` and `msrun` are on PATH; PyTorch
and JAX are those of this Python and skipped where it has none. PyTorch runs eager, and networks also compiled where that works.

With --bf16 in mixed precision: ours with `amp_level: O2`, PyTorch under autocast, JAX with weights and inputs cast, and losses in f32.

Every peer is a process of its own that may use as many processors as there are threads, and so is every run of msrun. All take turns; the
time is that of the quietest round, the median of its steps. A ratio is the other's time by ours: above 1 ours is faster. Memory of networks
is the most that a process held beyond what it held before it made the network (PyTorch, JAX), or in all (msrun). It gates nothing.

Beside the steps of ResNet-50 stands what their convolutions alone take in the bare library, in orders of its choice: no step is faster with these
kernels. `build/bench/conv_bench` (target `benchmarks`) measures it, where it is.
"""
import argparse
import json
import multiprocessing
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from peer_networks import ResNet50, Words, draw, resnet50_of_jax, trains_in_jax, words_of_jax  # noqa: E402


MIXED = "amp_level: O2, amp_dtype: bf16, "


def precision(narrow):
    """What PyTorch computes its forward pass under."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow)


class Operator:
    """`text` is what the network does with its parameters, whose shapes are given; %y is the result."""

    def __init__(self, name, shapes, text, theirs, types=None):
        self.name, self.shapes, self.text, self.theirs = name, shapes, text, theirs
        self.types = types or {}  # inputs that are not trained: name -> (type, shape, highest)

    def network(self, steps):
        inputs = ", ".join(f"%{n}: {t}[{', '.join(map(str, s))}]" for n, (t, s, _) in self.types.items())
        lines = [f"network n({inputs}) {{"]
        lines += [f"  param %{n}: f32[{', '.join(map(str, s))}] = Uniform(1.0)" for n, s in self.shapes.items()]
        lines += ["  " + line for line in self.text]
        lines += ["  %squares = Square(%y)", "  %loss = ReduceSum(%squares)", "  return loss: %loss", "}"]
        columns = ", ".join(f"{n}: integers(0, {high})" for n, (_, _, high) in self.types.items())
        if columns:
            lines += [f"dataset {{source: Random(seed: 1), columns: {{{columns}}}, steps: {steps}, same_batch: true}}"]
        lines += [f"train {{optimizer: SGD(learning_rate: 1e-9), minimize: loss, steps: {steps}}}"]
        return "\n".join(lines) + "\n"

    def eager(self, narrow):
        """A step of PyTorch's."""
        values = {n: torch.rand(s).requires_grad_() for n, s in self.shapes.items()}
        values.update({n: torch.randint(0, high, s) for n, (_, s, high) in self.types.items()})
        trained = [values[n] for n in self.shapes]
        optimizer = torch.optim.SGD(trained, lr=1e-9)

        def step():
            optimizer.zero_grad()
            with precision(narrow):
                loss = self.theirs(values).square().sum()
            loss.backward()
            optimizer.step()

        return step


def conv(n, c, size, o, k, stride=1):
    pad = k // 2
    return Operator(f"conv {k}x{k} {n}x{c}x{size}x{size} -> {o}" + (f" stride {stride}" if stride > 1 else ""),
                    {"x": (n, c, size, size), "w": (o, c, k, k)},
                    [f"%y = Conv2D(%x, %w, out_channel: {o}, kernel_size: {k}, pad_mode: pad, pad: {pad}, stride: {stride})"],
                    lambda v: F.conv2d(v["x"], v["w"], stride=stride, padding=pad))


def batch_norm(n, c, size):
    return Operator(f"batch norm {n}x{c}x{size}x{size}", {"x": (n, c, size, size), "g": (c,), "b": (c,)},
                    [f"param %m: f32[{c}] = Zeros() {{requires_grad: false}}", f"param %v: f32[{c}] = Ones() {{requires_grad: false}}",
                     "%y, %mean, %variance = BatchNorm(%x, %g, %b, %m, %v)"],
                    lambda v: F.batch_norm(v["x"], torch.zeros(c), torch.ones(c), v["g"], v["b"], training=True))


def operators():
    wide, tokens, width = 50257, 1024, 768
    yield conv(32, 64, 56, 64, 3)
    yield conv(32, 256, 56, 64, 1)
    yield conv(32, 256, 14, 256, 3)
    yield conv(32, 512, 7, 2048, 1)
    yield Operator("max pool 3x3 stride 2 32x64x112x112", {"x": (32, 64, 112, 112)},
                   ["%y = MaxPool(%x, kernel_size: 3, strides: 2, pad_mode: pad, pad: 1)"],
                   lambda v: F.max_pool2d(v["x"], 3, 2, 1))
    yield batch_norm(32, 64, 56)
    yield batch_norm(32, 256, 14)
    yield Operator("layer norm 1024x768", {"x": (tokens, width), "g": (width,), "b": (width,)},
                   ["%y, %mean, %variance = LayerNorm(%x, %g, %b, begin_norm_axis: -1, begin_params_axis: -1)"],
                   lambda v: F.layer_norm(v["x"], (width,), v["g"], v["b"]))
    yield Operator("softmax 12288x256", {"x": (12288, 256)}, ["%y = Softmax(%x)"], lambda v: v["x"].softmax(-1))
    yield Operator("attention 4x256, 12 heads of 64, causal", {n: (4, 256, width) for n in "qkv"},
                   ["%y, %logs = ScaledDotProductAttention(%q, %k, %v, heads: 12, causal: true)"],
                   lambda v: F.scaled_dot_product_attention(*(v[n].view(4, 256, 12, 64).transpose(1, 2) for n in "qkv"), is_causal=True))
    yield Operator(f"cross-entropy {tokens}x{wide}", {"x": (tokens, wide)}, ["%y = SoftmaxCrossEntropyWithLogits(%x, %i, sparse: true)"],
                   lambda v: F.cross_entropy(v["x"], v["i"]), {"i": ("i32", (tokens,), wide)})


def adam():
    shape = (50257, 768)
    text = f"""network n() {{
  param %x: f32[{shape[0]}, {shape[1]}] = Uniform(1.0)
  %squares = Square(%x)
  %loss = ReduceSum(%squares)
  return loss: %loss
}}
train {{optimizer: Adam(learning_rate: 1e-9), minimize: loss, steps: STEPS}}
"""

    def eager(_):
        x = torch.rand(shape).requires_grad_()
        optimizer = torch.optim.Adam([x], lr=1e-9, fused=True)

        def step():
            optimizer.zero_grad()
            x.square().sum().backward()
            optimizer.step()

        return step

    return "Adam 50257x768", text, {"PyTorch": eager}


MLP = (1024, 4096, 4096, 1024)


class Layers(*([torch.nn.Module] if torch else [])):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in zip(MLP, MLP[1:]))

    def forward(self, x, y):
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return F.mse_loss(self.layers[-1](x), y)


def trains(make, inputs, compiled=False, decay=0.0):
    """Builds a step of PyTorch's with Momentum."""

    def build(narrow):
        model, data = make(), inputs()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=decay)
        run = torch.compile(model) if compiled else model

        def step():
            optimizer.zero_grad()
            with precision(narrow):
                loss = run(*data)
            loss.backward()
            optimizer.step()

        return step

    return build


def mlp_of_jax(narrow):
    def loss(weights, x, y):
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.mean((x @ weights[-1] - y) ** 2)

    return trains_in_jax(loss, draw(zip(MLP, MLP[1:])), draw([(64, MLP[0]), (64, MLP[-1])], 1.0), narrow)


def networks():
    def others(make, inputs, decay=0.0):
        return {"PyTorch": trains(make, inputs, decay=decay), "PyTorch compiled": trains(make, inputs, True, decay)} if torch else {}

    lines = [f"network mlp(%x: f32[64, {MLP[0]}], %label: f32[64, {MLP[-1]}]) {{"]
    for i, (a, b) in enumerate(zip(MLP, MLP[1:])):
        lines += [f"  param %w{i}: f32[{a}, {b}] = Normal(0.02)", f"  %h{i} = MatMul({f'%a{i - 1}' if i else '%x'}, %w{i})", f"  %a{i} = ReLU(%h{i})"]
    lines += [f"  %loss = MSELoss(%h{len(MLP) - 2}, %label)", "  return loss: %loss", "}",
              "dataset {source: Random(seed: 1), columns: {x: normal, label: normal}, steps: STEPS, same_batch: true}",
              "train {optimizer: Momentum(learning_rate: 0.001, momentum: 0.9), minimize: loss, steps: STEPS}"]
    lines.remove(f"  %a{len(MLP) - 2} = ReLU(%h{len(MLP) - 2})")
    peers = others(Layers, lambda: (torch.randn(64, MLP[0]), torch.randn(64, MLP[-1])))
    if jax:
        peers["JAX"] = mlp_of_jax
    yield "MLP " + "-".join(map(str, MLP)) + ", batch 64", "\n".join(lines) + "\n", peers
    for size, classes in ((32, 10), (224, 1000)):
        images = lambda size=size, classes=classes: (torch.randn(32, 3, size, size), torch.randint(0, classes, (32,)))
        peers = others(lambda classes=classes: ResNet50(classes), images, 1e-4)
        if jax:
            peers["JAX"] = lambda narrow, size=size, classes=classes: resnet50_of_jax(size, classes, narrow)
        yield f"ResNet-50, batch 32, {size} px", ("resnet50", f"size={size}", f"classes={classes}"), peers
    ids = lambda: (torch.randint(0, 50257, (4, 256)), torch.randint(0, 50257, (4, 256)))
    peers = others(lambda: Words(12, 768, 12, 3072, 256, 50257), ids)
    if jax:
        peers["JAX"] = lambda narrow: words_of_jax(12, 768, 12, 3072, 256, 50257, 4, narrow)
    yield "GPT-2 small, batch 4 x 256", ("gpt2", "layers=12", "length=256", "batch=4", "wide=1"), peers


def compile_ours(folder, number, text, options):
    plan, source = (os.path.join(folder, f"{number}.{end}") for end in ("plan", "mir"))
    definitions = []
    if isinstance(text, tuple):
        definitions = [part for d in text[1:] for part in ("-D", d)]
        with open(os.path.join(ROOT, "examples", text[0], "net.mir")) as file:
            text = file.read()
    with open(source, "w") as file:
        file.write(text.replace("STEPS", str(options.steps)).replace("train {", "train {" + MIXED * options.bf16))
    subprocess.run(["msc", "compile", source, *definitions, "--devices", "1", "-o", plan], check=True)
    return plan


def processors(threads):
    return sorted(os.sched_getaffinity(0))[:threads]


def ours(plan, threads, steps):
    """Milliseconds of a step, and the most memory in MB."""
    report = plan + ".json"
    child = subprocess.Popen(["msrun", plan, "--no-checkpoint", "--steps", str(steps), "--threads-per-rank", str(threads), "--report", report],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, processors(threads)))
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"msrun {plan} ended with {os.waitstatus_to_exitcode(status)}")
    with open(report) as file:
        return statistics.median(step["ms"] for step in json.load(file)["steps"][2:]), usage.ru_maxrss / 1e3


def held():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def peer_process(pipe, case, peer, threads, steps, narrow):
    """Builds the peer's step of a case; then runs steps as often as asked."""
    os.setpgrp()
    try:
        if torch:
            torch.set_num_threads(threads)
        before = held()
        step = cases(steps)[case][2][peer](narrow)
        step()
        pipe.send(None)
        while pipe.recv():
            times = []
            for _ in range(steps):
                begin = time.perf_counter()
                step()
                times.append(1000 * (time.perf_counter() - begin))
            pipe.send((statistics.median(times[2:]), held() - before))
    except Exception as failure:  # a compiler that is not installed, for one
        pipe.send(f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0][:80]}")


class Peer:
    def __init__(self, case, name, threads, options):
        self.pipe, theirs = multiprocessing.Pipe()
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, processors(threads))  # what the process inherits, before its libraries count processors
        os.environ["OMP_NUM_THREADS"] = str(threads)
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=peer_process, args=(theirs, case, name, threads, options.steps, options.bf16), daemon=True)
        self.process.start()
        os.sched_setaffinity(0, allowed)
        theirs.close()
        self.failure = self.receive()
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        """To the process and those that it started: while others run it does nothing, not even waiting."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:  # it has ended
            pass

    def receive(self):
        try:
            return self.pipe.recv()
        except EOFError:
            return "its process ended"

    def run(self):
        self.signal(signal.SIGCONT)
        self.pipe.send(True)
        result = self.receive()
        self.signal(signal.SIGSTOP)
        return result

    def stop(self):
        self.signal(signal.SIGKILL)
        self.process.join()


def compare(case, name, plan, builders, threads, options):
    peers = {}
    for peer in builders:
        started = Peer(case, peer, threads, options)
        if started.failure:
            print(f"  {peer} skipped: {started.failure}", flush=True)
            started.stop()
        else:
            peers[peer] = started
    results = {"ours": [], **{peer: [] for peer in peers}}
    for _ in range(options.rounds):
        results["ours"].append(ours(plan, threads, options.steps))
        for peer, process in peers.items():
            results[peer].append(process.run())
    for process in peers.values():
        process.stop()
    best = {who: min(ms for ms, _ in rounds) for who, rounds in results.items()}
    memory = {who: max(mb for _, mb in rounds) for who, rounds in results.items()}
    whole = len(builders) > 1

    def told(who):
        return f"{best[who]:.2f} ms" + (f", {memory[who]:.0f} MB" if whole else "")

    bound = bound_of_convolutions(name, threads, options.bf16)
    beside = f", convolutions alone {bound:.0f} ms = {100 * bound / best['ours']:.0f} %" if bound else ""
    rest = beside + "".join(f"  {peer} {told(peer)} = {best[peer] / best['ours']:.2f} x" for peer in peers)
    print(f"{name}: {threads} thread{'s' * (threads > 1)}, ours {told('ours')}{rest}", flush=True)


def bound_of_convolutions(name, threads, narrow):
    """Milliseconds; None: of no network of images, or not built."""
    of_images = re.fullmatch(r"ResNet-50, batch (\d+), (\d+) px", name)
    bench = os.path.join(ROOT, "build", "bench", "conv_bench")
    if not of_images or not os.path.exists(bench):
        return None
    command = [bench, "--bound", of_images[1], of_images[2], str(threads)] + ["bf16"] * narrow
    return float(subprocess.run(command, preexec_fn=lambda: os.sched_setaffinity(0, processors(threads)), capture_output=True, text=True, check=True).stdout)


def cases(steps):
    every = [(o.name, o.network(steps), {"PyTorch": o.eager} if torch else {}) for o in operators()]
    return every + [adam() if torch else (*adam()[:2], {}), *networks()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    print("PyTorch", torch.__version__ if torch else "skipped: not installed", "| JAX", jax.__version__ if jax else "skipped: not installed")
    with tempfile.TemporaryDirectory() as folder:
        for case, (name, text, builders) in enumerate(cases(options.steps)):
            if options.only not in name:
                continue
            plan = compile_ours(folder, case, text, options)
            for threads in map(int, options.threads.split(",")):
                compare(case, name, plan, builders, threads, options)


if __name__ == "__main__":
    main()
