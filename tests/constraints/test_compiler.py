import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from modelc.constraints import Constraint, ConstraintCompiler
from modelc.errors import BadInputError
from modelc.text import BpeTokenizer

COMPILER = ConstraintCompiler(BpeTokenizer.byte_fallback(), 256)


def refused(constraint: Constraint) -> str:
    with pytest.raises(BadInputError) as caught:
        COMPILER.automaton(constraint)
    assert caught.value.param == constraint.param
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("ab[c", r"unclosed character class, at character 3 \('\[c'\)"),
        ("(a", r"unclosed group, at character 1"),
        (r"\d[", r"unclosed character class, at character 3"),
        ("a(?=b)", "look-around"),
        (r"(a)\1", "backreferences are not supported"),
        (r"\bx", "lookarounds not supported"),
        ("*", "at character 1"),
        ("(" * 100_000, "at character"),
    ],
)
def test_a_bad_regular_expression_is_refused_with_the_place(pattern: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        COMPILER.automaton(Constraint("regex", pattern))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"not": {}}, 'unsupported keywords "not"'),
        ({"type": "array", "uniqueItems": True}, 'unsupported keywords "uniqueItems"'),
        ({"properties": {"a": {"if": {}, "then": {}}}}, '"if", "then"'),
        ({"type": "string", "format": "colour"}, "unknown format: colour"),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "oneOf"),
        ({"type": "foo"}, "invalid type: foo"),
        ({"type": "string", "pattern": "(?=a)"}, r"pattern '\(\?=a\)': look-around"),
        ({"$ref": "#/nowhere"}, "/nowhere"),
        ({"$ref": "http://localhost/schema.json"}, "not present in a registry"),
        ({"$ref": "#"}, "cannot be followed"),
        ({"type": "string", "minLength": 3, "maxLength": 1}, "minLength"),
        ({"x-guidance": {"lenient": True}, "not": {}}, 'unsupported keywords "not"'),
        (False, "nothing matches"),
        ([], "not a schema"),
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused_with_the_keyword(schema: Any, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        COMPILER.automaton(Constraint.of_schema(schema))


@pytest.mark.parametrize(
    ("kind", "source", "complaint"),
    [
        ("gbnf", "root ::= x", "Rule 'x' not found"),
        ("gbnf", 'root ::= ("a"', "line 1"),
        ("gbnf", "root ::= " + "(" * 50_000, "nested too deeply"),
        ("lark", "start: a", 'unknown name: "a"'),
        ("lark", 'start: "a', r"1\(10\): lexer error"),
    ],
)
def test_a_bad_grammar_is_refused_with_the_place(kind: Any, source: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        COMPILER.automaton(Constraint(kind, source))


def test_errors_name_the_request_s_field() -> None:
    assert "'response_format.json_schema'" in refused(Constraint("json_schema", "{", "response_format.json_schema"))
    assert "'grammar'" in refused(Constraint("regex", "["))
    assert refused(Constraint("regex", "a" * 2_000_000)).startswith("too long")


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("regex", "a{1000000}"),
        Constraint("regex", "(((a{1000}){1000}){1000})"),
        Constraint("regex", "((a+)+)+$"),
        Constraint("regex", "(.*a){50}"),
        Constraint("regex", "(a|b)*a(a|b){25}"),
        Constraint("lark", 'start: "a" start'),
        Constraint("lark", 'start: start start | "a"'),
        Constraint.of_schema({"type": "string", "minLength": 10**9}),
        Constraint.of_schema({"allOf": [{"type": "string", "pattern": f".*a.{{{i}}}b"} for i in range(1, 12)]}),
        Constraint.of_schema(
            {
                "$ref": "#/$defs/d0",
                "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
                | {"d30": {"type": "integer"}},
            }
        ),
        Constraint.of_schema({"enum": [f"value {i}" for i in range(5000)]}),
    ],
    ids=lambda constraint: constraint.source[:40],
)
def test_hostile_ones_take_bounded_time(constraint: Constraint) -> None:
    start = time.thread_time()
    try:
        automaton = COMPILER.automaton(constraint)
        for _ in range(30):
            if automaton.finished:
                break
            automaton.advance(
                automaton.forced[0]
                if automaton.forced
                else next(t for t in range(256) if automaton.mask[t >> 5] >> (t & 31) & 1)
            )
    except BadInputError:
        pass
    assert time.thread_time() - start < 10


def test_a_constraint_is_compiled_once_and_the_automata_are_independent() -> None:
    compiler = ConstraintCompiler(BpeTokenizer.byte_fallback(), 256)
    first, second = (compiler.automaton(Constraint("regex", "[ab]c")) for _ in range(2))
    first.advance(ord("a"))
    assert first.forced == [ord("c")]
    assert not second.forced
    assert len(compiler._kept) == 1


def test_the_oldest_are_forgotten() -> None:
    compiler = ConstraintCompiler(BpeTokenizer.byte_fallback(), 256)
    for i in range(50):
        compiler.automaton(Constraint("regex", f"a{{{i}}}"))
    assert len(compiler._kept) == 32


def test_threads_may_compile_at_the_same_time() -> None:
    compiler = ConstraintCompiler(BpeTokenizer.byte_fallback(), 256)
    sources = [f"[a-z]{{{i % 5}}}x" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        automata = list(pool.map(lambda source: compiler.automaton(Constraint("regex", source)), sources))
    assert all(not automaton.finished for automaton in automata)
