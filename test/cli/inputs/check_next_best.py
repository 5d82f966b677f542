"""Compares what `msc explain` calls an operator's next best strategy with what `msc explain --op` lists for the operator.

check_next_best.py NETWORK ARGUMENTS...
"""
import json
import subprocess
import sys


def explain(*arguments):
    command = ["msc", "explain", *sys.argv[1:], "--json", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


compared = 0
collectives = explain()["collectives"]
assert all(c["next_best"] for c in collectives), [c["cause"] for c in collectives if not c["next_best"]]
for name, next_best in sorted({c["cause"]: c["next_best"] for c in collectives}.items()):
    alternatives = explain("--op", name)["alternatives"]
    others = [alternative for alternative in alternatives if not alternative["chosen"]]
    now = next(alternative for alternative in alternatives if alternative["chosen"])
    assert others[0]["exact"] and abs(others[0]["step_us"] - next_best["step_us"]) <= 1e-9 * now["step_us"], (name, next_best, others[:3])
    assert abs(others[0]["step_us"] - now["step_us"] - next_best["more_us"]) <= 1e-6 * now["step_us"], (name, next_best, now)
    compared += 1
assert compared > 0
print(f"{compared} operators have the next best strategy that their list says")
