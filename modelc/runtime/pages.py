"""Pages of keys and values: which are free, and how many sequences hold each."""

from __future__ import annotations

from modelc.errors import BusyError


class PagePool:
    """`n_pages` pages with reference counts.

    Attributes:
        n_pages: pages in all.
    """

    def __init__(self, n_pages: int) -> None:
        self.n_pages = n_pages
        self._free = list(range(n_pages - 1, -1, -1))
        self._holders = [0] * n_pages

    @property
    def n_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def take(self) -> int:
        """A free page, held once.

        Raises:
            BusyError: none is left.
        """
        if not self._free:
            raise BusyError("the memory for keys and values is used up", hint="wait for other requests to finish")
        page = self._free.pop()
        self._holders[page] = 1
        return page

    def share(self, page: int) -> None:
        """One more sequence holds `page`."""
        self._holders[page] += 1

    def is_shared(self, page: int) -> bool:
        """Whether more than one sequence holds `page`."""
        return self._holders[page] > 1

    def give(self, page: int) -> None:
        """A sequence lets go of `page`."""
        self._holders[page] -= 1
        if self._holders[page] == 0:
            self._free.append(page)
