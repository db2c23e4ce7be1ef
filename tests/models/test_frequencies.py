import numpy as np
import pytest

from modelc.models.frequencies import RopeScaling, rope_frequencies


def test_frequencies_fall_from_one_by_a_constant_factor() -> None:
    frequencies = rope_frequencies(8, 10000.0)
    assert frequencies.tolist() == [1.0, 0.1, 0.01, 0.001]


def test_linear_scaling_divides_all() -> None:
    assert rope_frequencies(8, 10000.0, RopeScaling("linear", 4.0)).tolist() == [0.25, 0.025, 0.0025, 0.00025]


def test_divisors_divide_one_by_one() -> None:
    divisors = np.array([1, 2, 4, 8], np.float32)
    assert rope_frequencies(8, 10000.0, divisors=divisors).tolist() == [1.0, 0.05, 0.0025, 0.000125]


def test_llama3_scaling_leaves_short_waves_and_divides_long_ones() -> None:
    plain = rope_frequencies(128, 500000.0)
    scaled = rope_frequencies(128, 500000.0, RopeScaling("llama3", 8.0, 8192, 1.0, 4.0))
    wavelengths = 2 * np.pi / plain
    assert (scaled[wavelengths < 8192 / 4] == plain[wavelengths < 8192 / 4]).all()
    assert np.allclose(scaled[wavelengths > 8192], plain[wavelengths > 8192] / 8, rtol=1e-15)
    between = (wavelengths > 8192 / 4) & (wavelengths < 8192)
    assert between.any()
    assert ((scaled < plain) & (scaled > plain / 8))[between].all()


def test_yarn_scaling_leaves_fast_dimensions_and_divides_slow_ones() -> None:
    plain = rope_frequencies(64, 10000.0)
    scaling = RopeScaling("yarn", 4.0, 2048)
    ratio = rope_frequencies(64, 10000.0, scaling) / plain
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(0.25)
    assert (np.diff(ratio) <= 0).all()
    assert scaling.magnitude == pytest.approx(0.1 * np.log(4.0) + 1)
    assert RopeScaling("yarn", 4.0, 2048, attention_factor=1.5).magnitude == 1.5
    assert RopeScaling("linear", 4.0).magnitude == 1.0


def test_longrope_divides_by_the_set_of_the_context_and_stretches_both() -> None:
    scaling = RopeScaling("longrope", 4.0, 64, short_divisors=(1.0, 2.0), long_divisors=(1.0, 8.0))
    assert scaling.divisors(64).tolist() == [1, 2]
    assert scaling.divisors(65).tolist() == [1, 8]
    assert rope_frequencies(4, 100.0, scaling, scaling.divisors(65)).tolist() == [1.0, 0.0125]
    assert scaling.magnitude == pytest.approx((1 + np.log(4) / np.log(64)) ** 0.5, rel=1e-15)
    assert RopeScaling("longrope", 4.0, 64, attention_factor=1.5).magnitude == 1.5
    assert RopeScaling("linear", 4.0).divisors(65) is None
