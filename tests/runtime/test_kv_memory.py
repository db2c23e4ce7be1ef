from types import SimpleNamespace

import numpy as np
import pytest

from modelc.errors import BusyError
from modelc.runtime.generation import Request
from modelc.runtime.kv_memory import KvMemory, common_length, pages_of
from modelc.runtime.sampling import Sampling
from modelc.text import BpeTokenizer, StreamDecoder

PAGE = 64
N_CTX = 16 * PAGE


class Recorder:
    """Stands in for the engine: notes which pages are copied and moved."""

    def __init__(self) -> None:
        self.n_slots = 5
        self.program = SimpleNamespace(n_ctx=N_CTX)
        self.pages = np.full((self.n_slots, N_CTX // PAGE), -1)
        self.copies: list[tuple[int, int]] = []
        self.moves: list[tuple[list[int], list[int], int, int, int]] = []

    def copy_page(self, source: int, target: int) -> None:
        self.copies.append((source, target))

    def shift(self, old: list[int], new: list[int], anchor: int, dropped: int, computed: int) -> None:
        self.moves.append((old, new, anchor, dropped, computed))


@pytest.fixture
def engine() -> Recorder:
    return Recorder()


def memory_of(engine: Recorder, n_pages: int = 64, shifts: bool = False) -> KvMemory:
    return KvMemory(engine, n_pages, shifts)


def request(tokens: list[int], max_tokens: int = N_CTX) -> Request:
    sampler = SimpleNamespace(seed=0)
    tokenizer = BpeTokenizer.byte_fallback()
    decoder = StreamDecoder(tokenizer)
    log_probabilities = SimpleNamespace()
    sampling = Sampling(max_tokens=max_tokens)
    return Request(tokens, sampling, sampler, tokenizer.eog_ids, decoder, log_probabilities, lambda chunk: None)


def prompt(n: int, *end: int) -> list[int]:
    return [*(i % 251 for i in range(n)), *end]


def test_a_request_gets_pages_for_its_longest_answer(engine: Recorder) -> None:
    memory = memory_of(engine)
    r = request(prompt(100), max_tokens=30)
    assert memory.reserve(r, [])
    assert len(r.pages) == pages_of(130) == 3
    assert engine.pages[r.slot, :3].tolist() == r.pages
    assert (r.computed, memory.pool.n_free) == (0, 61)


def test_an_active_sequence_s_pages_are_shared_and_the_begun_one_copied(engine: Recorder) -> None:
    memory = memory_of(engine)
    first, second = request(prompt(200), 10), request(prompt(200, 7), 10)
    memory.reserve(first, [])
    first.computed = 150  # of its prompt so far
    assert memory.reserve(second, [first])
    assert second.pages[:2] == first.pages[:2]
    assert engine.copies == [(first.pages[2], second.pages[2])]
    assert second.computed == second.generation.cached_tokens == 150


def test_the_last_token_is_always_computed(engine: Recorder) -> None:
    memory = memory_of(engine)
    first = request(prompt(2 * PAGE), 10)
    memory.reserve(first, [])
    first.computed = 2 * PAGE
    again = request(prompt(2 * PAGE), 10)
    memory.reserve(again, [first])
    assert again.computed == 2 * PAGE - 1


def test_when_pages_are_short_kept_prefixes_go_and_then_requests_wait(engine: Recorder) -> None:
    memory = memory_of(engine, 4)
    first = request(prompt(100), 20)
    memory.reserve(first, [])
    first.computed = 110
    memory.release(first, keep=True)
    assert memory.pool.n_free == 2
    second = request([9] * 200, 20)
    assert memory.reserve(second, [])
    assert memory.pool.n_free == 0
    third = request([8] * 10, 20)
    assert not memory.reserve(third, [second])
    memory.release(second, keep=False)
    assert memory.pool.n_free == 4
    assert memory.reserve(third, [])


def test_what_is_kept_does_not_go_for_a_request_that_must_wait_all_the_same(engine: Recorder) -> None:
    memory = memory_of(engine, 7)
    kept, running, waiting = request(prompt(150), 2), request([9] * 3, 250), request(prompt(150), 105)
    memory.reserve(kept, [])
    kept.computed = 150
    memory.release(kept, keep=True)
    memory.reserve(running, [])
    assert memory.pool.n_free == 0
    assert not memory.reserve(waiting, [running]), "two pages are missing, and one can be had"
    assert len(memory.prefixes) == 1
    memory.release(running, keep=True)
    assert memory.reserve(waiting, [])
    assert waiting.computed == 149


def test_a_request_that_needs_every_page_is_not_kept_waiting_by_its_own_prefix(engine: Recorder) -> None:
    memory = memory_of(engine, 4)
    kept = request(prompt(150), 2)
    memory.reserve(kept, [])
    kept.computed = 150
    memory.release(kept, keep=True)
    again = request(prompt(160), 96)
    assert memory.reserve(again, [])
    assert again.computed == 2 * PAGE, "the begun page had to go"
    memory.release(again, keep=False)
    assert memory.pool.n_free + memory.prefixes.count_idle() == 4


def test_pages_are_borrowed_from_what_is_kept_and_come_back(engine: Recorder) -> None:
    memory = memory_of(engine, 4)
    r = request(prompt(100), 20)
    memory.reserve(r, [])
    with pytest.raises(BusyError), memory.borrowed(3):
        raise AssertionError("two pages are in use")
    assert memory.pool.n_free == 2
    r.computed = 100
    memory.release(r, keep=True)
    with memory.borrowed(3) as pages:
        assert len(set(pages)) == 3
        assert memory.pool.n_free == 1
    assert memory.pool.n_free == 4


@pytest.mark.parametrize("anchor", [0, 4, 100])
def test_after_a_shift_nothing_that_will_be_written_is_shared(engine: Recorder, anchor: int) -> None:
    memory = memory_of(engine)
    first, second = request(prompt(1000)), request(prompt(1000, 7))
    memory.reserve(first, [])
    first.computed = 1000
    memory.reserve(second, [first])
    before = list(second.pages)
    first.tokens += [1] * 24
    first.computed = N_CTX - 1
    memory.shift(first, anchor)
    kept = N_CTX * 3 // 4
    assert len(first.tokens) == kept
    assert second.pages == before
    assert not set(first.pages[anchor // PAGE :]) & set(second.pages)
    assert engine.pages[first.slot].tolist() == first.pages
    assert [move[2:] for move in engine.moves] == [(anchor, N_CTX - kept, N_CTX - 1)]
    if anchor % PAGE:  # what stays in the first page that is written
        assert engine.copies[-1] == (before[anchor // PAGE], first.pages[anchor // PAGE])
    memory.release(first, keep=True)
    memory.release(second, keep=False)
    assert memory.pool.n_free == memory.pool.n_pages, "a shifted sequence is not kept"


def test_where_sequences_are_shifted_they_share_only_what_could_be_copied(engine: Recorder) -> None:
    memory = memory_of(engine, 40, shifts=True)
    requests = [request(prompt(1000)) for _ in range(3)]
    assert memory.reserve(requests[0], [])
    requests[0].computed = 1000
    assert memory.reserve(requests[1], requests[:1])
    assert not memory.reserve(requests[2], requests[:2]), "48 pages once each is shifted"
    for r in requests[:2]:
        r.tokens += [1] * (N_CTX - 1000)
        r.computed = N_CTX - 1
        memory.shift(r, 0)
    assert not set(requests[0].pages) & set(requests[1].pages)
    memory.release(requests[0], keep=True)
    assert memory.reserve(requests[2], requests[1:2])


def test_a_kept_prefix_gives_way_to_a_shift(engine: Recorder) -> None:
    memory = memory_of(engine, 16, shifts=True)
    kept, r = request(prompt(1000), 1), request(prompt(1000, 7))
    memory.reserve(kept, [])
    kept.computed = 1000
    memory.release(kept, keep=True)
    assert memory.reserve(r, [])
    assert (r.computed, memory.pool.n_free) == (1000 // PAGE * PAGE, 0)
    pages = list(r.pages)
    r.tokens += [1] * 23
    r.computed = N_CTX - 1
    memory.shift(r, 0)
    assert (r.pages, len(memory.prefixes)) == (pages, 0)


def test_a_sequence_that_shares_nothing_is_shifted_in_place(engine: Recorder) -> None:
    memory = memory_of(engine)
    r = request(prompt(1000))
    memory.reserve(r, [])
    pages = list(r.pages)
    r.tokens += [1] * 24
    r.computed = N_CTX - 1
    memory.shift(r, 4)
    assert r.pages == pages
    assert engine.copies == []


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_common_length(n: int) -> None:
    tokens = prompt(300)
    assert common_length(tokens, [*tokens[:n], -1]) == n
    assert common_length(tokens, tokens[:n]) == n
    assert common_length(tokens[:n], tokens) == n


def test_pages_of_positions() -> None:
    assert [pages_of(n) for n in (0, 1, 64, 65)] == [0, 1, 1, 2]
