"""`switch`, `cp`, `rm` and `search`: what each prints and refuses."""

import errno
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc


@pytest.fixture
def stored(modelc: Modelc, gguf: Path, tmp_path: Path) -> Path:
    """A store with two versions of `tiny` and one `other`, quantized."""
    for name in ("tiny", "tiny", "other"):
        modelc("pack", gguf, "--name", name)
    return tmp_path / "store"


def test_switch_tells_what_was_active_before(modelc: Modelc, stored: Path) -> None:
    assert modelc("switch", "tiny", 1).out == "tiny: version 1 is active (before: 2)\n"
    assert modelc("switch", "tiny", 1).out == "tiny: version 1 is active (was 1 before)\n"


@pytest.mark.parametrize(
    ("tokens", "code", "told"),
    [
        (["switch", "tiny", 3], 1, "has no version 3; it has versions 1, 2"),
        (["switch", "tiny", 0], 2, "Must be >= 1"),
        (["switch", "tinny", 1], 1, "did you mean 'tiny'?"),
        (["switch", "../tiny", 1], 1, "no model '../tiny' in the store"),
        (["cp", "tiny", "other"], 1, "there is a model 'other' already"),
        (["cp", "tiny", "nul"], 2, "reserved name"),
        (["cp", "tiny", "a/b/c.modelc"], 2, "folder does not exist"),
        (["cp", "nothing", "x"], 1, "no model 'nothing' in the store"),
        (["rm", "tiny"], 1, "--all deletes them too"),
        (["rm", "tiny:2"], 1, "is the active one; `modelc switch tiny 1` first"),
        (["rm", "tiny:1", "--all"], 2, "one version is meant"),
        (["rm", "tiny:9"], 1, "has no version 9"),
        (["rm", "../tiny", "--all"], 1, "no model '../tiny' in the store"),
        (["search", "tini"], 1, "no model in the store matches: got 'tini'; did you mean 'tiny'?"),
        (["search", "--min-size", "much"], 2, "not a size"),
        (["search", "--hub", "x", "--min-size", "1GB"], 2, "the hub does not tell sizes"),
    ],
)
def test_refusals_are_one_line_and_change_nothing(
    modelc: Modelc, stored: Path, tokens: list[object], code: int, told: str
) -> None:
    before = sorted(path.name for path in stored.iterdir())
    result = modelc(*tokens)
    assert (result.code, result.out) == (code, "")
    assert told in result.err
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in stored.iterdir()) == before


def test_a_store_that_cannot_be_written_is_told(modelc: Modelc, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("modelc.store.file_lock", refuse)
    for tokens in (["switch", "tiny", 1], ["rm", "tiny", "--all"], ["cp", "tiny", "new"]):
        result = modelc(*tokens)
        assert result.code == 1
        assert result.err == (
            f"modelc: Read-only file system: {stored / '.lock'}; the file system is read-only: choose another place\n"
        )
    assert len(json.loads(modelc("list", "--json").out)) == 3


def test_cp_prints_the_new_path(modelc: Modelc, stored: Path, tmp_path: Path) -> None:
    assert modelc("cp", "tiny:1", "copy").out == f"{stored / 'copy.v1.modelc'}\n"
    assert modelc("cp", "copy", tmp_path / "x.modelc").out == f"{tmp_path / 'x.modelc'}\n"
    assert modelc("verify", tmp_path / "x.modelc").code == 0


def test_rm_deletes_one_version(modelc: Modelc, stored: Path) -> None:
    assert modelc("rm", "tiny:1").out == f"deleted {stored / 'tiny.v1.modelc'}\n"
    assert [row["version"] for row in json.loads(modelc("list", "--json").out)] == [1, 2]


def test_search_finds_by_words_architecture_and_size(modelc: Modelc, stored: Path) -> None:
    def names(*tokens: object) -> list[str]:
        result = modelc("search", *tokens, "--json")
        return sorted({row["name"] for row in json.loads(result.out)})

    assert names() == ["other", "tiny"]
    assert names("TIN") == names("llama tiny") == ["tiny"]
    assert names("--arch", "llama", "--max-size", "1MB") == ["other", "tiny"]
    assert names("--min-size", "1MB") == names("--arch", "gpt2") == []
    assert modelc("search", "oth").out.splitlines()[1].split()[:3] == ["other", "1", "*"]
