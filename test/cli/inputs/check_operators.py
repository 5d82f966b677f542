"""check_operators.py OPERATORS.json: writes <type>.mir per element type, a network that calls every operator that takes the
type as its example does. Fails if an operator lacks what a reader needs."""
import json
import re
import sys

types = ["f16", "bf16", "f32", "f64", "i32", "i64", "bool"]
ranks = ["Rank", "AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "Broadcast", "NeighborExchange", "Send", "Receive"]
lines = {element: ([], [], []) for element in types}
for number, op in enumerate(json.load(open(sys.argv[1]))):
    for field in ["name", "summary", "description", "operands", "results", "element_types"]:
        assert op[field] or (field in ("operands", "element_types") and not op["example"]["inputs"]), f"{op['name']} has no {field}"
    assert op["rule"] and op["lowering"], f"{op['name']}: its example says nothing of its rule"
    assert "family" not in op["description"], f"{op['name']} speaks of a family that the reader does not see"
    for attribute in op["attributes"]:
        assert attribute["summary"] and attribute["type"], f"{op['name']}.{attribute['name']} has no description"
        assert not attribute["required"] or attribute["default"] is None
        assert attribute["default"] is None or not attribute["words"] or attribute["default"] in attribute["words"]
    for element in op["element_types"] if op["name"] not in ranks else []:  # of hybrid_parallel mode: hybrid.test
        inputs, calls, results = lines[element]
        inputs.append(op["example"]["inputs"].replace("f32[", element + "[").replace("%", f"%o{number}_"))
        calls.append("  " + op["example"]["call"].replace("%", f"%o{number}_"))
        results += [f"r{number}_{name}: %o{number}_{name}" for name in op["results"]]
for element, (inputs, calls, results) in lines.items():
    assert calls, f"no operator takes {element}"
    with open(element + ".mir", "w") as file:
        file.write("network all(%s) {\n%s\n  return %s\n}\n" % (",\n  ".join(inputs), "\n".join(calls), ",\n    ".join(results)))
        columns = re.findall(r"%(\w+):", ", ".join(inputs))
        file.write("dataset {source: Random(), columns: {%s}, steps: 1}\n" % ", ".join(name + ": ones" for name in columns))
