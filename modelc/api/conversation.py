"""From messages and tools to the tokens of a prompt, by the model's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from modelc.api.generation import refuse_long
from modelc.api.messages import arguments_as_text, with_short_ids
from modelc.api.tools import ToolOffer, takes_tools, told_in_words
from modelc.errors import BadInputError
from modelc.text import ChatTemplate, open_field, shield_messages
from modelc.text.answer_reader import REASONED, REASONING

if TYPE_CHECKING:
    from modelc.runtime import TextModel

RESERVED = frozenset(
    {"self", "messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "continue_final_message"}
)
MISTRAL = "[TOOL_CALLS]"  # in a template: ids of calls must be short
LAST_TOKENS = 16  # of a prompt: enough to say "<think>" and line breaks


@dataclass(frozen=True, slots=True)
class Ending:
    """How a prompt ends.

    Attributes:
        continues: With the last message, which goes on, and not with the beginning of a new one.
        begins_answer: With what begins the assistant's message, where it does not continue one.
    """

    continues: bool = False
    begins_answer: bool = True

    @property
    def variables(self) -> dict[str, bool]:
        """Keywords for the template; nothing for what it does by itself."""
        if self.continues:
            return {"continue_final_message": True}
        return {} if self.begins_answer else {"add_generation_prompt": False}


NEW_MESSAGE = Ending()


@dataclass(frozen=True, slots=True)
class Start:
    """Where an answer starts.

    Attributes:
        reasoning: `open`: inside of the model's reasoning; `possible`: it may begin with some.
        goes_on: The message that it continues has words of the same kind already.
    """

    reasoning: Literal["open", "possible", "none"]
    goes_on: bool = False


def chat_ids(
    model: TextModel,
    messages: list[dict[str, Any]],
    offer: ToolOffer,
    variables: Mapping[str, Any],
    ending: Ending = NEW_MESSAGE,
) -> list[int]:
    """Return the tokens of a conversation, ready for the assistant's answer.

    Args:
        model: Whose template and tokenizer.
        messages: As `template_messages` makes them.
        offer: Tools that the model may call.
        variables: More variables for the template.
        ending: How the prompt ends.

    Raises:
        BadInputError: The template does not take the messages, or a variable is not for requests.
        ContextLengthError: They are too long.
    """
    if wrong := RESERVED & variables.keys():
        raise BadInputError("this variable is not for requests", param="chat_template_kwargs", got=sorted(wrong)[0])
    variables = {**variables, **ending.variables}
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


def start_of(
    model: TextModel, messages: Sequence[Mapping[str, Any]], prompt_ids: Sequence[int], ending: Ending = NEW_MESSAGE
) -> Start:
    """Tell where the answer to a prompt starts.

    Args:
        model: Whose template and tokenizer.
        messages: What the prompt was made of.
        prompt_ids: Its tokens.
        ending: How it ends.
    """
    if ending.continues:
        key = open_field(messages[-1])
        said = messages[-1].get(key) or ""
        _, mark, thoughts = said.rpartition(REASONING)
        if key == "reasoning_content" or (mark and REASONED not in thoughts):
            return Start("open", bool(thoughts.strip()))
        if said.strip():
            return Start("none", bool(said.rpartition(REASONED)[2].strip()))
    end = model.detokenize(prompt_ids[-LAST_TOKENS:]).rstrip()
    if end.endswith(REASONING):
        return Start("open")
    return Start("possible" if not end.endswith(REASONED) and _can_reason(model) else "none")


def _can_reason(model: TextModel) -> bool:
    """Whether the model has tokens for reasoning, or a template that knows of it."""
    if REASONED in (model.chat_template or ""):
        return True
    marks = [model.tokenizer.encode(mark, add_special=False, parse_special=True) for mark in (REASONING, REASONED)]
    return all(len(ids) == 1 for ids in marks)


def _ids(
    model: TextModel, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> list[int]:
    given = tools or None
    if sum(model.tokenizer.least_tokens(message["content"] or "") for message in messages) >= model.n_ctx:
        # What the template leaves out does not count.
        unmarked = shield_messages(messages, frozenset())
        refuse_long(model, ChatTemplate(model.chat_template).render(unmarked, tools=given, **variables), "messages")
    return model.chat_prompt_ids(shield_messages(messages, model.tokenizer.special_texts), tools=given, **variables)
