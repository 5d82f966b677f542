"""Damaged messages: the server answers or ends with code 3, never dies, never hangs, and stays small."""

import json
import os
import random
import resource
import subprocess
import sys

from lsp_client import frame

rounds = 2000 if os.environ.get("MSC_LONG", "0") not in ("", "0") else 60
TEXT = 'import "nn.mir"\nnetwork n(%x: f32[8, 4]) {\n  %y = ReLU(%x) {in_strategy: ((2, 1))}\n  return out: %y\n}\n'
URI = "file:///tmp/fuzzed.mir"
SESSION = [
    {"id": 1, "method": "initialize", "params": {"capabilities": {}}},
    {"method": "initialized", "params": {}},
    {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": URI, "languageId": "mir", "version": 1, "text": TEXT}}},
    {"id": 2, "method": "textDocument/hover", "params": {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 3}}},
    {"id": 3, "method": "textDocument/completion", "params": {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 7}}},
    {"id": 4, "method": "textDocument/definition", "params": {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 13}}},
    {"id": 5, "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": URI}}},
    {"id": 6, "method": "textDocument/formatting", "params": {"textDocument": {"uri": URI}, "options": {}}},
    {"method": "textDocument/didChange", "params": {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": TEXT * 2}]}},
    {"id": 7, "method": "shutdown"},
    {"method": "exit"},
]
VALUES = [None, True, -1, 0, 1 << 62, 1 << 70, 0.5, "", "x" * 1000, "file:///%zz%", "file://", "untitled:", [], {}, [[]], {"a": {"b": []}}]


def mutateJson(random, value):
    """Another value somewhere in a message."""
    if random.random() < 0.2 or not isinstance(value, (dict, list)) or not value:
        return random.choice(VALUES)
    key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if isinstance(value, dict) and random.random() < 0.2:
        return {k: v for k, v in value.items() if k != key}
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = mutateJson(random, value[key])
    return copy


def mutateBytes(random, data):
    data = bytearray(data)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(data))
        kind = random.randrange(4)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at:at + random.randint(1, 20)]
        elif kind == 2:
            data[at:at] = random.choice([b"{", b"[" * 100, b'"', b"\\ud800", b"\r\n\r\n", b"Content-Length: 7\r\n", b"\x00", b"\xff", b"9" * 30])
        else:
            data[at:at] = data[max(0, at - 40):at]
    return bytes(data)


def mutateText(random):
    words = TEXT.split(" ")
    for _ in range(random.randint(1, 6)):
        words[random.randrange(len(words))] = random.choice(["(", ")", "{", "}", "%", "%y", "=", "@", '"', "repeat", "if", "<T", "\n", "cell", "é𝄞", ""])
    return " ".join(words)


seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
ends = {}
for round in range(rounds):
    rng = random.Random(seed * 1000003 + round)
    session = json.loads(json.dumps(SESSION))
    session[2]["params"]["textDocument"]["text"] = mutateText(rng)
    for message in session[3:6]:
        message["params"]["position"] = {"line": rng.randrange(8), "character": rng.randrange(60)}
    if round % 3 == 0:
        at = rng.randrange(len(session))
        session[at] = mutateJson(rng, session[at])
    data = b"".join(frame(json.dumps(dict(m, jsonrpc="2.0") if isinstance(m, dict) else m)) for m in session)
    if round % 3 == 1:
        data = mutateBytes(rng, data)

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not os.environ.get("ASAN_OPTIONS"):
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    done = subprocess.run(["msc", "lsp"], input=data, capture_output=True, timeout=60, preexec_fn=limit)
    ends[done.returncode] = ends.get(done.returncode, 0) + 1
    if done.returncode not in (0, 1, 3) or (done.returncode == 3) != (b"error: " in done.stderr):
        print(f"seed {seed} round {round} ends with {done.returncode}: {done.stderr[-2000:]!r}\n{data!r}")
        sys.exit(1)
print("ended with", ends)
sys.exit(0 if ends.get(0, 0) > rounds // 4 else 1)
