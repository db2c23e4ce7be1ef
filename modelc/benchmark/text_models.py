"""How fast a model reads prompts (`pp`) and writes answers (`tg`); the terms are those of llama-bench."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelc.benchmark.samples import Plan, Result
from modelc.errors import BadInputError, BusyError

if TYPE_CHECKING:
    from modelc.runtime import Chunk, TextModel

NEVER = -1e6  # added to the logits of tokens that would end the answer


def check_plan(model: TextModel, plan: Plan) -> None:
    """Raise BadInputError when the context is too short for `plan`."""
    longest = max(plan.depths) + max(plan.prompt, 1) + plan.generate + 1
    if longest >= model.n_ctx:
        expected = f"at most {model.n_ctx - 1} tokens in all"
        raise BadInputError("the context is too short", param="--prompt, --generate, --depth", expected=expected)


def first_token_s(model: TextModel, plan: Plan) -> float:
    """Seconds from a request to its first token; the prompt is the same each time."""
    return _answer(model, _tokens(model, max(plan.prompt, 1), "first"), 1)[0][0]


def rates(model: TextModel, plan: Plan) -> Iterator[Result]:
    """Tokens a second, one result after the other."""
    for depth in plan.depths:
        at = f" @ d{depth}" if depth else ""
        if plan.prompt:
            _prompt_rate(model, plan.prompt, depth, "warm-up")
            samples = [_prompt_rate(model, plan.prompt, depth, str(i)) for i in range(plan.repeat)]
            yield Result(f"pp{plan.prompt}{at}", model.n_threads, "tokens/s", tuple(samples))
        if plan.generate:
            _generation_rate(model, min(plan.generate, 16), depth)
            samples = [_generation_rate(model, plan.generate, depth) for _ in range(plan.repeat)]
            yield Result(f"tg{plan.generate}{at}", model.n_threads, "tokens/s", tuple(samples))


def _prompt_rate(model: TextModel, n_tokens: int, depth: int, salt: str) -> float:
    """Tokens a second of a prompt that nobody has seen, behind `depth` tokens that are in the prefix cache."""
    before = _tokens(model, depth, f"depth {depth}")
    if depth:
        _answer(model, before, 1)
    times, computed = _answer(model, [*before, *_tokens(model, n_tokens, f"prompt {depth} {salt}")], 1)
    return computed / times[0]


def _generation_rate(model: TextModel, n_tokens: int, depth: int) -> float:
    """Tokens a second after the first one."""
    times, _ = _answer(model, _tokens(model, max(depth, 1), f"depth {depth}"), n_tokens + 1)
    return n_tokens / (times[-1] - times[0])


def _answer(model: TextModel, prompt: list[int], n_tokens: int) -> tuple[list[float], int]:
    """Seconds from the request to each token of the answer, and the tokens of the prompt that were computed."""
    from modelc.runtime import Sampling

    arrived: queue.SimpleQueue[tuple[float, Chunk]] = queue.SimpleQueue()
    sampling = Sampling(max_tokens=n_tokens, logit_bias=dict.fromkeys(model.tokenizer.eog_ids, NEVER))
    began_s = time.perf_counter()
    generation = model.submit(prompt, sampling, lambda chunk: arrived.put((time.perf_counter() - began_s, chunk)))
    times: list[float] = []
    try:
        while True:
            at_s, chunk = arrived.get()
            times += [at_s] * len(chunk.token_ids)
            if chunk.finish_reason is not None:
                break
    finally:
        generation.cancel()
    if generation.error is not None:
        raise generation.error
    if len(times) < n_tokens:
        raise BusyError("the answer ended too early", expected=f"{n_tokens} tokens", got=len(times))
    return times, generation.prompt_tokens - generation.cached_tokens


def _tokens(model: TextModel, n: int, salt: str) -> list[int]:
    """Tokens at random, the same for the same salt; none that would end or begin a text."""
    draw = random.Random(salt)
    odd = set(model.tokenizer.eog_ids)
    tokens: list[int] = []
    while len(tokens) < n:
        token = draw.randrange(model.vocab_size)
        if token not in odd:
            tokens.append(token)
    return tokens
