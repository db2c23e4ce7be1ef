"""What a model's answer consists of: reasoning, words, tool calls, told apart while the text comes.

Calls are taken in the forms that model families write: `<tool_call>{…}</tool_call>` (Hermes, Qwen), `[TOOL_CALLS][{…}]`
or `[TOOL_CALLS]name[ARGS]{…}` (Mistral), `<|python_tag|>{…}` and bare JSON at the answer's beginning (Llama 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelc.text.call_reader import CallReader
from modelc.text.tokenizer import Tokenizer

REASONING, REASONED = "<think>", "</think>"
CALLS, PYTHON, MISTRAL = "<tool_call>", "<|python_tag|>", "[TOOL_CALLS]"
CALLED, ARGUMENTS = "</tool_call>", "[ARGS]"
OPENERS = (CALLS, PYTHON, MISTRAL)
MARKERS = (REASONING, REASONED, *OPENERS, CALLED, ARGUMENTS)
MAX_NAME_CHARS = 128

Kind = Literal["content", "reasoning", "call", "arguments"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer.

    Attributes:
        kind: `call`: a call begins, and `text` is the tool's name; `arguments`: more of its arguments' JSON text.
        text: never empty.
        call: which call, counted from 0; 0 also where there is none.
    """

    kind: Kind
    text: str
    call: int = 0


def marker_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Control tokens that must stay in the text for `AnswerReader` to see them."""
    encoded = [tokenizer.encode(marker, add_special=False, parse_special=True) for marker in MARKERS]
    return frozenset(ids[0] for ids in encoded if len(ids) == 1) & tokenizer.special_ids


class AnswerReader:
    """Tells an answer's parts apart.

    Args:
        tools: names of the tools that may be called; without any, nothing is taken for a call.
        is_reasoning: the prompt has opened the reasoning already.
        is_parallel: whether more than one call is wanted; the others are dropped.
        goes_on: words of the reasoning, or of the content, stand before it already, and are none of its own.
    """

    def __init__(
        self,
        tools: frozenset[str] = frozenset(),
        is_reasoning: bool = False,
        is_parallel: bool = True,
        goes_on: bool = False,
    ) -> None:
        self.n_calls = 0
        self._tools = tools
        self._is_parallel = is_parallel
        self._state = self._in_reasoning if is_reasoning else self._in_content if goes_on else self._at_start
        self._held = ""  # text that is not told apart yet
        self._raw = ""  # what was taken for the beginning of calls and is words if there are none
        self._has_reasoned = is_reasoning and goes_on
        self._marker = ""  # the last one, where nothing has come behind it
        self._begins = is_reasoning or not goes_on  # no word and no call has come yet
        self._reader = CallReader(tools)
        self._is_named = False  # the reader's call was told
        self._has_call = False  # there was one since the last words
        self._parts: list[Part] = []

    def push(self, text: str) -> list[Part]:
        """Add text; returns what is certain now."""
        self._held += text
        while self._held and self._state():
            pass
        return self._taken()

    def finish(self) -> list[Part]:
        """End the answer; returns the rest, without what was going to be a further call or the end of one."""
        is_cut = self._has_call and self._state in (self._in_call, self._between_calls)
        if self._state == self._in_reasoning:
            self._tell("reasoning", self._held.rstrip())
        elif self._state == self._in_call and self._is_named:
            self._tell("arguments", self._reader.take_arguments(), self.n_calls)
        elif self._state != self._at_end and not is_cut:
            unread = self._raw + (self._reader.raw if self._state == self._in_call else "") + self._held
            self._tell("content", unread if self._begins or unread.strip() else "")
        self._held = ""
        return self._taken()

    def _taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def _tell(self, kind: Kind, text: str, call: int = 0) -> None:
        if not text:
            return
        last = self._parts[-1] if self._parts else None
        if last is not None and kind != "call" and (last.kind, last.call) == (kind, call):
            self._parts[-1] = Part(kind, last.text + text, call)
        else:
            self._parts.append(Part(kind, text, call))

    # ------------------------------------------------- states: each returns whether the next one has something to read

    def _at_start(self) -> bool:
        text = self._held.lstrip()
        if text.startswith(REASONING):
            self._held = text.removeprefix(REASONING)
            self._state = self._in_reasoning
            return True
        if REASONING.startswith(text):
            return False
        self._state = self._in_content
        return True

    def _in_reasoning(self) -> bool:
        self._held = self._held if self._has_reasoned else self._held.lstrip()
        words, found, rest = self._held.partition(REASONED)
        if found:
            self._tell("reasoning", words.rstrip())
            self._held = rest.lstrip()
            self._state = self._behind_reasoning
            return True
        certain = len(self._held) - _begun(self._held, (REASONED,))
        certain = len(self._held[:certain].rstrip())
        self._tell("reasoning", self._held[:certain])
        self._has_reasoned = self._has_reasoned or certain > 0
        self._held = self._held[certain:]
        return False

    def _behind_reasoning(self) -> bool:
        self._held = self._held.lstrip()
        self._state = self._in_content if self._held else self._state
        return bool(self._held)

    def _in_content(self) -> bool:
        if not self._tools:
            self._tell("content", self._held)
            self._held = ""
            return False
        text = self._held.lstrip()
        if not self._begins and self.n_calls and not text:
            return False  # white space between calls
        if self._begins and (not text or any(opener.startswith(text) for opener in OPENERS)):
            return False
        at = min((at for opener in OPENERS if (at := self._held.find(opener)) >= 0), default=-1)
        if self._begins and text[0] in "{[" and not text.startswith(MISTRAL):
            self._state = self._between_calls
            return True
        if at >= 0:
            self._say(self._held[:at])
            self._held = self._held[at:]
            self._state = self._between_calls
            return True
        certain = len(self._held) - _begun(self._held, OPENERS)
        self._say(self._held[:certain])
        self._held = self._held[certain:]
        return False

    def _say(self, words: str) -> None:
        if words.strip() or not self.n_calls:
            self._tell("content", words)
        if words.strip():
            self._begins = self._has_call = False

    def _between_calls(self) -> bool:
        text = self._held.lstrip()
        if not text or any(marker.startswith(text) and marker != text for marker in (*OPENERS, CALLED)):
            return False
        marker = next((marker for marker in (*OPENERS, CALLED) if text.startswith(marker)), "")
        skipped = len(self._held) - len(text) + (len(marker) or 1)
        if marker or text[0] in ",;[]":
            self._marker = marker
            if not self._has_call:
                self._raw += self._held[:skipped]
            self._held = self._held[skipped:]
            if marker == CALLED and self._has_call:
                self._state = self._in_content
            return True
        if text[0] == "{":
            self._reader, self._is_named = CallReader(self._tools), False
            self._state = self._in_call
            return True
        if self._marker == MISTRAL:
            return self._at_name(text)
        return self._are_words(self._held)

    def _at_name(self, text: str) -> bool:
        """Mistral's newer form: the name, then the arguments alone."""
        brace = text.find("{")
        if brace < 0:
            return len(text) > MAX_NAME_CHARS and self._are_words(self._held)
        name = text[:brace].strip().removesuffix(ARGUMENTS).strip()
        if name not in self._tools:
            return self._are_words(self._held)
        self._reader, self._is_named = CallReader(self._tools, name), False
        self._held = text[brace:]
        self._state = self._in_call
        return True

    def _in_call(self) -> bool:
        reader = self._reader
        read = 0
        for char in self._held:
            reader.push(char)
            read += 1
            if reader.is_done or reader.is_wrong:
                break
        self._held = self._held[read:]
        if reader.is_wrong:
            return self._are_words(reader.raw + self._held)
        if reader.name is not None and not self._is_named:
            arguments = reader.take_arguments()
            if arguments or reader.is_done:
                self._is_named = True
                self._tell("call", reader.name, self.n_calls)
                self._tell("arguments", arguments, self.n_calls)
        elif self._is_named:
            self._tell("arguments", reader.take_arguments(), self.n_calls)
        if reader.is_done:
            self.n_calls += 1
            self._raw, self._begins, self._has_call = "", False, True
            self._state = self._between_calls if self._is_parallel else self._at_end
        return bool(self._held)

    def _are_words(self, text: str) -> bool:
        """Take back that these are calls."""
        self._tell("content", self._raw)
        self._raw, self._held, self._begins, self._has_call = "", text, False, False
        self._state = self._in_words if text else self._in_content
        return True

    def _in_words(self) -> bool:
        """At least one character is no marker."""
        self._tell("content", self._held[:1])
        self._held = self._held[1:]
        self._state = self._in_content
        return True

    def _at_end(self) -> bool:
        self._held = ""
        return False


def _begun(text: str, markers: tuple[str, ...]) -> int:
    """Characters at the end of `text` that may be the beginning of a marker."""
    longest = max(map(len, markers)) - 1
    for n in range(min(longest, len(text)), 0, -1):
        if any(marker.startswith(text[-n:]) for marker in markers):
            return n
    return 0
