"""Imports go from higher layers to lower ones only."""

import ast
from pathlib import Path

import modelc

ROOT = Path(modelc.__file__).parent

# From the bottom up; the names of one row may import one another.
LAYERS = (
    ("errors", "version", "control_groups"),
    ("dtypes", "settings", "file_lock", "cpu_quota", "memory_limit", "sampling_ranges", "small_file"),
    ("ir",),
    ("kernels", "layout"),
    ("formats", "text", "constraints"),
    ("packing", "quantizing", "program"),
    ("models",),
    ("runtime", "onnx"),
    ("store", "resolve", "summary", "model_card", "library", "exporting", "inventory", "copying"),
    ("hub", "benchmark", "container", "bundle", "conforming"),
    ("api",),
    ("cli",),
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "modelc":
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "modelc" else [node.module]
            )
            found.update(part_of(name) for name in names)
        elif isinstance(node, ast.Import):
            found.update(part_of(alias.name) for alias in node.names if alias.name.split(".")[0] == "modelc")
    return found - {""}


def test_every_part_has_a_layer() -> None:
    parts = {
        p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert parts - {"__init__", "__main__", "__pycache__"} <= set(RANKS)


def test_no_part_imports_one_of_a_higher_layer() -> None:
    back_edges = []
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part in RANKS:
            back_edges += [
                f"{path.relative_to(ROOT)} imports {name}"
                for name in imports_of(path)
                if name in RANKS and RANKS[name] > RANKS[part]
            ]
    assert back_edges == []
