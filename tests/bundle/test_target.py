import pytest

from modelc.bundle.target import TARGETS, host_target, target_of
from modelc.errors import BadInputError


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("x86_64-linux", "x86_64-linux"),
        ("x86_64-unknown-linux-gnu", "x86_64-linux"),
        ("amd64-linux", "x86_64-linux"),
        ("aarch64-linux", "aarch64-linux"),
        ("aarch64-unknown-linux-gnu", "aarch64-linux"),
        ("arm64-linux", "aarch64-linux"),
        ("x86_64-windows", "x86_64-windows"),
        ("x86_64-pc-windows-msvc", "x86_64-windows"),
        ("aarch64-macos", "aarch64-macos"),
        ("arm64-apple-macosx14.0.0", "aarch64-macos"),
        ("aarch64-apple-darwin", "aarch64-macos"),
    ],
)
def test_short_names_and_triples_are_understood(given: str, name: str) -> None:
    assert target_of(given).name == name


@pytest.mark.parametrize("given", ["", "linux", "x86_64", "riscv64-linux", "x86_64-macos", "x86_64-linux-musl", "-"])
def test_others_are_refused_with_those_that_there_are(given: str) -> None:
    with pytest.raises(BadInputError, match="x86_64-linux, aarch64-linux"):
        target_of(given)


def test_this_computer_is_one_at_most() -> None:
    assert [target for target in TARGETS if target.is_host] in ([], [host_target()])
