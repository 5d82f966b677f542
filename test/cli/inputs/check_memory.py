"""check_memory.py LOWEST HIGHEST NETWORK ARGUMENTS...: the memory that the search expects a rank to need is what the plan needs, about.

Expected is what is live at once in the model of a step (passes/sharding/cost/StepMemory.h), needed is the arena of the plan.
"""
import json
import subprocess
import sys

lowest, highest = float(sys.argv[1]), float(sys.argv[2])
command = ["msc", "explain", *sys.argv[3:], "--json", "--parallel-mode", "auto_parallel", "--search-mode", "optimal", "--memory-limit", "10TiB"]
run = subprocess.run(command, capture_output=True, text=True)
assert run.returncode == 0, (command, run.stderr)
report = json.loads(run.stdout)
expected, needed = report["search"]["peak_bytes"], report["memory"]["peak_bytes"]
print(f"{expected / needed:.3f} {' '.join(sys.argv[3:])}: expected {expected:.0f}, needed {needed}")
assert lowest <= expected / needed <= highest, (sys.argv[3:], expected, needed)
