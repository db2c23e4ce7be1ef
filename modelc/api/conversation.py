"""From messages and tools to the tokens of a prompt, by the model's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelc.api.generation import refuse_long
from modelc.api.messages import arguments_as_text, with_short_ids
from modelc.api.tools import ToolOffer, takes_tools, told_in_words
from modelc.errors import BadInputError
from modelc.text import ChatTemplate, shield_messages

if TYPE_CHECKING:
    from modelc.runtime import TextModel

RESERVED = frozenset({"self", "messages", "tools", "bos_token", "eos_token", "add_generation_prompt"})
MISTRAL = "[TOOL_CALLS]"  # in a template: ids of calls must be short
REASONING = "<think>"
LAST_TOKENS = 16  # of a prompt: enough to say "<think>" and line breaks


def chat_ids(
    model: TextModel, messages: list[dict[str, Any]], offer: ToolOffer, variables: Mapping[str, Any]
) -> list[int]:
    """Return the tokens of a conversation, ready for the assistant's answer.

    Args:
        model: Whose template and tokenizer.
        messages: As `template_messages` makes them.
        offer: Tools that the model may call.
        variables: More variables for the template.

    Raises:
        BadInputError: The template does not take the messages, or a variable is not for requests.
        ContextLengthError: They are too long.
    """
    if wrong := RESERVED & variables.keys():
        raise BadInputError("this variable is not for requests", param="chat_template_kwargs", got=sorted(wrong)[0])
    if not takes_tools(model.chat_template):
        return _ids(model, told_in_words(messages, offer.tools), [], variables)
    if MISTRAL in (model.chat_template or ""):
        messages = with_short_ids(messages)
    try:
        return _ids(model, messages, offer.tools, variables)
    except BadInputError:
        texts = arguments_as_text(messages)
        if texts == messages:
            raise
        return _ids(model, texts, offer.tools, variables)


def opens_reasoning(model: TextModel, prompt_ids: Sequence[int]) -> bool:
    """Whether a prompt ends with the beginning of the model's reasoning."""
    return model.detokenize(prompt_ids[-LAST_TOKENS:]).rstrip().endswith(REASONING)


def _ids(
    model: TextModel, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> list[int]:
    given = tools or None
    if sum(model.tokenizer.least_tokens(message["content"] or "") for message in messages) >= model.n_ctx:
        # What the template leaves out does not count.
        unmarked = shield_messages(messages, frozenset())
        refuse_long(model, ChatTemplate(model.chat_template).render(unmarked, tools=given, **variables), "messages")
    return model.chat_prompt_ids(shield_messages(messages, model.tokenizer.special_texts), tools=given, **variables)
