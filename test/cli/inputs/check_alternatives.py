"""Forces every strategy that `msc explain --op` lists, and compares what it says with what a step then takes: as much, or at least
as much.

check_alternatives.py NETWORK OPERATOR ARGUMENTS...: `STRATEGY` in the network is where the strategy goes.
"""
import json
import subprocess
import sys

network, operator, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
text = open(network).read()


def explain(strategy):
    with open("forced.mir", "w") as file:
        file.write(text.replace("STRATEGY", strategy))
    command = ["msc", "explain", "forced.mir", "--op", operator, "--json", "--search-mode", "optimal", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tuple_text(strategy):
    return "(" + ", ".join("(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")" for dims in strategy) + ")"


free = explain("")
alternatives = free["alternatives"]
chosen = next(alternative for alternative in alternatives if alternative["chosen"])
near = lambda a, b: abs(a - b) <= 1e-9 * b  # the same sum, in another order
assert near(chosen["step_us"], free["search"]["step_us"]), (chosen, free["search"])
assert near(min(alternative["least_us"] for alternative in alternatives), free["search"]["least_us"]), alternatives
for alternative in alternatives:
    forced = explain("{in_strategy: " + tuple_text(alternative["in_strategy"]) + "}")
    us, said = forced["search"]["least_us"], alternative["least_us"]
    assert forced["search"]["least_optimal"] and said <= us * (1 + 1e-9), (alternative, us)
    assert us <= said * (1 + 1e-9) or not alternative["exact"], (alternative, us)
exact = [alternative["exact"] for alternative in alternatives]
assert all(exact[:2]), alternatives
assert all(alternative["exact"] for alternative in alternatives if alternative["chosen"]), alternatives
print(f"{len(alternatives)} strategies cost what was said, {sum(exact)} of them exactly")
