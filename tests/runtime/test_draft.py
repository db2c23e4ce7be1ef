"""A draft's proposals, and answers that are the same with any draft as without."""

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.ir import Model
from modelc.models import draft, lower
from modelc.runtime import LanguageModel, Sampling
from modelc.runtime.draft import DraftProposer
from modelc.runtime.generation import Chunk
from modelc.runtime.options import Options
from modelc.runtime.step_costs import StepCosts
from tests.kernels.opcode_runner import objects
from tests.models.test_draft import reference_logits
from tests.models.tiny_draft import with_random_draft, with_table_draft, with_tensors, zeros
from tests.models.tiny_llama import tiny_llama

TARGET = tiny_llama(vocab_size=256)  # its tokens are bytes
PROMPTS = [list(text.encode()) for text in ("a", "what is", "one two one two", "...", "A longer one, of two lines.\n")]
SAMPLINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.8, "seed": 7},
    {"temperature": 1.0, "seed": 3, "top_k": 5, "repetition_penalty": 1.2},
]
Answer = tuple[list[int], str, str | None]


@pytest.fixture(autouse=True)
def cheap_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many proposals as gamma allows, whatever the clock says."""
    monkeypatch.setattr(StepCosts, "ratio", lambda self, proposed: 1.0)


@contextmanager
def loaded(model: Model, gamma: int, **options: Any) -> Iterator[LanguageModel]:
    with LanguageModel(model, Options(2, gamma=gamma, **options)) as language_model:
        yield language_model


def answers(model: LanguageModel, requests: Sequence[tuple[list[int], Sampling]], together: bool) -> list[Answer]:
    """Tokens, text and finish reason of each request."""
    chunks: list[queue.SimpleQueue[Chunk]] = [queue.SimpleQueue() for _ in requests]
    out = []
    for (prompt, sampling), sink in zip(requests, chunks, strict=True):
        model.submit(prompt, sampling, sink.put)
        if not together:
            out.append(collected(sink))
    return [collected(sink) for sink in chunks] if together else out


def collected(sink: "queue.SimpleQueue[Chunk]") -> Answer:
    ids, text = [], ""
    while True:
        chunk = sink.get(timeout=60)
        ids += chunk.token_ids
        text += chunk.text
        if chunk.finish_reason is not None:
            return ids, text, chunk.finish_reason


def requests(max_tokens: int) -> list[tuple[list[int], Sampling]]:
    return [(prompt, Sampling(max_tokens=max_tokens, **s)) for prompt in PROMPTS for s in SAMPLINGS]


@pytest.fixture(scope="module")
def expected() -> list[Answer]:
    """Answers without speculation, one request at a time."""
    with loaded(TARGET, 0) as model:
        return answers(model, requests(40), together=False)


def table_of(answer: list[int]) -> dict[int, int]:
    """What follows each token of an answer, the last time that it is there."""
    return dict(pairwise(answer))


# ---------------------------------------------------------------------------------------------------- proposals


def test_a_proposal_is_the_draft_s_greedy_chain_from_the_last_token() -> None:
    model = with_random_draft(TARGET)
    best = reference_logits(model, list(range(256))).argmax(1)
    proposer = DraftProposer(model, lower(model).weights, "a8", objects())
    for token in (5, 200, 5):
        chain = [token]
        for _ in range(6):
            chain.append(int(best[chain[-1]]))
        assert proposer.propose([9, 9, token], 6) == chain[1:]
        assert proposer.propose([token], 2) == chain[1:3]
    proposer.close()


def test_what_follows_a_token_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_table_draft(TARGET, {1: 2, 2: 3, 3: 1})
    proposer = DraftProposer(model, lower(model).weights, "a8", objects())
    assert proposer.propose([1], 7) == [2, 3, 1, 2, 3, 1, 2]
    proposer.close()
    monkeypatch.setattr(proposer._engine, "run", lambda batch: pytest.fail("it is known"))
    assert proposer.propose([2], 3) == [3, 1, 2]
    assert proposer.propose([7, 3], 0) == []


# ----------------------------------------------------------------------------------------------- the same answers


@pytest.mark.parametrize("gamma", [1, 4])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "in batches"])
def test_with_a_random_draft_answers_are_those_without(gamma: int, together: bool, expected: list[Answer]) -> None:
    with loaded(with_random_draft(TARGET, hidden_dim=64, dtype="q8_0"), gamma) as model:
        assert answers(model, requests(40), together) == expected
    assert model.counters.proposed > 0


@pytest.mark.parametrize("gamma", [1, 4])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "in batches"])
def test_with_a_good_draft_answers_are_those_without(gamma: int, together: bool, expected: list[Answer]) -> None:
    with loaded(with_table_draft(TARGET, table_of(expected[0][0])), gamma) as model:
        assert answers(model, requests(40), together) == expected
    assert model.counters.accepted > 0


def test_a_draft_that_knows_the_answer_saves_steps() -> None:
    request = (PROMPTS[0], Sampling(max_tokens=40, repetition_penalty=100.0))  # no token comes twice
    with loaded(TARGET, 0) as model:
        alone = answers(model, [request], together=False)
    assert model.counters.steps == 40
    with loaded(with_table_draft(TARGET, table_of(PROMPTS[0] + alone[0][0])), 4) as model:
        assert answers(model, [request], together=False) == alone
    assert model.counters.steps == 8
    assert model.counters.accepted == model.counters.proposed == 32


def test_a_kept_prefix_does_not_change_an_answer(expected: list[Answer]) -> None:
    with loaded(with_table_draft(TARGET, table_of(expected[0][0])), 4) as model:
        for _ in range(2):
            assert answers(model, requests(40), together=False) == expected
    assert model.counters.cached_tokens > 0


@pytest.mark.parametrize("kv", ["f16", "f32"])
def test_answers_beyond_the_context_are_those_without(kv: str) -> None:
    settings: dict[str, Any] = {"max_context": 100, "anchor_tokens": 3, "kv": kv}
    with loaded(TARGET, 0, **settings) as model:
        alone = answers(model, requests(250), together=False)
    for draft_model in (with_random_draft(TARGET), with_table_draft(TARGET, table_of(alone[0][0]))):
        with loaded(draft_model, 4, **settings) as model:
            assert answers(model, requests(250), together=True) == alone
        assert model.counters.proposed > 0


# ------------------------------------------------------------------------------------------------------- choices


def test_without_gamma_or_without_a_draft_none_is_loaded() -> None:
    wrong = with_tensors(with_random_draft(TARGET), zeros("draft.fc1.bias", 3))
    with loaded(wrong, 0) as model:
        assert model.generate([1], max_tokens=2) != ""
    with loaded(TARGET, 4) as model:
        assert model._draft is None


def test_a_draft_of_the_wrong_shape_is_an_error_at_the_start() -> None:
    wrong = with_tensors(with_random_draft(TARGET), zeros("draft.fc1.bias", 3))
    with pytest.raises(BadFileError, match=r"draft\.fc1\.bias"), loaded(wrong, 4):
        pass


def test_a_draft_is_known_by_its_names() -> None:
    assert not any(map(draft.is_draft_tensor, TARGET.tensors))
    assert sum(map(draft.is_draft_tensor, with_random_draft(TARGET, dim=8).tensors)) == 5
