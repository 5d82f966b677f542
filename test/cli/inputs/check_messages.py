"""Every error of the frontend has a test: each of its words stands in the source of one."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# Limits that a test would need tens of megabytes for, and words that only join others.
UNTESTED = {"bytes, more than", "files are imported", "this string is longer than", "expected 'name: value'", "' cannot cut"}

tests = "".join(p.read_text() for folder in ("frontend", "cli") for p in (root / "test" / folder).rglob("*")
                if p.suffix in (".cpp", ".test"))
tests = tests.replace('\\"', '"').replace("\\\\", "\\")
calls = missing = 0
for path in sorted((root / "frontend").glob("*.cpp")):
    source = re.sub(r"//.*", "", path.read_text())
    for call in re.finditer(r"\b(error|emitError|emitRemark|fail|failAt|expected|expect|diagnostic)\b\s*(\(|<<)[^;]*;", source):
        words = [w.replace('\\"', '"').strip() for w in re.findall(r'"((?:[^"\\]|\\.)*)"', call.group(0)) if len(w) > 7]
        calls += bool(words)
        for word in words:
            if word not in tests and word not in UNTESTED:
                missing += 1
                print(f"{path.name}: no test has: {word}")
print(f"{calls} messages")
sys.exit(missing > 0 or calls < 160)
