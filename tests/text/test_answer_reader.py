import itertools
import json

import pytest

from modelc.text.answer_reader import AnswerReader, Part

TOOLS = frozenset({"add", "get_weather"})
ADD = '{"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}\\"]"}]}}'
PARIS = '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}'


def read(text: str, size: int = 1, tools: frozenset[str] = TOOLS, **options: bool) -> list[Part]:
    """Parts of an answer that comes in pieces of `size` characters."""
    reader = AnswerReader(tools, **options)
    parts = [part for at in range(0, len(text), size) for part in reader.push(text[at : at + size])]
    return parts + reader.finish()


def summary(parts: list[Part]) -> tuple[str, str, list[tuple[str, object]]]:
    """Reasoning, words, and calls with their arguments."""
    words = {kind: "".join(part.text for part in parts if part.kind == kind) for kind in ("reasoning", "content")}
    calls = []
    for name in (part for part in parts if part.kind == "call"):
        arguments = "".join(part.text for part in parts if (part.kind, part.call) == ("arguments", name.call))
        calls.append((name.text, json.loads(arguments)))
    return words["reasoning"], words["content"], calls


CALL_ADD = ("add", {"a": 1, "b": [2, {"c": '}"]'}]})
CALL_PARIS = ("get_weather", {"city": "Paris"})
ANSWERS = {
    "words": ("Hello {there} [you]!", ("", "Hello {there} [you]!", [])),
    "hermes": (f"<tool_call>\n{ADD}\n</tool_call>", ("", "", [CALL_ADD])),
    "hermes, words before": (f"Let me see.\n<tool_call>{PARIS}</tool_call>", ("", "Let me see.\n", [CALL_PARIS])),
    "hermes, two": (
        f"<tool_call>\n{ADD}\n</tool_call>\n<tool_call>\n{PARIS}\n</tool_call>\n",
        ("", "", [CALL_ADD, CALL_PARIS]),
    ),
    "hermes, not closed": (f"<tool_call>{ADD}", ("", "", [CALL_ADD])),
    "llama": (f"<|python_tag|>{PARIS}; {ADD}", ("", "", [CALL_PARIS, CALL_ADD])),
    "bare": (f"\n{PARIS}", ("", "", [CALL_PARIS])),
    "bare list": (f"[{ADD}, {PARIS}]\n", ("", "", [CALL_ADD, CALL_PARIS])),
    "mistral": (f"[TOOL_CALLS][{ADD},{PARIS}]", ("", "", [CALL_ADD, CALL_PARIS])),
    "mistral, names first": (
        '[TOOL_CALLS]add[ARGS]{"a": {}}[TOOL_CALLS]get_weather{"city": "Paris"}',
        ("", "", [("add", {"a": {}}), CALL_PARIS]),
    ),
    "arguments first": ('{"arguments": {"a": 1}, "name": "add"}', ("", "", [("add", {"a": 1})])),
    "arguments as text": (
        '{"name": "add", "arguments": "{\\"a\\": 1}"}',
        ("", "", [("add", {"a": 1})]),
    ),
    "no arguments": ('<tool_call>{"name": "add"}</tool_call>', ("", "", [("add", {})])),
    "null arguments": ('{"name": "add", "arguments": null}', ("", "", [("add", {})])),
    "other name": ('{"name": "sub", "arguments": {}}', ("", '{"name": "sub", "arguments": {}}', [])),
    "other keys": ('{"answer": 4}', ("", '{"answer": 4}', [])),
    "a list": ("[1, 2]", ("", "[1, 2]", [])),
    "more keys": ('{"name": "add", "arguments": {}, "why": "so", "name": "x"}', ("", "", [("add", {})])),
    "not JSON": ("<tool_call>add(1, 2)</tool_call>", ("", "<tool_call>add(1, 2)</tool_call>", [])),
    "python": ("{'name': 'add'}", ("", "{'name': 'add'}", [])),
    "JSON in words": (f"It is {ADD}", ("", f"It is {ADD}", [])),
    "words behind": (f"<tool_call>{ADD}</tool_call>\nDone.", ("", "\nDone.", [CALL_ADD])),
    "a marker begun": ("a <tool_cal", ("", "a <tool_cal", [])),
    "white space": (" \n", ("", " \n", [])),
    "nothing": ("", ("", "", [])),
    "reasoning": ("<think>\nHm, <b>.\n</think>\n\nYes.", ("Hm, <b>.", "Yes.", [])),
    "reasoning, then a call": (f"<think>Hm</think>\n<tool_call>{ADD}</tool_call>", ("Hm", "", [CALL_ADD])),
    "reasoning cut": ("<think>\nHm, </thi", ("Hm, </thi", "", [])),
    "no reasoning": ("<thinner>", ("", "<thinner>", [])),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_parts_do_not_depend_on_how_the_text_comes(name: str) -> None:
    text, expected = ANSWERS[name]
    for size in (1, 2, 3, 7, 1000):
        assert summary(read(text, size)) == expected


@pytest.mark.parametrize("name", ANSWERS)
def test_without_tools_there_are_no_calls_and_no_character_is_lost(name: str) -> None:
    text, (reasoning, _, _) = ANSWERS[name]
    parts = read(text, 3, frozenset())
    assert summary(parts)[0] == reasoning
    words = "".join(part.text for part in parts if part.kind == "content")
    assert words == (text.partition("</think>")[2].lstrip() if "<think>" in text else text)
    assert {part.kind for part in parts} <= {"content", "reasoning"}


def test_arguments_are_told_while_they_come_and_the_name_once() -> None:
    reader = AnswerReader(TOOLS)
    assert reader.push('<tool_call>{"name": "add"') == []
    assert reader.push(', "arguments": {"a"') == [Part("call", "add"), Part("arguments", '{"a"')]
    assert reader.push(": 1") == [Part("arguments", ": 1")]
    assert reader.push('}}</tool_call> <tool_call>{"name": "add", "arguments": {') == [
        Part("arguments", "}"),
        Part("call", "add", 1),
        Part("arguments", "{", 1),
    ]
    assert reader.finish() == []
    assert reader.n_calls == 1  # the second one was cut


def test_words_are_told_at_once() -> None:
    reader = AnswerReader(TOOLS)
    assert reader.push("It") == [Part("content", "It")]
    assert reader.push(" is <") == [Part("content", " is ")]  # it may begin a marker
    assert reader.push(" 4") == [Part("content", "< 4")]


def test_reasoning_that_the_prompt_has_opened_comes_first() -> None:
    assert summary(read("Hm.\n</think>\n\nYes", is_reasoning=True)) == ("Hm.", "Yes", [])
    assert summary(read("Hm.", is_reasoning=True)) == ("Hm.", "", [])


def test_one_call_is_kept_where_no_others_are_wanted() -> None:
    text = f"<tool_call>{ADD}</tool_call><tool_call>{PARIS}</tool_call> and more"
    assert summary(read(text, is_parallel=False)) == ("", "", [CALL_ADD])


def test_no_text_makes_it_fail_or_lose_characters_of_words() -> None:
    pieces = ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "{", "}", "[", '"name"', ":", "sub", ",", " ", "<think>"]
    for combination in itertools.product(pieces, repeat=4):
        text = "".join(combination)
        parts = read(text, 2)
        assert [part.kind for part in parts if part.kind in ("call", "arguments")] == []
        if not text.lstrip().startswith("<think>"):
            assert "".join(part.text for part in parts) == text


@pytest.mark.parametrize(
    ("text", "is_reasoning", "expected"),
    [
        (" and so</think> 4", True, [("reasoning", " and so"), ("content", "4")]),
        ('{"name": "add", "arguments": {}}', False, [("content", '{"name": "add", "arguments": {}}')]),
        ('x</think>{"name": "add"}', True, [("reasoning", "x"), ("call", "add"), ("arguments", "{}")]),
        (" <think>4", False, [("content", " <think>4")]),
    ],
)
def test_what_goes_on_keeps_its_space_and_begins_nothing(
    text: str, is_reasoning: bool, expected: list[tuple[str, str]]
) -> None:
    reader = AnswerReader(frozenset({"add"}), is_reasoning, goes_on=True)
    assert [(part.kind, part.text) for part in [*reader.push(text), *reader.finish()]] == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [(f"[{ADD}", f", {PARIS}]"), (f"<tool_call>{ADD}</tool_call>\n<tool_call>", f"\n{PARIS}\n</tool_call>")],
)
def test_a_further_call_that_is_cut_before_its_arguments_is_no_content(first: str, second: str) -> None:
    for n in range(len(second)):
        parts = read(first + second[:n])
        assert [part.text for part in parts if part.kind == "content"] == []
        assert "add" in [part.text for part in parts if part.kind == "call"]
