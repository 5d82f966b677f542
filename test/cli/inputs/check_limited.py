"""check_limited.py FIRST COUNT FEW: random networks under limits on memory. A plan keeps its limit, for at most one of 30 it is not proven that nothing that fits takes
1 % less in the model, and of networks with at most FEW assignments none whose plan fits takes less: all of them are compiled.
"""
import itertools
import json
import random
import subprocess
import sys

from random_network import network

def compile_network(*arguments):
    done = subprocess.run(["msc", "compile", "net.mir", *arguments, "--candidates", "1", "-q", "-o", "net.plan", "--report", "net.json"], capture_output=True,
                          text=True)
    return json.load(open("net.json")) if done.returncode == 0 else None


def least_of_all(flags, limit):
    """Of the plans of all assignments that fit: microseconds in the model. None: there are too many."""
    options, count = {}, 1
    for op in json.load(open("net.json"))["operators"]:
        done = subprocess.run(["msc", "explain", "net.mir", *flags, "--candidates", "1", "--op", op["name"], "--json"], capture_output=True, text=True, check=True)
        options[op["name"]] = [a["in_strategy"] for a in json.loads(done.stdout)["alternatives"]]
        count *= len(options[op["name"]])
        if count > few:
            return None
    least = float("inf")
    for chosen in itertools.product(*options.values()):
        json.dump({"parallel_strategy_item": {name: {"parallel_strategy": s} for name, s in zip(options, chosen)}}, open("all.json", "w"))
        report = compile_network(*flags, "--strategy-load", "all.json")
        if report["memory"]["peak_bytes"] <= limit:
            least = min(least, report["cost"]["model_us"])
    return least


def check(seed):
    draw = random.Random(seed)
    open("net.mir", "w").write(network(seed, draw.choice([0, 0, 3])))
    flags = ["--devices", draw.choice("248"), "--machine", draw.choice(["cpu-local", "dgx-h100"])]
    peak = compile_network(*flags)["memory"]["peak_bytes"]
    gaps = []
    for share in (0.9, 0.6):
        limit = int(peak * share)
        report = compile_network(*flags, "--memory-limit", f"{limit}B")
        if not report:
            continue
        assert report["memory"]["peak_bytes"] <= limit, (seed, flags, limit, report["memory"])
        assert report["search"]["gap"] is not None, (seed, flags, limit)
        gaps.append((report["search"]["gap"], seed, flags, limit))
        least = least_of_all(flags, limit)
        assert least is None or report["search"]["step_us"] <= least * 1.01, (seed, flags, limit, report["search"]["step_us"], least)
    return gaps


first, count, few = map(int, sys.argv[1:4])
plans = [plan for seed in range(first, first + count) for plan in check(seed)]
wide = [plan for plan in plans if plan[0] > 0.01]
assert len(wide) <= len(plans) // 30, wide
print(f"{len(plans)} plans keep their limits, above 1 %: {wide}")
