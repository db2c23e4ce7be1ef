"""How long work on files tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

# Called as (done_bytes, total_bytes, label) from one thread with ascending `done_bytes`; the label says what is done.
Progress: TypeAlias = Callable[[int, int, str], None]
