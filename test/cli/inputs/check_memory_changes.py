"""check_memory_changes.py NETWORK LIMIT KINDS ARGUMENTS...: what is said of changes comes true when they are made.

`msc explain` under the limit says which changes of the network would make it fit. Each of them is typed in here, into the text of the
network and behind the command, and what a rank then needs and what a batch then takes is what was said, to the byte and to the last
digit; of estimates (large networks) about. What a message names is none. KINDS are those that have to be among them, with commas between them; of one that fits, "fits:" stands in front.
"""
import json
import math
import pathlib
import re
import subprocess
import sys

network, limit, kinds, arguments = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), sys.argv[4:]


def explain(path, flags, isRefused):
    run = subprocess.run(["msc", "explain", str(path), *flags, "--memory-limit", limit, "--json"], capture_output=True, text=True)
    assert (run.returncode == 4) == isRefused and run.returncode in (0, 4), (flags, run.returncode, run.stderr)
    return json.loads(run.stdout), run.stderr


def behind(lines, line):
    lines[line - 1] = lines[line - 1].rstrip("\n") + " {recompute: true}\n"


def typed(repair):
    """The network and the arguments with a change, and into how many parts it cuts the batch."""
    lines, flags, parts = network.read_text().splitlines(keepends=True), list(arguments), 1
    train = next(i for i, line in enumerate(lines) if line.startswith("train {"))
    for one in repair.split("; and "):
        if one.startswith("write {recompute: true} behind "):
            for line in re.findall(rf"'[^']+' \({re.escape(str(network))}:(\d+)\)", one):
                behind(lines, int(line))
        elif match := re.fullmatch(r"write (.*) in the train block", one):
            lines[train] = lines[train].replace("train {", "train {" + match[1] + ", ")
        elif match := re.fullmatch(r"pass -D (\w+=\d+) and write accumulate_steps: (\d+) in the train block", one):
            flags += ["-D", match[1]]
            lines[train] = lines[train].replace("train {", f"train {{accumulate_steps: {match[2]}, ")
            parts = int(match[2])
        else:
            flag = one.removeprefix("pass ").split(" ")
            assert one.startswith("pass --"), one
            for name in flag[::2]:
                if name in flags:
                    del flags[flags.index(name):flags.index(name) + 2]
            flags += flag
    return "".join(lines), flags, parts


report, stderr = explain(network, arguments, True)
memory = report["memory"]["limit"]
assert not memory["fits"] and memory["bytes"] < report["memory"]["peak_bytes"] <= memory["peak_bytes_without"], report["memory"]
changed = network.with_name("changed_" + network.name)
for change in memory["changes"]:
    assert change["fits"] == (change["peak_bytes"] <= memory["bytes"])
    if change["estimated"] and " + " in change["kind"]: # there are many, and each change of them has its own line
        continue
    text, flags, parts = typed(change["repair"])
    changed.write_text(text)
    then, _ = explain(changed, flags, not change["fits"])
    bytes, us = then["memory"]["peak_bytes"], then["cost"]["step_us"] * parts
    print(change["fits"], change["peak_bytes"], bytes, round(change["batch_us"], 1), round(us, 1), change["repair"])
    if change["estimated"]:
        assert math.isclose(bytes, change["peak_bytes"], rel_tol=0.1), (change, bytes)
        # The search prices neither casts to narrow types nor sums of gradients over batches, which small operators do not hide.
        isPriced = "precision" not in change["kind"] and "micro_batches" not in change["kind"]
        assert math.isclose(us, change["batch_us"], rel_tol=0.1 if isPriced else 0.5), (change, us)
    else:
        assert bytes == change["peak_bytes"] and math.isclose(us, change["batch_us"], rel_tol=1e-12), (change, bytes, us)
    assert change["saved_bytes"] == report["memory"]["peak_bytes"] - change["peak_bytes"]
    assert change["saved_bytes"] > 0 or change["estimated"] or (change["fits"] and change["kind"] != "recompute"), change
    assert math.isclose(change["more_us"], change["batch_us"] - memory["step_us_without"], rel_tol=1e-9, abs_tol=1e-9)
order = [(not change["fits"], change["batch_us"]) for change in memory["changes"]]
assert order == sorted(order), order
assert len({change["repair"] for change in memory["changes"]}) == len(memory["changes"]), memory["changes"]
for kind in kinds:
    assert any(change["kind"] == kind.removeprefix("fits:") and (change["fits"] or not kind.startswith("fits:"))
               for change in memory["changes"]), (kind, memory["changes"])
if memory["changes"] and memory["changes"][0]["fits"]:
    assert f"help: {memory['changes'][0]['repair']}: a rank then needs " in stderr, stderr
named = [change for change in memory["changes"] if change["repair"] + ": a rank" in stderr or change["repair"] + ", after which" in stderr]
assert not any(change["estimated"] for change in named), named
