"""operator_table.py OPERATORS.json README.md [--write]: the table of all operators in README.md is what `msc ops --json` says."""
import json
import sys

begin, end = "<!-- operators: made by test/cli/inputs/operator_table.py -->\n", "<!-- end of operators -->\n"
rows = ["| operator | may be cut (rule of the example in `msc ops`) | runs as | gradient | elements |", "| --- | --- | --- | --- | --- |"]
for op in json.load(open(sys.argv[1])):
    elements = " ".join(op["element_types"])
    rows.append(f"| {op['name']} | `{op['rule']}` | {op['lowering']} | {'yes' if op['differentiable'] else ''} | {elements} |")
table = "\n".join(rows) + "\n"
text = open(sys.argv[2]).read()
head, rest = text.split(begin)
old, tail = rest.split(end)
if "--write" in sys.argv:
    with open(sys.argv[2], "w") as file:
        file.write(head + begin + table + end + tail)
elif old != table:
    different = [f"- {a}\n+ {b}" for a, b in zip(old.splitlines(), table.splitlines()) if a != b]
    sys.exit("README.md differs from 'msc ops':\n" + "\n".join(different[:5] or ["the number of rows"]))
