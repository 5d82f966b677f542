"""check_forced.py FIRST COUNT: on random networks, types next best strategies and those that --op lists, in every search mode, and compares what was
said with what the step then takes in the model: as much or, where only a bound was told, at least as much.
"""
import json
import random
import re
import subprocess
import sys

from random_network import network

MODES = ["optimal", "recursive_programming", "sharding_propagation", "dynamic_programming"]


def explain(*arguments):
    done = subprocess.run(["msc", "explain", *arguments, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return json.loads(done.stdout)


def strategy_text(strategy):
    return "(" + ", ".join("(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")" for dims in strategy) + ")"


def check(seed):
    draw = random.Random(seed)
    mode = MODES[seed % len(MODES)]
    text = network(seed, draw.choice([0, 0, 3]), mode)
    if mode == "sharding_propagation":
        text = text.replace('@ "op1"', '@ "op1" {in_strategy: ((2, 1), (1, 1))}')
    open("free.mir", "w").write(text)
    flags = ["--devices", draw.choice("2 4 6 8 12 16".split()), "--machine", draw.choice(["cpu-local", "dgx-h100", "dgx-a100"]), "--candidates", "1"]

    def forced(name, strategy):
        """Microseconds; of an operator of a repeat in all its rounds."""
        name = re.sub(r"\.\d+$", ".{i}", name)
        edited, count = re.subn(rf'(@ "{re.escape(name)}")( {{in_strategy: [^}}]*}})?', rf"\1 {{in_strategy: {strategy_text(strategy)}}}", text)
        assert count == 1, (name, text)
        open("forced.mir", "w").write(edited)
        return explain("forced.mir", *flags)["cost"]["model_us"]

    free = explain("free.mir", *flags)
    told = [(c["cause"], c["next_best"]["in_strategy"], free["cost"]["model_us"] + c["next_best"]["more_us"], True)
            for c in free["collectives"] if c.get("next_best")][:2]
    name = draw.choice([op["name"] for op in free["operators"]])
    alternatives = [a for a in explain("free.mir", *flags, "--op", name)["alternatives"] if not a["chosen"]]
    told += [(name, a["in_strategy"], a["step_us"], a["exact"]) for a in draw.sample(alternatives, min(3, len(alternatives)))]
    for name, strategy, said, is_exact in told:
        us = forced(name, strategy)
        assert said <= us * (1 + 1e-6) and (us <= said * (1 + 1e-6) or not is_exact), (seed, mode, flags, name, strategy, said, us, text)
    return len(told)


first, count = int(sys.argv[1]), int(sys.argv[2])
print(f"{sum(map(check, range(first, first + count)))} strategies cost what was said")
