"""strategy_quality.py [--plans N] [--rounds N] [--machine FILE] [--keep FOLDER] [NETWORK...]: how good the strategies are that the
search finds, in measured time, on 8 ranks of this machine.

For each network N plans run: data parallel, what the search finds, and strategies drawn for its products and tables, the rest
searched; every other draw is from the third of them that is predicted to be cheapest. Prints the measured time of the found plan against the best of all and against data parallel, and the rank correlation of
predicted and measured time. `msc` and `msrun` are on PATH; without --machine this machine is calibrated first. It gates nothing.

Eight ranks on few cores make steps that differ by a factor of three, and other programs run here, too. So plans take turns: the time
of a plan is that of its quietest round, the median of its steps. The best of many noisy times is too good, so the few best plans and
the found one run once more, in turns of their own; these times are the ones that are compared. Where others load the machine,
`chrt -r 1 python3 strategy_quality.py` keeps them away from the cores. --keep leaves plans and times there, to be compared with
`msc explain --diff`.
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


def compiled(text, machine, name, *flags):
    """The plan and what is predicted for a step, in milliseconds; None where the network cannot be cut so."""
    open("net.mir", "w").write(text.replace("STEPS", "1"))
    flags = ["--devices", str(RANKS), "--machine", machine, "--report", "made.json", "-o", name, *flags]
    if run(["msc", "compile", "net.mir", *flags]).returncode != 0:
        return None
    return {"plan": name, "predicted": json.load(open("made.json"))["cost"]["step_us"] / 1000, "rounds": []}


def run_once(plan, milliseconds):
    """Median time of a step; the first quarter warms up."""
    steps = max(12, min(400, int(milliseconds / plan["predicted"])))
    ran = run(["msrun", plan["plan"], "--no-checkpoint", "--steps", str(steps), "--report", "ran.json"])
    assert ran.returncode == 0, ran.stderr
    times = [step["ms"] for step in json.load(open("ran.json"))["steps"]]
    plan["rounds"].append(statistics.median(times[len(times) // 4:]))


def measure(plans, rounds, milliseconds):
    """In turns; the order changes from round to round, so that nobody always follows the same one."""
    order = list(plans)
    for round in range(rounds):
        random.Random(round).shuffle(order)
        for plan in order:
            run_once(plan, milliseconds)


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


def plans_of(name, text, machine, count):
    """The found one, data parallel, and drawn ones."""
    draw = random.Random(name)
    plans = [compiled(free(text), machine, "found.plan", "--search-mode", "optimal"),
             compiled(free(text), machine, "data_parallel.plan", "--parallel-mode", "data_parallel")]
    choices = strategies_of(text, machine)
    drawn = set()
    for attempt in range(20 * count):
        if len(plans) >= count:
            break
        share = 3 if attempt % 2 else 1
        pins = tuple(text_of(draw.choice(list[:max(2, len(list) // share)])) for list in choices)
        if pins in drawn:
            continue
        drawn.add(pins)
        pinned = text
        for i, pin in enumerate(pins):
            pinned = pinned.replace(f"@PIN{i}", f"{{in_strategy: {pin}}}")
        if plan := compiled(pinned, machine, f"{len(plans)}.plan", "--search-mode", "optimal"):
            plans.append(plan | {"strategies": pins})
    return plans


def judge(name, text, machine, count, rounds):
    plans = plans_of(name, text, machine, count)
    measure(plans, rounds, milliseconds=150)
    for plan in plans:
        plan["measured"] = min(plan["rounds"])
    found, data = plans[:2]
    pairs = [(plan["predicted"], plan["measured"]) for plan in plans]
    finalists = [{**plan, "rounds": []} for plan in [found, *sorted(plans[1:], key=lambda plan: plan["measured"])[:3]]]
    measure(finalists, 2 * rounds, milliseconds=300)
    for plan in finalists:
        plan["measured"] = min(plan["rounds"])
    best = min(finalists, key=lambda plan: plan["measured"])
    took = finalists[0]["measured"]
    print(f"{name:18} found {took:8.2f} ms, {took / best['measured']:5.2f} of the best of {len(plans)} plans, "
          f"{took / data['measured']:5.2f} of data parallel; predicted {found['predicted']:8.2f} ms; "
          f"rank correlation {correlation(pairs):5.2f}", flush=True)
    return {"plans": plans, "finalists": finalists}


parser = argparse.ArgumentParser()
parser.add_argument("--plans", type=int, default=30)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--machine")
parser.add_argument("--keep")
parser.add_argument("networks", nargs="*")
arguments = parser.parse_args()
machine = os.path.abspath(arguments.machine) if arguments.machine else None
kept = os.path.abspath(arguments.keep) if arguments.keep else None
with tempfile.TemporaryDirectory() as folder:
    folder = kept or folder
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    if machine is None:
        machine = os.path.join(folder, "machine.json")
        calibrated = run(["msrun", "--calibrate", machine, "--ranks", str(RANKS)])
        assert calibrated.returncode == 0, calibrated.stderr
    for name, text in NETWORKS.items():
        if not arguments.networks or name in arguments.networks:
            own = os.path.join(folder, name.replace(" ", "_"))
            os.makedirs(own, exist_ok=True)
            os.chdir(own)
            json.dump(judge(name, text, machine, arguments.plans, arguments.rounds), open("times.json", "w"), indent=1)
