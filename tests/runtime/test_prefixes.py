import numpy as np
import pytest

from modelc.runtime.pages import PagePool
from modelc.runtime.prefixes import PrefixCache

PAGE = 64
A, B, C = ([token] * PAGE for token in (1, 2, 3))  # whole pages


@pytest.fixture
def pool() -> PagePool:
    return PagePool(20)


def keep(cache: PrefixCache, pool: PagePool, tokens: list[int], n_pages: int | None = None) -> list[int]:
    """Keep a sequence as a request would: pages of the common beginning shared, the others fresh; returns the pages."""
    found, common = cache.longest(tokens)
    shared = found[: common // PAGE]
    for page in shared:
        pool.share(page)
    n_pages = n_pages or (len(tokens) + PAGE - 1) // PAGE
    pages = [*shared, *(pool.take() for _ in range(n_pages - len(shared)))]
    cache.keep(tokens, pages)
    return pages


def test_the_longest_common_beginning_is_found_within_a_page(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, [1, 2, 3, 4])
    pages = keep(cache, pool, [1, 2, 3, 9, 9])
    keep(cache, pool, [7, 2, 3])
    assert cache.longest([1, 2, 3, 9, 8, 8]) == (pages, 4)


def test_the_longest_common_beginning_is_found_over_pages(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    one = keep(cache, pool, A + B + [5, 6, 7])
    two = keep(cache, pool, A + C + [5, 6])
    assert one[0] == two[0], "a page that both begin with is kept once"
    assert cache.longest(A + B + [5, 6, 9]) == (one, 2 * PAGE + 2)
    assert cache.longest(A + C + [9]) == (two[:2], 2 * PAGE)
    assert cache.longest(A + B[:10] + [9]) == (one[:2], PAGE + 10)
    assert cache.longest(A) == (one[:1], PAGE)
    assert cache.longest(A[:5]) == (one[:1], 5)


def test_nothing_in_common_is_nothing(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    assert cache.longest([1]) == ([], 0)
    keep(cache, pool, [1, 2])
    assert cache.longest([2, 1]) == ([], 0)
    assert cache.longest([]) == ([], 0)


def test_prompt_and_entry_may_each_be_the_longer_one(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    pages = keep(cache, pool, [1, 2, 3])
    assert cache.longest([1, 2]) == (pages, 2)
    assert cache.longest([1, 2, 3, 4]) == (pages, 3)


def test_pages_without_tokens_are_given_back(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    pages = keep(cache, pool, list(range(PAGE + 1)), n_pages=5)
    assert cache.longest(list(range(PAGE + 1))) == (pages[:2], PAGE + 1)
    assert pool.n_free == 18


def test_a_sequence_that_is_kept_again_holds_nothing_more(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    for tokens in ([1, 2], A, [*A, 5]):
        for _ in range(3):
            keep(cache, pool, tokens)
    assert len(cache) == 1 + 1
    assert pool.n_free == 20 - 1 - 2


def test_a_longer_sequence_replaces_what_it_continues(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, [1, 2])
    keep(cache, pool, [1, 2, 3])
    keep(cache, pool, [*A, 5])
    keep(cache, pool, [*A, 5, 6])
    keep(cache, pool, [8, 5])
    assert len(cache) == 3
    assert pool.n_free == 20 - 1 - 2 - 1


def test_a_page_shared_with_another_sequence_outlives_its_entry(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    (page,) = keep(cache, pool, [1, 2])
    pool.share(page)  # a running request
    assert cache.drop_oldest()
    assert pool.n_free == 19
    pool.give(page)
    assert pool.n_free == 20


def test_pages_that_others_begin_with_outlive_an_entry(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    keep(cache, pool, A + B + [5])
    pages = keep(cache, pool, A + C)
    assert cache.drop_oldest()
    assert cache.longest(A + B) == (pages[:1], PAGE)
    assert cache.longest(A + C) == (pages, 2 * PAGE)
    assert pool.n_free == 18


def test_the_least_recently_used_entry_goes_first(pool: PagePool) -> None:
    cache = PrefixCache(pool, limit=3)
    for first in (1, 2, 3):
        keep(cache, pool, [first, 0])
    cache.longest([1, 0])  # used: now 2 is the oldest
    keep(cache, pool, [4, 0])
    assert len(cache) == 3
    assert [cache.longest([first])[1] for first in (1, 2, 3, 4)] == [1, 0, 1, 1]
    assert pool.n_free == 17


def test_idle_pages_are_those_that_giving_up_everything_frees(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    pages = keep(cache, pool, list(range(150)))
    keep(cache, pool, [*range(64), 7])
    assert cache.count_idle() == 4
    pool.share(pages[1])
    assert cache.count_idle() == 3
    free = pool.n_free
    while cache.drop_oldest():
        pass
    assert pool.n_free == free + 3


def test_an_empty_sequence_is_not_kept(pool: PagePool) -> None:
    cache = PrefixCache(pool)
    cache.keep([], [pool.take()])
    assert (len(cache), pool.n_free) == (0, 20)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_is_what_was_kept_and_in_the_end_everything_is_given_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool, limit = PagePool(60), 6
    cache = PrefixCache(pool, limit)
    written: dict[int, list[int]] = {}  # tokens of each page
    for _ in range(200):
        tokens = [int(t) for t in np.repeat(rng.integers(0, 2, 4), PAGE // 2)][: rng.integers(1, 2 * PAGE + 1)]
        pages, common = cache.longest(tokens)
        assert len(pages) == (common + PAGE - 1) // PAGE
        for i, page in enumerate(pages):
            here = tokens[PAGE * i : min(PAGE * i + PAGE, common)]
            assert written[page][: len(here)] == here
        for i, page in enumerate(keep(cache, pool, tokens)):
            if i >= common // PAGE:
                written[page] = tokens[PAGE * i : PAGE * i + PAGE]
        assert len(cache) <= limit
        assert cache.longest(tokens)[1] == len(tokens)
    while cache.drop_oldest():
        pass
    assert (len(cache), pool.n_free) == (0, 60)


def test_what_different_engines_computed_is_kept_apart_and_forgotten_alone() -> None:
    pool = PagePool(8)
    cache = PrefixCache(pool)
    tokens = list(range(2 * PAGE))
    for maker in ("first", "second"):
        cache.keep(tokens, [pool.take(), pool.take()], maker)
    assert len(cache) == 2
    pages = {maker: cache.longest(tokens, maker) for maker in ("first", "second", "third")}
    assert pages["first"][1] == pages["second"][1] == 2 * PAGE
    assert not set(pages["first"][0]) & set(pages["second"][0])
    assert pages["third"] == ([], 0)
    assert cache.count_idle() == 4
    cache.forget("first")
    cache.forget("never seen")
    assert (cache.longest(tokens, "first"), cache.longest(tokens, "second")) == (([], 0), pages["second"])
    assert (len(cache), pool.n_free) == (1, 6)
