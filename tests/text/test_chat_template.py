from datetime import datetime
from typing import Any

import pytest

from modelc.errors import BadFileError, BadInputError
from modelc.text import ChatTemplate, apply_chat_template

USER = {"role": "user", "content": "Hi"}
SYSTEM = {"role": "system", "content": "Be brief."}
CHATML = """{% for message in messages %}
    <|{{ message['role'] }}|>{{ message['content'] + '<|end|>' }}
{% endfor %}
{% if add_generation_prompt %}
    {{- '<|assistant|>' }}
{% endif %}"""


def render(source: str, *messages: dict[str, Any], **kwargs: Any) -> str:
    return apply_chat_template(source, messages or [USER], **kwargs)


# Without a template


def test_without_a_template_each_message_is_a_line() -> None:
    assert apply_chat_template(None, [SYSTEM, USER]) == "system: Be brief.\nuser: Hi\n"
    assert apply_chat_template(None, [{"role": "user", "content": [{"type": "text", "text": "a"}]}]) == "user: a\n"
    assert apply_chat_template(None, [{"role": "assistant", "tool_calls": [1]}]) == "assistant: \n"


# What templates are given


def test_blocks_are_trimmed_as_hugging_face_trims_them() -> None:
    assert render(CHATML) == "    <|user|>Hi<|end|>\n<|assistant|>\n"


def test_the_generation_prompt_can_be_left_out() -> None:
    assert render("{{ add_generation_prompt }}", add_generation_prompt=False) == "False"


def test_tokens_and_more_variables_are_passed() -> None:
    source = "{{ bos_token }}{{ eos_token }}{{ enable_thinking }}{{ documents is none }}"
    assert render(source, bos_token="<s>", eos_token="</s>", enable_thinking=False) == "<s></s>FalseTrue"


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_are_none_and_not_empty(tools: list[Any] | None) -> None:
    source = "{{ tools is none }}{% if tools is defined and tools %}tools{% endif %}"
    assert render(source, tools=tools) == "True"


def test_tools_are_passed() -> None:
    assert render("{{ tools[0].function.name }}", tools=[{"function": {"name": "f"}}]) == "f"


@pytest.mark.parametrize(
    ("source", "takes"),
    [
        ("{% if tools %}{{ tools | tojson }}{% endif %}{{ messages[-1].content }}", True),
        ("{% for tool in tools %}{{ tool['function']['name'] }}{% endfor %}", True),
        ("{% for m in messages %}{{ m.content[0].text }}{% endfor %}{{ tools[0].function | tojson(indent=2) }}", True),
        ("{% if tools %}{{ raise_exception('no tools') }}{% endif %}{{ messages[-1].content }}", False),
        ("{{ messages[-1].content }}{% if tools is defined %}tools{% endif %}", False),
        (None, False),
    ],
)
def test_whether_a_template_takes_tools_is_seen_from_what_it_writes(source: str | None, takes: bool) -> None:
    assert ChatTemplate(source).takes_tools is takes


def test_dates() -> None:
    assert render("{{ strftime_now('%Y') }}") == str(datetime.now().year)


# What templates use


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02345678"),
        ("{% for i in range(9) %}{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "0123"),
        ("{{ [1, 2, 3].0 }}{{ [1, 2, 3][1:] }}{{ 'abc'[::-1] }}{{ messages[-1].content }}", "1[2, 3]cbaHi"),
        ("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"),
        ("{% macro f(a, b='x') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1, b=2) }}", "[1x][12]"),
        (
            "{% for m in messages %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{% endfor %}",
            "0TrueTrue1",
        ),
        ("{{ '%s=%d' % ('a', 1) }}{{ '{}-{}'.format('b', 2) }}{{ 'c' ~ 3 ~ none }}", "a=1b-2c3None"),
        ("{{ ' <think>x</think> y '.split('</think>')[-1].strip() }}{{ 'ab'.replace('a', 'c') }}", "ycb"),
        ("{% set all = [] %}{% for m in messages %}{% set all = all + [m.role] %}{{ all|join }}{% endfor %}", "user"),
        ("{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list }}", "['Hi']"),
        ("{% set text %}a{{ 1 }}{% endset %}{{ text|upper }}{% filter trim %} b {% endfilter %}", "A1b"),
        ("{% for k, v in {'b': 1, 'a': 2}|dictsort %}{{ k }}{{ v }}{% endfor %}", "a2b1"),
        ("{% generation %}{% set x = 1 %}{{ messages[0].content }}{% endgeneration %}!", "Hi!"),
        ("{{ missing is defined }}{{ missing }}{{ missing|default('x') }}", "Falsex"),
        ("{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "12"),
        (
            "{{ messages[0].items()|list|length }}{{ messages[0].get('x', 3) }}{{ 'Hi' in messages[0].values() }}",
            "23True",
        ),
        ("{{ 2 ** 3 }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 'ab' * 2 }}", "833abab"),
        (
            "{{ 1.25|round(1) }}{{ [3, 1]|sort }}{{ [1, 2]|sum }}{{ [1, 2]|max }}{{ [1, 1]|unique|list }}",
            "1.2[1, 3]32[1]",
        ),
    ],
)
def test_what_real_templates_use_works(source: str, expected: str) -> None:
    assert render(source) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", '{"b": "<é&\'>", "a": [1, null, true]}'),
        ("indent=2", '{\n  "b": "<é&\'>",\n  "a": [\n    1,\n    null,\n    true\n  ]\n}'),
        ("ensure_ascii=True", '{"b": "<\\u00e9&\'>", "a": [1, null, true]}'),
        ("separators=(',', ':'), sort_keys=True", '{"a":[1,null,true],"b":"<é&\'>"}'),
    ],
)
def test_tojson_writes_what_hugging_face_writes(arguments: str, expected: str) -> None:
    assert render(f"{{{{ x|tojson({arguments}) }}}}", x={"b": "<é&'>", "a": [1, None, True]}) == expected


def test_text_of_users_is_not_a_template() -> None:
    assert render("{{ messages[0].content }}", {"role": "user", "content": "{{ 7 * 7 }}<b>&"}) == "{{ 7 * 7 }}<b>&"


# Templates that do not take every message

NO_SYSTEM = """{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}
{{ m.role }}:{{ m.content }}|{% endfor %}"""
IGNORES_SYSTEM = "{% for m in messages if m.role != 'system' %}{{ m.role }}:{{ m.content }}|{% endfor %}"
PARTS_ONLY = "{% for m in messages %}{{ m.role }}{% for p in m.content %}[{{ p['text'] }}]{% endfor %}{% endfor %}"


@pytest.mark.parametrize("source", [NO_SYSTEM, IGNORES_SYSTEM])
def test_a_system_message_that_is_refused_goes_before_the_users_words(source: str) -> None:
    assert render(source, SYSTEM, USER) == "user:Be brief.\n\nHi|"


def test_a_system_message_that_is_taken_stays() -> None:
    assert render(CHATML, SYSTEM, USER, add_generation_prompt=False).count("Be brief.<|end|>") == 1


def test_a_developer_is_the_system_unless_the_template_knows_better() -> None:
    developer = {"role": "developer", "content": "D"}
    assert "<|system|>D" in render(CHATML, developer, USER)
    assert render("{# developer #}{{ messages[0].role }}", developer, USER) == "developer"


def test_content_is_text_for_templates_that_take_text() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert render("{{ messages[0].content is string }}{{ messages[0].content }}", parts) == "Truea\nb"


def test_content_is_parts_for_templates_that_take_nothing_else() -> None:
    assert render(PARTS_ONLY, SYSTEM, USER) == "system[Be brief.]user[Hi]"


# Errors

REFUSES = "the chat template does not take these messages"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('Roles must alternate') }}", "Roles must alternate"),
        ("{{ raise_exception() }}", REFUSES),
        ("{{ messages[0].name.first }}", f"{REFUSES}: 'dict object' has no attribute 'name'"),
        ("{{ 'a' + messages }}", f'{REFUSES}: can only concatenate str (not "list") to str'),
    ],
)
def test_messages_that_a_template_does_not_take_are_bad_input(source: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        render(source)
    assert str(caught.value) == f"{message}: 'messages'"
    assert caught.value.param == "messages"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for %}", "Expected an expression, got 'end of statement block', line 1"),
        ("\n{{ x|nope }}", "No filter named 'nope'., line 2"),
        ("{% include 'x' %}", "a chat template cannot load another template, line 1"),
        ("{% import 'x' as y %}", "a chat template cannot load another template, line 1"),
        ("{% extends 'x' %}", "a chat template cannot load another template, line 1"),
    ],
)
def test_what_is_no_template_is_a_bad_file(source: str, reason: str) -> None:
    with pytest.raises(BadFileError) as caught:
        ChatTemplate(source)
    assert str(caught.value) == f"the chat template is not valid: {reason}"


def test_metadata_that_are_no_text_are_a_bad_file() -> None:
    with pytest.raises(BadFileError, match="the chat template has the wrong type: got list, expected text"):
        ChatTemplate(["{{ x }}"])  # type: ignore[arg-type]


def test_a_template_is_compiled_once_and_used_often() -> None:
    template = ChatTemplate(CHATML)
    assert {template.render([USER]) for _ in range(3)} == {"    <|user|>Hi<|end|>\n<|assistant|>\n"}
