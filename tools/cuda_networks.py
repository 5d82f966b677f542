#!/usr/bin/env python3
"""cuda_networks.py [--dry-run] FOLDER [FILE]: runs every plan in FOLDER for 3 epochs on CPUs and on GPUs, eight at a time, and compares losses and, of networks
that are not trained, the outputs that msrun prints.

Losses agree to 1e-4, and outputs to so much of their largest element; those of several operators together, in which one that is wrong may weigh little,
to 1e-5 in f32 and to 1e-10 in f64 (plans named operators-*-f32 and operators-*-f64). What is no number is none on both; some are numbers. What GPUs have no kernel for is counted and named. Ends with 1 if any run fails, differs or lacks a
kernel; a line per plan is in FILE. A dry run is on CPUs both times, which tests this script. Plans are of `test_cuda.sh --prepare PLANS --networks NETWORKS`.
"""
import collections
import concurrent.futures
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile


DEVICE = "cpu" if "--dry-run" in sys.argv[1:2] else "cuda"
ARGUMENTS = sys.argv[2 if DEVICE == "cpu" else 1:]


def run(plan, folder, device):
    """Lists of numbers by name, or what went wrong."""
    report = os.path.join(folder, f"{os.path.basename(plan)}.{device}.json")
    flags = ["--threads-per-rank", "1"] if device == "cpu" else []
    try:
        done = subprocess.run(["msrun", plan, "--no-checkpoint", "--epochs", "3", "--report", report, "--device", device, *flags], capture_output=True,
                              text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "took more than 120 s"
    if done.returncode:
        return next((line for line in done.stderr.splitlines() if "error" in line), f"msrun ended with {done.returncode}")
    with open(report) as file:  # a loss that is no number is null
        found = {f"loss {i}": [math.nan if step["loss"] is None else step["loss"]] for i, step in enumerate(json.load(file)["steps"])}
    for name, values in re.findall(r"^(\w+): \w+\[[\d, ]*\] = (.*)$", done.stdout, re.MULTILINE):
        found[name] = [float({"true": 1, "false": 0, "...": 0}.get(word, word)) for word in values.split()]
    return found if any(math.isfinite(x) for values in found.values() for x in values) else "it gives no number"


def difference(a, b):
    """Of two lists, in shares of the largest element of the first."""
    if len(a) != len(b):
        return float("inf")
    largest = max((abs(x) for x in a if math.isfinite(x)), default=0.0)
    pairs = [abs(x - y) for x, y in zip(a, b) if x != y and not (math.isnan(x) and math.isnan(y))]
    worst = max((float("inf") if math.isnan(d) else d for d in pairs), default=0.0)
    return worst / max(largest, 1e-30)


def compare(plan, folder):
    """("agrees" | "lacks" | "differs" | "fails", what)"""
    cpu, gpu = (run(plan, folder, device) for device in ("cpu", DEVICE))
    if isinstance(cpu, str):
        return "fails", f"on CPUs: {cpu}"
    if isinstance(gpu, str):
        lacks = re.search(r"the device cuda has no kernel '(.*)", gpu)
        return ("lacks", lacks[1]) if lacks else ("fails", gpu)
    if cpu.keys() != gpu.keys():
        return "differs", f"{list(cpu)} and {list(gpu)}"
    kind = re.search(r"^operators-.*-(f32|f64)\.plan$", os.path.basename(plan))
    tolerance = {"f32": 1e-5, "f64": 1e-10}[kind[1]] if kind else 1e-4
    worst, name = max((difference(cpu[name], gpu[name]), name) for name in cpu)
    return ("agrees", f"{worst:.1e}") if worst <= tolerance else ("differs", f"by {worst:.1e}, more than {tolerance:.0e}: {name} is {cpu[name]} and {gpu[name]}")


def main():
    if len(ARGUMENTS) not in (1, 2):
        sys.exit(f"cuda_networks.py: error: it takes FOLDER and perhaps FILE, not {len(ARGUMENTS)} arguments")
    plans = sorted(glob.glob(os.path.join(ARGUMENTS[0], "*.plan")))
    if not plans:
        sys.exit(f"cuda_networks.py: error: no plans in '{ARGUMENTS[0]}'; test_cuda.sh --prepare PLANS --networks NETWORKS puts them into PLANS/networks")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda plan: compare(plan, folder), plans))
    lines = [f"{os.path.basename(plan)} {kind} {what}" for plan, (kind, what) in zip(plans, outcomes)]
    if len(ARGUMENTS) > 1:
        with open(ARGUMENTS[1], "w") as file:
            file.write("\n".join(lines) + "\n")
    counts = collections.Counter(kind for kind, _ in outcomes)
    print("\n".join(line for line in lines if " agrees " not in line))
    missing = collections.Counter(what for kind, what in outcomes if kind == "lacks")
    print(f"{len(plans)} networks: {counts['agrees']} agree, {counts['differs']} differ, {counts['fails']} fail, {counts['lacks']} lack a kernel "
          f"({', '.join(f'{n} x {what[:60]}' for what, n in missing.most_common())})")
    sys.exit(counts["agrees"] < len(plans))


if __name__ == "__main__":
    main()
