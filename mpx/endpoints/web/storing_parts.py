"""Finding out whether a server stores parts of files in a folder, once for each folder and copy."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.part_probe import PartProbe
from mpx.endpoints.web.part_stores import PartProof
from mpx.report import Severity


@dataclass(frozen=True, slots=True)
class StoringParts:
    """For one thread. `connect` returns a connection that nothing is under way on, `drop` closes it."""

    access: WebAccess
    connect: Callable[[], HttpConnection]
    drop: Callable[[], None]
    stop: Callable[[], bool]

    def is_proven(self, folder: str) -> bool:
        """Tell whether parts are stored in a folder; raises ConnectionLost where no connection is had."""
        return not self._proof(folder).why_not

    def is_proven_at_or_above(self, folder: str) -> bool:
        """Tell whether parts are stored in a folder, or in the next above that exists; raises as above."""
        while (proof := self._proof(folder)).has_no_folder and folder not in ("", "/"):
            folder = posixpath.dirname(folder)
        return not proof.why_not

    def _proof(self, folder: str) -> PartProof:
        return self.access.part_stores.proof(folder, lambda: self._ask(folder), self.stop)

    def _ask(self, folder: str) -> PartProof:
        quirks = self.access.quirks
        if quirks is not None and quirks.refuses_parts:  # who may not remove a file would leave one there
            found = PartProof("this server is known to store no parts of files")
        elif (found := self._tried(folder)).is_passing:
            found = self._tried(folder)  # else what an earlier run has stored would be given up
        text = f"one stream for each file: {found.why_not}" if found.why_not else "files are stored in parts"
        if not found.has_no_folder and self.access.part_stores.is_news(text):
            self.access.note(text)
        return found

    def _tried(self, folder: str) -> PartProof:
        probe = PartProbe(self.access, self.stop)
        found = probe.prove(self.connect(), folder)
        if not probe.is_reusable:
            self.drop()
        if probe.left:
            self.access.note(probe.left, Severity.NOTICE)
        return found
