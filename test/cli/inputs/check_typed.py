"""Types every strategy that `msc explain --op` lists under a search mode that proves nothing, and compares what it said with what the
compiled step then takes in the model: as much, or at least as much.

check_typed.py MODE NETWORK OPERATOR ARGUMENTS...: the operator has its name in the text as @ "OPERATOR", or is the only MSELoss.
"""
import json
import re
import subprocess
import sys

mode, network, operator, arguments = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
text = open(network).read()


def explain(file, *more):
    command = ["msc", "explain", file, "--json", "--search-mode", mode, *arguments, *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def typed(strategy):
    tuples = ", ".join("(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")" for dims in strategy)
    place = rf'(@ "{operator}"|MSELoss\([^)]*\))' if operator == "loss" else rf'(@ "{operator}")'
    edited, count = re.subn(place + r"( {in_strategy: [^}]*})?", rf"\1 {{in_strategy: ({tuples})}}", text, count=1)
    assert count == 1, text
    with open("typed.mir", "w") as file:
        file.write(edited)
    return explain("typed.mir")["cost"]["model_us"]


free = explain(network, "--op", operator)
alternatives = free["alternatives"]
[chosen] = [a for a in alternatives if a["chosen"]]
assert chosen["exact"] and chosen["step_us"] == free["cost"]["model_us"], (chosen, free["cost"])
exact = [a for a in alternatives if a["exact"] and not a["chosen"]]
assert len(exact) >= 3, alternatives
for alternative in alternatives:
    if not alternative["chosen"]:
        us, said = typed(alternative["in_strategy"]), alternative["step_us"]
        assert said <= us * (1 + 1e-9) and (us <= said * (1 + 1e-9) or not alternative["exact"]), (alternative, us)
print(f"{operator}: {len(alternatives)} strategies cost what was said, {len(exact) + 1} of them exactly")
