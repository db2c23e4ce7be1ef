"""A package, and which of its files a compiled file needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

# Parts of packages that nothing imports while a compiled file serves, as they begin.
LEFT_OUT_PARTS = (
    "litestar/contrib/",
    "litestar/cli/",
    "litestar/testing/",
    "litestar/plugins/sqlalchemy",
    "multidict/_testcapi",
    "numpy/_core/_multiarray_tests",
    "numpy/_core/_operand_flag_tests",
    "numpy/_core/_rational_tests",
    "numpy/_core/_simd",
    "numpy/_core/_struct_ufunc_tests",
    "numpy/_core/_umath_tests",
    "numpy/_core/include/",
    "numpy/_core/lib/",
    "numpy/_pyinstaller/",
    "numpy/distutils/",
    "numpy/f2py/",
    "numpy/fft/",
    "numpy/polynomial/",
    "numpy/random/",
    "numpy/testing/",
    "yaml/_yaml.",
)
_KEPT_OF_METADATA = ("METADATA", "entry_points.txt")
_FOLDERS_LEFT_OUT = {"tests", "test", "testing", "__pycache__", "examples", "docs"}
_SUFFIXES_LEFT_OUT = {
    ".a",
    ".c",
    ".cpp",
    ".exe",
    ".h",
    ".hpp",
    ".in",
    ".md",
    ".o",
    ".pxd",
    ".pyi",
    ".pyx",
    ".rst",
    ".typed",
}


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution: its normalised name, and its version."""

    name: str
    version: str


def is_needed(name: str) -> bool:
    """Whether a compiled file needs the file `name` of a package."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.startswith(LEFT_OUT_PARTS):
        return False
    if path.parts[0].endswith(".dist-info"):
        return len(path.parts) == 2 and path.name in _KEPT_OF_METADATA
    return not _FOLDERS_LEFT_OUT.intersection(path.parts[:-1]) and path.suffix not in _SUFFIXES_LEFT_OUT
