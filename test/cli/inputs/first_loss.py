"""Checks the first loss of a run: first_loss.py FILE EXPECTED RELATIVE."""
import re
import sys

path, expected, relative = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
with open(path) as file:
    first = float(re.search(r"^epoch: 1 step: 1, loss is (\S+)$", file.read(), re.MULTILINE).group(1))
if not abs(first - expected) <= relative * expected:
    sys.exit(f"{path}: the first loss is {first}, expected {expected} within {relative}")
