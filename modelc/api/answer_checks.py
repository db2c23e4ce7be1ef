"""Finished answers against their JSON schema: what does not match is generated once more, at a higher temperature."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from modelc.api.answer_format import AnswerFormat
from modelc.errors import BadInputError, ModelcError

if TYPE_CHECKING:
    from modelc.runtime import Chunk, Generation

MAX_REPEATS = 3
WARMER = 0.3  # added to the temperature for each time


class AnswerChecks:
    """The chunks of one request's generations on their way to the client.

    Where the mask follows the schema itself, chunks pass as they come. Where something else masks the tokens, or
    nobody reads them before the end, they are held until the answer has been checked.

    Args:
        wanted: The form of the answers.
        holds: Whether chunks may wait for the end.
        repeat: Starts generation `index` again, so much warmer.
    """

    def __init__(self, wanted: AnswerFormat, holds: bool, repeat: Callable[[int, float], None]) -> None:
        self._wanted = wanted
        self._holds = holds or wanted.is_checked_only
        self._repeat = repeat
        self._texts: dict[int, list[str]] = {}
        self._held: dict[int, list[Chunk]] = {}
        self._repeats: dict[int, int] = {}

    async def passed(self, index: int, chunk: Chunk, generation: Generation) -> Sequence[Chunk]:
        """Return the chunks of generation `index` that may go on now that `chunk` has come.

        Raises:
            BadInputError: No answer matches both the grammar and the schema.
        """
        if self._wanted.check is None:
            return (chunk,)
        self._texts.setdefault(index, []).append(chunk.text)
        held = self._held.setdefault(index, [])
        held.append(chunk)
        if chunk.finish_reason == "stop" and generation.stop_string is None:
            text = "".join(self._texts[index])
            fault = await asyncio.get_running_loop().run_in_executor(None, self._wanted.mismatch, text)
            if fault is not None:
                self._begin_again(index, fault)
                return ()
        if not self._holds or chunk.finish_reason is not None:
            self._held[index] = []
            return held
        return ()

    def _begin_again(self, index: int, fault: str) -> None:
        repeats = self._repeats[index] = self._repeats.get(index, 0) + 1
        if not self._holds or repeats > MAX_REPEATS:
            raise self._error(fault)
        self._texts[index], self._held[index] = [], []
        self._repeat(index, repeats * WARMER)

    def _error(self, fault: str) -> ModelcError:
        if self._wanted.is_checked_only:
            what = f"{MAX_REPEATS + 1} answers match the grammar, and none the schema"
            hint = "let the grammar allow what the schema asks"
            return BadInputError(what, param="json_schema", got=fault, hint=hint)
        return ModelcError("the answer does not match the schema", param="json_schema", got=fault)
