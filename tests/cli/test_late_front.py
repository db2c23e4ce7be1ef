import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelc.cli.late_front import SERVING, run_late

FRONT = """from late.settings import Config as Config
from late.inner import VALUE as VALUE
from late import heavy
EXTRA = 7
"""
FILES = {"__init__": FRONT, "inner": "from late import Config\nVALUE = 5\n", "settings": "Config = 3\n", "heavy": ""}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "late").mkdir()
    for name, text in FILES.items():
        (tmp_path / "late" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    run_late("late", {"Config": "late.settings"})
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "late"]:
        del sys.modules[name]


def test_modules_are_imported_without_the_front() -> None:
    assert importlib.import_module("late.inner").VALUE == 5
    assert "late.settings" in sys.modules
    assert "late.heavy" not in sys.modules


def test_the_front_is_run_when_something_of_it_is_used() -> None:
    late = importlib.import_module("late")
    assert late.EXTRA == 7
    assert late.VALUE == 5
    assert "late.heavy" in sys.modules
    with pytest.raises(AttributeError, match="nothing"):
        _ = late.nothing


def test_modules_are_found_as_attributes_and_names_of_python_are_not_looked_for() -> None:
    late = importlib.import_module("late")
    assert late.inner.VALUE == 5
    assert not hasattr(late, "__wrapped__")
    assert "late.heavy" not in sys.modules


def test_packages_that_are_there_or_do_not_exist_stay_as_they_are() -> None:
    before = sys.modules["sys"]
    for name in ("sys", "no_such_package"):
        run_late(name, {})
    assert sys.modules["sys"] is before
    assert "no_such_package" not in sys.modules


def test_the_server_needs_none_of_these_fronts() -> None:
    code = (
        "import sys; from modelc.cli.late_front import SERVING, run_late\n"
        "for name, homes in SERVING.items(): run_late(name, homes)\n"
        "import modelc.api.http_loop, uvicorn.lifespan.off\n"
        "print([name for name in SERVING if '__getattr__' not in vars(sys.modules[name])])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]", sorted(SERVING)
