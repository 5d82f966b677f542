"""Does what the help of each surprise says, word by word, and compares what a step then takes in the model with what was said.

check_repairs.py better|kept NETWORK ARGUMENTS...: all surprises have a better strategy, or none has and what is meant can be kept.
`# asked {in_strategy: ...}` in the network is where a strategy goes; one that stands there already is replaced.
"""
import json
import re
import subprocess
import sys

kind, network, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
FILE = re.compile(r"put (\{.*\}) into own.json and pass --strategy-load own.json$")
BETTER = re.compile(r"write in_strategy: (\(\([0-9, ()]*\)\)), with which a step takes (.*?), now (.*?), or (?:in_strategy: (\(\([0-9, ()]*\)\)) if it is meant|take)")
KEPT = re.compile(r"write in_strategy: (\(\([0-9, ()]*\)\)) if it is meant(?:: a step takes (.*?) now, at least (.*?) with)?")


def microseconds(text):
    number, unit = text.split()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def explain(name, *more):
    command = ["msc", "explain", name, "--json", *arguments, *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def typed(strategy, operator):
    text = open(network).read()
    text, count = re.subn(rf'(@ "{operator}")( # asked| {{in_strategy: [^}}]*}})?.*', rf"\1 {{in_strategy: {strategy}}}", text)
    assert count == 1, (operator, count)
    with open("repaired.mir", "w") as file:
        file.write(text)
    return "repaired.mir"


def repaired(surprise, strategy):
    found = FILE.search(surprise["help"])
    if not found:
        return explain(typed(strategy, surprise["for"]))
    with open("own.json", "w") as file:
        file.write(found.group(1))
    return explain(network, "--strategy-load", "own.json")


def same(us, said):
    return abs(us - microseconds(said)) <= 0.051 * microseconds("1 " + said.split()[1])


now = explain(network)
assert now["surprises"]
for surprise in now["surprises"]:
    better, kept = BETTER.match(surprise["help"]), KEPT.match(surprise["help"])
    assert bool(better) == (kind == "better") and bool(kept) == (kind == "kept"), surprise
    us = now["cost"]["model_us"]
    if better:
        strategy, then, before, _ = better.groups()
        assert same(us, before) and microseconds(then) <= microseconds(before), (surprise, us)
    else:
        strategy, then, least = kept.groups()
        assert not then or microseconds(least) > microseconds(then), surprise
    report = repaired(surprise, strategy)
    assert not [s for s in report["surprises"] if s["for"] == surprise["for"] and s["kind"] == surprise["kind"]], report["surprises"]
    assert not then or same(report["cost"]["model_us"], then), (surprise, report["cost"])
print(f"{len(now['surprises'])} repairs do what they say")
