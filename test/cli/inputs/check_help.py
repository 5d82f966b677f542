"""Every description of --help is translated; commands, flags and their order stay."""

import os
import re
import subprocess
import sys

failures = 0
commands = [["msc"], ["msrun"]] + [["msc", verb] for verb in ("compile", "explain", "check", "fmt", "redistribute", "ops", "lsp")]
for command in commands:
    english, chinese = (subprocess.run(command + ["--help"], env=dict(os.environ, LC_ALL=language), capture_output=True, text=True,
                                       check=True).stdout for language in ("C", "zh_CN.UTF-8"))
    if len(english.splitlines()) != len(chinese.splitlines()):
        failures += print(command, "has other lines in Chinese") or 1
    for before, after in zip(english.splitlines(), chinese.splitlines()):
        flag = re.match(r"\s+(\S+)", before)
        isWords = len(re.findall(r"[a-z]{3,}", re.sub(r"--?[\w-]+|[A-Z]{2,}", "", before))) > 1
        if isWords and not re.search(r"[\u4e00-\u9fff]", after):
            failures += print(" ".join(command), "is not translated:", before) or 1
        if flag and flag.group(1).startswith("-") and flag.group(1) not in after:
            failures += print(" ".join(command), "lost", flag.group(1)) or 1
sys.exit(failures > 0)
