import pytest

from modelc.errors import BusyError
from modelc.runtime.pages import PagePool


def test_every_page_is_taken_once() -> None:
    pool = PagePool(5)
    assert sorted(pool.take() for _ in range(5)) == [0, 1, 2, 3, 4]
    assert pool.n_free == 0


def test_an_empty_pool_is_busy_and_says_what_to_do() -> None:
    pool = PagePool(1)
    page = pool.take()
    with pytest.raises(BusyError, match=r"keys and values is used up.*wait"):
        pool.take()
    pool.give(page)
    assert pool.take() == page


def test_a_shared_page_is_free_when_all_have_let_go() -> None:
    pool = PagePool(2)
    page = pool.take()
    assert not pool.is_shared(page)
    pool.share(page)
    pool.share(page)
    for is_shared, n_free in ((True, 1), (False, 1), (False, 2)):
        pool.give(page)
        assert (pool.is_shared(page), pool.n_free) == (is_shared, n_free)
    assert pool.n_pages == 2


def test_a_page_taken_again_has_one_holder() -> None:
    pool = PagePool(1)
    page = pool.take()
    pool.share(page)
    pool.give(page)
    pool.give(page)
    pool.give(pool.take())
    assert pool.n_free == 1
