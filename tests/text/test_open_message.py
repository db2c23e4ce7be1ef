from typing import Any

import pytest

from modelc.errors import BadInputError
from modelc.text import ChatTemplate, apply_chat_template, is_continued
from modelc.text.open_message import END

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "The sky "}
CHATML = """{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}
{% if add_generation_prompt %}<assistant>{% endif %}"""


def going_on(source: str | None, *messages: dict[str, Any]) -> str:
    return apply_chat_template(source, messages, continue_final_message=True)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CHATML, "<user>hi<end><assistant>The sky "),
        (CHATML.replace("m.content", "m.content | trim"), "<user>hi<end><assistant>The sky "),
        (CHATML.replace("m.content", "m.content.split('</think>')[-1]"), "<user>hi<end><assistant>The sky "),
        (CHATML.replace("m.content", "m.content[0].text"), "<user>hi<end><assistant>The sky "),
        (None, "user: hi\nassistant: The sky "),
    ],
    ids=["plain", "trimmed", "without reasoning", "parts", "no template"],
)
def test_the_prompt_ends_with_what_was_said_to_the_last_space(source: str | None, expected: str) -> None:
    assert going_on(source, USER, SAID) == expected


def test_it_stays_the_last_where_the_template_takes_no_system_message() -> None:
    source = CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role != 'system' %}")
    system = {"role": "system", "content": "Be brief."}
    assert going_on(source, system, SAID) == "<user>Be brief.<end><assistant>The sky "
    assert going_on(source, system, USER, SAID) == "<user>Be brief.\n\nhi<end><assistant>The sky "


def test_a_message_without_words_goes_on_from_its_beginning() -> None:
    assert going_on(CHATML, USER, {"role": "assistant", "content": ""}) == "<user>hi<end><assistant>"


def test_reasoning_goes_on_where_there_is_no_content_yet() -> None:
    source = "{% for m in messages %}{{ m.role }}:<think>{{ m.reasoning_content }}</think>{{ m.content }};{% endfor %}"
    assert going_on(source, USER, {"role": "assistant", "content": None, "reasoning_content": "So"}).endswith(
        "<think>So"
    )
    both = {"role": "assistant", "content": "4", "reasoning_content": "So"}
    assert going_on(source, USER, both).endswith("<think>So</think>4")


def test_earlier_words_like_the_last_ones_do_not_mislead() -> None:
    assert going_on(CHATML, SAID, USER, SAID).count("The sky ") == 2
    text = {"role": "assistant", "content": f"a{END}b"}
    assert going_on(CHATML, USER, text).endswith("<assistant>ab")


@pytest.mark.parametrize("source", ["{{ messages[0].content }}", "{{ messages[-1].content | length }}"])
def test_a_template_that_leaves_the_message_out_is_told(source: str) -> None:
    with pytest.raises(BadInputError, match=r"leaves no last message to continue.*continue_final_message to false"):
        going_on(source, USER, SAID)


@pytest.mark.parametrize(
    ("last", "param"),
    [
        ({"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f"}}]}, "tool_calls"),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}] * 2}, "content"),
    ],
)
def test_what_nothing_can_be_added_to_is_refused(last: dict[str, Any], param: str) -> None:
    with pytest.raises(BadInputError) as caught:
        ChatTemplate(CHATML).render([USER, last], continue_final_message=True)
    assert caught.value.param == f"messages[1].{param}"


@pytest.mark.parametrize(
    ("role", "continue_final_message", "add_generation_prompt", "expected"),
    [
        ("assistant", None, None, True),
        ("assistant", None, False, True),
        ("assistant", None, True, False),
        ("assistant", False, None, False),
        ("user", None, None, False),
        ("user", True, False, True),
    ],
)
def test_what_is_continued(
    role: str, continue_final_message: bool | None, add_generation_prompt: bool | None, expected: bool
) -> None:
    last = {"role": role, "content": "a"}
    assert is_continued([USER, last], continue_final_message, add_generation_prompt) is expected


def test_going_on_and_beginning_are_not_asked_for_together() -> None:
    with pytest.raises(BadInputError, match="continue_final_message"):
        is_continued([SAID], True, True)
