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
assert alternatives[0]["chosen"] or alternatives[0]["step_us"] == free["search"]["least_us"], alternatives[0]
for alternative in alternatives:
    forced = explain("{in_strategy: " + tuple_text(alternative["in_strategy"]) + "}")
    us, said = forced["search"]["least_us"], alternative["step_us"]
    assert forced["search"]["optimal"] and said <= us * (1 + 1e-9), (alternative, us)
    assert us <= said * (1 + 1e-9) or not alternative["exact"], (alternative, us)
exact = [alternative["exact"] for alternative in alternatives]
assert all(exact[:2]), alternatives
assert all(alternative["exact"] for alternative in alternatives if alternative["chosen"]), alternatives
print(f"{len(alternatives)} strategies cost what was said, {sum(exact)} of them exactly")
