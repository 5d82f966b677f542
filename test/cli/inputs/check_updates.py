"""check_updates.py NETWORK BYTES: whatever an update waits for, parameters and states change where they lie, and the search knows it.

Under data_parallel an update that waits needs hardly more than one that does not, and one tensor (the largest has BYTES); and under the search that decides strategies what
a rank is expected to need is within 2 % of the plan. Each optimizer with each kind of update.
"""
import json
import re
import subprocess
import sys

optimizers = ["SGD(0.1)", "Momentum(0.1, 0.9)", "Adam(0.1)", "AdamWeightDecay(0.1)", "Lamb(0.1)", "RMSProp(0.1, centered: true)", "Adagrad(0.1)"]
dynamic, twice = "loss_scale: DynamicLossScale()", "accumulate_steps: 2"
kinds = {"": "", "clip_value: 0.5": "", "clip_global_norm: 1.0": "", dynamic: "", twice: None, f"{twice}, {dynamic}": twice,
         f"{twice}, clip_global_norm: 1.0": twice}
text, largest = open(sys.argv[1]).read(), int(sys.argv[2])


def report(optimizer, kind, *arguments):
    fields = ", ".join(part for part in (f"optimizer: {optimizer}, minimize: loss", kind) if part)
    with open("update.mir", "w") as file:
        file.write(re.sub(r"train \{.*\}", f"train {{{fields}}}", text))
    command = ["msc", "explain", "update.mir", "--json", "--candidates", "1", *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, (command, fields, run.stderr)
    return json.loads(run.stdout)


def needed(optimizer, kind):
    return report(optimizer, kind, "--devices", "2", "--parallel-mode", "data_parallel")["memory"]["peak_bytes"]


state = needed("Momentum(0.1, 0.9)", "") - needed("SGD(0.1)", "")
for optimizer in optimizers:
    peaks = {kind: needed(optimizer, kind) for kind in kinds}
    for kind, without in kinds.items():
        most = 1.01 * (peaks[""] + state if without is None else peaks[without]) + largest
        assert peaks[kind] <= most, (optimizer, kind, peaks[kind], most)
        for devices in ("2", "6"):
            found = report(optimizer, kind, "--devices", devices)
            ratio = found["search"]["peak_bytes"] / found["memory"]["peak_bytes"]
            assert 0.98 <= ratio <= 1.02, (optimizer, kind, devices, ratio)
    print(optimizer, peaks)
