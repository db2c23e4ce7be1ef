import pytest

from modelc.kernels.kv_pages import FORMS, forms, head_bytes
from tests.kernels.kv_records import head_dtype


@pytest.mark.parametrize("kv", FORMS)
@pytest.mark.parametrize("head_dim", [16, 80])
def test_offsets_are_those_of_the_records(kv: str, head_dim: int) -> None:
    dtype = head_dtype(head_dim, kv)
    assert head_bytes(head_dim, kv) == dtype.itemsize
    offsets = {name: field[1] for name, field in (dtype.fields or {}).items()}
    for form in forms(head_dim, kv):
        if form.dtype == "int8":
            found = (form.keys, form.key_scales, form.values, form.value_scales)
            names: tuple[str, ...] = ("key_codes", "key_scales", "value_codes", "value_scales")
        else:
            found, names = (form.keys, form.values), ("keys", "values")
        assert found == tuple(offsets[name] for name in names)
        assert all(at % 64 == 0 for at in found), "vectors lie in cache lines"


def test_int8_takes_little_more_than_half_of_f16() -> None:
    assert [head_bytes(64, kv) for kv in ("f16", "f32", "int8", "mixed")] == [16384, 32768, 8704, 41472]
