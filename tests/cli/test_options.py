import pytest

from modelc.cli.options import parse_size
from modelc.errors import BadInputError


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("65536", 65_536),
        ("1B", 1),
        ("500MB", 500_000_000),
        ("2GiB", 2_147_483_648),
        (" 1.5 gib ", 1_610_612_736),
        ("0.1kB", 100),
        ("3TB", 3_000_000_000_000),
        ("999999999999999", 999_999_999_999_999),
    ],
)
def test_sizes_are_decimal_or_binary_as_written(text: str, n_bytes: int) -> None:
    assert parse_size(text, "--kv-memory") == n_bytes


@pytest.mark.parametrize(
    "text", ["", "0", "0.5", "-1", "GiB", "2G", "2 G iB", "1e9", "1_000", "٣GB", "9" * 5000, "1.GB"]
)
def test_what_is_no_size_is_a_wrong_option(text: str) -> None:
    with pytest.raises(BadInputError, match="one like 2GiB, 500MB, or a number of bytes") as caught:
        parse_size(text, "--kv-memory")
    assert caught.value.param == "--kv-memory"
