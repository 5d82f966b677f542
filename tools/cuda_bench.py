#!/usr/bin/env python3
"""cuda_bench.py PLANS [--only WORD] [--steps N] [--peers eager,compiled,jax] [--seconds N]: steps of ours on one GPU against PyTorch and JAX.

PLANS are what `test_cuda.sh --prepare PLANS` compiled; `msrun` is on PATH. First operators, of which ours are read off a timeline of the second step,
against PyTorch's copy of 1 GiB and its products (cuBLAS); then training steps, ours of all networks, and then peer by peer, each in a process of its
own. Peers train the same network on the same shapes with SGD and momentum (fused); bf16 is autocast in PyTorch, and casts of the weights in JAX. `eager`
of the quickstart is one CUDA graph, as ours is. `compiled` is torch.compile(mode="max-autotune"), which captures CUDA graphs; `jax` is jit with donated
buffers. A time is the median of up to N steps (200; fewer where they take more than 20 s) behind the first ones, each ended by reading its loss. A
ratio is the peer's time by ours: above 1 ours is faster. What --seconds leave no time for is left out, and said. It ends with 1 if anything of ours fails.
"""
import argparse
import json
import os
import re
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
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read when JAX is imported
from peer_networks import ResNet50, Words, resnet50_of_jax, words_of_jax

try:
    import jax
except ImportError:
    jax = None

MOST_SECONDS = 20  # of the steps of one measurement


until = float("inf")  # the clock when there is no time left


def msrun(plan, steps, *flags):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run(["msrun", plan, "--no-checkpoint", "--device", "cuda", "--steps", str(steps), "--log-every", "0", "--report", report,
                               *flags], capture_output=True, text=True, timeout=max(1, min(300, until - time.monotonic())))
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
    """Milliseconds."""
    for _ in range(3):
        step()
    times, until = [], time.perf_counter() + MOST_SECONDS
    while len(times) < steps and (len(times) < 10 or time.perf_counter() < until):
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


def networks():
    """Names, plans, and what builds a step of each peer."""
    draw = lambda *shape, high: torch.randint(0, high, shape)
    gpt, bert = (12, 768, 12, 3072, 1024, 50257), (24, 1024, 16, 4096, 512, 30522)
    gpt_data = lambda: (draw(8, 1024, high=50257), draw(8, 1024, high=50257))
    bert_data = lambda: (draw(8, 512, high=30522), draw(8, 512, high=30522), draw(8, 512, high=2))
    images = lambda: (torch.randn(256, 3, 224, 224), draw(256, high=1000))
    small = lambda: (torch.randn(16, 32), torch.randn(16, 16))

    def peers(make, inputs, of_jax, narrow):
        of_torch = {"eager": trains(make, inputs, narrow, False), "compiled": trains(make, inputs, narrow, True)} if torch else {}
        return {**of_torch, **({"jax": lambda: of_jax(narrow)} if jax else {})}

    words = lambda shape, is_bert: lambda narrow: words_of_jax(*shape, 8, narrow, is_bert, "cudnn" if narrow else None)
    yield "quickstart", "quickstart", {"eager": graphed(Quickstart, small), "compiled": trains(Quickstart, small, False, True)} if torch else {}
    yield "GPT-2 small bf16, batch 8 x 1024", "bench-gpt2-bf16", peers(lambda: Words(*gpt), gpt_data, words(gpt, False), True)
    yield "BERT-large bf16, batch 8 x 512", "bench-bert-bf16", peers(lambda: Words(*bert, True), bert_data, words(bert, True), True)
    yield "ResNet-50 bf16, batch 256", "bench-resnet50-bf16", peers(ResNet50, images, lambda narrow: resnet50_of_jax(224, 1000, narrow, 256), True)
    yield "ResNet-50 f32, batch 256", "bench-resnet50-f32", peers(ResNet50, images, lambda narrow: resnet50_of_jax(224, 1000, narrow, 256), False)
    yield "GPT-2 small f32, batch 8 x 1024", "bench-gpt2-f32", peers(lambda: Words(*gpt), gpt_data, words(gpt, False), False)


def traffic(plan):
    """Bytes of the tensors that each launched kernel must read or write once, by the name that a timeline gives it."""
    text = subprocess.run(["msrun", "--print-plan", plan], capture_output=True, text=True, check=True).stdout
    bytes_of = {m[1]: int(m[2]) for m in re.finditer(r"^%(\d+) .* bytes (\d+)", text, re.M)}
    numbers = lambda list_: [n for n in list_.split(", ") if n]
    return {f"{m[1]} {m[2]}": sum(bytes_of[n] for n in {*numbers(m[3])}) + sum(bytes_of[n] for n in {*numbers(m[4])})
            for m in re.finditer(r"^ +\d+ (\w+) '([^']*)' \w+: reads \(([^)]*)\) writes \(([^)]*)\) kernel", text, re.M)}


def bandwidth_of_copy():
    """GB/s."""
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    y = torch.empty_like(x)
    us = by_events(lambda: y.copy_(x))
    found = 2 * x.numel() / us / 1e3
    print(f"copy of 1 GiB: {us:.0f} us, {found:.0f} GB/s read and written", flush=True)
    del x, y
    torch.cuda.empty_cache()
    return found


def kernels_by_copy(name, plan, bandwidth):
    moved, took = traffic(plan), events(plan)
    kernels = sorted(((n, d) for n, d in took if n in moved and moved[n] > 1 << 25), key=lambda event: -event[1])
    for kernel, us in kernels[:12]:
        rate = moved[kernel] / us / 1e3
        print(f"  {name}: {us:7.0f} us {moved[kernel] / 1e6:7.0f} MB {rate:5.0f} GB/s = {rate / bandwidth:.2f} of the copy  {kernel}", flush=True)
    every = sum(moved[n] for n, _ in kernels), sum(d for _, d in kernels)
    if every[1]:
        print(f"  {name}: all {len(kernels)} kernels of 32 MiB and more: {every[0] / every[1] / 1e3 / bandwidth:.2f} of the copy; with what is no kernel "
              f"{sum(d for _, d in took):.0f} us", flush=True)


def products(name, plan, kind):
    a, b = (torch.randn(4096, 4096, device="cuda").to(kind) for _ in range(2))
    theirs, own = by_events(lambda: a @ b), [d for n, d in events(plan) if n.startswith("MatMul")]
    if not own:
        raise RuntimeError("its timeline has no MatMul")
    us = statistics.median(own)  # of few steps, each waited for
    print(f"{name} 4096^3: {us:.0f} us with its wait, PyTorch {theirs:.0f} us = {theirs / us:.2f} x", flush=True)


def operators(plans):
    """How many of ours failed."""
    failed, bandwidth = 0, bandwidth_of_copy()
    measured = [(name, lambda name, plan: kernels_by_copy(name, plan, bandwidth)) for name in ("bench-rows", "bench-gpt2-bf16")]
    measured += [("bench-matmul-f32", lambda name, plan: products(name, plan, torch.float32)),
                 ("bench-matmul-bf16", lambda name, plan: products(name, plan, torch.bfloat16))]
    for name, measure in measured:
        plan = os.path.join(plans, name + ".plan")
        if until - time.monotonic() < 15:
            print(f"{name[6:]}: left out, no time is left", flush=True)
        elif os.path.exists(plan):
            try:
                measure(name[6:], plan)
            except (RuntimeError, subprocess.SubprocessError, ValueError) as failure:
                print(f"{name[6:]}: ours failed: {failure}", flush=True)
                failed += 1
    return failed


def ours(name, plan, steps):
    """Milliseconds of a step, or None and a line that says why."""
    try:
        times, losses = msrun(plan, min(steps, 30))
        if steps > 30 and median(times) * steps < 1000 * MOST_SECONDS:
            times, losses = msrun(plan, steps)
    except (RuntimeError, subprocess.SubprocessError) as failure:
        print(f"{name}: ours failed: {failure}", flush=True)
        return None
    if None in (losses[0], losses[-1]):
        print(f"{name}: ours failed: its losses are no numbers", flush=True)
        return None
    print(f"{name}: ours {median(times):.3f} ms, median of {len(times)} steps (loss {losses[0]:.4f} to {losses[-1]:.4f})", flush=True)
    return median(times)


def theirs(options, name, peer, seconds):
    """Milliseconds of a step in a process of its own, or why there are none."""
    command = [sys.executable, os.path.abspath(__file__), options.plans, "--only", name, "--steps", str(options.steps), "--peer", peer]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"had not finished after {seconds:.0f} s"
    said = done.stdout.splitlines()
    if done.returncode == 0 and said:
        return float(said[-1])
    return "failed: " + (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peers", default="eager")
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--peer", help=argparse.SUPPRESS)  # in a process of its own: only this one, of the network --only; its time is the last line
    options = parser.parse_args()
    global until
    until = time.monotonic() + options.seconds
    if options.peer == "jax" and jax.default_backend() != "gpu":
        sys.exit("JAX finds no GPU")
    if options.peer:
        if torch:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.benchmark = True
        print(timed(next(peers for name, _, peers in networks() if name == options.only)[options.peer](), options.steps))
        return
    if not any(name.startswith("bench-") for name in (os.listdir(options.plans) if os.path.isdir(options.plans) else [])):
        parser.error(f"no plans to measure in '{options.plans}'; test_cuda.sh --prepare PLANS makes them")
    if set(options.peers.split(",")) - {"eager", "compiled", "jax"}:
        parser.error(f"unknown peers '{options.peers}': choose of eager, compiled and jax")
    on_gpu = torch is not None and torch.cuda.is_available()
    print("PyTorch", torch.__version__ if torch else "skipped: not installed", "" if on_gpu or not torch else "(without GPUs)", "| JAX",
          jax.__version__ if jax else "skipped: not installed", flush=True)
    failed = 0
    if on_gpu and options.only in ("", "operators"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        failed += operators(options.plans)
    measured = []
    for name, plan, peers in networks():
        path = os.path.join(options.plans, plan + ".plan")
        if options.only in name and os.path.exists(path) and until - time.monotonic() < 15:
            print(f"{name}: left out, no time is left", flush=True)
        elif options.only in name and os.path.exists(path):
            ms = ours(name, path, options.steps)
            failed += ms is None
            measured += [(name, ms, peers)] if ms else []
    for peer in options.peers.split(","):
        for name, ms, peers in measured:
            left = until - time.monotonic()
            if peer not in peers or (peer != "jax" and not on_gpu):
                continue
            if left < 15:
                print(f"{name}: {peer} was left out, there are {max(left, 0):.0f} s left", flush=True)
                continue
            found = theirs(options, name, peer, min(left, 180) if options.seconds < 7200 else left)
            if isinstance(found, str):
                print(f"{name}: {peer} {found}", flush=True)
                continue
            beyond = f", ours takes {1000 * (ms - found):.1f} us more than a CUDA graph alone" if (name, peer) == ("quickstart", "eager") else ""
            print(f"{name}: ours {ms:.3f} ms, {peer} {found:.3f} ms{beyond} = {found / ms:.2f} x", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
