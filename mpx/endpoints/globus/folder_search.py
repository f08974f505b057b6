"""Looking for some names in a folder that may be long, without listing all of it each time.

Names are asked for in about the order in which the service lists them, so that those that come next are near
those that were found last: the pages of the listing are read from there on, in both directions. Pure.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_NAMES_OF_A_PAGE = 50  # that are asked for one by one at about the cost of a page
_MOST_PLACES = 1000  # folders
FEWEST_PAGES = 4  # that are read
Entry = TypeVar("Entry")


class ListedPlaces:
    """On which page of each folder names were found last. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the next one
        self._pages: dict[str, int] = {}

    def of(self, folder: str) -> int:
        """Return the number of the page to begin with, from 0."""
        with self._lock:
            return self._pages.get(folder, 0)

    def note(self, folder: str, number: int) -> None:
        """Take where a name was found."""
        with self._lock:
            self._pages.pop(folder, None)
            self._pages[folder] = number
            while len(self._pages) > _MOST_PLACES:
                del self._pages[next(iter(self._pages))]


class FolderSearch:
    """The pages of one folder, those nearest to a page first; as many as so many names are worth."""

    def __init__(self, start: int, names: int, page_entries: int, first: int = 0) -> None:
        """`first`: what is on the pages before is known."""
        self._start, self._first, self._page_entries = start, first, page_entries
        self._most = FEWEST_PAGES + names // _NAMES_OF_A_PAGE
        self.page = start  # that was read last
        self.was_useful = False  # whether the last page had some of the names; set by who looks
        self.next_page = start  # going up
        self.saw_all = False  # what was on no page is not there

    @property
    def is_in_order(self) -> bool:
        """Whether pages are read from the first one on.

        In another order an entry is missed that moves to a page that was read, as others come or go.
        """
        return self._start == self._first

    def pages(self, ask: Callable[[int], Sequence[Entry]]) -> Iterator[Sequence[Entry]]:
        """Yield what is on pages, one after the other; `ask` returns that, given the number of a page."""
        below, is_at_end, goes_up = self._start - 1, False, False
        for _ in range(self._most):
            if is_at_end and below < self._first:
                return
            # What comes next is mostly above.
            if not self.was_useful and self.next_page != self._start + 1:
                goes_up = not goes_up
            if not is_at_end and (goes_up or below < self._first):
                self.page, self.next_page = self.next_page, self.next_page + 1
            else:
                self.page, below = below, below - 1
            entries = ask(self.page)
            is_at_end = is_at_end or (self.page >= self._start and len(entries) < self._page_entries)
            self.saw_all, self.was_useful = is_at_end and self.is_in_order, False
            yield entries
