"""The prompts of all engines: random token ids, so that no text is favoured and none is remembered."""

import random

N_IDS = 49_000  # SmolLM2 has 49,152 tokens, the last ones rare; Gemma 3 has more


def prompt_ids(n: int, seed: int) -> list[int]:
    """Return `n` token ids, the same in every engine's Python; a shorter prompt is the beginning of a longer one."""
    draw = random.Random(seed).random  # the one method whose values never change between versions of Python
    return [int(draw() * N_IDS) for _ in range(n)]
