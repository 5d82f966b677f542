"""A session of an editor with `msc lsp`: what it is told of sound texts, of mistakes, and while a line is being written."""

import pathlib
import sys
import time

from lsp_client import Client

examples = pathlib.Path(sys.argv[1])
NET = """import "nn.mir"
const width = 32  # 宽度
cell Twice(%t, scale: float = 2.0) {
  %d = Mul(%t, scale) @ "double"
  return %d
}
network n(%x: f32[16, width], %label: f32[16, 16]) {
  param %w: f32[width, 16] = Normal(0.01) {requires_grad: true}
  %h = MatMul(%x, %w) @ "matmul" {in_strategy: ((2, 4), (4, 1))}
  %a = ReLU(%h)
  %b = Twice(%a) @ "twice"
  %r = repeat i in 0..2 with %l = %b {
    %m = Tanh(%l)
    yield %m
  }
  %g = GeLU(%r, approximate: none)
  %loss = MSELoss(%g, %label)
  return loss: %loss, out: %g
}
context {parallel_mode: auto_parallel}
"""


def place(text, what, offset=0):
    """Line and character of the first `what`."""
    before = text[:text.index(what)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1 + offset


def shown(hover):
    return hover["contents"]["value"]


def labels(completion):
    return {item["label"]: item for item in completion["items"]}


def start(location):
    return location["range"]["start"]["line"], location["range"]["start"]["character"]


client = Client("--devices", "8")
assert client.abilities["positionEncoding"] == "utf-16"
uri, found = client.open("net.mir", NET)
assert found == [], found

# Hover: shape, strategy, who decided it; operators, attributes, cells, options.
text = shown(client.at("hover", uri, *place(NET, "%h =")))
assert "%h: f32[16, 16]" in text and 'MatMul @ "matmul"' in text and "((2, 4), (4, 1))" in text and "user" in text, text
text = shown(client.at("hover", uri, *place(NET, "%h)", 1)))  # its use
assert "%h: f32[16, 16]" in text, text
text = shown(client.at("hover", uri, *place(NET, "%a = ")))
assert "propagated" in text, text
assert shown(client.at("hover", uri, *place(NET, "scale) @"))) == "```mir\nscale: float = 2.0\n```\n", "a formal"
assert "param %w: f32[32, 16]" in shown(client.at("hover", uri, *place(NET, "%w:")))
assert "%x: f32[16, 32]" in shown(client.at("hover", uri, *place(NET, "%x, %w")))
assert "%l: f32[16, 16]" in shown(client.at("hover", uri, *place(NET, "%l)")))
assert "%r: f32[16, 16]" in shown(client.at("hover", uri, *place(NET, "%r =")))
assert "2 of them" in shown(client.at("hover", uri, *place(NET, "%m =")))
assert "MatMul(x1, x2" in shown(client.at("hover", uri, *place(NET, "MatMul")))
assert "none | tanh" in shown(client.at("hover", uri, *place(NET, "approximate"))), client.at("hover", uri, *place(NET, "approximate"))
assert "Twice(%t, scale: float = 2.0)" in shown(client.at("hover", uri, *place(NET, "Twice(%a)")))
assert "in_strategy" in shown(client.at("hover", uri, *place(NET, "in_strategy")))
assert "auto_parallel" in shown(client.at("hover", uri, *place(NET, "parallel_mode")))
assert "width = 32" in shown(client.at("hover", uri, *place(NET, "width]")))
assert client.at("hover", uri, 2, 0) is None  # a keyword

# Definitions: values, also of outer bodies, parameters, cells, constants, imports, cells of the library.
assert start(client.at("definition", uri, *place(NET, "%h)"))) == place(NET, "%h =")
assert start(client.at("definition", uri, *place(NET, "%l)"))) == place(NET, "%l =")
assert start(client.at("definition", uri, *place(NET, "%w)"))) == place(NET, "%w:")
assert start(client.at("definition", uri, *place(NET, "%b {"))) == place(NET, "%b =")
assert start(client.at("definition", uri, *place(NET, "%t, scale)"))) == place(NET, "%t,")
assert start(client.at("definition", uri, *place(NET, "scale) @"))) == place(NET, "scale:")
assert start(client.at("definition", uri, *place(NET, "Twice(%a)"))) == place(NET, "Twice(%t")
assert start(client.at("definition", uri, *place(NET, "width, 16]"))) == place(NET, "width =")
assert client.at("definition", uri, *place(NET, '"nn.mir"', 3))["uri"].endswith("/share/msc/nn.mir")
assert client.at("definition", uri, *place(NET, "ReLU")) is None

# Completion.
def complete(before, behind="\n  return out: %x\n}\n", head="network n(%x: f32[16, 32], %y: f32[8]) {\n"):
    text = 'import "nn.mir"\ncell Mine(%q, size: int) { return %q }\n' + head + before + behind
    client.change(uri, 2, text)
    line, character = place(text, head + before, 0)
    lines = (head + before).split("\n")
    return labels(client.at("completion", uri, line + len(lines) - 1, len(lines[-1])))


found = complete("  %a = ")
assert {"MatMul", "GeLU", "Mine", "Linear", "repeat"} <= set(found), sorted(found)
assert "MatMul(" in found["MatMul"]["detail"] and "documentation" in found["MatMul"]
assert found["Linear"]["detail"].startswith("Linear(%x, out: int")
assert {"%x", "%y", "%b"} <= set(complete("  %b = ReLU(%x)\n  %a = Add(%"))
found = complete("  %a = GeLU(%x, appr")
assert found["approximate"]["textEdit"]["newText"] == "approximate: " and "%x" in found, found
assert found["approximate"]["textEdit"]["range"]["start"]["character"] == 16
assert set(complete("  %a = GeLU(%x, approximate: ")) >= {"none", "tanh"}
assert {"in_strategy", "out_strategy", "sharding"} <= set(complete("  %a = GeLU(%x) {"))
assert set(complete("  param %w: f32[2] = Normal() {")) == {"requires_grad", "sharding"}
assert {"param", "return"} <= set(complete("  "))
assert {"parallel_mode", "save_graphs"} <= set(complete("  return out: %x\n}\ncontext {", "}\n"))
assert {"network", "train"} <= set(complete("  return out: %x\n}\n", ""))
assert "%q" not in complete("  %a = Add(%")  # of another cell

# Mistakes: all of them, with code, repair and second place; in between, hover goes on.
broken = NET.replace("ReLU(%h)", "RleU(%h)").replace("  %a =", "  %h = Tanh(%x)\n  %a =")
found = client.change(uri, 3, broken)
by = {d["code"]: d for d in found}
assert set(by) == {"MSC1101", "MSC1104"}, found
assert by["MSC1101"]["message"] == "unknown operator 'RleU'\ndid you mean 'ReLU'?" and by["MSC1101"]["severity"] == 1
assert start(by["MSC1101"]) == place(broken, "RleU") and by["MSC1101"]["range"]["end"]["character"] == place(broken, "RleU")[1] + 4
assert start(by["MSC1104"]["relatedInformation"][0]["location"]) == place(broken, "%h =")
assert "%w: f32[32, 16]" in shown(client.at("hover", uri, *place(broken, "%w)")))
unfinished = NET.replace("Tanh(%l)", "Tanh(") + "train {"
assert {d["code"] for d in client.change(uri, 4, unfinished)} == {"MSC1004"}
assert "%b: f32[16, 16]" in shown(client.at("hover", uri, *place(unfinished, "%b {")))
assert client.ask("textDocument/formatting", textDocument={"uri": uri}, options={}) == []
found = client.change(uri, 4, NET.replace('"nn.mir"', '"none.mir"'))
assert [d["code"] for d in found] == ["MSC1106"], found

# Symbols, layout.
client.change(uri, 5, NET.replace("ReLU(%h)", "ReLU( %h )"))
top = {s["name"]: s for s in client.ask("textDocument/documentSymbol", textDocument={"uri": uri})}
assert list(top) == ["width", "Twice", "n", "context"], list(top)
assert [c["name"] for c in top["Twice"]["children"]] == ["%t", "%d"]
assert {"%w", "%h", "%l", "%m", "%loss"} <= {c["name"] for c in top["n"]["children"]}
[edit] = client.ask("textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True})
assert edit["newText"] == NET, edit["newText"]

# Requests that cannot be answered are refused with a reason, and the session goes on.
assert client.raw("textDocument/hover", textDocument={"uri": "file:///none.mir"}, position={"line": 0, "character": 0})["error"]["code"] == -32602
assert client.raw("textDocument/hover", textDocument={"uri": uri}, position={"line": -1})["error"]["code"] == -32602
assert client.raw("textDocument/hover", textDocument=7)["error"]["code"] == -32602
assert client.raw("workspace/nothing")["error"]["code"] == -32601
assert client.at("hover", uri, 10**9, 10**9) is None
client.send([1, 2])
assert client.receive()["error"]["code"] == -32700
client.write(b"Content-Length: 3\r\n\r\n{]}")
assert client.receive()["error"]["code"] == -32700
client.write(b"Content-Length: 200000\r\n\r\n" + b"[" * 200000)
assert client.receive()["error"]["code"] == -32700
client.tell("textDocument/didClose", textDocument={"uri": uri})
assert client.diagnostics() == []
assert client.close() == 0

# Characters beyond ASCII count in UTF-16 units, or in bytes where the editor asks for it.
line = '# 网络𝄞\nnetwork n(%x: f32[8]) { %y = ReLU(%x) @ "𝄞名" {unknown: 1} return out: %y }\n'
for encodings, expected in ((None, line.split("\n")[1].encode("utf-16-le")), (["utf-8"], line.split("\n")[1].encode())):
    client = Client(encodings=encodings)
    _, [found] = client.open("unicode.mir", line)
    unit = 1 if encodings else 2
    assert found["range"]["start"]["character"] == expected.index("unknown".encode("utf-8" if encodings else "utf-16-le")) // unit, found
    assert client.close() == 0

# In Chinese; a dump; the examples are sound.
client = Client("--devices", "8", language="zh_CN.UTF-8")
_, [found] = client.open("one.mir", "network n(%x: f32[8]) { return out: %y }\n")
assert found["message"].startswith("未定义的值 '%y'"), found
for example in sorted(examples.glob("*/net.mir")):
    _, found = client.open(example)
    assert not [d for d in found if d["severity"] < 3], (example, found)
for dump in sorted(pathlib.Path("graphs/rank_0").glob("step_parallel_begin_*.ir")):
    dumpUri, found = client.open(dump)
    assert not [d for d in found if d["severity"] == 1], found
    text = dump.read_text()
    assert "in_strategy" in shown(client.at("hover", dumpUri, *place(text, "%0(")))
    assert start(client.at("definition", dumpUri, *place(text, "ReLU(%0", 6))) == place(text, "%0(")
assert client.close() == 0

# An editor that goes away, and input that is no protocol.
client = Client()
client.process.stdin.close()
assert client.process.wait(30) == 1
for bad in (b"Content-Length: 99999999999999999999\r\n\r\n", b"Content-Length: 100000000\r\n\r\n", b"Content-Length: -1\r\n\r\n",
            b"hello\r\n\r\n", b"x" * 5000, b"Content-Length: 10\r\n\r\n{}"):
    client = Client()
    client.write(bad)
    client.process.stdin.close()
    said = client.process.stderr.read().decode()
    assert client.process.wait(30) == 3 and said.count("error: the input is no language server protocol") == 1, (bad, said)

# Typing is answered at once: 50 changes in a row are looked at once, in the end.
client = Client("--devices", "8")
uri, _ = client.open("fast.mir", NET)
begun = time.time()
for version in range(2, 52):
    client.tell("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=[{"text": NET + "#" * version}])
client.ask("textDocument/documentSymbol", textDocument={"uri": uri})
print(f"50 changes in {time.time() - begun:.2f} s")
assert client.close() == 0
