"""Lowering leaves Numba as it was."""

from __future__ import annotations


def test_what_a_user_compiles_with_numba_is_optimised_and_loaded_as_ever(dots_ir: tuple[str, str]) -> None:
    import numba

    assert dots_ir
    twice = numba.njit(lambda x: 2 * x)
    assert twice(21) == 42
    (compiled,) = twice.overloads.values()
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) > 0
