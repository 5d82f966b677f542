"""Types every strategy that `msc explain --op` lists, and compares what it said with what the
compiled step then takes in the model: as much, or at least as much.

check_typed.py MODE NETWORK OPERATOR ARGUMENTS...: a search mode, semi_auto_parallel or data_parallel; of the last, strategies are
typed into what it saves, which semi_auto_parallel takes. The operator has its name in the text as @ "OPERATOR", or is the only MSELoss.
"""
import json
import re
import subprocess
import sys

mode, network, operator, arguments = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
text = open(network).read()


def explain(file, mode, *more):
    option = "--parallel-mode" if mode in ("semi_auto_parallel", "data_parallel") else "--search-mode"
    command = ["msc", "explain", file, "--json", option, mode, *arguments, *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def typed(strategy):
    if mode == "data_parallel":
        saved = json.load(open("saved.json"))
        saved["parallel_strategy_item"][operator]["parallel_strategy"] = strategy
        json.dump(saved, open("typed.json", "w"))
        return explain(network, "semi_auto_parallel", "--strategy-load", "typed.json")["cost"]["model_us"]
    tuples = ", ".join("(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")" for dims in strategy)
    place = rf'(@ "{operator}"|MSELoss\([^)]*\))' if operator == "loss" else rf'(@ "{operator}")'
    edited, count = re.subn(place + r"( {in_strategy: [^}]*?(, out_strategy: [^}]*)?})?", rf"\1 {{in_strategy: ({tuples})\3}}", text, count=1)
    assert count == 1, text
    with open("typed.mir", "w") as file:
        file.write(edited)
    return explain("typed.mir", mode)["cost"]["model_us"]


if mode == "data_parallel":
    subprocess.run(["msc", "compile", network, "--parallel-mode", mode, *arguments, "--strategy-save", "saved.json", "-o", "saved.plan"], check=True)
free = explain(network, mode, "--op", operator)
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
