import os
import stat
from pathlib import Path

import pytest

from modelc.errors import BadInputError, WriteError
from modelc.formats.atomic import atomic_write


def test_the_name_appears_with_the_whole_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x", b"new")]


def test_an_old_file_is_replaced_at_the_end_and_its_readers_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with path.open("rb") as reader, atomic_write(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    with path.open("rb") as reader:
        assert reader.read() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_exception_everything_is_as_before(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x", b"old")]


def test_what_the_system_refuses_is_one_clear_error(tmp_path: Path) -> None:
    with (
        pytest.raises(WriteError, match=r"cannot write the file: .*x: got No space left"),
        atomic_write(tmp_path / "x"),
    ):
        raise OSError(28, os.strerror(28))
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"cannot write the file: .*too long"), atomic_write(tmp_path / ("x" * 300)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(BadInputError, match="the output cannot be a file"), atomic_write(path):
        pass
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["", "folder", "nul\0"])
def test_an_output_that_cannot_be_a_file_is_a_wrong_argument(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInputError, match="the output cannot be a file: 'output'"), atomic_write(tmp_path / name):
        pass


def test_the_file_gets_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x"):
        pass
    (tmp_path / "y").touch()
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == stat.S_IMODE((tmp_path / "y").stat().st_mode)
