from dataclasses import replace

import pytest

from modelc.errors import BadInputError
from modelc.runtime.sampling import Sampling
from modelc.sampling_ranges import MAX_SEED, RANGES

VOCAB = 100


def test_the_defaults_are_greedy_and_allowed() -> None:
    sampling = Sampling()
    sampling.check(VOCAB)
    assert (sampling.temperature, sampling.seed, sampling.stop, dict(sampling.logit_bias)) == (0.0, None, (), {})


@pytest.mark.parametrize(
    ("name", "low", "high", "below", "above"),
    [
        *((name, low, high, low - 1, high + 1) for name, (low, high, _) in RANGES.items()),
        ("seed", 0, MAX_SEED, -1, MAX_SEED + 1),
    ],
)
def test_limits_are_allowed_and_what_is_beyond_them_is_named(
    name: str, low: float, high: float, below: float, above: float
) -> None:
    for value in (low, high):
        replace(Sampling(), **{name: value}).check(VOCAB)
    for value in (below, above):
        with pytest.raises(BadInputError, match=f"out of range.*'{name}'") as caught:
            replace(Sampling(), **{name: value}).check(VOCAB)
        assert caught.value.param == name


@pytest.mark.parametrize("name", ["temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty"])
def test_what_is_not_a_number_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match=name):
        replace(Sampling(), **{name: float("nan")}).check(VOCAB)


@pytest.mark.parametrize("bias", [{-1: 1.0}, {VOCAB: 1.0}, {3: 1e7}, {3: -1e7}, {3: float("nan")}, {0: 1.0, 100: 0.0}])
def test_a_bias_must_be_a_number_for_a_token_of_the_vocabulary(bias: dict[int, float]) -> None:
    with pytest.raises(BadInputError, match=r"logit_bias.*tokens below 100") as caught:
        Sampling(logit_bias=bias).check(VOCAB)
    assert caught.value.param == "logit_bias"


def test_a_bias_within_the_limits_is_allowed() -> None:
    Sampling(logit_bias={0: -1e6, 99: 1e6, 5: 0.5}).check(VOCAB)


def test_a_single_stop_string_is_one_string_and_not_its_characters() -> None:
    assert Sampling(stop="the").stop == ("the",)
    assert Sampling(stop=["a", "b"]).stop == ("a", "b")


def test_stop_strings_are_limited_in_their_length_together() -> None:
    Sampling(stop=("a" * 4096,)).check(10)
    with pytest.raises(BadInputError, match="'stop'"):
        Sampling(stop=("a" * 4096, "b")).check(10)


@pytest.mark.parametrize("name", RANGES)
def test_values_of_another_type_are_refused(name: str) -> None:
    for wrong in ("1", None, [1.0], *([1.5] if RANGES[name].is_integer else [])):
        with pytest.raises(BadInputError, match=f"wrong type: '{name}'"):
            Sampling(**{name: wrong}).check(10)


def test_sequence_breakers_are_limited() -> None:
    Sampling(dry_sequence_breakers=["a" * 256] * 64).check(10)
    for wrong in (["a" * 257], ["a"] * 65):
        with pytest.raises(BadInputError, match="'dry_sequence_breakers'"):
            Sampling(dry_sequence_breakers=wrong).check(10)
