"""check_timeline.py PREDICTED MEASURED RANKS EPOCH,STEP... [--report REPORT] [--waits]: the timeline of msrun shows these steps, every step of the
plan as `msc explain --timeline` calls it, one behind the other.
"""

import json, sys
from fractions import Fraction
predicted_file, measured_file, ranks, *rest = sys.argv[1:]
ranks = int(ranks)
report = json.load(open(rest.pop(rest.index("--report") + 1))) if "--report" in rest else None
traced = [tuple(map(int, word.split(","))) for word in rest if "," in word]
predicted = json.load(open(predicted_file))["traceEvents"]
measured = json.load(open(measured_file))["traceEvents"]
processes = lambda trace: {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
# Both files in one viewer: no process of the one is one of the other.
assert not processes(predicted).keys() & processes(measured).keys()
assert processes(measured) == {rank: f"rank {rank} (measured)" for rank in range(ranks)}
[name] = processes(predicted).values()
assert ", predicted on " in name, name
lanes = lambda trace, pid: {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name" and e["pid"] == pid}
[pid] = processes(predicted)
assert lanes(predicted, pid) == {0: "compute", 1: "communication"}
assert all(lanes(measured, rank) == {0: "compute", 1: "communication", 2: "steps"} for rank in range(ranks))
assert {e["ph"] for e in measured} == {"M", "X"}

said = lambda e: (e["name"], e["cat"], e["tid"], json.dumps(e["args"]))
expected = [said(e) for e in predicted if e["ph"] == "X"]
assert len(expected) > 1
exact = lambda e: (Fraction(e["ts"]), Fraction(e["ts"]) + Fraction(e["dur"]))
firsts = []
for rank in range(ranks):
    events = [e for e in measured if e["ph"] == "X" and e["pid"] == rank]
    wholes = [e for e in events if e["tid"] == 2]
    assert [(e["args"]["epoch"], e["args"]["step"]) for e in wholes] == traced, wholes
    assert [e["name"] for e in wholes] == [f"epoch {epoch} step {step}" for epoch, step in traced]
    assert all(e["args"]["batch_us"] >= 0 for e in wholes)
    firsts.append(wholes[0]["ts"])
    steps = [e for e in events if e["tid"] != 2]
    assert len(steps) == len(expected) * len(traced)
    for i, whole in enumerate(wholes):
        # Every step of the plan once, called what the prediction calls it, within the run of the plan.
        own = steps[i * len(expected):(i + 1) * len(expected)]
        assert [said(e) for e in own] == expected, (rank, i)
        begin, end = exact(whole)
        assert all(begin <= exact(e)[0] <= exact(e)[1] <= end for e in own)
        assert sum(exact(e)[1] - exact(e)[0] for e in own) <= end - begin
        # The host runs one after the other: so does every lane.
        assert all(exact(a)[1] <= exact(b)[0] for a, b in zip(own, own[1:]))
        assert sum(e["dur"] > 0 for e in own) >= 1
        # On the CPU a collective has come to its end when it has started; and constants are there since the plan was loaded.
        waits = [e for e in own if e["name"].startswith("Wait ")]
        assert all(e["dur"] == 0 for e in own if e["cat"] == "load" or e in waits), own
        assert waits or "--waits" not in rest
    for lane in (0, 1, 2):
        ordered = [exact(e) for e in events if e["tid"] == lane]
        assert all(a[1] <= b[0] for a, b in zip(ordered, ordered[1:])), (rank, lane)
assert min(firsts) == 0 and len(firsts) == ranks, firsts
# Ranks of one host share a clock: nobody leaves a collective of all ranks before the last one has come to it.
whole = f"{ranks} ranks: "
for place, (name, _, lane, args) in enumerate(expected):
    if lane == 1 and json.loads(args)["groups"].startswith(whole):
        for i in range(len(traced)):
            same = [[e for e in measured if e["ph"] == "X" and e["pid"] == rank and e["tid"] != 2][i * len(expected) + place] for rank in range(ranks)]
            if name.startswith("AllReduce "):
                assert max(exact(e)[0] for e in same) <= min(exact(e)[1] for e in same), same
if report:
    [(epoch, step)] = traced
    ms = [s["ms"] for s in report["steps"] if (s["epoch"], s["step"]) == (epoch, step)]
    own = [e for e in measured if e["ph"] == "X" and e["pid"] == 0 and e["tid"] == 2]
    assert own[0]["dur"] + own[0]["args"]["batch_us"] <= ms[0] * 1000 + 1, (own, ms)
