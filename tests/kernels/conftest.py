"""A kernel that takes another way on each instruction set, lowered."""

from __future__ import annotations

import pytest

from modelc.kernels.executor import OPCODE_ARGS
from modelc.kernels.jit import kernel
from modelc.kernels.lowering import lowered
from tests.kernels.test_dot import dots


@pytest.fixture(scope="session")
def dots_ir() -> tuple[str, str]:
    return lowered(kernel(dots.py_func), OPCODE_ARGS)  # other tests compile `dots` itself
