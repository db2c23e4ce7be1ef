"""From messages to prompts: what templates of different families need."""

from typing import Any

import pytest

from modelc.api.conversation import NEW_MESSAGE, Ending, Start, chat_ids, start_of
from modelc.api.tools import ToolOffer
from modelc.errors import BadInputError
from modelc.runtime import LanguageModel
from modelc.text import ChatTemplate
from tests.runtime.tiny_model import model_of

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
MESSAGES = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
TOOL = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
CALLS = "{% for m in messages %}{% for c in m.tool_calls or [] %}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def tiny() -> Any:
    with model_of(n_ctx=2048) as model:
        yield model


def prompt(
    model: LanguageModel, source: str, messages: list[dict[str, Any]], ending: Ending = NEW_MESSAGE, **variables: Any
) -> str:
    model.chat_template, model._template = source, ChatTemplate(source)
    return model.detokenize(chat_ids(model, messages, ToolOffer([TOOL]), variables, ending))


@pytest.mark.parametrize(
    "arguments", ["{{ c.function.arguments | tojson }}", "{{ '' + c.function.arguments }}"], ids=["object", "text"]
)
def test_arguments_are_what_the_template_wants(tiny: LanguageModel, arguments: str) -> None:
    source = CALLS.replace("{% endfor %}", arguments + "{% endfor %}", 1) + "{{ tools[0].function.name }}"
    assert prompt(tiny, source, MESSAGES) == '{"a": 1}add'


def test_what_no_form_of_the_arguments_mends_is_told(tiny: LanguageModel) -> None:
    source = "{{ tools[0].function.name }}{% if messages[0].tool_calls %}{{ raise_exception('no calls') }}{% endif %}"
    with pytest.raises(BadInputError, match="no calls"):
        prompt(tiny, source, MESSAGES)


def test_templates_without_tools_get_them_as_text(tiny: LanguageModel) -> None:
    text = prompt(tiny, "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}", MESSAGES)
    assert text.startswith("system: You may call functions.")
    assert text.endswith('assistant: <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>;')


CHATML = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
USER = {"role": "user", "content": "hi"}


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **fields}


def test_a_message_that_goes_on_is_the_prompts_end(tiny: LanguageModel) -> None:
    messages = [USER, assistant(content="The sky ")]
    assert prompt(tiny, CHATML, messages, ending=Ending(continues=True)).endswith("assistant\nThe sky ")
    assert prompt(tiny, CHATML, messages).endswith("The sky<|im_end|>\n<|im_start|>assistant\n")
    closed = prompt(tiny, CHATML, messages, ending=Ending(begins_answer=False))
    assert closed.endswith("The sky<|im_end|>\n")


def test_a_developer_is_the_system_for_templates_that_do_not_know_better(tiny: LanguageModel) -> None:
    messages = [{"role": "developer", "content": "Be brief."}, USER]
    text = prompt(tiny, CHATML, messages)
    assert text.startswith("<|im_start|>system\nBe brief.\n\nYou may call functions.")
    assert text.count("system\n") == 1
    assert "<|im_start|>developer\n" in prompt(tiny, CHATML + "{# developer #}", messages)


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ({"content": "So"}, Start("none", goes_on=True)),
        ({"content": "<think>So"}, Start("open", goes_on=True)),
        ({"content": "<think>\n"}, Start("open")),
        ({"content": "<think>So</think>"}, Start("none")),
        ({"content": "<think>So</think>\n4"}, Start("none", goes_on=True)),
        ({"content": "<think>a</think> <think>"}, Start("open")),
        ({"content": "", "reasoning_content": "So"}, Start("open", goes_on=True)),
        ({"content": "So", "reasoning_content": "So"}, Start("none", goes_on=True)),
        ({"content": ""}, Start("possible")),
    ],
)
def test_where_the_answer_starts_behind_a_message_that_goes_on(
    tiny: LanguageModel, said: dict[str, Any], start: Start
) -> None:
    messages, ending = [USER, assistant(**said)], Ending(continues=True)
    source = CHATML.replace(" | trim", "")
    text = prompt(tiny, source, messages, ending=ending)
    assert text.endswith(said["content"] or said.get("reasoning_content") or "assistant\n")
    assert start_of(tiny, messages, tiny.tokenize(text), ending) == start


def test_reasoning_that_the_prompt_opens_is_seen_and_that_there_can_be_some(tiny: LanguageModel) -> None:
    source = "{{ messages[0].content }}{% if think %}<think>\n{% elif think is false %}<think>\n\n</think>\n{% endif %}"
    for think, expected in ((True, Start("open")), (False, Start("none")), (None, Start("possible"))):
        text = prompt(tiny, source, [USER], think=think)
        assert start_of(tiny, [USER], tiny.tokenize(text)) == expected
    tiny.chat_template = CHATML.replace("</think>", "")
    start = start_of(tiny, [USER], tiny.tokenize("hi"))
    assert start == Start("none"), "no tokens for it, and the template knows none"
