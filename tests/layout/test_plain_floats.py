import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.layout import dequantize, from_lanes, plain_floats, to_lanes


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1), (16, 5), (33, 7), (48, 64)])
def test_numpy_alone_gives_the_bytes_of_the_loops(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = DTYPES[name]
    values = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    bits = values.view(np.uint32)
    plain = {"f32": bits, "f16": values.astype(np.float16), "bf16": (bits >> 16).astype(np.uint16)}[name]
    plain = plain.reshape(-1).view(np.uint8)
    found = []
    for lacks in (False, True):
        monkeypatch.setattr(plain_floats, "lacks_compiler", lambda lacks=lacks: lacks)
        lanes = to_lanes(dtype, plain, *shape)
        found.append((lanes, from_lanes(dtype, lanes, *shape), dequantize(dtype, plain, shape)))
    for loops, alone in zip(*found, strict=True):
        assert loops.dtype == alone.dtype
        assert loops.shape == alone.shape
        assert loops.tobytes() == alone.tobytes()
    assert found[1][1].tobytes() == plain.tobytes()
