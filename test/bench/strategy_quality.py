"""strategy_quality.py [--plans N] [--steps N] [--machine FILE] [NETWORK...]: how good the strategies are that the search finds, in
measured time, on 8 ranks of this machine.

For each network N plans run: data parallel, what the search finds, and strategies drawn for its products and tables, the rest
searched. Prints the measured time of the found plan against the best of all and against data parallel, and the rank correlation of
predicted and measured time. `msc` and `msrun` are on PATH; without --machine this machine is calibrated first. It gates nothing.
"""
import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import tempfile

RANKS = 8
TAIL = """  return loss: %loss
}
train {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss, epochs: 1}
"""


def dataset(**columns):
    inner = ", ".join(f"{name}: {what}" for name, what in columns.items())
    return f"dataset {{source: Random(seed: 1), columns: {{{inner}}}, steps: STEPS, same_batch: true}}\n"


def layers(batch, *sizes):
    """Products behind each other with ReLU between them; `@PINi` is where the strategy of the i-th goes."""
    lines, value = [f"network n(%x: f32[{batch}, {sizes[0]}], %label: f32[{batch}, {sizes[-1]}]) {{"], "%x"
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        lines += [f"  param %w{i}: f32[{rows}, {columns}] = Normal(0.02)", f'  %h{i} = MatMul({value}, %w{i}) @ "op{i}" @PIN{i}']
        value = f"%h{i}"
        if i + 2 < len(sizes):
            lines += [f"  %a{i} = ReLU(%h{i})"]
            value = f"%a{i}"
    lines += [f"  %loss = MSELoss({value}, %label)"]
    return "\n".join(lines) + "\n" + TAIL + dataset(x="uniform", label="uniform")


def tables(batch, fields, rows, size, hidden):
    return f"""network n(%ids: i32[{batch}, {fields}], %label: f32[{batch}, 1]) {{
  param %table: f32[{rows}, {size}] = Normal(0.02)
  param %w1: f32[{fields * size}, {hidden}] = Normal(0.02)
  param %w2: f32[{hidden}, 1] = Normal(0.02)
  %e = Gather(%table, %ids, 0) @ "op0" @PIN0
  %f = Reshape(%e, ({batch}, {fields * size}))
  %h = MatMul(%f, %w1) @ "op1" @PIN1
  %a = ReLU(%h)
  %y = MatMul(%a, %w2) @ "op2" @PIN2
  %loss = MSELoss(%y, %label)
{TAIL}""" + dataset(ids=f"integers(0, {rows})", label="uniform")


ATTENTION = """network n(%x: f32[8, 64, 256], %label: f32[8, 64, 256]) {
  param %wq: f32[256, 256] = Normal(0.05)
  param %wo: f32[256, 256] = Normal(0.05)
  param %w1: f32[256, 1024] = Normal(0.05)
  param %w2: f32[1024, 256] = Normal(0.05)
  %q = MatMul(%x, %wq) @ "op0" @PIN0
  %o, %l = ScaledDotProductAttention(%q, %q, %q, heads: 8)
  %p = MatMul(%o, %wo) @ "op1" @PIN1
  %r = Add(%x, %p)
  %u = MatMul(%r, %w1) @ "op2" @PIN2
  %g = GeLU(%u)
  %d = MatMul(%g, %w2) @ "op3" @PIN3
  %y = Add(%r, %d)
  %loss = MSELoss(%y, %label)
""" + TAIL + dataset(x="uniform", label="uniform")

NETWORKS = {
    "vgg classifier": layers(64, 6272, 1024, 1024, 250),
    "wide and deep": tables(256, 16, 50000, 16, 256),
    "large table": tables(1024, 4, 200000, 32, 64),
    "wide layers": layers(64, 1024, 4096, 1024),
    "large batch": layers(4096, 256, 256, 256),
    "even": layers(512, 512, 512, 512),
    "transformer layer": ATTENTION,
}


def run(command):
    return subprocess.run(command, capture_output=True, text=True)


def measure(text, machine, steps, *flags):
    """(predicted, measured) milliseconds of a step, or None where the network cannot be cut so."""
    open("net.mir", "w").write(text.replace("STEPS", str(steps)))
    if run(["msc", "compile", "net.mir", "--devices", str(RANKS), "--machine", machine, "--report", "made.json", *flags]).returncode != 0:
        return None
    predicted = json.load(open("made.json"))["cost"]["step_us"] / 1000
    ran = run(["msrun", "net.plan", "--no-checkpoint", "--report", "ran.json"])
    assert ran.returncode == 0, ran.stderr
    times = [step["ms"] for step in json.load(open("ran.json"))["steps"]]
    return predicted, statistics.median(times[len(times) // 4:])


def text_of(strategy):
    return "(" + ", ".join("(" + ", ".join(map(str, d)) + ("," if len(d) == 1 else "") + ")" for d in strategy) + ")"


def free(text):
    for i in range(9):
        text = text.replace(f"@PIN{i}", "")
    return text


def strategies_of(text, machine):
    """Of every pinned operator, what it may take."""
    open("net.mir", "w").write(free(text).replace("STEPS", "1"))
    result = []
    for i in itertools.takewhile(lambda i: f"@PIN{i}" in text, itertools.count()):
        said = run(["msc", "explain", "net.mir", "--devices", str(RANKS), "--machine", machine, "--op", f"op{i}", "--json"])
        result.append([a["in_strategy"] for a in json.loads(said.stdout)["alternatives"]])
    return result


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [order.index(i) for i in range(len(values))]


def correlation(pairs):
    a, b = ranks([p for p, _ in pairs]), ranks([m for _, m in pairs])
    return statistics.correlation(a, b)


def judge(name, text, machine, plans, steps):
    draw = random.Random(name)
    search = ["--search-mode", "optimal"]
    found = measure(free(text), machine, steps, *search)
    data = measure(free(text), machine, steps, "--parallel-mode", "data_parallel")
    others = [found, data]
    choices = strategies_of(text, machine)
    drawn = set()
    for _ in range(20 * plans):
        if len(others) >= plans:
            break
        pins = tuple(text_of(draw.choice(list)) for list in choices)
        if pins in drawn:
            continue
        drawn.add(pins)
        pinned = text
        for i, pin in enumerate(pins):
            pinned = pinned.replace(f"@PIN{i}", f"{{in_strategy: {pin}}}")
        if measured := measure(pinned, machine, steps, *search):
            others.append(measured)
    found = (found[0], min(found[1], measure(free(text), machine, steps, *search)[1])) # twice: other programs run here, too
    best = min(m for _, m in others)
    print(f"{name:18} found {found[1]:8.2f} ms, {found[1] / best:5.2f} of the best of {len(others)} plans, {found[1] / data[1]:5.2f} of "
          f"data parallel; predicted {found[0]:8.2f} ms; rank correlation {correlation(others):5.2f}", flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--plans", type=int, default=30)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--machine")
parser.add_argument("networks", nargs="*")
arguments = parser.parse_args()
machine = os.path.abspath(arguments.machine) if arguments.machine else None
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    if machine is None:
        machine = os.path.join(folder, "machine.json")
        calibrated = run(["msrun", "--calibrate", machine, "--ranks", str(RANKS)])
        assert calibrated.returncode == 0, calibrated.stderr
    for name, text in NETWORKS.items():
        if not arguments.networks or name in arguments.networks:
            judge(name, text, machine, arguments.plans, arguments.steps)
