"""Checks the page on MindSpore: every flag and verb that it names exists, every option of a context is understood."""

import re
import subprocess
import sys

page = open(sys.argv[1]).read()
code = re.findall(r"`([^`]+)`", page) + re.findall(r"^    (.+)$", page, re.M)


def text_of(*command):
    run = subprocess.run(command, capture_output=True, text=True)
    return run.stdout + run.stderr


helps = {verb: text_of("msc", verb, "--help") for verb in ("compile", "explain", "check", "ops")}
known = set(re.findall(r"--[a-z][a-z-]*", "".join(helps.values()) + text_of("msrun", "--help")))
code = [re.sub(r"^mpirun (?!.*msrun).*", "", piece) for piece in code]  # what MindSpore's scripts pass to mpirun
flags = {flag for piece in code for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", piece)}
assert len(flags) >= 12, flags
assert flags <= known, flags - known

verbs = {verb for piece in code for verb in re.findall(r"\bmsc ([a-z]+)", piece)}
assert verbs and all("unknown command" not in text_of("msc", verb, "--help") for verb in verbs), verbs

# What is not built says so, and operators that stand in for others exist.
open("cifar.mir", "w").write('network n(%x: f32[8, 4]) { return y: %x }\ndataset {source: Cifar10("data"), columns: {x: uniform}, steps: 2}\n')
assert "source 'Cifar10' is not in this version" in text_of("msc", "check", "cifar.mir")
for operator in re.findall(r"`([A-Z]\w+)\(%", page):
    assert operator == "Dense" or "unknown operator" not in text_of("msc", "ops", operator), operator
for name in ("MS_ROLE", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT", "Cifar10Dataset", "RandomCrop", "RandomHorizontalFlip",
             "Resize", "Rescale", "Normalize", "TypeCast", "get_local_rank", "get_local_size", "get_group_rank_from_world_rank",
             "reset_auto_parallel_context", "get_dataset_size", "ops.AllGather", "ops.OneHot", "--hostfile"):
    assert name in page, name

# The options of the first table, right column, as flags of a network that does nothing.
table = page.split("## Contexts")[1].split("## ")[0]
options = set()
for row in re.findall(r"^\| `.*\| (.*) \|$", table, re.M):
    for piece in re.findall(r"`([^`]+)`", row):
        options |= {(key, value) for key, value in re.findall(r"^([a-z_]+): (\{.*\}|[^,]+)", piece)}
assert len(options) >= 9, options
open("page.mir", "w").write("network n(%x: f32[8, 4]) {\n  %y = ReLU(%x)\n  return y: %y\n}\n")
for key, value in sorted(options):
    devices = [] if key == "device_num" else ["--devices", "8"]
    said = text_of("msc", "compile", "page.mir", *devices, "--" + key.replace("_", "-"), value)
    assert "error" not in said, (key, value, said)
