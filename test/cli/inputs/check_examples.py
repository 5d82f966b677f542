"""The examples of `msc explain`: the wrong one is told its code, in both languages, the right one is not and succeeds."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

NET = """const batch = 8
network n(%x: f32[batch, 32]) {
  %y = ReLU(%x) @ "relu"
  return out: %y
}
dataset {source: Random(seed: 1), columns: {x: normal}, steps: 2}
"""
pathlib.Path("net.mir").write_text(NET)
subprocess.run(["msc", "compile", "net.mir", "-o", "net.plan"], check=True)


def asFile(example):
    """A file around statements and items."""
    if "network " in example or example.startswith("#IR"):
        return example
    items, statements = [], []
    for line in example.split("\n"):
        isItem = line.startswith(("import ", "const ", "mesh ", "cell ", "dataset ", "train ", "context ", "checkpoint ", "#"))
        (items if isItem else statements).append(line)
    body = "\n".join(statements)
    last = (re.findall(r"^(%\w+)(?:: [^=]*)? = ", body, re.M) or ["%x"])[-1]
    return "\n".join(items) + "\nnetwork n(%x: f32[16, 32], %label: f32[16, 16]) {\n" + body + f"\nreturn out: {last}\n}}\n"


def run(example, language):
    environment = dict(os.environ, LC_ALL=language)
    if example.startswith("$ "):
        command = example[2:]
    else:
        pathlib.Path("example.mir").write_text(asFile(example))
        command = "msc check example.mir --devices 8 && msc compile example.mir --devices 8 -o example.plan"
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def explained(code, language):
    text = subprocess.run(["msc", "explain", code], env=dict(os.environ, LC_ALL=language), capture_output=True, text=True, check=True).stdout
    parts = re.split(r"\n\S+\n(?=    )", text)
    return text, [textwrap.dedent(part).strip("\n") for part in parts[1:]]


failures = 0


def fail(*what):
    global failures
    failures += 1
    print(*what, sep="\n")


codes = [m for p in sorted((pathlib.Path(sys.argv[1]) / "runtime/messages").glob("*.def")) for m in re.findall(r"^CODE\((\d+)", p.read_text(), re.M)]
for code in ["MSC" + c for c in codes]:
    text, parts = explained(code, "C")
    chinese, translated = explained(code, "zh_CN.UTF-8")
    if not text.startswith(code + ": ") or chinese == text or translated[1:] != parts[1:]:
        fail(code, "is not explained alike in both languages")
    if len(parts) == 1:
        continue
    _, wrong, right = parts
    for language in ("C", "zh_CN.UTF-8"):
        status, said = run(wrong, language)
        line = next((line for line in said.split("\n") if line.endswith(f"[{code}]")), "")
        if not line:
            fail(code, "is not said of:", wrong, said)
        if bool(re.search(r"[\u4e00-\u9fff]", line)) != (language != "C"):
            fail(code, "is said in another language than", language, line)
    status, said = run(right, "C")
    if status != 0 or f"[{code}]" in said:
        fail(code, f"the repair ends with {status}:", right, said)
sys.exit(failures > 0 or len(codes) < 70)
