"""Which attention heads can be computed."""

from __future__ import annotations

from modelc.errors import BadFileError, UnsupportedError


def check_split(dim: int, n_heads: int) -> None:
    """Raise UnsupportedError unless `dim` columns are `n_heads` heads of whole vectors."""
    if dim % n_heads or dim // n_heads % 16:
        raise UnsupportedError(
            "attention heads", expected="a size divisible by 16", got=f"{dim} columns in {n_heads} heads"
        )


def check_groups(n_heads: int, n_kv_heads: int) -> None:
    """Raise BadFileError unless each kv head serves as many heads as the others."""
    if n_heads % n_kv_heads:
        raise BadFileError("number of kv heads", expected=f"a divisor of {n_heads} heads", got=str(n_kv_heads))
