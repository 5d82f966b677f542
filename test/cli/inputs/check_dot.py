"""check_dot.py FILE...: each file is a graph in the language of Graphviz: it is read by its grammar, every edge joins nodes
that are declared, and `dot` agrees where it is installed. Prints nodes, edges and filled nodes per file."""
import re
import shutil
import subprocess
import sys

TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*")|([A-Za-z_][A-Za-z_0-9]*|-?(?:\.\d+|\d+(?:\.\d*)?))|(->)|([{}\[\];,=]))')


def tokens(text):
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if not match:
            raise SyntaxError(f"cannot read {text[at:at + 40]!r}")
        at = match.end()
        yield match.group(1) or match.group(2) or match.group(3) or match.group(4)


def is_id(token):
    return bool(re.match(r'["A-Za-z_0-9.-]', token)) and token != "->"


class Reader:
    def __init__(self, text):
        self.tokens, self.at = list(tokens(text)), 0
        self.nodes, self.edges = {}, []

    def next(self, wanted=None):
        token = self.tokens[self.at] if self.at < len(self.tokens) else "the end"
        if (wanted and token != wanted) or (not wanted and not is_id(token)):
            raise SyntaxError(f"expected {wanted or 'a name'}, found {token}")
        self.at += 1
        return token

    def sees(self, token):
        return self.at < len(self.tokens) and self.tokens[self.at] == token

    def attributes(self):
        found = {}
        if self.sees("["):
            self.next("[")
            while not self.sees("]"):
                key = self.next()
                self.next("=")
                found[key] = self.next()
                if self.sees(","):
                    self.next(",")
            self.next("]")
        return found

    def graph(self):
        self.next("digraph")
        self.next()
        self.next("{")
        while not self.sees("}"):
            name = self.next()
            if self.sees("="):
                self.next("=")
                self.next()
            elif self.sees("->"):
                self.next("->")
                self.edges.append((name, self.next()))
                self.attributes()
            elif name in self.nodes:
                raise SyntaxError(f"node {name} is declared twice")
            else:
                attributes = self.attributes()
                if name != "node":
                    self.nodes[name] = attributes
            self.next(";")
        self.next("}")
        if self.at != len(self.tokens):
            raise SyntaxError("text behind the graph")
        for edge in self.edges:
            for end in edge:
                if end not in self.nodes:
                    raise SyntaxError(f"edge {edge} joins a node that is not declared")


for path in sys.argv[1:]:
    reader = Reader(open(path).read())
    reader.graph()
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", "/dev/null", path], check=True)
    filled = sum("fillcolor" in attributes for attributes in reader.nodes.values())
    print(f"{path}: {len(reader.nodes)} nodes, {len(reader.edges)} edges, {filled} filled")
