"""check_dump_form.py FILE...: the lines of a dump have the form of MindSpore's IR dumps: header, attributes, parameters,
subgraph, nodes with their signature, scope and place.

Ours says more: the place of a parameter, the names of results in Return, the blocks behind the subgraph, and, in front of the
header of rank dumps, which graph runs. It says less: there is no pointer behind `subgraph instance`, since equal networks give equal
bytes; a node that the network gives no name has no debug name such as `([CNode]61)`; no source line behind a place, and no
`# order:` at the end. A node with two results has both in front of `=`, where MindSpore has a tuple and TupleGetItem."""
import re
import sys

NAME = r"[\w.]+"
TENSOR = r"<(?:Tensor\[\w+\]|Ref\[Tensor\[\w+\]\]), \((?:\d+(?:, \d+)*)?\)(?:, ref_key=:%s)?>" % NAME
TYPES = r"\((?:%s(?:, %s)*)?\)" % (TENSOR, TENSOR)
VALUE = r"%[\w.]+"
MAP = r"\{[^{}]*\}"
ARGUMENT = r"(?:%s|\(-?\d*(?:, -?\d+)*,?\)|-?[\d.]+(?:e[+-]?\d+)?|-?inf|true|false)" % VALUE
NODE = (rf"  {VALUE}(?:\([^()]+\))?(?:, {VALUE}(?:\([^()]+\))?)* = \w+\((?:{ARGUMENT}(?:, {ARGUMENT})*)?\)"
        rf"(?: {{instance name: {NAME}}})?(?: primitive_attrs: {MAP})?(?: cnode_attrs: {MAP})?(?: cnode_primal_attrs: {MAP})?"
        rf"(?: {{in_strategy: [(), \d]+(?:, out_strategy: [(), \d]+)?}})?")
HEADER = [r"#IR entry      : @\w+", r"#Total subgraph: \d+", "", "#attrs         :", r"[\w ]+ : .+", "#Total params  : \\d+", ""]


def fail(path, number, line, wanted):
    sys.exit(f"{path}:{number + 1}: expected {wanted}, found: {line}")


def check(path):
    lines = open(path).read().split("\n")
    at = 0
    while lines[at].startswith("# "):  # which graph runs
        at += 1

    def take(form, optional=False):
        nonlocal at
        if not re.fullmatch(form, lines[at]):
            if optional:
                return False
            fail(path, at, lines[at], form)
        at += 1
        return True

    for form in HEADER[:4]:
        take(form)
    while take(HEADER[4], optional=True):
        pass
    take("")
    for form in HEADER[5:]:
        take(form)
    count = int(lines[at - 2].split(":")[1])
    for _ in range(count):
        take(rf"%para\d+_{NAME} : {TENSOR}(?:  :  has_default)?")
        take(rf"    # In file .+\(\d+\)", optional=True)
    take("")
    take("subgraph attr:")
    take(rf"subgraph instance: {NAME}(?: : \S+)?")
    take(rf"subgraph @\w+\({VALUE}(?:, {VALUE})*\) {{")
    nodes = 0
    while not lines[at].startswith("  Return("):
        take(NODE)
        take(rf"      : {TYPES} -> {TYPES}")
        take(r"      # scope: \([\w/.<>-]+\)")
        take(r"      # In file .+\(\d+\)", optional=True)
        nodes += 1
    take(rf"  Return\((?:\w+: )?{VALUE}(?:, (?:\w+: )?{VALUE})*\)")
    take(rf"      : {TYPES}")
    take("}")
    if nodes == 0:
        sys.exit(f"{path}: no node")


for path in sys.argv[1:]:
    check(path)
