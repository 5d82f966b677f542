"""check_predictions.py [--differs] NETWORK ARGUMENTS...: what the model predicts is what the plan contains, to the byte.

Without the two passes that the model does not know (`reuse`, `partial_sums`), what each rank receives is the same
by kind of collective, phase and group. With them it is less, by what the report says they saved. With --differs there has to be a
difference: the check would see one.
"""
import collections
import json
import subprocess
import sys

UNKNOWN = {"reuse": "--no-reuse", "partial_sums": "--no-partial-sums"}
differs = sys.argv[1] == "--differs"
arguments = sys.argv[2 if differs else 1:]


def explain(flags):
    command = ["msc", "explain", *arguments, *flags, "--json", "--parallel-mode", "auto_parallel"]
    if "--search-mode" not in command:
        command += ["--search-mode", "optimal"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, (command, run.stderr)
    return json.loads(run.stdout)


def bytes_by(collectives):
    sums = collections.Counter()
    for c in collectives:
        sums[c["phase"], c["kind"], tuple(sorted(map(tuple, c["groups"])))] += c["bytes"]
    return {key: count for key, count in sums.items() if count != 0}


report = explain(UNKNOWN.values())
predicted, planned = bytes_by(report["model_collectives"]), bytes_by(report["collectives"])
wrong = [(key, predicted.get(key), planned.get(key)) for key in {**predicted, **planned} if predicted.get(key) != planned.get(key)]
assert bool(wrong) == differs, (arguments, "(phase, kind, groups), predicted, planned:", wrong)
assert planned and sum(planned.values()) == report["cost"]["communication_bytes"], (planned, report["cost"])
if not differs:
    report = explain([])
    saved = sum(saving["bytes"] for saving in report["savings"] if saving["pass"] in UNKNOWN)
    expected = sum(c["bytes"] for c in report["model_collectives"]) - saved
    assert expected == report["cost"]["communication_bytes"] and saved >= 0, (arguments, expected, saved, report["cost"])
print(f"{' '.join(arguments)}: {len(planned)} kinds of collectives, {sum(planned.values())} bytes{', differ' if differs else ''}")
