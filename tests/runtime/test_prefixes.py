import pytest

from modelc.runtime.pages import PagePool
from modelc.runtime.prefixes import PrefixCache

PAGE = 64


@pytest.fixture
def pool() -> PagePool:
    return PagePool(20)


def keep(cache: PrefixCache, pool: PagePool, tokens: list[int], n_pages: int | None = None) -> list[int]:
    """Keep a sequence with fresh pages, as many as it needs or more; returns the pages."""
    pages = [pool.take() for _ in range(n_pages or (len(tokens) + PAGE - 1) // PAGE)]
    cache.keep(tokens, pages)
    return pages


def test_the_longest_common_beginning_is_found(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, [1, 2, 3, 4])
    pages = keep(cache, pool, [1, 2, 3, 9, 9])
    keep(cache, pool, [7, 2, 3])
    entry, length = cache.longest([1, 2, 3, 9, 8, 8])
    assert entry is not None
    assert (entry.tokens, entry.pages, length) == ((1, 2, 3, 9, 9), tuple(pages), 4)


def test_nothing_in_common_is_no_entry(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    assert cache.longest([1]) == (None, 0)
    keep(cache, pool, [1, 2])
    assert cache.longest([2, 1]) == (None, 0)
    assert cache.longest([]) == (None, 0)


def test_prompt_and_entry_may_each_be_the_longer_one(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, [1, 2, 3])
    assert cache.longest([1, 2])[1] == 2
    assert cache.longest([1, 2, 3, 4])[1] == 3


def test_pages_without_tokens_are_given_back(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    pages = keep(cache, pool, list(range(PAGE + 1)), n_pages=5)
    entry, _ = cache.longest([0])
    assert entry is not None
    assert entry.pages == tuple(pages[:2])
    assert pool.n_free == 18


def test_a_longer_sequence_replaces_what_it_continues(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, [1, 2])
    keep(cache, pool, [1, 2])
    keep(cache, pool, [1, 2, 3])
    keep(cache, pool, [1, 5])
    assert len(cache) == 2
    assert pool.n_free == 18


def test_a_page_shared_with_another_sequence_outlives_its_entry(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    (page,) = keep(cache, pool, [1, 2])
    pool.share(page)  # a running request
    assert cache.drop_oldest()
    assert pool.n_free == 19
    pool.give(page)
    assert pool.n_free == 20


def test_the_least_recently_used_entry_goes_first(pool: PagePool) -> None:
    cache = PrefixCache(pool, limit=3)
    for first in (1, 2, 3):
        keep(cache, pool, [first, 0])
    cache.longest([1, 0])  # used: now 2 is the oldest
    keep(cache, pool, [4, 0])
    assert len(cache) == 3
    assert [cache.longest([first])[1] for first in (1, 2, 3, 4)] == [1, 0, 1, 1]
    assert pool.n_free == 17


def test_dropping_gives_up_everything_in_the_end(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    for first in range(4):
        keep(cache, pool, [first] * 70)
    assert pool.n_free == 12
    assert [cache.drop_oldest() for _ in range(5)] == [True] * 4 + [False]
    assert (len(cache), pool.n_free) == (0, 20)
