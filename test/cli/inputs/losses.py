"""Checks loss lines of msrun: losses.py FILE [FILE...] [--steps N] [--relative R] [--falls].

Every file holds N lines `epoch: E step: S, loss is L`; all files agree with the first one within R; with --falls the last
loss is below the first one."""
import argparse
import re
import sys

parser = argparse.ArgumentParser()
parser.add_argument("files", nargs="+")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--relative", type=float, default=3e-6)
parser.add_argument("--falls", action="store_true")
options = parser.parse_args()


def losses_of(path):
    with open(path) as file:
        found = re.findall(r"^epoch: (\d+) step: (\d+), loss is (\S+)$", file.read(), re.MULTILINE)
    if len(found) != options.steps:
        sys.exit(f"{path}: {len(found)} loss lines instead of {options.steps}")
    return [float(loss) for _, _, loss in found]


first = losses_of(options.files[0])
for path in options.files:
    losses = losses_of(path)
    if options.falls and not losses[-1] < losses[0]:
        sys.exit(f"{path}: the loss does not fall: {losses[0]} ... {losses[-1]}")
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, first))
    print(f"{path}: {worst:.2g} from {options.files[0]}")
    if not worst <= options.relative:
        sys.exit(f"{path}: differs from {options.files[0]} by {worst:.3g}, more than {options.relative}")
