"""Hostile templates: each is refused with one line, soon, and without much memory."""

import time
import tracemalloc
from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text import apply_chat_template
from modelc.text.template_budget import ITEM_UNITS, weigh

MESSAGES = [{"role": "user", "content": "Hi"}]
DOUBLE = "{%% set ns = namespace(x=%s) %%}{%% for i in range(64) %%}%s{%% endfor %%}{{ ns.x }}"

REACHES_OUT = {
    "attribute": "{{ ''.__class__ }}",
    "chain": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "item": "{{ ''['__class__'] }}",
    "attr filter": "{{ ''|attr('__class__') }}",
    "map filter": "{{ ['']|map(attribute='__class__')|list }}",
    "format": "{{ '{0.__class__}'.format('') }}",
    "function": "{{ raise_exception.__globals__ }}",
    "global": "{{ cycler.__init__.__globals__ }}",
    "template": "{{ self._TemplateReference__context }}",
    "list change": "{{ messages.append(1) }}",
    "dict change": "{{ messages[0].update({'a': 1}) }}",
}
RUNS_ON = {
    "loops in loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "long range": "{% for i in range(10 ** 9) %}{% endfor %}",
    "macro recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "branching macro": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "loop recursion": "{% for x in messages recursive %}{{ loop(messages) }}{% endfor %}",
    "block recursion": "{% block a %}{{ self.a() }}{% endblock %}",
    "number": "{{ 2 ** 100000000 }}",
    "growing number": DOUBLE % ("3", "{% set ns.x = ns.x * ns.x %}"),
}
NESTS = {
    "list of lists": DOUBLE % ("'a'", "{% set ns.x = [ns.x, ns.x] %}"),
    "tuple of tuples": DOUBLE % ("'a'", "{% set ns.x = (ns.x, ns.x) %}"),
    "dict of dicts": DOUBLE % ("'a'", "{% set ns.x = {'a': ns.x, 'b': ns.x} %}"),
    "dict()": DOUBLE % ("'a'", "{% set ns.x = dict(a=ns.x, b=ns.x) %}"),
    "fromkeys": DOUBLE % ("'a'", "{% set ns.x = {}.fromkeys('ab', ns.x) %}"),
    "varargs": "{% macro m() %}{% set ns.x = varargs %}{% endmacro %}" + DOUBLE % ("'a'", "{{ m(ns.x, ns.x) }}"),
}
GROWS = {
    "repeated text": "{{ 'x' * 10 ** 10 }}",
    "repeated list": "{{ 10 ** 9 * [0] }}",
    "text + text": DOUBLE % ("'a'", "{% set ns.x = ns.x + ns.x %}"),
    "text ~ text": DOUBLE % ("'a'", "{% set ns.x = ns.x ~ ns.x %}"),
    "set block": DOUBLE % ("'a'", "{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
    "list + list": DOUBLE % ("['a']", "{% set ns.x = ns.x + ns.x %}"),
    "join": "{% set s = 'x' * 1000000 %}{{ s|list|join(s) }}",
    "str.join": "{% set s = 'x' * 1000000 %}{{ s.join(s) }}",
    "replace": "{% set s = 'x' * 1000000 %}{{ s|replace('x', s) }}",
    "str.replace": "{% set s = 'x' * 1000000 %}{{ s.replace('', s) }}",
    "fields": "{% set s = 'x' * 1000000 %}{{ ('{0}' * 100000).format(s) }}",
    "width": "{{ '%9999999999d' % 1 }}",
    "star width": "{{ '%*d'|format(10 ** 9, 1) }}",
    "format width": "{{ '{:9999999999}'.format(1) }}",
    "nested width": "{{ '{:{}}'.format(1, 10 ** 9) }}",
    "ljust": "{{ 'x'.ljust(10 ** 10) }}",
    "to_bytes": "{{ (1).to_bytes(10 ** 9, 'big') }}",
    "indent": "{{ 'a'|indent(10 ** 9, true) }}",
    "tojson indent": "{{ [1]|tojson(indent=10 ** 9) }}",
    "round": "{{ 1.5|round(10 ** 9, 'ceil') }}",
    "sum": "{{ ([range(1000)|list] * 10000)|sum(start=[]) }}",
    "constant text": "{% for i in range(99999) %}" + "y" * 10_000 + "{% endfor %}",
    "date": "{{ strftime_now('%Y' * 1000) }}",
    "characters": "{{ ('é' * 10 ** 8)|list }}",
}
HOSTILE = REACHES_OUT | RUNS_ON | NESTS | GROWS


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_template_is_refused_in_one_line_and_soon(source: str) -> None:
    start = time.perf_counter()
    with pytest.raises(BadFileError) as caught:
        apply_chat_template(source, MESSAGES)
    assert time.perf_counter() - start < 4.0
    assert str(caught.value).startswith("the chat template was refused: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", GROWS.values(), ids=GROWS.keys())
def test_a_growing_template_is_refused_before_it_takes_the_memory(source: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadFileError):
            apply_chat_template(source, MESSAGES)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
        "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
        "{% for a in [1] %}" * 100 + "{% endfor %}" * 100,
        "{{ " + "not " * 20_000 + "1 }}",
        "x" * 200_000,
    ],
    ids=["parentheses", "ifs", "fors", "nots", "length"],
)
def test_a_template_that_is_too_deep_or_too_long_is_no_template(source: str) -> None:
    with pytest.raises(BadFileError, match=r"^the chat template is (not valid|too long)"):
        apply_chat_template(source, MESSAGES)


def test_a_long_conversation_may_cost_more() -> None:
    source = "{% for m in messages %}{% for c in m.content.split('.') %}{{ c.strip() ~ '.' }}{% endfor %}{% endfor %}"
    messages = [{"role": "user", "content": "One. Two. Three."}] * 20_000
    assert len(apply_chat_template(source, messages)) == 20_000 * len("One.Two.Three..")


# Weights


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("abc", 3),
        (7, 0),
        ([], ITEM_UNITS),
        (["ab", "c"], 3 * ITEM_UNITS + 3),
        ({"key": ["v"]}, 2 * ITEM_UNITS + 3 + 2 * ITEM_UNITS + 1),
    ],
)
def test_a_value_weighs_its_characters_and_items(value: object, units: int) -> None:
    assert weigh(value, 10**9) == units


def test_shared_parts_weigh_as_often_as_they_appear() -> None:
    value: Any = "x"
    for _ in range(200):
        value = [value, value]
    assert weigh(value, 10_000) > 10_000
