"""check_layers.py NN_MIR LIST: `msc ops` lists each cell of the layer library, and the call that `msc ops LAYER` shows is right:
with an input for each value, `msc check` finds no mistake but those of shapes."""
import re
import subprocess
import sys

library = open(sys.argv[1]).read()
listed = open(sys.argv[2]).read().split("layers, which are cells", 1)[1]
cells = re.findall(r"^cell (\w+)\(", library, re.MULTILINE)
assert len(cells) > 20, cells
shapes = {"ids": "i32[8, 4]", "c": "f32[8, 16]", "h": "f32[8, 16]"}
images = {"MaxPool2d": "", "AvgPool2d": "", "BatchNorm2d": "", "Conv2d": "", "ResidualShortcut": "", "BasicBlock": "", "Bottleneck": "", "GroupNorm": ""}
for cell in cells:
    assert re.search(rf"^  {cell}\(%", listed, re.MULTILINE), f"{cell} is not listed"
    text = subprocess.run(["msc", "ops", cell], capture_output=True, text=True, check=True).stdout
    if not text.startswith(f"{cell}(%"):
        continue  # an operator has its name
    call = text.splitlines()[-1]
    results, arguments = call.split(" = ", 1)
    inputs = list(dict.fromkeys(re.findall(r"%(\w+)", arguments)))
    x = "f32[8, 64, 256, 256]" if cell in images else "f32[8, 16]" if cell.startswith("LSTM") else "f32[8, 64, 128]"
    formals = ", ".join(f"%{name}: {shapes.get(name, x)}" for name in inputs)
    returned = ", ".join(f"out{i}: {name.strip()}" for i, name in enumerate(results.split(",")))
    with open("call.mir", "w") as network:
        network.write(f'import "nn.mir"\nnetwork n({formals}) {{\n{call}\n  return {returned}\n}}\n')
    run = subprocess.run(["msc", "check", "call.mir"], capture_output=True, text=True)
    assert run.returncode == 0, f"{call}\n{run.stderr}"
