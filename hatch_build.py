"""Build hook: writes the git commit into wheels and source archives as `modelc/git_sha.txt`."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GitShaHook(BuildHookInterface[Any]):
    """Adds `modelc/git_sha.txt`, unless a source archive carries it already."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built; an editable install asks git when it runs."""
        root = Path(self.root)
        if version == "editable" or (root / "modelc" / "git_sha.txt").exists():
            return
        # by path: modelc itself need not be importable where it is being built
        sha = runpy.run_path(str(root / "modelc" / "version.py"))["sha_of_checkout"](root)
        self.folder = tempfile.TemporaryDirectory()
        written = Path(self.folder.name, "git_sha.txt")
        written.write_text(f"{sha}\n", "ascii")
        build_data["force_include"][str(written)] = "modelc/git_sha.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file."""
        if folder := getattr(self, "folder", None):
            folder.cleanup()
