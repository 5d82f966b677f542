"""A client of `msc lsp` for tests."""

import json
import os
import pathlib
import subprocess


def frame(text):
    data = text if isinstance(text, bytes) else text.encode()
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


class Client:
    def __init__(self, *flags, encodings=None, language="C"):
        self.process = subprocess.Popen(["msc", "lsp", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=dict(os.environ, LC_ALL=language))
        self.next = 0
        self.notices = []
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.abilities = self.ask("initialize", processId=os.getpid(), rootUri=None, capabilities=general)["capabilities"]
        self.tell("initialized")

    def send(self, message):
        self.write(frame(json.dumps(message)))

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            name, value = line.split(b":")
            assert name.lower() == b"content-length", line
            length = int(value)
        assert length, "the server has ended: " + self.process.stderr.read().decode()
        return json.loads(self.process.stdout.read(length))

    def tell(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def raw(self, method, **params):
        """The whole reply."""
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.next:
                return message
            self.notices.append(message)

    def ask(self, method, **params):
        reply = self.raw(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    def at(self, method, uri, line, character):
        return self.ask("textDocument/" + method, textDocument={"uri": uri}, position={"line": line, "character": character})

    def open(self, path, text=None):
        """Opens a file, or a text as that file, and waits for its diagnostics."""
        path = pathlib.Path(path)
        uri = path.resolve().as_uri()
        text = path.read_text() if text is None else text
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "mir", "version": 1, "text": text})
        return uri, self.diagnostics()

    def change(self, uri, version, text):
        self.tell("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=[{"text": text}])
        return self.diagnostics()

    def diagnostics(self):
        while True:
            message = self.notices.pop(0) if self.notices else self.receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                return message["params"]["diagnostics"]

    def close(self):
        self.ask("shutdown")
        self.tell("exit")
        self.process.stdin.close()
        return self.process.wait(30)
