"""Where a long text can be cut before byte-pair merging without changing what comes out.

Merging only ever makes texts that are tokens. Where no token has a character just before the space mark, no merge can
reach over that place, and the two sides can be merged, and remembered, each by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "▁"
MAX_JOINING = 64

_BEFORE_MARK = re.compile(f"([^{MARK}\0]){MARK}")


def space_cuts(tokens: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that matches the pieces of any text one after the other; None where cutting would be wrong or useless.

    Args:
        tokens: Every text that merging can give, those between that are no tokens too.
    """
    joining = set(_BEFORE_MARK.findall("\0".join(tokens)))
    if len(joining) > MAX_JOINING:
        return None
    inside = f"[^{MARK}]"
    if not joining:
        return re.compile(f"{MARK}*{inside}+|{MARK}+")
    held = f"(?<=[{''.join(map(re.escape, sorted(joining)))}]){MARK}+"
    return re.compile(f"{MARK}*{inside}+(?:{held}{inside}*)*|{MARK}+")
