#!/usr/bin/env python3
"""cuda_bench.py PLANS [--only WORD] [--steps N] [--peers eager,compiled,jax]: steps of ours on one GPU against PyTorch and JAX.

PLANS are what `test_cuda.sh --prepare PLANS` compiled; `msrun` is on PATH. First operators, of which ours are read off a timeline of the second step,
against PyTorch's copy of 1 GiB and its products (cuBLAS); then training steps. Peers train the same network on the same shapes with SGD and momentum (fused);
bf16 is autocast there. `compiled` is torch.compile(mode="max-autotune"), which captures CUDA graphs; `jax` is jit with donated buffers. A time is the median
of the steps behind the first five, each ended by reading its loss. A ratio is the peer's time by ours: above 1 ours is faster. It gates nothing.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
from peer_networks import ResNet50

try:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None


def msrun(plan, steps, *flags):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run(["msrun", plan, "--no-checkpoint", "--device", "cuda", "--steps", str(steps), "--log-every", "0", "--report", report,
                               *flags], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(next((l for l in done.stderr.splitlines() if "error" in l), f"msrun ended with {done.returncode}"))
        with open(report) as file:
            steps_run = json.load(file)["steps"]
    return [step["ms"] for step in steps_run], [step["loss"] for step in steps_run]


def median(times):
    return statistics.median(times[5:] if len(times) > 8 else times[2:] or times)


def events(plan):
    """Microseconds of the steps of the plan, by name, each waited for."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline.json")
        msrun(plan, 3, "--no-cuda-graph", "--timeline", path)
        with open(path) as file:
            trace = json.load(file)
    return [(e["name"], e["dur"]) for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("tid") in (0, 1)]


def timed(step, steps):
    for _ in range(3):
        step()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times)


def by_events(run, repeats=20):
    """Microseconds on the device."""
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return statistics.median(times)


# The networks, as examples/ has them.
class Block(*([torch.nn.Module] if torch else [])):
    def __init__(self, width, heads, hidden, before, causal, approximate):
        super().__init__()
        nn = torch.nn
        self.heads, self.before, self.causal, self.approximate = heads, before, causal, approximate
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def attend(self, n):
        parts = [p(n).view(*n.shape[:2], self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v)]
        return self.o(F.scaled_dot_product_attention(*parts, is_causal=self.causal).transpose(1, 2).reshape(n.shape))

    def widen(self, n):
        return self.down(F.gelu(self.up(n), approximate=self.approximate))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.ln_1(x))
            return x + self.widen(self.ln_2(x))
        x = self.ln_1(x + self.attend(x))
        return self.ln_2(x + self.widen(x))


class Words(*([torch.nn.Module] if torch else [])):
    def __init__(self, layers, width, heads, hidden, length, vocabulary, bert):
        super().__init__()
        nn = torch.nn
        self.bert = bert
        self.word = nn.Parameter(torch.randn(vocabulary, width) * 0.02)
        self.place = nn.Parameter(torch.randn(length, width) * 0.01)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, not bert, not bert, "none" if bert else "tanh") for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        if bert:
            self.kind, self.first, self.dense, self.bias = nn.Embedding(2, width), nn.LayerNorm(width), nn.Linear(width, width), nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids, labels, kinds=None):
        x = F.embedding(ids, self.word) + self.place
        if self.bert:
            x = self.first(x + self.kind(kinds))
        for block in self.blocks:
            x = block(x)
        x = self.norm(F.gelu(self.dense(x)) if self.bert else x)
        logits = F.linear(x, self.word, self.bias if self.bert else None)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class Quickstart(*([torch.nn.Module] if torch else [])):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 16, bias=False), torch.nn.Linear(16, 16, bias=False)

    def forward(self, x, label):
        return F.mse_loss(self.b(self.a(x).relu()), label)


def trains(make, inputs, narrow, compiled):
    def build():
        torch.manual_seed(0)
        model, data = make().cuda(), [t.cuda() for t in inputs()]
        if any(t.dim() == 4 for t in data):
            model = model.to(memory_format=torch.channels_last)
            data = [t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in data]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)
        run = torch.compile(model, mode="max-autotune") if compiled else model

        def step():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
                loss = run(*data)
            loss.backward()
            optimizer.step()
            loss.item()

        return step

    return build


def graphed(make, inputs):
    """The whole step as one CUDA graph, as ours is."""
    def build():
        model, data = make().cuda(), [t.cuda() for t in inputs()]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)

        def once():
            optimizer.zero_grad(set_to_none=False)
            loss = model(*data)
            loss.backward()
            optimizer.step()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                once()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = once()

        def step():
            graph.replay()
            loss.item()

        return step

    return build


def words_of_jax(layers, width, heads, hidden, length, vocabulary, batch):
    """GPT-2 in bf16 with f32 weights."""
    def build():
        key = jax.random.PRNGKey(0)
        draw = lambda *shape: 0.02 * jax.random.normal(key, shape)
        block = lambda: dict(g1=jnp.ones(width), b1=jnp.zeros(width), q=draw(width, width), qb=jnp.zeros(width), k=draw(width, width), kb=jnp.zeros(width),
                             v=draw(width, width), vb=jnp.zeros(width), o=draw(width, width), ob=jnp.zeros(width), g2=jnp.ones(width), b2=jnp.zeros(width),
                             up=draw(width, hidden), ub=jnp.zeros(hidden), down=draw(hidden, width), db=jnp.zeros(width))
        weights = {"wte": draw(vocabulary, width), "wpe": draw(length, width), "g": jnp.ones(width), "b": jnp.zeros(width), "blocks": [block() for _ in range(layers)]}
        half = jnp.bfloat16

        def norm(x, g, b):
            x = x.astype(jnp.float32)
            return ((x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b).astype(half)

        def loss(w, ids, following):
            x = (w["wte"][ids] + w["wpe"]).astype(half)
            for p in w["blocks"]:
                m = {k: v.astype(half) for k, v in p.items()}
                n = norm(x, p["g1"], p["b1"])
                parts = [(n @ m[k] + m[k + "b"]).reshape(batch, length, heads, -1) for k in "qkv"]
                x = x + jax.nn.dot_product_attention(*parts, is_causal=True, implementation="cudnn").reshape(x.shape) @ m["o"] + m["ob"]
                x = x + jax.nn.gelu(norm(x, p["g2"], p["b2"]) @ m["up"] + m["ub"]) @ m["down"] + m["db"]
            logits = (norm(x, w["g"], w["b"]) @ w["wte"].T.astype(half)).astype(jnp.float32)
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), following[..., None], -1).mean()

        ids = jax.random.randint(key, (batch, length), 0, vocabulary)

        def update(weights, moments, ids):
            value, gradients = jax.value_and_grad(loss)(weights, ids, ids)
            moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
            return jax.tree.map(lambda w, m: w - 0.001 * m, weights, moments), moments, value

        run = jax.jit(update, donate_argnums=(0, 1))
        state = [weights, jax.tree.map(jnp.zeros_like, weights)]

        def step():
            *state[:], value = run(*state, ids)
            float(value)

        return step

    return build


def networks():
    draw = lambda *shape, high: torch.randint(0, high, shape)
    gpt = lambda: Words(12, 768, 12, 3072, 1024, 50257, False)
    gpt_data = lambda: (draw(8, 1024, high=50257), draw(8, 1024, high=50257))
    bert = lambda: Words(24, 1024, 16, 4096, 512, 30522, True)
    bert_data = lambda: (draw(8, 512, high=30522), draw(8, 512, high=30522), draw(8, 512, high=2))
    images = lambda: (torch.randn(256, 3, 224, 224), draw(256, high=1000))
    small = lambda: (torch.randn(16, 32), torch.randn(16, 16))

    def both(make, inputs, narrow):
        return {"eager": trains(make, inputs, narrow, False), "compiled": trains(make, inputs, narrow, True)} if torch else {}

    yield "quickstart", "quickstart", {"eager": graphed(Quickstart, small)} if torch else {}
    of_jax = {"jax": words_of_jax(12, 768, 12, 3072, 1024, 50257, 8)} if jax else {}
    yield "GPT-2 small bf16, batch 8 x 1024", "bench-gpt2-bf16", {**both(gpt, gpt_data, True), **of_jax}
    yield "GPT-2 small f32, batch 8 x 1024", "bench-gpt2-f32", both(gpt, gpt_data, False)
    yield "BERT-large bf16, batch 8 x 512", "bench-bert-bf16", both(bert, bert_data, True)
    yield "ResNet-50 bf16, batch 256", "bench-resnet50-bf16", both(ResNet50, images, True)
    yield "ResNet-50 f32, batch 256", "bench-resnet50-f32", both(ResNet50, images, False)


def traffic(plan):
    """Bytes of the tensors that each launched kernel must read or write once, by the name that a timeline gives it."""
    text = subprocess.run(["msrun", "--print-plan", plan], capture_output=True, text=True, check=True).stdout
    bytes_of = {m[1]: int(m[2]) for m in re.finditer(r"^%(\d+) .* bytes (\d+)", text, re.M)}
    numbers = lambda list_: [n for n in list_.split(", ") if n]
    return {f"{m[1]} {m[2]}": sum(bytes_of[n] for n in {*numbers(m[3])}) + sum(bytes_of[n] for n in {*numbers(m[4])})
            for m in re.finditer(r"^ +\d+ (\w+) '([^']*)' \w+: reads \(([^)]*)\) writes \(([^)]*)\) kernel", text, re.M)}


def operators(plans):
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    y = torch.empty_like(x)
    us = by_events(lambda: y.copy_(x))
    bandwidth = 2 * x.numel() / us / 1e3
    print(f"copy of 1 GiB: {us:.0f} us, {bandwidth:.0f} GB/s read and written", flush=True)
    del x, y
    torch.cuda.empty_cache()
    for name in ("bench-rows", "bench-gpt2-bf16"):
        plan = os.path.join(plans, name + ".plan")
        if not os.path.exists(plan):
            continue
        moved, took = traffic(plan), events(plan)
        kernels = sorted(((n, d) for n, d in took if n in moved and moved[n] > 1 << 25), key=lambda event: -event[1])
        for kernel, us in kernels[:12]:
            rate = moved[kernel] / us / 1e3
            print(f"  {name[6:]}: {us:7.0f} us {moved[kernel] / 1e6:7.0f} MB {rate:5.0f} GB/s = {rate / bandwidth:.2f} of the copy  {kernel}", flush=True)
        every = sum(moved[n] for n, _ in kernels), sum(d for _, d in kernels)
        if every[1]:
            print(f"  {name[6:]}: all {len(kernels)} kernels of 32 MiB and more: {every[0] / every[1] / 1e3 / bandwidth:.2f} of the copy; with what is no kernel "
                  f"{sum(d for _, d in took):.0f} us", flush=True)
    for name, kind in (("bench-matmul-f32", torch.float32), ("bench-matmul-bf16", torch.bfloat16)):
        plan = os.path.join(plans, name + ".plan")
        if os.path.exists(plan):
            a, b = (torch.randn(4096, 4096, device="cuda").to(kind) for _ in range(2))
            theirs, own = by_events(lambda: a @ b), [d for n, d in events(plan) if n.startswith("MatMul")]
            print(f"{name[6:]} 4096^3: {min(own):.0f} us with its wait, PyTorch {theirs:.0f} us = {theirs / min(own):.2f} x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peers", default="eager")
    options = parser.parse_args()
    if not any(name.startswith("bench-") for name in (os.listdir(options.plans) if os.path.isdir(options.plans) else [])):
        parser.error(f"no plans to measure in '{options.plans}'; test_cuda.sh --prepare PLANS makes them")
    if set(options.peers.split(",")) - {"eager", "compiled", "jax"}:
        parser.error(f"unknown peers '{options.peers}': choose of eager, compiled and jax")
    print("PyTorch", torch.__version__ if torch else "skipped: not installed", "| JAX", jax.__version__ if jax else "skipped: not installed", flush=True)
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        if options.only in ("", "operators"):
            operators(options.plans)
    for name, plan, peers in networks():
        path = os.path.join(options.plans, plan + ".plan")
        if options.only not in name or not os.path.exists(path):
            continue
        try:
            times, losses = msrun(path, options.steps)
            ours = median(times)
        except (RuntimeError, subprocess.TimeoutExpired) as failure:
            print(f"{name}: ours failed: {failure}", flush=True)
            continue
        line = f"{name}: ours {ours:.3f} ms (loss {losses[0]:.4f} to {losses[-1]:.4f})"
        for peer in options.peers.split(","):
            if peer not in peers:
                continue
            try:
                theirs = timed(peers[peer](), options.steps)
                line += f", {peer} {theirs:.3f} ms = {theirs / ours:.2f} x"
            except Exception as failure:  # out of memory, a compiler that is missing
                line += f", {peer} failed: {type(failure).__name__}: {(str(failure).splitlines() or [''])[0][:80]}"
            if torch:
                torch.cuda.empty_cache()
        print(line, flush=True)


if __name__ == "__main__":
    main()
