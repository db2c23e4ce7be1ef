import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.windows import slides, windows_from_gguf, windows_from_hf, windows_to_gguf


def test_each_nth_layer_sees_everything_and_with_one_none_does() -> None:
    assert [slides(i, 3) for i in range(7)] == [True, True, False, True, True, False, True]
    assert all(slides(i, 1) for i in range(3))


def test_gguf_has_one_window_and_the_pattern_is_the_architecture_s() -> None:
    keys = Hyperparameters({"a.attention.sliding_window": 8}, "a.")
    assert windows_from_gguf(keys, 4) == (8, 8, 8, 8)
    assert windows_from_gguf(keys, 4, 2) == (8, 0, 8, 0)
    assert windows_from_gguf(Hyperparameters({}), 3) == (0, 0, 0)


def test_layer_types_decide_where_there_are_any() -> None:
    types = ["full_attention", "sliding_attention"]
    assert windows_from_hf(Hyperparameters({"sliding_window": 8, "layer_types": types}), 2, lambda layer: True) == (
        0,
        8,
    )
    assert windows_from_hf(Hyperparameters({"sliding_window": 8}), 2, lambda layer: layer == 0) == (8, 0)
    assert windows_from_hf(Hyperparameters({"sliding_window": None}), 2, lambda layer: True) == (0, 0)
    with pytest.raises(BadFileError, match=r"layer_types.*2 of.*3 of"):
        windows_from_hf(Hyperparameters({"sliding_window": 8, "layer_types": types}), 3, lambda layer: True)


@pytest.mark.parametrize(("windows", "pattern"), [((8, 8, 8), 1), ((8, 8, 0, 8), 3), ((0, 0), 1), ((0, 0, 0), 3)])
def test_what_gguf_can_say_comes_back(windows: tuple[int, ...], pattern: int) -> None:
    keys = Hyperparameters(windows_to_gguf(windows, pattern))
    assert windows_from_gguf(keys, len(windows), pattern) == windows


@pytest.mark.parametrize(("windows", "pattern"), [((8, 0), 1), ((8, 8, 8), 3), ((8, 4), 1)])
def test_what_gguf_cannot_say_is_refused(windows: tuple[int, ...], pattern: int) -> None:
    with pytest.raises(UnsupportedError, match="windows of some layers"):
        windows_to_gguf(windows, pattern)
