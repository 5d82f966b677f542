"""The VS Code extension: its files are sound, and its grammar colours networks and dumps as the language reads them."""

import json
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folder = root / "tools/vscode"
package = json.loads((folder / "package.json").read_text())
json.loads((folder / "language-configuration.json").read_text())
contributes = package["contributes"]
paths = [package["main"], contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
assert all((folder / path).is_file() for path in paths), paths
grammar = json.loads((folder / contributes["grammars"][0]["path"]).read_text())
assert grammar["scopeName"] == contributes["grammars"][0]["scopeName"]
rules = [grammar["repository"][pattern["include"][1:]] for pattern in grammar["patterns"]]
assert len(rules) == len(grammar["repository"])
for rule in rules:
    rule["regex"] = re.compile(rule.get("match") or rule["begin"])

# The words of the language are those of the lexer and of the element types.
keywords = set(re.findall(r'"(\w+)"', re.search(r"isKeyword\(.*?\{(.*?)\n\}", (root / "frontend/Lexer.cpp").read_text(), re.S).group(1)))
coloured = set(re.search(r"\(([\w|]+)\)\(\?!", grammar["repository"]["keyword"]["match"]).group(1).split("|"))
assert keywords and keywords <= coloured, keywords - coloured
types = set(re.findall(r'"((?:b?f|i)\d+|bool)"', (root / "frontend/Types.cpp").read_text()))
assert types and types <= set(re.search(r"\(([\w|]+)\)\(\?=", grammar["repository"]["type"]["match"]).group(1).split("|")), types


def colour(line):
    """The scope of each character, as TextMate finds it: the rule that matches first, of several the one named first."""
    scopes, at = [""] * len(line), 0
    while at < len(line):
        found = [(m.start(), i, m) for i, rule in enumerate(rules) if (m := rule["regex"].search(line, at)) and m.end() > m.start()]
        if not found:
            break
        start, index, m = min(found, key=lambda f: f[:2])
        rule, end = rules[index], m.end()
        if "begin" in rule:
            inner = re.compile("|".join([rule["end"]] + [p["match"] for p in rule["patterns"]]))
            while (m2 := inner.search(line, end)) and not re.match(rule["end"], m2.group(0) or " ") and m2.group(0):
                end = m2.end()
            end = m2.end() if m2 else len(line)
        scopes[start:end] = [rule.get("name", "")] * (end - start)
        for group, capture in rule.get("captures", {}).items():
            if m.group(int(group)):
                scopes[m.start(int(group)):m.end(int(group))] = [capture["name"]] * len(m.group(int(group)))
        at = max(end, start + 1)
    return scopes


def scopeOf(line, what, occurrence=1):
    at = -1
    for _ in range(occurrence):
        at = line.index(what, at + 1)
    scopes = set(colour(line)[at:at + len(what)])
    assert len(scopes) == 1, (line, what, scopes)
    return scopes.pop().split(".")[0:2]


checked = 0
for line, what, expected in [
    ("network n(%x: f32[16, 32]) {  # a: f32", "network", ["keyword", "declaration"]),
    ("network n(%x: f32[16, 32]) {  # a: f32", "n(".rstrip("("), ["keyword", "declaration"]),
    ("network n(%x: f32[16, 32]) {  # a: f32", "%x", ["variable", "other"]),
    ("network n(%x: f32[16, 32]) {  # a: f32", "f32", ["storage", "type"]),
    ("network n(%x: f32[16, 32]) {  # a: f32", "# a: f32", ["comment", "line"]),
    ('  %h = MatMul(%x, %w) @ "mat{i}" {in_strategy: ((2, 4), (4, 1))}', "MatMul", ["entity", "name"]),
    ('  %h = MatMul(%x, %w) @ "mat{i}" {in_strategy: ((2, 4), (4, 1))}', '"mat{i}"', ["string", "quoted"]),
    ('  %h = MatMul(%x, %w) @ "mat{i}" {in_strategy: ((2, 4), (4, 1))}', "in_strategy", ["variable", "parameter"]),
    ('  %h = MatMul(%x, %w) @ "mat{i}" {in_strategy: ((2, 4), (4, 1))}', "2", ["constant", "numeric"]),
    ("  param %layer1.0.w: f32[dim(%x, -1)] = Normal(1e-5)", "param", ["keyword", "control"]),
    ("  param %layer1.0.w: f32[dim(%x, -1)] = Normal(1e-5)", "%layer1.0.w", ["variable", "other"]),
    ("  param %layer1.0.w: f32[dim(%x, -1)] = Normal(1e-5)", "dim", ["support", "function"]),
    ("  param %layer1.0.w: f32[dim(%x, -1)] = Normal(1e-5)", "-1", ["constant", "numeric"]),
    ("  param %layer1.0.w: f32[dim(%x, -1)] = Normal(1e-5)", "1e-5", ["constant", "numeric"]),
    ("  %r = repeat i in 0..2 with %l = %b {", "repeat", ["keyword", "control"]),
    ("  %r = repeat i in 0..2 with %l = %b {", "..", ["keyword", "operator"]),
    ("train {optimizer: SGD(0.1), repeat: 1}", "train", ["entity", "name"]),
    ("train {optimizer: SGD(0.1), repeat: 1}", "repeat", ["variable", "parameter"]),  # a key, not the keyword
    ("mesh (data: devices / 2)", "devices", ["constant", "language"]),
    ("%para1_x : <Tensor[Float32], (16, 32)>", "<Tensor[Float32], (16, 32)>", ["storage", "type"]),
    ("#IR entry      : @quickstart", "#IR entry      : @quickstart", ["meta", "preprocessor"]),
]:
    assert scopeOf(line, what) == expected, (line, what, scopeOf(line, what))
    checked += 1

# In all of the examples: values, comments, strings, keywords, numbers.
texts = sorted((root / "examples").rglob("*.mir")) + [root / "frontend/nn.mir"] + [pathlib.Path(p) for p in sys.argv[2:]]
for path in texts:
    for line in path.read_text().split("\n"):
        if line.startswith(("#IR", "#attrs", "#Total", "subgraph ")):
            continue
        for m in re.finditer(r'"(?:[^"\\]|\\.)*"|#.*|%[\w.]*\w|<(?:Ref|Tensor)[^>]*>|(?<![\w.%])[A-Za-z_]\w*|(?<![\w.%-])\d+(?![\w.])', line):
            word = m.group(0)
            scopes = {s.split(".")[0] for s in colour(line)[m.start():m.end()]}
            first = word[0]
            isKey = re.match(r"\s*:", line[m.end():])
            expected = ({"string", "variable", "constant"} if first == '"' else {"comment"} if first == "#" else {"variable"} if first == "%"
                        else {"storage"} if first == "<" else {"constant"} if first.isdigit()
                        else {"keyword"} if word in keywords and not isKey else None)
            if expected:
                assert scopes <= expected and "" not in scopes, (path.name, line, word, scopes)
                checked += 1
print(f"{checked} words in {len(texts)} files")
sys.exit(checked < 500)
