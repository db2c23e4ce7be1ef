"""From a request's fields to running generations: templates and tokenization, off the event loop."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from modelc.api.answer_format import ANY_TEXT, AnswerFormat, format_of
from modelc.api.conversation import Ending, Start, chat_ids, start_of
from modelc.api.fields import SamplingFields, sampling_of
from modelc.api.generation import LiveAnswer, refuse_long
from modelc.api.messages import Messages, continues, template_messages
from modelc.api.off_loop import tokenizing
from modelc.api.request import ApiRequest
from modelc.api.tools import NO_TOOLS, ToolOffer
from modelc.errors import BadInputError
from modelc.text import AnswerReader, marker_ids
from modelc.text.answer_reader import REASONED, REASONING

if TYPE_CHECKING:
    from modelc.runtime import TextModel

logger = logging.getLogger(__name__)
MAX_PROMPTS = 256
Prompt = str | list[str | int | list[int]]


class ChatFields(SamplingFields, kw_only=True):
    """A conversation to continue."""

    messages: Messages
    chat_template_kwargs: (
        Annotated[dict[str, Any], Meta(description="more variables for the model's chat template")] | None
    ) = None
    continue_final_message: (
        Annotated[bool, Meta(description="go on with the last message; by default if it is the assistant's")] | None
    ) = None
    add_generation_prompt: (
        Annotated[bool, Meta(description="begin a new message; by default unless the last one is continued")] | None
    ) = None


async def start_chat(
    request: ApiRequest, fields: ChatFields, n: int = 1, offer: ToolOffer = NO_TOOLS, **logprobs: Any
) -> tuple[LiveAnswer, list[AnswerReader]]:
    """Start the assistant's next message, `n` times.

    Args:
        request: The request, for the model and the server's defaults.
        fields: The conversation, and how tokens are chosen.
        n: Messages wanted.
        offer: Tools that the model may call.
        **logprobs: What is wanted of the tokens' log-probabilities, fields of `Sampling`.

    Returns:
        The generations, and for each what tells its parts apart: marks of calls and of reasoning stay in the text.

    Raises:
        BadInputError: Messages that the model's template refuses, or that do not fit the context.
    """
    model = request.model
    sampling = sampling_of(fields, request.server.options.defaults, model.vocab_size)
    sampling = dataclasses.replace(sampling, **logprobs)
    messages = template_messages(fields.messages)
    is_continued = continues(fields.messages, fields.continue_final_message, fields.add_generation_prompt)
    ending = Ending(is_continued, fields.add_generation_prompt is not False)
    answer = LiveAnswer(request.server, n)

    def start() -> Start:
        wanted = _format(request, model, fields)
        if offer.constraint is not None:
            model.check_constraint(offer.constraint)
            wanted = AnswerFormat(offer.constraint)
        told = wanted.told(messages, model.n_ctx)
        prompt_ids = chat_ids(model, told, offer, fields.chat_template_kwargs or {}, ending)
        place = start_of(model, told, prompt_ids, ending)
        if place.reasoning != "none":
            wanted = wanted.behind(REASONED, "" if place.reasoning == "open" else REASONING)
        shown = marker_ids(model.tokenizer)
        answer.submit({"messages": prompt_ids}, sampling, continues=is_continued, shown=shown, wanted=wanted)
        return place

    place = await tokenizing(request, start)
    is_reasoning = place.reasoning == "open"
    goes_on = place.goes_on and (is_reasoning or offer.constraint is None)  # a demanded call begins with the answer
    return answer, [AnswerReader(offer.names, is_reasoning, offer.is_parallel, goes_on) for _ in answer.generations]


async def start_prompts(
    request: ApiRequest, prompt: Prompt, fields: SamplingFields, n: int = 1, **logprobs: Any
) -> LiveAnswer:
    """Start `n` continuations of each prompt, the same seeds for each.

    Args:
        request: The request, for the model and the server's defaults.
        prompt: A text, token ids, or a list of texts or of lists of ids.
        fields: How tokens are chosen.
        n: Continuations of each prompt.
        **logprobs: What is wanted of the tokens' log-probabilities, fields of `Sampling`.

    Raises:
        BadInputError: No prompt, a mixed list, too many, or one that does not fit the context.
    """
    model = request.model
    sampling = sampling_of(fields, request.server.options.defaults, model.vocab_size)
    sampling = dataclasses.replace(sampling, **logprobs)
    prompts = _split(prompt)
    answer = LiveAnswer(request.server, n)

    def start() -> None:
        wanted = _format(request, model, fields)
        answer.submit(_tokenize_all(model, prompts), sampling, continues=True, wanted=wanted)

    await tokenizing(request, start)
    return answer


def _format(request: ApiRequest, model: TextModel, fields: SamplingFields) -> AnswerFormat:
    """Return the form that answers must have; none where it cannot be followed and the server is lenient."""
    try:
        wanted = format_of(fields)
        if wanted.constraint is not None:
            model.check_constraint(wanted.constraint)
    except BadInputError as error:
        if not request.server.options.lenient_grammar:
            raise
        logger.warning("ignored: %s", error)
        return ANY_TEXT
    return wanted


def prompt_texts(model: TextModel, prompt: Prompt) -> list[str]:
    """Return the text of each prompt: as it was given, or what its tokens say."""
    return [each if isinstance(each, str) else model.detokenize(each) for each in _split(prompt)]


def _split(prompt: Prompt) -> list[str | list[int]]:
    if isinstance(prompt, str):
        return [prompt]
    ids = [item for item in prompt if isinstance(item, int)]
    if ids and len(ids) == len(prompt):
        return [ids]
    prompts = [item for item in prompt if not isinstance(item, int)]
    if not prompts or ids:
        expected = "a string, token ids, or a list of either"
        raise BadInputError("not a prompt", param="prompt", expected=expected)
    if len(prompts) > MAX_PROMPTS:
        raise BadInputError("too many prompts", param="prompt", got=len(prompts), expected=f"at most {MAX_PROMPTS}")
    return prompts


def _tokenize_all(model: TextModel, prompts: list[str | list[int]]) -> dict[str, list[int]]:
    params = ["prompt"] if len(prompts) == 1 else [f"prompt[{i}]" for i in range(len(prompts))]
    for param, prompt in zip(params, prompts, strict=True):
        if isinstance(prompt, str):
            refuse_long(model, prompt, param)
    ids = [_prompt_ids(model, prompt) if isinstance(prompt, str) else prompt for prompt in prompts]
    return dict(zip(params, ids, strict=True))


def _prompt_ids(model: TextModel, text: str) -> list[int]:
    ids = model.tokenize(text, parse_special=True)
    bos_id = model.tokenizer.bos_id
    has_own_bos = bos_id is not None and ids[:2] == [bos_id, bos_id]
    return ids[1:] if has_own_bos else ids
