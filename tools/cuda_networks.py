#!/usr/bin/env python3
"""cuda_networks.py FOLDER [FILE]: trains every plan in FOLDER for 3 epochs on CPUs and on GPUs, eight at a time, and compares losses.

Relative differences up to 1e-4 agree. What GPUs have no kernel for is counted and named. Ends with 1 if any run fails or differs; a line per plan is
in FILE. Plans are of `test_cuda.sh --prepare PLANS --networks NETWORKS`.
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


def run(plan, folder, device):
    """Losses, or what went wrong."""
    report = os.path.join(folder, f"{os.path.basename(plan)}.{device}.json")
    flags = ["--threads-per-rank", "1"] if device == "cpu" else []
    try:
        done = subprocess.run(["msrun", plan, "--no-checkpoint", "--epochs", "3", "--report", report, "--device", device, *flags], capture_output=True,
                              text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "took more than 120 s"
    if done.returncode:
        return next((line for line in done.stderr.splitlines() if "error" in line), f"msrun ended with {done.returncode}")
    with open(report) as file:
        return [step["loss"] for step in json.load(file)["steps"]]


def difference(a, b):
    if a == b:
        return 0.0
    return abs(a - b) / max(abs(a), 1e-30) if isinstance(a, float) and isinstance(b, float) else float("inf")


def compare(plan, folder):
    """("agrees" | "lacks" | "differs" | "fails", what)"""
    cpu, gpu = (run(plan, folder, device) for device in ("cpu", "cuda"))
    if isinstance(cpu, str):
        return "fails", f"on CPUs: {cpu}"
    if isinstance(gpu, str):
        lacks = re.search(r"the device cuda has no kernel '(.*)", gpu)
        return ("lacks", lacks[1]) if lacks else ("fails", gpu)
    worst = max(map(difference, cpu, gpu), default=0.0)
    return ("agrees", f"{worst:.1e}") if len(cpu) == len(gpu) and worst <= 1e-4 else ("differs", f"{worst:.1e}: {cpu} and {gpu}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f"cuda_networks.py: error: it takes FOLDER and perhaps FILE, not {len(sys.argv) - 1} arguments")
    plans = sorted(glob.glob(os.path.join(sys.argv[1], "*.plan")))
    if not plans:
        sys.exit(f"cuda_networks.py: error: no plans in '{sys.argv[1]}'; test_cuda.sh --prepare PLANS --networks NETWORKS puts them into PLANS/networks")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda plan: compare(plan, folder), plans))
    lines = [f"{os.path.basename(plan)} {kind} {what}" for plan, (kind, what) in zip(plans, outcomes)]
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            file.write("\n".join(lines) + "\n")
    counts = collections.Counter(kind for kind, _ in outcomes)
    print("\n".join(line for line in lines if " agrees " not in line and " lacks " not in line))
    missing = collections.Counter(what for kind, what in outcomes if kind == "lacks")
    print(f"{len(plans)} networks: {counts['agrees']} agree, {counts['differs']} differ, {counts['fails']} fail, {counts['lacks']} lack a kernel "
          f"({', '.join(f'{n} x {what[:60]}' for what, n in missing.most_common())})")
    sys.exit(counts["differs"] + counts["fails"] > 0)


if __name__ == "__main__":
    main()
