"""check_layers.py NN_MIR LIST: `msc ops` lists each cell of the layer library, and the call that `msc ops LAYER` shows
names a cell and gives all that has no default."""
import re
import subprocess
import sys

library = open(sys.argv[1]).read()
listed = open(sys.argv[2]).read().split("layers, which are cells", 1)[1]
cells = re.findall(r"^cell (\w+)\(", library, re.MULTILINE)
assert len(cells) > 20, cells
for cell in cells:
    assert re.search(rf"^  {cell}\(%", listed, re.MULTILINE), f"{cell} is not listed"
    text = subprocess.run(["msc", "ops", cell], capture_output=True, text=True, check=True).stdout
    if text.startswith(f"{cell}(%"):
        head, call = text.splitlines()[0], text.splitlines()[-1]
        needed = [formal for formal in head.split("(", 1)[1].split(", ") if "=" not in formal]
        assert call.count(",") == len(needed) - 1 and call.startswith(f"  %y = {cell}(%"), text
