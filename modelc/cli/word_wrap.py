"""Text that comes piece by piece, broken into lines between words."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


class WordWrap:
    """Holds a word back until it is whole, and begins a new line where it would not fit.

    Args:
        width: columns of a line; longer words are left to the terminal.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._gap = ""  # white space before the word
        self._word = ""

    def push(self, text: str) -> str:
        """Return what can be written, now that `text` has come too."""
        out = []
        for char in text:
            if char == "\n":
                out += [self._place(), "\n"]
                self._column, self._gap = 0, ""
            elif char.isspace():
                out.append(self._place())
                self._gap += char
            elif columns(char) > 1:  # scripts without spaces break between any two
                out.append(self._place())
                self._word = char
            else:
                self._word += char
        return "".join(out)

    def flush(self) -> str:
        """Return what was held back."""
        return self._place()

    def _place(self) -> str:
        if not self._word:
            return ""
        gap, word = self._gap, self._word
        self._gap = self._word = ""
        if self._column and self._column + columns(gap + word) > self._width:
            self._column = columns(word)
            return f"\n{word}"
        self._column += columns(gap + word)
        return gap + word


def columns(text: str) -> int:
    """Return the columns that `text` takes on a terminal."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
