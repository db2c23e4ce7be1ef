"""How Hugging Face's checkpoints name and store an architecture's tensors: for loading them, and for export to GGUF."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """From GGUF's names to Hugging Face's.

    Attributes:
        prefix: Of all names but the head's; checkpoints of the bare model lack it.
        names: By part, what stands for it; `{}` is the layer's number.
        transposed: Parts whose matrices are stored as (inputs, outputs).
        less_one: Parts whose vectors are stored without the 1 that is added to them.
    """

    prefix: str
    names: Mapping[str, str]
    transposed: frozenset[str] = frozenset()
    less_one: frozenset[str] = frozenset()

    def name_of(self, name: str, present: Container[str]) -> str:
        """What a checkpoint with the tensors `present` calls GGUF's `name`; the name itself, if it is no part."""
        part, layer, kind = split_name(name)
        if part not in self.names:
            return name
        full = f"{self.names[part].format(layer)}.{kind}"
        bare = full.removeprefix(self.prefix)
        return bare if bare in present and full not in present else full


def split_name(name: str) -> tuple[str, str, str]:
    """Part, layer ("" outside) and kind of GGUF's name: `blk.3.attn_q.weight` is ("attn_q", "3", "weight")."""
    stem, _, kind = name.rpartition(".")
    if stem.startswith("blk."):
        _, layer, part = stem.split(".", 2)
        return part, layer, kind
    return stem, "", kind
