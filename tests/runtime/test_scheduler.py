"""Requests that share an engine: each answer is its own, pages come back, and nobody waits for ever."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadFileError, BusyError
from modelc.runtime import Chunk, LanguageModel
from modelc.runtime.kv_memory import KvMemory
from modelc.runtime.options import Options
from modelc.runtime.prompt_share import FIRST, MOST
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_model import Answer, Gate, audit, model_of, paused, tokens_of

SYSTEM = tokens_of(99, 150)
# prompts that share a beginning and prompts that do not; greedy, drawn, with penalties, with stop strings
REQUESTS: list[tuple[list[int], dict[str, Any]]] = [
    (tokens_of(1, 5), {"max_tokens": 40}),
    (tokens_of(2, 140), {"max_tokens": 30, "temperature": 1.0, "seed": 5}),
    (SYSTEM + tokens_of(3, 10), {"max_tokens": 20}),
    (SYSTEM + tokens_of(4, 30), {"max_tokens": 25, "temperature": 0.7, "top_p": 0.9, "seed": 1}),
    (SYSTEM, {"max_tokens": 10, "repetition_penalty": 1.3}),
    (SYSTEM, {"max_tokens": 100, "temperature": 1.5, "top_k": 20, "seed": 2, "presence_penalty": 0.5}),
    ([7] * 70, {"max_tokens": 60}),
    (tokens_of(8, 200), {"max_tokens": 100, "frequency_penalty": 0.4}),
    (tokens_of(9, 1), {"max_tokens": 1}),
    (tokens_of(10, 63), {"max_tokens": 3, "min_p": 0.01, "temperature": 1.0, "seed": 0}),
]


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with model_of() as model:
        yield model


@pytest.fixture(scope="module")
def alone() -> list[list[int]]:
    """Each request's answer in a model that serves nothing else."""
    answers = []
    for prompt, sampling in REQUESTS:
        with model_of() as model:
            answers.append(Answer(model, prompt, **sampling).wait().tokens)
    assert sum(map(len, answers)) > 200
    return answers


def wait_until_idle(model: LanguageModel) -> None:
    model._scheduler.call(lambda engine, memory: None)
    assert model.counters.active == model.counters.waiting == 0


# ---------------------------------------------------------------------------------------------------- same bits


@pytest.mark.parametrize("options", [{}, {"gamma": 4}, {"gamma": 32}, {"kv_memory": 1}], ids=str)
def test_answers_in_a_batch_are_those_alone(alone: list[list[int]], options: dict[str, int]) -> None:
    if "kv_memory" in options:
        options = {"kv_memory": 5 * page_bytes()}  # one sequence, and a page
    with model_of(**options) as model:
        for order in (1, -1):  # the second time with kept prefixes
            with paused(model):
                answers = [Answer(model, prompt, **sampling) for prompt, sampling in REQUESTS[::order]]
            assert [answer.wait().tokens for answer in answers] == alone[::order]
        assert model.counters.cached_tokens > 0
        assert (model.counters.accepted > 0) == ("gamma" in options)
        audit(model)


def test_a_request_that_joins_later_changes_nothing(model: LanguageModel, alone: list[list[int]]) -> None:
    gate = Gate()
    first = Answer(model, REQUESTS[0][0], gate, **REQUESTS[0][1])
    gate.wait()
    later = []
    for prompt, sampling in REQUESTS[1:]:
        gate.step()
        later.append(Answer(model, prompt, **sampling))
    gate.open()
    assert [answer.wait().tokens for answer in [first, *later]] == alone


def test_choices_of_one_prompt_share_its_pages(model: LanguageModel) -> None:
    with paused(model):
        answers = [Answer(model, SYSTEM, temperature=1.0, seed=i, max_tokens=5) for i in range(4)]
        first = Answer(model, SYSTEM, lambda chunk: audit_inside(model), temperature=1.0, seed=4, max_tokens=5)
    for answer in [*answers, first]:
        answer.wait()
    assert [answer.generation.cached_tokens for answer in answers] == [0, 149, 149, 149]
    assert model.counters.prompt_tokens == 5 * 150
    assert model.counters.prefix_hits == 4
    assert model.counters.rows == 150 + 4 + sum(len(answer.tokens) - 1 for answer in [*answers, first])
    assert len({tuple(answer.tokens) for answer in answers}) == 4


def audit_inside(model: LanguageModel) -> None:
    """Five sequences of 150 + 5 positions: two whole pages are common, and each has one of its own."""
    memory = model._scheduler._memory
    used = memory.pool.n_pages - memory.pool.n_free
    assert used <= 2 + 5


# ------------------------------------------------------------------------------------------------- the context


def test_an_answer_ends_where_the_context_does(model: LanguageModel) -> None:
    answer = Answer(model, tokens_of(1, 200), max_tokens=1000).wait()
    assert (answer.reason, 200 + len(answer.tokens)) == ("length", 256)


@pytest.mark.parametrize("anchor", [0, 4, 70])
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8, "seed": 3}], ids=str)
def test_a_shifted_answer_goes_on_and_speculation_changes_nothing(anchor: int, sampling: dict[str, Any]) -> None:
    answers = []
    for gamma in (0, 3, 16):
        with model_of(512, max_context=128, anchor_tokens=anchor, gamma=gamma) as model:
            answers.append(Answer(model, SYSTEM[:100], max_tokens=400, **sampling).wait())
            others = [Answer(model, SYSTEM[:n], max_tokens=100, **sampling) for n in (90, 100, 127)]
            again = Answer(model, SYSTEM[:100], max_tokens=400, **sampling).wait()  # in a batch, with a kept prefix
            assert again.tokens == answers[-1].tokens
            assert all(other.wait().reason == "length" for other in others)
            assert (model.counters.proposed > 0) == (gamma > 0)
            wait_until_idle(model)
            audit(model)
    assert [(answer.reason, len(answer.tokens)) for answer in answers] == [("length", 400)] * 3
    assert answers[0].tokens == answers[1].tokens == answers[2].tokens


@pytest.mark.parametrize("n_pages", [4, 5, 6, 9])
def test_a_shift_finds_its_pages_however_few_there_are(n_pages: int) -> None:
    with model_of(512, max_context=256) as model:
        expected = Answer(model, SYSTEM, max_tokens=400).wait().tokens
    with model_of(512, max_context=256, kv_memory=n_pages * page_bytes()) as model:
        Answer(model, SYSTEM, max_tokens=1).wait()  # keeps a prefix
        with paused(model):
            answers = [Answer(model, SYSTEM, max_tokens=400) for _ in range(3)]
        assert [answer.wait().tokens for answer in answers] == [expected] * 3
        wait_until_idle(model)
        audit(model)


# ------------------------------------------------------------------------------------------------- cancellation


def test_a_request_cancelled_in_the_queue_never_starts(model: LanguageModel) -> None:
    with paused(model):
        answer = Answer(model, tokens_of(1, 100))
        other = Answer(model, tokens_of(2, 100), max_tokens=3)
        answer.generation.cancel()
    assert (answer.wait().reason, answer.tokens) == ("cancelled", [])
    assert answer.generation.started_s is None
    assert other.wait().reason == "length"
    assert model.counters.prompt_tokens == 100


def test_a_request_cancelled_during_its_prompt_gives_its_pages_back() -> None:
    with model_of(1024) as model:
        gate = Gate()
        first = Answer(model, tokens_of(1, 10), gate, max_tokens=20)
        gate.wait()
        cancelled = Answer(model, tokens_of(2, 1000))
        gate.step()  # the prompt's first rows are computed
        gate.step()
        assert cancelled.generation.started_s is not None
        rows = model.counters.rows
        cancelled.generation.cancel()
        gate.open()
        assert (cancelled.wait().reason, cancelled.tokens) == ("cancelled", [])
        assert first.wait().reason == "length"
        wait_until_idle(model)
        assert model.counters.rows - rows <= MOST + 1 + 20
        audit(model)
        again = Answer(model, tokens_of(2, 1000), max_tokens=1).wait()
        assert again.generation.cached_tokens >= FIRST - 1, "what was computed is kept"


def test_a_request_cancelled_during_its_answer_ends_before_the_next_token(model: LanguageModel) -> None:
    gate = Gate()
    answer = Answer(model, tokens_of(1, 10), gate, max_tokens=100)
    gate.wait()
    gate.step()
    answer.generation.cancel()
    gate.open()
    assert (answer.wait().reason, len(answer.tokens)) == ("cancelled", 2)
    wait_until_idle(model)
    audit(model)
    assert model.counters.free_pages + 1 == model.counters.pages, "one page is kept as a prefix"


def test_a_sink_that_fails_ends_its_own_request_only(model: LanguageModel, alone: list[list[int]]) -> None:
    def fail(chunk: Chunk) -> None:
        raise RuntimeError("the owner is gone")

    with paused(model):
        broken = Answer(model, tokens_of(1, 10), fail, max_tokens=50)
        other = Answer(model, REQUESTS[1][0], **REQUESTS[1][1])
    assert broken.wait().reason == "cancelled"
    assert len(broken.tokens) == 1
    assert other.wait().tokens == alone[1]


def test_closing_ends_what_is_left() -> None:
    model = model_of()
    gate = Gate()
    answers = [Answer(model, tokens_of(1, 10), gate, max_tokens=100)]
    gate.wait()
    answers += [Answer(model, tokens_of(i, 10), max_tokens=100) for i in range(80)]  # more than there are slots
    gate.open()
    model.close()
    assert {answer.wait().reason for answer in answers} <= {"cancelled", "length"}
    assert answers[-1].reason == "cancelled"


# ------------------------------------------------------------------------------------------------ memory, order


def page_bytes() -> int:
    with model_of() as model:
        return model._engine.program.page_bytes


def test_when_the_pages_are_used_up_requests_wait_and_all_finish() -> None:
    with model_of(kv_memory=6 * page_bytes()) as model:
        assert model.counters.pages == 6
        waiting: list[int] = []
        with paused(model):
            answers = [
                Answer(
                    model, tokens_of(i, 120), lambda _: waiting.append(len(model._scheduler._waiting)), max_tokens=20
                )
                for i in range(10)
            ]
        assert [answer.wait().reason for answer in answers] == ["length"] * 10
        assert max(waiting) == 8, "three pages each: two at a time"
        starts = [answer.generation.started_s for answer in answers]
        assert starts == sorted(starts)  # type: ignore[type-var]  # all have started
        wait_until_idle(model)
        audit(model)


def test_more_requests_than_slots_all_finish(model: LanguageModel) -> None:
    with paused(model):
        answers = [Answer(model, tokens_of(i, 3), max_tokens=4) for i in range(150)]
    assert [answer.wait().reason for answer in answers] == ["length"] * 150
    audit(model)


def test_a_short_prompt_is_answered_before_half_of_the_long_ones_before_it() -> None:
    with model_of(2048) as model:
        order: list[str] = []

        def note(kind: str) -> Any:
            return lambda chunk: order.append(kind)

        with paused(model):
            answers = [Answer(model, tokens_of(i, 1500), note("long"), max_tokens=1) for i in range(8)]
            answers.append(Answer(model, tokens_of(9, 100), note("short"), max_tokens=1))
        for answer in answers:
            answer.wait()
    assert order.index("short") < 4


def test_a_long_prompt_is_not_passed_for_ever_by_short_ones() -> None:
    with model_of(2048) as model:
        order: list[int] = []

        def note(i: int) -> Any:
            return lambda chunk: order.append(i)

        with paused(model):
            answers = [Answer(model, tokens_of(0, 1500), note(0), max_tokens=1)]
            answers += [Answer(model, tokens_of(i, 100), note(i), max_tokens=1) for i in range(1, 150)]
        for answer in answers:
            answer.wait()
    assert 0 < order.index(0) < 140


def test_running_answers_go_on_while_a_long_prompt_is_computed() -> None:
    with model_of(2048) as model:
        events: list[str] = []
        gate = Gate()

        def note(chunk: Chunk) -> None:
            events.append("token")
            gate(chunk)

        running = Answer(model, tokens_of(1, 5), note, max_tokens=100)
        gate.wait()
        prompt = Answer(model, tokens_of(2, 1500), lambda _: events.append("prompt"), max_tokens=1)
        gate.open()
        running.wait()
        prompt.wait()
    assert events.index("prompt") >= 1500 // MOST


def test_an_error_in_a_step_ends_the_requests_in_it_and_no_others(model: LanguageModel) -> None:
    run = model._engine.run
    calls = 0

    def fail_once(batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ZeroDivisionError("broken")
        return run(batch)

    model._engine.run = fail_once  # type: ignore[method-assign]
    answer = Answer(model, tokens_of(1, 10)).wait()
    assert answer.reason == "error"
    assert "broken" in str(answer.generation.error)
    assert Answer(model, tokens_of(1, 10), max_tokens=3).wait().reason == "length"
    audit(model)


def test_jobs_run_between_steps_and_their_errors_are_the_callers(model: LanguageModel) -> None:
    def fail(engine: object, memory: KvMemory) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model._scheduler.call(fail)
    assert model._scheduler.call(lambda engine, memory: memory.pool.n_pages) == model.counters.pages


def test_logits_can_be_had_while_the_memory_is_full_of_kept_prefixes() -> None:
    with model_of(kv_memory=4 * page_bytes()) as model:
        for i in range(4):
            Answer(model, tokens_of(i, 60), max_tokens=3).wait()
        assert model.logits(tokens_of(9, 200)).shape == (200, 256)
        audit(model)


def test_more_requests_than_positions_of_a_small_context_are_all_answered() -> None:
    with model_of(n_ctx=16) as model:
        answers = [Answer(model, tokens_of(seed, 2), max_tokens=12) for seed in range(40)]
        reasons = [answer.wait().reason for answer in answers]
    assert set(reasons) <= {"length", "stop"}


def test_logits_that_are_no_numbers_end_their_request_with_an_error() -> None:
    broken = tiny_llama(vocab_size=256)
    norm = broken.tensors["output_norm.weight"]
    broken.tensors["output_norm.weight"] = replace(norm, stored=np.full(64, np.nan, np.float32).view(np.uint8))
    with LanguageModel(broken, Options(1)) as model, pytest.raises(BadFileError, match="not finite"):
        model.generate([1, 2, 3])


def test_a_model_that_is_closed_ends_what_is_in_work_with_an_error() -> None:
    model = model_of()
    stream = model.stream([1, 2, 3], max_tokens=200, logit_bias={model.tokenizer.eos_id or 0: -1e6})
    next(stream)
    model.close()
    with pytest.raises(BusyError, match="closed"):
        for _ in stream:
            pass
