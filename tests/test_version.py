import re
import subprocess
from pathlib import Path

import modelc
from modelc.version import sha_of_checkout, version_line


def test_the_version_is_one_of_a_release() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", modelc.__version__)
    assert version_line().startswith(f"modelc {modelc.__version__} (git ")


def test_the_commit_of_a_working_tree_is_git_s(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *settings, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    assert sha_of_checkout(tmp_path) == "unknown"
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    assert sha_of_checkout(tmp_path) == git("rev-parse", "HEAD")[:12]


def test_outside_a_working_tree_the_commit_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert sha_of_checkout(tmp_path / "inner") == "unknown"
