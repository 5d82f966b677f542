"""fenced_networks.py PAGE: compiles every network between ```mir devices=N and ``` of a page. Any other fence is an error."""
import re
import subprocess
import sys

fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", open(sys.argv[1]).read(), re.MULTILINE | re.DOTALL)
assert len(fences) >= 4, "the page has lost its networks"
for number, (info, text) in enumerate(fences):
    devices = re.fullmatch(r"mir devices=(\d+)", info)
    assert devices, f"a fence begins with '```{info}'"
    path = f"{number}.mir"
    with open(path, "w") as file:
        file.write(text)
    result = subprocess.run(["msc", "compile", path, "--devices", devices[1], "--strict"], stderr=subprocess.PIPE, text=True)
    assert result.returncode == 0 and not result.stderr, f"{text}\n{result.stderr}"
