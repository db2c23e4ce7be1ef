"""From a request's fields to running generations: templates and tokenization, off the event loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from modelc.api.fields import SamplingFields, sampling_of
from modelc.api.generation import LiveAnswer, too_long, when_gone
from modelc.api.messages import Messages, template_messages
from modelc.api.problems import ClientGoneError
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError
from modelc.text import ChatTemplate, shield_messages

if TYPE_CHECKING:
    from modelc.runtime import LanguageModel

T = TypeVar("T")
MAX_PROMPTS = 256
Prompt = str | list[str | int | list[int]]


class ChatFields(SamplingFields, kw_only=True):
    """A conversation to continue."""

    messages: Messages


async def start_chat(request: ApiRequest, fields: ChatFields, n: int = 1) -> LiveAnswer:
    """Start the assistant's next message, `n` times.

    Raises:
        BadInputError: Messages that the model's template refuses, or that do not fit the context.
    """
    model = request.model
    sampling = sampling_of(fields, request.server.options.defaults, model.vocab_size)
    messages = template_messages(fields.messages)
    answer = LiveAnswer(request.server, n)
    await off_loop(request, lambda: answer.submit({"messages": _chat_ids(model, messages)}, sampling))
    return answer


async def start_prompts(
    request: ApiRequest, prompt: Prompt, fields: SamplingFields, n: int = 1, logprobs: bool = False
) -> LiveAnswer:
    """Start `n` continuations of each prompt, the same seeds for each.

    Args:
        request: The request, for the model and the server's defaults.
        prompt: A text, token ids, or a list of texts or of lists of ids.
        fields: How tokens are chosen.
        n: Continuations of each prompt.
        logprobs: Whether the tokens' log-probabilities are wanted.

    Raises:
        BadInputError: No prompt, a mixed list, too many, or one that does not fit the context.
    """
    model = request.model
    sampling = sampling_of(fields, request.server.options.defaults, model.vocab_size)
    sampling = dataclasses.replace(sampling, logprobs=logprobs)
    prompts = _split(prompt)
    answer = LiveAnswer(request.server, n)
    await off_loop(request, lambda: answer.submit(_tokenize_all(model, prompts), sampling, continues=True))
    return answer


async def off_loop(request: ApiRequest, work: Callable[[], T]) -> T:
    """Call `work`, which tokenizes, in one of the few threads for that; not at all when the client goes before.

    Raises:
        ClientGoneError: The client went away before a thread was free.
    """
    future = request.server.tokenizing(len(await request.body())).submit(work)
    watcher = asyncio.create_task(when_gone(request.receive, future.cancel))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if not watcher.done():
            raise
        raise ClientGoneError("the client went away") from None
    finally:
        watcher.cancel()


def _chat_ids(model: LanguageModel, messages: list[dict[str, str]]) -> list[int]:
    if sum(model.tokenizer.least_tokens(message["content"]) for message in messages) >= model.n_ctx:
        # What the template leaves out does not count.
        unmarked = shield_messages(messages, frozenset())
        _refuse_long(model, ChatTemplate(model.chat_template).render(unmarked), "messages")
    return model.chat_prompt_ids(shield_messages(messages, model.tokenizer.special_texts))


def _refuse_long(model: LanguageModel, text: str, param: str) -> None:
    """Refuse a text that is certainly too long before the time is spent to tokenize it."""
    n_tokens = model.tokenizer.least_tokens(text)
    if n_tokens >= model.n_ctx:
        raise too_long(model, f"at least {n_tokens}", param)


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


def _tokenize_all(model: LanguageModel, prompts: list[str | list[int]]) -> dict[str, list[int]]:
    params = ["prompt"] if len(prompts) == 1 else [f"prompt[{i}]" for i in range(len(prompts))]
    for param, prompt in zip(params, prompts, strict=True):
        if isinstance(prompt, str):
            _refuse_long(model, prompt, param)
    ids = [_prompt_ids(model, prompt) if isinstance(prompt, str) else prompt for prompt in prompts]
    return dict(zip(params, ids, strict=True))


def _prompt_ids(model: LanguageModel, text: str) -> list[int]:
    ids = model.tokenize(text, parse_special=True)
    bos_id = model.tokenizer.bos_id
    has_own_bos = bos_id is not None and ids[:2] == [bos_id, bos_id]
    return ids[1:] if has_own_bos else ids
