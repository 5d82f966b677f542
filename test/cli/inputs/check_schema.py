"""check_schema.py SCHEMA FILE...: each file is JSON that the schema describes. Knows the words that our schemas use, and
fails on others; keys that the schema does not name are errors."""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "items",
         "enum", "minimum", "maximum", "exclusiveMinimum", "minItems", "minLength", "anyOf"}


def check(value, schema, place):
    assert set(schema) <= KNOWN, f"{place}: words that this checker does not know: {set(schema) - KNOWN}"
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return check(value, target, place)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name != "boolean") for name in names), \
            f"{place}: {value!r} is not {names}"
    assert "enum" not in schema or value in schema["enum"], f"{place}: {value!r} is not one of {schema['enum']}"
    assert "minimum" not in schema or value >= schema["minimum"], f"{place}: {value!r} is less than {schema['minimum']}"
    assert "maximum" not in schema or value <= schema["maximum"], f"{place}: {value!r} is more than {schema['maximum']}"
    limit = schema.get("exclusiveMinimum")
    assert limit is None or value > limit, f"{place}: {value!r} is not more than {limit}"
    assert "minItems" not in schema or len(value) >= schema["minItems"], f"{place}: {len(value)} items are too few"
    assert "minLength" not in schema or len(value) >= schema["minLength"], f"{place}: {value!r} is too short"
    if "anyOf" in schema:
        assert any(fits(value, choice, place) for choice in schema["anyOf"]), f"{place}: {value!r} is none of {schema['anyOf']}"
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        assert not missing, f"{place}: {missing} are missing"
        for key, inner in value.items():
            rule = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            assert rule is not None or "properties" not in schema, f"{place}: the schema does not know '{key}'"
            if isinstance(rule, dict):
                check(inner, rule, f"{place}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, inner in enumerate(value):
            check(inner, schema["items"], f"{place}[{index}]")


def fits(value, schema, place):
    try:
        check(value, schema, place)
    except AssertionError:
        return False
    return True


root = json.load(open(sys.argv[1]))
for path in sys.argv[2:]:
    check(json.load(open(path)), root, path)
