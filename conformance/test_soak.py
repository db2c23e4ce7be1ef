"""A short soak; the long one is `python -m conformance.soak --minutes 30`."""

import pytest

from conformance.soak import soak

pytestmark = pytest.mark.slow


def test_under_random_load_every_answer_is_the_one_alone_and_no_page_is_lost() -> None:
    result = soak(60.0, 1)
    assert result.answers > 100
    assert result.cancelled > 0
