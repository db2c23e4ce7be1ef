"""Constraints in the grammar language of the automaton library (`llguidance`), and its complaints in ours."""

from __future__ import annotations

import json
import re
from typing import Any

from modelc.constraints.constraint import Constraint
from modelc.errors import BadInputError

MAX_CHARS = 1 << 20
_ANY_OBJECT = '{"type": "object"}'
# As Python's `json.dumps` writes: white space that the model may choose is a place where it can get stuck.
_JSON_OPTIONS: dict[str, Any] = {
    "whitespace_flexible": False,
    "whitespace_pattern": None,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": False,
    "coerce_one_of": False,
}
_ASCII_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r\f\v"}


def library_grammar(constraint: Constraint) -> str:
    """The constraint as `LLMatcher` takes it.

    Raises:
        BadInputError: it is too long, or not JSON, or not GBNF.
    """
    from llguidance import LLMatcher

    source = constraint.source
    if len(source) > MAX_CHARS:
        expected = f"at most {MAX_CHARS} characters"
        raise BadInputError("too long", param=constraint.param, got=f"{len(source)} characters", expected=expected)
    match constraint.kind:
        case "regex":
            return LLMatcher.grammar_from_regex(with_ascii_classes(source))
        case "gbnf":
            return LLMatcher.grammar_from_lark(_lark_of_gbnf(source, constraint.param))
        case "lark":
            return LLMatcher.grammar_from_lark(source)
        case "json_object":
            return LLMatcher.grammar_from_json_schema(_ANY_OBJECT, overrides=_JSON_OPTIONS)  # type: ignore[arg-type]
        case "json_schema":
            schema = json.dumps(parsed_schema(source, constraint.param), ensure_ascii=False)
            return LLMatcher.grammar_from_json_schema(schema, overrides=_JSON_OPTIONS)  # type: ignore[arg-type]


def parsed_schema(source: str, param: str) -> dict[str, Any]:
    """The schema in JSON text `source`.

    Raises:
        BadInputError: it is not JSON, no schema, or the schema that nothing matches.
    """
    try:
        schema = json.loads(source)
    except RecursionError:
        raise BadInputError("the schema is nested too deeply", param=param) from None
    except ValueError as error:
        raise BadInputError("the schema is not JSON", param=param, got=str(error)) from None
    if schema is True:
        return {}
    if schema is False:
        raise BadInputError("nothing matches the schema", param=param, got="false")
    if not isinstance(schema, dict):
        raise BadInputError("not a schema", param=param, expected="a JSON object", got=type(schema).__name__)
    return schema


def with_ascii_classes(pattern: str) -> str:
    r"""The regular expression with `\d`, `\w` and `\s` as ASCII classes: what they match, they match in every dialect.

    Dialects differ in which other characters they take; `\D`, `\W` and `\S` stay Unicode's for the same reason.
    """
    parts, depth, at = [], 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            chars = _ASCII_CLASSES.get(pattern[at + 1 : at + 2])
            escaped = pattern[at : at + 2]
            parts.append(escaped if chars is None else chars if depth else f"[{chars}]")
            at += 2
            continue
        depth = max(depth + (char == "[") - (char == "]"), 0)
        parts.append(char)
        at += 1
    return "".join(parts)


def complaint(constraint: Constraint, message: str) -> BadInputError:
    """The library's message about a constraint, in one line that names the keyword or the place."""
    expected = None
    match constraint.kind:
        case "regex":
            what, got = "not a regular expression that can be followed", _regex_fault(message)
        case "json_schema" | "json_object":
            what, got = "the schema cannot be followed", _schema_fault(message)
        case _:
            what, got = f"not a {constraint.kind.upper()} grammar that can be followed", message.partition("\n")[0]
            expected = None if got else "a grammar"
    return BadInputError(what, param=constraint.param, got=got or message, expected=expected)


def _regex_fault(message: str) -> str:
    if found := re.search(r"regex parse error:\n {4}(.*)\n {4}( *)\^.*\nerror: (.*)", message):
        return f"{found[3]}, at character {len(found[2]) + 1} ({found[1][len(found[2]) :][:20]!r})"
    if found := re.search(r"\(in regex\): (.*)", message):
        return re.sub(r"; (\w+) in regex.*", r" (\1)", found[1])
    return message.partition("\n")[0]


def _schema_fault(message: str) -> str:
    if found := re.match(r"Unimplemented keys: \[(.*)\]", message):
        return f"unsupported keywords {found[1]}"
    if found := re.search(r"regex parse error:\n {4}(.*)\n {4}( *)\^.*\nerror: (.*)", message):
        return f"pattern {found[1]!r}: {found[3]}"
    first = message.partition("\n")[0]
    return first[:1].lower() + first[1:]


def _lark_of_gbnf(source: str, param: str) -> str:
    from llguidance.gbnf_to_lark import gbnf_to_lark

    try:
        return gbnf_to_lark(source)
    except RecursionError:
        raise BadInputError("the grammar is nested too deeply", param=param) from None
    except Exception as error:  # it raises whatever it stumbles over
        raise BadInputError("not a GBNF grammar", param=param, got=str(error) or type(error).__name__) from None
