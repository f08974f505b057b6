"""In which folders a web server stores parts of files, as far as it was tried: they may be served unlike."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from mpx.errors import Interrupted
from mpx.net.tcp import STOP_INTERVAL_S

_MOST_KNOWN = 10_000  # folders


@dataclass(frozen=True, slots=True)
class PartProof:
    """How a probe went."""

    why_not: str  # parts are not stored; empty where they are
    has_no_folder: bool = False  # there is none of that name, now
    is_passing: bool = False  # what went wrong may go right the next time


class PartStores:
    """What probes have shown of one server. For any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # With `_changed` held:
        self._known: dict[str, PartProof] = {}  # by folder
        self._asking: set[str] = set()  # folders of which somebody finds it out
        self._said: set[str] = set()

    def proof(self, folder: str, ask: Callable[[], PartProof], stop: Callable[[], bool]) -> PartProof:
        """Return whether parts are stored in a folder: the first who wants to know `ask`s.

        Raises what that raises, and Interrupted.
        """
        with self._changed:
            while folder in self._asking:
                self._changed.wait(STOP_INTERVAL_S)
                if stop():
                    raise Interrupted("stopped")
            if folder in self._known:
                return self._known[folder]
            self._asking.add(folder)
        try:
            found = ask()
            if not found.has_no_folder:  # it may be made
                self._keep(folder, found)
        finally:
            with self._changed:
                self._asking.discard(folder)
                self._changed.notify_all()
        return found

    def refused(self, folder: str, why_not: str) -> None:
        """Note that a folder takes no parts of files after all."""
        self._keep(folder, PartProof(why_not))

    def _keep(self, folder: str, proof: PartProof) -> None:
        with self._changed:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[folder] = proof

    def is_news(self, text: str) -> bool:
        """Tell whether this was not said before: it is the same in most folders."""
        with self._changed:
            is_new = text not in self._said
            self._said.add(text)
        return is_new
