"""From messages to prompts: what templates of different families need."""

from typing import Any

import pytest

from modelc.api.conversation import chat_ids, opens_reasoning
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


def prompt(model: LanguageModel, source: str, messages: list[dict[str, Any]], **variables: Any) -> str:
    model.chat_template, model._template = source, ChatTemplate(source)
    return model.detokenize(chat_ids(model, messages, ToolOffer([TOOL]), variables))


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


def test_reasoning_that_the_prompt_opens_is_seen(tiny: LanguageModel) -> None:
    messages = [{"role": "user", "content": "hi"}]
    source = "{{ messages[0].content }}{% if think %}<think>\n{% endif %}"
    for think in (True, False):
        text = prompt(tiny, source, messages, think=think)
        assert opens_reasoning(tiny, tiny.tokenize(text)) is think
