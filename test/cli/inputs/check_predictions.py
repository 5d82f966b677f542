"""check_predictions.py [--differs] NETWORK ARGUMENTS...: what the model predicts is what the plan contains, to the byte.

What each rank receives is the same by kind of collective, phase and group. With --differs there has to be a difference: the check
would see one.
"""
import collections
import json
import subprocess
import sys

differs = sys.argv[1] == "--differs"
arguments = sys.argv[2 if differs else 1:]
command = ["msc", "explain", *arguments, "--json"]
if "--parallel-mode" not in command:
    command += ["--parallel-mode", "auto_parallel"]
    if "--search-mode" not in command:
        command += ["--search-mode", "optimal"]
run = subprocess.run(command, capture_output=True, text=True)
assert run.returncode == 0, (command, run.stderr)
report = json.loads(run.stdout)


def bytes_by(collectives):
    sums = collections.Counter()
    for c in collectives:
        sums[c["phase"], c["kind"], tuple(sorted(map(tuple, c["groups"])))] += c["bytes"]
    return {key: count for key, count in sums.items() if count != 0}


predicted, planned = bytes_by(report["model_collectives"]), bytes_by(report["collectives"])
wrong = [(key, predicted.get(key), planned.get(key)) for key in {**predicted, **planned} if predicted.get(key) != planned.get(key)]
assert bool(wrong) == differs, (arguments, "(phase, kind, groups), predicted, planned:", wrong)
assert planned and sum(planned.values()) == report["cost"]["communication_bytes"], (planned, report["cost"])
print(f"{' '.join(arguments)}: {len(planned)} kinds of collectives, {sum(planned.values())} bytes{', differ' if differs else ''}")
