"""Schemas of the kinds that JSON Schema's own tests have: each keyword alone, combined, nested, and by reference."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any] | bool

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
FORMATS = (
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "unknown",
    "json-pointer",
)
PATTERNS = (
    r"^[A-Z]{2}\d{4}$",
    r"^a*$",
    r"[0-9]",
    r"^\S+@\S+$",
    r"^(red|green|blue)$",
    r"^[^x]{1,8}$",
    r"\w\s\w",
    r"^é+$",
)
RANGES: tuple[dict[str, Any], ...] = (
    {"minimum": 0, "maximum": 9},
    {"minimum": -17, "maximum": 1234},
    {"exclusiveMinimum": 0},
    {"exclusiveMaximum": -5},
    {"minimum": 1.5, "maximum": 2.25},
    {"minimum": 100, "exclusiveMaximum": 101},
    {"multipleOf": 7, "minimum": 0, "maximum": 100},
    {"multipleOf": 0.01},
    {"minimum": 3, "maximum": 2},
)


def scalars() -> list[Schema]:
    """One value: types, ranges, lengths, patterns, formats, enumerations."""
    cases: list[Schema] = [{"type": kind} for kind in TYPES]
    cases += [{"type": ["string", "null"]}, {"type": ["integer", "boolean"]}, {"type": ["array", "object", "null"]}]
    cases += [{"type": kind, **limits} for kind in ("integer", "number") for limits in RANGES]
    cases += [
        {"type": "string", "minLength": low, "maxLength": high}
        for low, high in ((0, 0), (1, 1), (3, 5), (10, 40), (0, 2000), (5, 2))
    ]
    cases += [{"type": "string", "pattern": pattern} for pattern in PATTERNS]
    cases += [{"type": "string", "format": name} for name in FORMATS]
    cases += [
        {"enum": [1, 2, 3]},
        {"enum": ["a", "b", None, True, 1.5]},
        {"enum": [{"a": 1}, [1, 2], "x"]},
        {"enum": [f"value {i}" for i in range(300)]},
        {"enum": []},
        {"enum": ["a/b", 'quote"', "back\\slash", "é", "\n"]},
        {"const": "only this"},
        {"const": {"a": [1, {"b": None}]}},
        {"const": 3.25},
        {"type": "string", "enum": ["a", 1]},
    ]
    return cases


def arrays() -> list[Schema]:
    """Lists: items, tuples, lengths."""
    return [
        {"type": "array", "items": {"type": kind}, "minItems": 1, "maxItems": 3}
        for kind in ("string", "integer", "boolean", "null", "number")
    ] + [
        {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "maxItems": 2},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string", "maxLength": 4}], "items": False},
        {"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "boolean"}, "maxItems": 4},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}, "maxItems": 3},
        {"type": "array", "maxItems": 0},
        {"type": "array", "minItems": 3, "maxItems": 1},
        {"type": "array", "items": False},
        {"type": "array", "uniqueItems": True},
        {"type": "array", "contains": {"type": "integer"}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"type": "integer"}],
            "additionalItems": False,
        },
    ]


def objects() -> list[Schema]:
    """Records: properties, what is required, what else may be there."""
    person = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "email": {"type": "string", "format": "email"},
            "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "maxItems": 3},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    cases: list[Schema] = [
        person,
        {
            **person,
            "additionalProperties": {"type": "integer"},
            "properties": {"name": {"type": "string", "maxLength": 5}},
            "required": ["name"],
        },
        {
            "type": "object",
            "properties": {"a": person, "b": {"type": "array", "items": person, "maxItems": 2}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {"type": "object", "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "boolean"}},
        {"type": "object", "patternProperties": {"^[a-c]$": {"type": "integer"}}, "additionalProperties": False},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}},
        {"type": "object", "required": ["x"]},
        {"type": "object", "properties": {"x": False}},
        {"type": "object", "properties": {"x": False}, "required": ["x"]},
        {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "null"}},
        {"type": "object", "propertyNames": {"pattern": "^a"}},
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {
            "type": "object",
            "properties": {'q"uote': {"type": "null"}, "é": {"type": "null"}, "a b": {"type": "null"}},
            "required": ['q"uote', "é", "a b"],
            "additionalProperties": False,
        },
        {"properties": {"a": {"type": "integer"}}},
        {},
        True,
        False,
    ]
    for n in (1, 3, 8):
        names = [f"field_{i}" for i in range(n)]
        for kind in ("integer", "boolean", "string"):
            value = {"type": kind, "maxLength": 8} if kind == "string" else {"type": kind}
            for required in (names, names[:1], []):
                cases.append(
                    {
                        "type": "object",
                        "properties": dict.fromkeys(names, value),
                        "required": required,
                        "additionalProperties": False,
                    }
                )
    return cases


def combinations() -> list[Schema]:
    """Alternatives, intersections, negations, conditions."""
    small = {"type": "integer", "minimum": 0, "maximum": 5}
    word = {"type": "string", "maxLength": 5}
    kinds = [
        {
            "type": "object",
            "properties": {"kind": {"const": name}, name: small},
            "required": ["kind", name],
            "additionalProperties": False,
        }
        for name in ("circle", "square")
    ]
    return [
        {"anyOf": [small, word]},
        {"anyOf": [{"type": "null"}, {"type": "array", "items": small, "maxItems": 2}]},
        {"anyOf": kinds},
        {"oneOf": kinds},
        {"oneOf": [small, word]},
        {"oneOf": [{"type": "number"}, {"type": "integer"}]},
        {"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 8}]},
        {
            "allOf": [{"properties": {"a": small}, "required": ["a"]}, {"properties": {"b": word}, "required": ["b"]}],
            "type": "object",
        },
        {"allOf": [{"type": "string", "minLength": 2}, {"type": "string", "maxLength": 4}]},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "string", "anyOf": [{"minLength": 3}, {"const": "a"}], "maxLength": 6},
        {"not": {"type": "string"}},
        {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
        {"type": "integer", "minimum": 0, "anyOf": [{"maximum": 3}, {"const": 77}]},
    ]


def references() -> list[Schema]:
    """Definitions, recursion, references into arrays and through escapes."""
    node = {
        "type": "object",
        "properties": {"value": {"type": "boolean"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["value", "next"],
        "additionalProperties": False,
    }
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "leaf": {"type": "integer"}},
        "additionalProperties": False,
    }
    return [
        {"$ref": "#/$defs/node", "$defs": {"node": node}},
        {"$ref": "#/definitions/a", "definitions": {"a": {"type": "boolean"}}},
        {"type": "array", "items": {"$ref": "#/$defs/x"}, "maxItems": 2, "$defs": {"x": {"enum": [1, 2]}}},
        tree,
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}},
        {"$ref": "#/$defs/a%25b", "$defs": {"a%b": {"const": 1}}},
        {
            "prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}],
            "type": "array",
            "items": False,
            "minItems": 2,
        },
        {"$ref": "#/$defs/x", "maximum": 4, "$defs": {"x": {"type": "integer", "minimum": 2}}},
        {"$defs": {"a": {"$anchor": "here", "const": True}}, "$ref": "#here"},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://localhost/other.json"},
        {"$dynamicRef": "#a"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"const": i}]} for i in range(40)}
            | {"d40": {"const": 40}},
        },
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(11)}
            | {"d11": {"type": "boolean"}},
        },
    ]


def nested() -> list[Schema]:
    """Everything inside of everything, a few levels deep."""
    leaves: list[Schema] = [
        {"type": "integer", "minimum": 0, "maximum": 99},
        {"enum": ["on", "off"]},
        {"type": "string", "maxLength": 6},
    ]
    cases: list[Schema] = []
    for leaf in leaves:
        inner: Schema = leaf
        for depth in range(1, 7):
            inner = (
                {
                    "type": "object",
                    "properties": {f"level_{depth}": inner},
                    "required": [f"level_{depth}"],
                    "additionalProperties": False,
                }
                if depth % 2
                else {"type": "array", "items": inner, "minItems": 1, "maxItems": 2}
            )
            cases.append(inner)
    return cases


def pairs() -> list[Schema]:
    """Two kinds of value side by side, in a record and in a list."""
    kinds: list[Schema] = [
        {"type": "integer", "minimum": -5, "maximum": 5},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": "^[a-f]{2,6}$"},
        {"type": "string", "format": "date"},
        {"type": ["boolean", "null"]},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    ]
    cases: list[Schema] = []
    for i, first in enumerate(kinds):
        for second in kinds[i:]:
            record = {"type": "object", "properties": {"first": first, "second": second}, "required": ["second"]}
            cases.append({**record, "additionalProperties": False})
            if first is not second:
                cases.append({"type": "array", "items": {"anyOf": [first, second]}, "minItems": 1, "maxItems": 3})
    return cases


SCHEMAS: list[Schema] = [*scalars(), *arrays(), *objects(), *combinations(), *references(), *nested(), *pairs()]
