from pathlib import Path

import pytest

from modelc.small_file import replace_text


def test_the_folder_is_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    replace_text(path, "one")
    replace_text(path, "zwei ü")
    assert path.read_text("utf-8") == "zwei ü"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    replace_text(path, "old")

    def fail(self: Path, text: str, encoding: str) -> int:
        self.write_bytes(text[:1].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="No space"):
        replace_text(path, "new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
